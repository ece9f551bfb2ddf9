"""Who spent what of a stream's budget, over all time: charges that stand, added up as they come
into the index.

A charge takes a share of the stream's epsilon at every point of its blocks and tags: how high times
how wide is what it spent. Charges of one holder that took the same are one row of the metadata, so
that a charge that is given back is subtracted exactly and the largest one is still known. All
public: the book never depends on records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import lru_cache

from ptklib.ledger.slices import TAG_SPACE
from ptklib.ledger.state import Entry
from ptklib.privacy.filters import Filter
from ptkstore.api.views import Spender
from ptkstore.engine.parts import Parts
from ptkstore.metadata.work.charges import SpentRow, SpentSum

__all__ = ["Share", "Spenders", "share_of", "sums_of"]

Share = Callable[[tuple[int, ...]], float]
_PURPOSES = {
    "door:count": "count",
    "door:profile": "profile",
    "door:ptk": "training",
    "door:validate": "validation",
}
_NANO = 10**9
# Parts of a block's tags that areas are counted in: fine enough to see, and the sum of a long
# history fits 63 bits.
_AREA = 1 << 20
_MOST_SPENDERS = 50
# Losses whose shares are remembered.
_LOSSES = 100_000
Spent = tuple[tuple[Spender, ...], tuple[Spender, ...], int]


def share_of(privacy_filter: Filter) -> Share:
    """The share of a stream's epsilon that a loss amounts to; remembered, for equal losses come
    again and again.
    """
    epsilon = float(privacy_filter.epsilon)

    @lru_cache(maxsize=_LOSSES)
    def share(loss: tuple[int, ...]) -> float:
        return privacy_filter.spent(loss)[0] / epsilon

    return share


def sums_of(parts: Parts, reserved: Iterable[Entry], released: Iterable[Entry]) -> list[SpentRow]:
    """What these entries of reservations add to the sums, those that were made and those that were
    given back.
    """
    shares: dict[str, Share] = {}
    charges: dict[tuple[str, str, str, int], int] = defaultdict(int)
    areas: dict[tuple[str, str, str, int], int] = defaultdict(int)
    for entries, sign in ((reserved, 1), (released, -1)):
        for entry in entries:
            stream = entry["stream"]
            if stream not in shares:
                shares[stream] = share_of(parts.ledger.streams()[stream].filter())
            took = round(_NANO * shares[stream](tuple(entry["demand"])))
            key = (stream, *_who(entry.get("contexts", ())), took)
            charges[key] += sign
            areas[key] += sign * _area(entry)
    return [SpentRow(*key, charges[key], areas[key]) for key in charges]


class Spenders:
    """Who spent most, by stream; kept until there are newer entries."""

    def __init__(self, parts: Parts) -> None:
        """Nothing is read yet."""
        self._parts = parts
        self._known: dict[str, tuple[object, Spent]] = {}

    def of(self, stream: str) -> Spent:
        """Those who spent most, first; the purposes with what they spent; and how many holders
        there are. The index must be up to date.
        """
        with self._parts.metadata.read() as tx:
            head = tx.charges.head()
            known = self._known.get(stream)
            if known is None or known[0] != head:
                most = tx.charges.spent(stream, limit=_MOST_SPENDERS)
                purposes, holders = tx.charges.spent_by_purpose(stream)
                total = sum(purpose.spent for purpose in purposes) or 1.0
                told = (
                    tuple(_told(holder, total) for holder in most),
                    tuple(_told(purpose, total) for purpose in purposes),
                    holders,
                )
                known = self._known[stream] = (head, told)
        return known[1]


def _told(spent_sum: SpentSum, total: float) -> Spender:
    return Spender(
        spent_sum.who,
        spent_sum.purpose,
        spent_sum.charges,
        round(spent_sum.most_nano / _NANO, 6),
        round(spent_sum.spent / total, 6),
    )


def _area(entry: Entry) -> int:
    """Blocks times tags, a whole block being `_AREA`."""
    return sum(
        sum(number for _, number in runs) * (stop - start) * _AREA // TAG_SPACE
        for runs, start, stop in entry["slices"]
    )


def _who(contexts: Iterable[str]) -> tuple[str, str]:
    """The PTK, or what was done; and the purpose."""
    purpose, ptk = "other", ""
    for context in contexts:
        purpose = _PURPOSES.get(context, purpose)
        ptk = context.removeprefix("ptk:") if context.startswith("ptk:") else ptk
    return (
        ("counts of blocks", purpose)
        if purpose == "count"
        else (ptk or "charges of no PTK", purpose)
    )
