"""Who spent what of a stream's budget, over all time: charges that stand, added up as they come into the index.

A charge takes a share of the stream's epsilon at every point of its blocks and tags: how high times how wide is what it spent.
Charges of one holder that took the same are one row of the metadata, so that a charge that is given back is subtracted exactly
and the largest one is still known. All public: the book never depends on records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from ptklib.ledger.slices import TAG_SPACE
from ptklib.ledger.state import Entry
from ptkstore.engine.home import Home
from ptkstore.metadata.charges import SpentRow, SpentSum
from ptkstore.views import Spender

__all__ = ["Share", "share_of", "spenders", "sums_of"]

Share = Callable[[tuple[int, ...]], float]
_PURPOSES = {"door:count": "count", "door:profile": "profile", "door:ptk": "training"}
_NANO = 10**9
# Parts of a block's tags that areas are counted in: fine enough to see, and the sum of a long history fits 63 bits.
_AREA = 1 << 20
_MOST_SPENDERS = 50


def share_of(home: Home, stream: str) -> Share:
    """The share of the stream's epsilon that a loss amounts to; remembered, for equal losses come again and again."""
    if stream not in home.judges:
        home.judges[stream] = home.ledger.streams()[stream].filter()
    judge = home.judges[stream]
    epsilon = float(judge.epsilon)
    known = home.shares.setdefault(stream, {})
    if len(known) > 100_000:
        known.clear()

    def share(loss: tuple[int, ...]) -> float:
        found = known.get(loss)
        if found is None:
            found = known[loss] = judge.spent(loss)[0] / epsilon
        return found

    return share


def sums_of(home: Home, reserved: Iterable[Entry], released: Iterable[Entry]) -> list[SpentRow]:
    """What these entries of reservations add to the sums, those that were made and those that were given back."""
    shares: dict[str, Share] = {}
    charges: dict[tuple[str, str, str, int], int] = defaultdict(int)
    areas: dict[tuple[str, str, str, int], int] = defaultdict(int)
    for entries, sign in ((reserved, 1), (released, -1)):
        for entry in entries:
            stream = entry["stream"]
            if stream not in shares:
                shares[stream] = share_of(home, stream)
            took = round(_NANO * shares[stream](tuple(entry["demand"])))
            key = (stream, *_who(entry.get("contexts", ())), took)
            charges[key] += sign
            areas[key] += sign * _area(entry)
    return [SpentRow(*key, charges[key], areas[key]) for key in charges]


def spenders(home: Home, stream: str) -> tuple[tuple[Spender, ...], tuple[Spender, ...], int]:
    """Those who spent most, first; the purposes with what they spent; and how many holders there are. The index must be up to
    date. Kept until there are newer entries."""
    with home.metadata.read() as tx:
        head = tx.charges.head()
        known = home.spenders.get(stream)
        if known is None or known[0] != head:
            most = tx.charges.spent(stream, limit=_MOST_SPENDERS)
            purposes, holders = tx.charges.spent_by_purpose(stream)
            total = sum(one.spent for one in purposes) or 1.0
            told = tuple(_told(one, total) for one in most), tuple(_told(one, total) for one in purposes), holders
            known = home.spenders[stream] = (head, told)
    return known[1]


def _told(one: SpentSum, total: float) -> Spender:
    return Spender(one.who, one.purpose, one.charges, round(one.most_nano / _NANO, 6), round(one.spent / total, 6))


def _area(entry: Entry) -> int:
    """Blocks times tags, a whole block being `_AREA`."""
    return sum(
        sum(number for _, number in runs) * (stop - start) * _AREA // TAG_SPACE for runs, start, stop in entry["slices"]
    )


def _who(contexts: Iterable[str]) -> tuple[str, str]:
    """The PTK, or what was done; and the purpose."""
    purpose, ptk = "other", ""
    for one in contexts:
        purpose = _PURPOSES.get(one, purpose)
        ptk = one.removeprefix("ptk:") if one.startswith("ptk:") else ptk
    return ("counts of blocks", purpose) if purpose == "count" else (ptk or "charges of no PTK", purpose)
