"""The ledger as a map: what was spent at blocks and ranges of tags, and who spent it. Reason:
PAGE_INVALID.

All public: the book never depends on records. Several blocks that share a column are told by the
largest loss of them, and a range of tags by the largest loss in it, so that nothing looks less
spent than it is.

The book keeps one number of a closed block, its highest loss. What lies below it is put together
again from the newest entries of the journal, where these reach back to the first charge on the
block: then the highest loss of what was put together is the one that the book kept. Where they do
not, the column is ``flat``: its highest loss, at every tag.
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
from ptkstore.api.limits import MAP_BLOCKS, MAP_BLOCKS_MOST
from ptkstore.api.views import LedgerColumn, LedgerMap
from ptkstore.engine.budgets.charges import index_charges
from ptkstore.engine.budgets.spending import Share, Spenders, share_of
from ptkstore.engine.parts import Parts
from ptkstore.ledger.ledger import BlockLoss
from ptkstore.metadata.work.charges import ChargeRow

__all__ = ["ROWS", "LedgerMaps"]

ROWS = 32
# Entries of the journal that are looked at, and reserved ones among them that are put together.
_ENTRIES = 1000
_EDGES = np.linspace(0.0, float(TAG_SPACE), ROWS + 1)
_Row = NDArray[np.float64]
_Newest = tuple[list[Charge], int, int]


@dataclass(frozen=True)
class _Shares:
    """What was spent at a block: the largest share in each range of tags, and the mean over all
    tags.
    """

    rows: _Row
    mean: float


class LedgerMaps:
    """Draws maps of the ledger. Remembers what it read of the journal until there is more, for maps
    are looked at again and again.
    """

    def __init__(self, parts: Parts) -> None:
        """Nothing is read yet."""
        self._parts = parts
        self._newest_charges: dict[str, tuple[object, _Newest]] = {}
        self._spenders = Spenders(parts)
        self._shares: dict[str, Share] = {}

    def of(self, stream: str, *, begin: int | None, count: int) -> LedgerMap:
        """The map of ``count`` blocks from place ``begin`` on; of the newest ones without it.

        Refused: STREAM_UNKNOWN.
        """
        self._parts.specs.named(stream)
        if not 1 <= count <= MAP_BLOCKS_MOST or (begin is not None and begin < 0):
            raise InvalidInput(
                "PAGE_INVALID",
                f"count must be from 1 to {MAP_BLOCKS_MOST} and begin from 0, got {count}, {begin}",
            )
        parts = self._parts
        total, first, blocks = parts.ledger.losses(stream, begin, count)
        charges, entries, oldest = self._newest(stream)
        most, purposes, holders = self._spenders.of(stream)
        width = parts.privacy_filter(stream).width
        rebuilt = _Rebuilt(charges, width, range(first, first + len(blocks)))
        windows = _windows(parts, stream, [block.name for block in blocks[:: _wide(len(blocks))]])
        return LedgerMap(
            stream=stream,
            begin=first,
            count=len(blocks),
            blocks=total,
            columns=_columns(_looked_at(blocks, rebuilt, self._share(stream)), windows),
            spenders=most,
            entries=entries,
            oldest_entry=oldest,
            purposes=purposes,
            holders=holders,
        )

    def _share(self, stream: str) -> Share:
        if stream not in self._shares:
            self._shares[stream] = share_of(self._parts.privacy_filter(stream))
        return self._shares[stream]

    def _newest(self, stream: str) -> _Newest:
        """The charges that stand among the newest entries, oldest first; how many entries, and the
        number of the oldest.
        """
        index_charges(self._parts)
        with self._parts.metadata.read() as tx:
            head = tx.charges.head()
            known = self._newest_charges.get(stream)
            if known is not None and known[0] == head:
                return known[1]
            rows = tx.charges.newest(stream, limit=_ENTRIES)
        newest = _read(self._parts, rows)
        self._newest_charges[stream] = (head, newest)
        return newest


def _looked_at(
    blocks: Sequence[BlockLoss], rebuilt: _Rebuilt, share: Share
) -> list[tuple[BlockLoss, _Shares, bool]]:
    """What was spent at each block, and whether no more than its largest loss is known."""
    memory: dict[tuple[tuple[int, ...], bytes], _Shares] = {}

    def shares(loss: LossMap) -> _Shares:
        known = (tuple(loss.starts), loss.rows.tobytes())
        if known not in memory:
            memory[known] = _judge(loss, share)
        return memory[known]

    looked: list[tuple[BlockLoss, _Shares, bool]] = []
    for block in blocks:
        fuller = rebuilt.of(block) if block.retired else None
        flat = block.retired and fuller is None and bool(block.loss.rows.any())
        looked.append((block, shares(fuller or block.loss), flat))
    return looked


def _wide(blocks: int) -> int:
    """How many blocks share a column."""
    return max(1, -(-blocks // MAP_BLOCKS))


def _columns(
    losses: Sequence[tuple[BlockLoss, _Shares, bool]], windows: dict[str, int]
) -> tuple[LedgerColumn, ...]:
    wide = _wide(len(losses))
    columns = []
    for begin in range(0, len(losses), wide):
        some = losses[begin : begin + wide]
        highest = np.max([shares.rows for _, shares, _ in some], axis=0)
        columns.append(
            LedgerColumn(
                first=some[0][0].name,
                last=some[-1][0].name,
                window=windows.get(some[0][0].name, 0),
                blocks=len(some),
                retired=sum(block.retired for block, _, _ in some),
                shares=tuple(round(float(share), 6) for share in highest),
                mean=round(sum(shares.mean for _, shares, _ in some) / len(some), 6),
                flat=any(flat for _, _, flat in some),
            )
        )
    return tuple(columns)


def _windows(parts: Parts, stream: str, names: list[str]) -> dict[str, int]:
    with parts.metadata.read() as tx:
        return tx.blocks.windows(stream, names)


def _read(parts: Parts, rows: Sequence[ChargeRow]) -> _Newest:
    commits = {
        commit.seq: commit.entries for commit in parts.ledger.commits(row.seq for row in rows)
    }
    released = {row.charge for row in rows if row.kind == "release"}
    standing = [
        row for row in reversed(rows) if row.kind == "reserve" and row.charge not in released
    ]
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
    return _Shares(
        np.array([values[low:high].max() for low, high in zip(first, last, strict=True)]), mean
    )


class _Rebuilt:
    """Losses of blocks put together from charges.

    Charges that cover the same run of blocks are laid on one map.
    """

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
                        for place in range(
                            max(run[0], places.start), min(run[0] + run[1], places.stop)
                        ):
                            self._over[place].append(run)
                    self._runs[run].add(tags, charge.demand)
        self._together: dict[tuple[tuple[int, int], ...], LossMap] = {}

    def of(self, block: BlockLoss) -> LossMap | None:
        """The loss of a closed block, or None where some of its charges are older than what was put
        together.
        """
        here = tuple(self._over.get(block.index, ()))
        if not here:
            return None
        if here not in self._together:
            self._together[here] = self._sum([self._runs[run] for run in here])
        loss_map = self._together[here]
        return loss_map if np.array_equal(loss_map.peak(), block.loss.peak()) else None

    def _sum(self, maps: Sequence[LossMap]) -> LossMap:
        if len(maps) == 1:
            return maps[0]
        whole = LossMap.empty(self._width)
        for map_ in maps:
            for (start, stop), row in zip(
                pairwise([*map_.starts, TAG_SPACE]), map_.rows, strict=True
            ):
                whole.add(TagRange(start, stop), row)
        return whole
