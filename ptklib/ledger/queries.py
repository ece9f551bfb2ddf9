"""What is left, where.

Pure reads of the state; every answer is public, for the book never depends on the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ptklib.errors import Refused
from ptklib.ledger.lookup import stream_of
from ptklib.ledger.slices import WHOLE, Slice, TagRange
from ptklib.ledger.state import Block, LedgerState, Stream
from ptklib.privacy.costs import Cost

__all__ = ["BlockView", "Rest", "affordable", "block_view", "fate", "find", "left", "peak", "rests"]

_FATES = ("RESERVED", "SPENT", "RELEASED")


@dataclass(frozen=True)
class BlockView:
    """One block as the book has it.

    ``left`` is for one more pure charge at the worst tag; ``losses`` per tag range.
    """

    name: str
    retired: str | None
    left: Fraction
    losses: tuple[tuple[TagRange, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class Rest:
    """What is left of one block for one more pure charge, and why it takes none where it was
    closed.
    """

    left: Fraction
    retired: str | None


def left(state: LedgerState, stream: str, slice_: Slice) -> Fraction:
    """The largest pure epsilon that one more charge on the whole slice could have; 0 where a block
    is retired.
    """
    stream_state = stream_of(state, stream)
    return min(
        _left(stream_state, _block(stream_state, name), slice_.tags) for name in slice_.blocks
    )


def affordable(state: LedgerState, stream: str, cost: Cost, tags: TagRange = WHOLE) -> list[str]:
    """The living blocks, in order, that could carry ``cost`` on all of ``tags`` (each by
    itself).
    """
    stream_state = stream_of(state, stream)
    blocks = list(stream_state.alive.values())
    if not blocks:
        return []
    losses = [block.loss.within(tags) for block in blocks]
    admitted = stream_state.filter.admits(
        np.concatenate(losses), np.array(stream_state.filter.demand(cost), dtype=np.int64)
    )
    begins = np.concatenate(([0], np.cumsum([len(rows) for rows in losses])[:-1]))
    return [blocks[at].name for at in np.flatnonzero(np.logical_and.reduceat(admitted, begins))]


def peak(
    state: LedgerState, stream: str, blocks: Sequence[str], tags: TagRange = WHOLE
) -> tuple[int, ...]:
    """The largest loss per component over the points of some blocks whose tags lie within a
    range.
    """
    stream_state = stream_of(state, stream)
    rows = [_block(stream_state, name).loss.within(tags).max(axis=0) for name in blocks]
    highest = (
        np.array(rows, dtype=np.int64).max(axis=0)
        if rows
        else np.zeros(stream_state.filter.width, dtype=np.int64)
    )
    return tuple(highest.tolist())


def block_view(state: LedgerState, stream: str, name: str) -> BlockView:
    """One block with its losses range by range."""
    stream_state = stream_of(state, stream)
    block = _block(stream_state, name)
    return BlockView(
        name, block.retired, _left(stream_state, block, WHOLE), tuple(block.loss.segments())
    )


def rests(
    state: LedgerState,
    stream: str,
    names: Iterable[str],
    judged: dict[bytes, Fraction] | None = None,
) -> dict[str, Rest]:
    """What is left of some blocks; names that the book does not have are left out.

    Equal losses are judged once: ``judged`` remembers them for the next time, for the filter of a
    stream never changes.
    """
    stream_state = stream_of(state, stream)
    judged = {} if judged is None else judged
    answer: dict[str, Rest] = {}
    for name in names:
        block = stream_state.by_name.get(name)
        if block is None:
            continue
        rows = block.loss.within(WHOLE)
        known = rows.tobytes()
        if block.retired is None and known not in judged:
            judged[known] = _left(stream_state, block, WHOLE)
        answer[name] = Rest(judged[known] if block.retired is None else Fraction(0), block.retired)
    return answer


def fate(state: LedgerState, charge: int) -> str:
    """RESERVED, SPENT or RELEASED."""
    if not 0 <= charge < len(state.fates):
        raise Refused("CHARGE_UNKNOWN", f"there is no charge {charge}", charge=charge)
    return _FATES[state.fates[charge]]


def find(state: LedgerState, stream: str, key: str) -> int | None:
    """The charge that a key belongs to while it is reserved or spent, or None."""
    return stream_of(state, stream).keys.get(key)


def _left(stream: Stream, block: Block, tags: TagRange) -> Fraction:
    if block.retired is not None:
        return Fraction(0)
    distinct: Sequence[list[int]] = np.unique(block.loss.within(tags), axis=0).tolist()
    return min(stream.filter.left(row) for row in distinct)


def _block(stream: Stream, name: str) -> Block:
    if name not in stream.by_name:
        raise Refused(
            "BLOCK_UNKNOWN", f"stream {stream.name!r} has no block {name!r}", blocks=[name]
        )
    return stream.by_name[name]
