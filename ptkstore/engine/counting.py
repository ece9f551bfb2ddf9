"""How far data has arrived; seal what is due, and give every block of a window its one DP count.

All blocks of a window are counted with one charge: they are disjoint, so it costs each of them the price of one count. A
count that was charged and then lost in a crash stays charged; its block counts as 0, and nothing is counted twice.

Reason: CLOCK_IMPLAUSIBLE.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptklib.errors import Refused
from ptklib.ledger.slices import Slice
from ptkstore.engine.home import Home
from ptkstore.engine.patience import patiently
from ptkstore.metadata.rows import Block
from ptkstore.streams import StreamReader, StreamSpec
from ptkstore.streams.spans import Spans

__all__ = ["arrived_until", "count_blocks", "seal_due", "window_of"]


def window_of(spec: StreamSpec, start_ms: int) -> int:
    """The number of the window that a moment lies in, counted from 1970."""
    return start_ms // (spec.window_seconds * 1000)


def arrived_until(home: Home, spec: StreamSpec, until_ms: int | None) -> int:
    """How far all data has arrived: what somebody says, or the clock less the lateness, if it is plausible. Refused:
    CLOCK_IMPLAUSIBLE."""
    lateness_ms = spec.lateness_seconds * 1000
    if until_ms is None:
        return home.clock_guard.now_ms() - lateness_ms
    if type(until_ms) is int:
        home.clock_guard.declared(until_ms, lateness_ms)
    return until_ms


def seal_due(home: Home, stream: str, until_ms: int) -> list[int]:
    """Seal blocks whose span has ended, and return the windows that are complete and not yet done, oldest first."""
    spec = home.specs[stream]
    writer = home.writer(stream)
    writer.seal_due(until_ms)
    spans = Spans(spec)
    with home.writing_step() as tx:
        # What is held is little beside all that ever was.
        held = writer.sealed()
        known = tx.blocks.closed(stream, held)
        for name in held:
            if name not in known:
                start_ms = spans.number(name) * spans.span_ms
                tx.blocks.put(stream, name, start_ms, start_ms + spans.span_ms, window_of(spec, start_ms))
                tx.blocks.set_status(stream, name, "sealed")
    with home.metadata.read() as tx:
        waiting = {block.window for block in tx.blocks.list(stream, status="sealed")}
        waiting |= {cycle.window for cycle in tx.cycles.unfinished(stream)}
    return sorted(one for one in waiting if (one + 1) * spec.window_seconds * 1000 <= writer.watermark_ms)


def count_blocks(home: Home, spec: StreamSpec, blocks: Sequence[Block], cycle: int) -> bool:
    """Add the blocks to the ledger, charge one count, and publish it. False where it was charged and lost."""
    names = [block.name for block in blocks]
    known = set(home.ledger.blocks(spec.name))
    fresh = [name for name in names if name not in known]
    if fresh:
        home.ledger.add_blocks(spec.name, fresh)
    missing = [block.name for block in blocks if block.dp_count is None]
    if not missing:
        return True
    known_counts = True
    home.on_step("sealed", "added")
    try:
        cost = spec.count_release().cost
        slices = [Slice(tuple(missing))]
        grant = home.ledger.reserve(
            spec.name, slices, cost, contexts=("door:count",), key=f"cycle-{cycle}/count", ttl_seconds=24 * 3600
        )
        counts = StreamReader(home.path, spec).count_blocks(grant, home.ledger)
    except Refused as refusal:
        if refusal.reason not in ("KEY_REUSED", "GRANT_USED"):
            raise
        counts = dict.fromkeys(missing, 0)
        known_counts = False
    home.on_step("sealed", "counted")

    def keep() -> None:
        with home.writing_step() as tx:
            for name, value in counts.items():
                tx.blocks.set_dp_count(spec.name, name, value)

    patiently(keep)
    return known_counts
