"""How far data has arrived; seal what is due, and take the one DP count of every block of a window.

All blocks of a window are counted with one charge: they are disjoint, so it costs each of them the
price of one count. A count that was charged and then lost in a crash stays charged; its block
counts as 0, and nothing is counted twice.

Reason: CLOCK_IMPLAUSIBLE.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ptklib.errors import Refused
from ptklib.ledger.slices import Slice
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.parts import Parts
from ptkstore.metadata.rows import BlockRow
from ptkstore.streams import StreamReader
from ptkstore.streams.spans import Spans

__all__ = ["Counted", "arrived_until", "count_blocks", "seal_due", "window_of"]


def window_of(spec: StreamSpec, start_ms: int) -> int:
    """The number of the window that a moment lies in, counted from 1970."""
    return start_ms // (spec.window_seconds * 1000)


def arrived_until(parts: Parts, spec: StreamSpec, until_ms: int | None) -> int:
    """How far all data has arrived: what somebody says, or the clock less the lateness, if it is
    plausible. Refused: CLOCK_IMPLAUSIBLE.
    """
    lateness_ms = spec.lateness_seconds * 1000
    if until_ms is None:
        return parts.clock_guard.now_ms() - lateness_ms
    if type(until_ms) is int:
        parts.clock_guard.declared(until_ms, lateness_ms)
    return until_ms


def seal_due(parts: Parts, stream: str, until_ms: int) -> list[int]:
    """Seal blocks whose span has ended, and return the windows that are complete and not yet done,
    oldest first.
    """
    spec = parts.specs[stream]
    writer = parts.writer(stream)
    writer.seal_due(until_ms)
    spans = Spans(spec)
    with parts.journal.writing() as tx:
        # What is held is little beside all that ever was.
        held = writer.sealed()
        known = tx.blocks.closed(stream, held)
        for name in held:
            if name not in known:
                start_ms = spans.number(name) * spans.span_ms
                tx.blocks.put(
                    stream, name, start_ms, start_ms + spans.span_ms, window_of(spec, start_ms)
                )
                tx.blocks.set_status(stream, name, "sealed")
    with parts.metadata.read() as tx:
        waiting = {block.window for block in tx.blocks.list(stream, status="sealed")}
        waiting |= {cycle.window for cycle in tx.cycles.unfinished(stream)}
    return sorted(
        window
        for window in waiting
        if (window + 1) * spec.window_seconds * 1000 <= writer.watermark_ms
    )


@dataclass(frozen=True)
class Counted:
    """The DP counts of blocks that had none, to be written with the step; ``lost`` where they were
    charged and nobody knows them: then each is 0.
    """

    counts: Mapping[str, int]
    lost: bool = False


def count_blocks(parts: Parts, spec: StreamSpec, blocks: Sequence[BlockRow], cycle: int) -> Counted:
    """Add the blocks to the ledger, charge one count for those that have none, and take it.

    Unit and sensitivity: those of `StreamSpec.count_release`. Cost: its ``cost``, once for all.
    """
    names = [block.name for block in blocks]
    known = set(parts.ledger.blocks(spec.name))
    fresh = [name for name in names if name not in known]
    if fresh:
        parts.ledger.add_blocks(spec.name, fresh)
    missing = [block.name for block in blocks if block.dp_count is None]
    if not missing:
        return Counted({})
    parts.observers.tell("sealed", "added")
    try:
        cost = spec.count_release().cost
        slices = [Slice(tuple(missing))]
        grant = parts.ledger.reserve(
            spec.name,
            slices,
            cost,
            contexts=("door:count",),
            key=f"cycle-{cycle}/count",
            ttl_seconds=24 * 3600,
        )
        counted = Counted(StreamReader(parts.path, spec).count_blocks(grant, parts.ledger))
    except Refused as refusal:
        if refusal.reason not in ("KEY_REUSED", "GRANT_USED"):
            raise
        counted = Counted(dict.fromkeys(missing, 0), lost=True)
    parts.observers.tell("sealed", "counted")
    return counted
