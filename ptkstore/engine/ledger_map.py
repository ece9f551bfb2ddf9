"""The ledger as a map: what was spent at blocks and ranges of tags, and who spent it. Reason: PAGE_INVALID.

All public: the book never depends on records. Several blocks that share a column are told by the largest loss of them, and a
range of tags by the largest loss in it, so that nothing looks less spent than it is.

The book keeps one number of a closed block, its highest loss. What lies below it is put together again from the newest entries
of the journal, where these reach back to the first charge on the block: then the highest loss of what was put together is the
one that the book kept. Where they do not, the column is ``flat``: its highest loss, at every tag.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.ledger.loss_map import LossMap
from ptklib.ledger.slices import TAG_SPACE, TagRange
from ptklib.ledger.state import Charge
from ptkstore.engine.charges import index_charges
from ptkstore.engine.home import Home
from ptkstore.engine.spending import Share, share_of, spenders
from ptkstore.ledger.book import BlockLoss
from ptkstore.metadata.charges import ChargeRow
from ptkstore.views import LedgerColumn, LedgerMap

__all__ = ["COLUMNS", "MOST_BLOCKS", "ROWS", "ledger_map"]

COLUMNS = 96
ROWS = 32
MOST_BLOCKS = 2000
# Entries of the journal that are looked at, and reserved ones among them that are put together.
_ENTRIES = 1000
_EDGES = np.linspace(0.0, float(TAG_SPACE), ROWS + 1)
_Row = NDArray[np.float64]
_Newest = tuple[list[Charge], int, int]


@dataclass(frozen=True)
class _Shares:
    """What was spent at a block: the largest share in each range of tags, and the mean over all tags."""

    rows: _Row
    mean: float


def ledger_map(home: Home, stream: str, *, begin: int | None, count: int) -> LedgerMap:
    """The map of ``count`` blocks from place ``begin`` on; of the newest ones without it."""
    if not 1 <= count <= MOST_BLOCKS or (begin is not None and begin < 0):
        raise InvalidInput(
            "PAGE_INVALID", f"count must be from 1 to {MOST_BLOCKS} and begin from 0, got {count}, {begin}"
        )
    total, first, blocks = home.ledger.losses(stream, begin, count)
    charges, entries, oldest = _newest(home, stream)
    share = share_of(home, stream)
    most, purposes, holders = spenders(home, stream)
    rebuilt = _Rebuilt(charges, home.judge(stream).width, range(first, first + len(blocks)))
    memory: dict[tuple[tuple[int, ...], bytes], _Shares] = {}

    def shares(loss: LossMap) -> _Shares:
        known = (tuple(loss.starts), loss.rows.tobytes())
        if known not in memory:
            memory[known] = _judge(loss, share)
        return memory[known]

    found: list[tuple[BlockLoss, _Shares, bool]] = []
    for one in blocks:
        fuller = rebuilt.of(one) if one.retired else None
        flat = one.retired and fuller is None and bool(one.loss.rows.any())
        found.append((one, shares(fuller or one.loss), flat))
    windows = _windows(home, stream, [one.name for one in blocks[:: _wide(len(blocks))]])
    return LedgerMap(
        stream=stream,
        begin=first,
        count=len(blocks),
        blocks=total,
        columns=_columns(found, windows),
        spenders=most,
        entries=entries,
        oldest_entry=oldest,
        purposes=purposes,
        holders=holders,
    )


def _wide(blocks: int) -> int:
    """How many blocks share a column."""
    return max(1, -(-blocks // COLUMNS))


def _columns(found: Sequence[tuple[BlockLoss, _Shares, bool]], windows: dict[str, int]) -> tuple[LedgerColumn, ...]:
    wide = _wide(len(found))
    columns = []
    for begin in range(0, len(found), wide):
        some = found[begin : begin + wide]
        highest = np.max([one.rows for _, one, _ in some], axis=0)
        columns.append(
            LedgerColumn(
                first=some[0][0].name,
                last=some[-1][0].name,
                window=windows.get(some[0][0].name, 0),
                blocks=len(some),
                retired=sum(block.retired for block, _, _ in some),
                shares=tuple(round(float(one), 6) for one in highest),
                mean=round(sum(one.mean for _, one, _ in some) / len(some), 6),
                flat=any(flat for _, _, flat in some),
            )
        )
    return tuple(columns)


def _windows(home: Home, stream: str, names: list[str]) -> dict[str, int]:
    with home.metadata.read() as tx:
        return tx.blocks.windows(stream, names)


def _newest(home: Home, stream: str) -> _Newest:
    """The charges that stand among the newest entries, oldest first; how many entries, and the number of the oldest. Kept until
    there are newer ones."""
    index_charges(home)
    with home.metadata.read() as tx:
        head = tx.charges.head()
        known = home.newest_charges.get(stream)
        rows = () if known is not None and known[0] == head else tx.charges.newest(stream, limit=_ENTRIES)
    if known is None or known[0] != head:
        known = home.newest_charges[stream] = (head, _read(home, rows))
    found: _Newest = known[1]
    return found


def _read(home: Home, rows: Sequence[ChargeRow]) -> _Newest:
    commits = {one.seq: one.entries for one in home.ledger.commits(row.seq for row in rows)}
    released = {row.charge for row in rows if row.kind == "release"}
    standing = [row for row in reversed(rows) if row.kind == "reserve" and row.charge not in released]
    return (
        [Charge.from_json(commits[row.seq][row.place]) for row in standing],
        len(rows),
        min((row.number for row in rows), default=0),
    )


def _judge(loss: LossMap, share: Share) -> _Shares:
    values = np.array([share(tuple(row)) for row in loss.rows.tolist()])
    starts = np.array([*loss.starts, TAG_SPACE], dtype=np.float64)
    mean = float(values @ np.diff(starts)) / TAG_SPACE
    if len(values) == 1:
        return _Shares(np.full(ROWS, values[0]), mean)
    first = np.searchsorted(starts, _EDGES[:-1], side="right") - 1
    last = np.searchsorted(starts, _EDGES[1:], side="left")
    return _Shares(np.array([values[low:high].max() for low, high in zip(first, last, strict=True)]), mean)


class _Rebuilt:
    """Losses of blocks put together from charges. Charges that cover the same run of blocks are laid on one map."""

    def __init__(self, charges: Sequence[Charge], width: int, places: range) -> None:
        self._width = width
        self._over: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._runs: dict[tuple[int, int], LossMap] = {}
        for charge in charges:
            for runs, tags in charge.slices:
                for run in runs:
                    if run[0] >= places.stop or run[0] + run[1] <= places.start:
                        continue
                    if run not in self._runs:
                        self._runs[run] = LossMap.empty(width)
                        for place in range(max(run[0], places.start), min(run[0] + run[1], places.stop)):
                            self._over[place].append(run)
                    self._runs[run].add(tags, charge.demand)
        self._together: dict[tuple[tuple[int, int], ...], LossMap] = {}

    def of(self, block: BlockLoss) -> LossMap | None:
        """The loss of a closed block, or None where some of its charges are older than what was put together."""
        here = tuple(self._over.get(block.index, ()))
        if not here:
            return None
        if here not in self._together:
            self._together[here] = self._sum([self._runs[run] for run in here])
        found = self._together[here]
        return found if np.array_equal(found.peak(), block.loss.peak()) else None

    def _sum(self, maps: Sequence[LossMap]) -> LossMap:
        if len(maps) == 1:
            return maps[0]
        whole = LossMap.empty(self._width)
        for one in maps:
            for (start, stop), row in zip(pairwise([*one.starts, TAG_SPACE]), one.rows, strict=True):
                whole.add(TagRange(start, stop), row)
        return whole
