"""What a stream promises and what is left of it, whole or a page of its blocks at a time. Public and DP values alone."""

from __future__ import annotations

from collections.abc import Sequence

from ptkstore.engine.home import Home
from ptkstore.metadata import rows
from ptkstore.streams.exposure import exposure
from ptkstore.views import BlockLine, BudgetSummary, ExposureView

__all__ = ["block_lines", "summary"]


def block_lines(home: Home, stream: str, blocks: Sequence[rows.Block]) -> tuple[BlockLine, ...]:
    """Blocks with what the ledger says of them, in one look at it."""
    rests = home.ledger.rests(stream, [block.name for block in blocks])
    untouched = _untouched(home, stream) if len(rests) < len(blocks) else 0.0
    lines = []
    for block in blocks:
        rest = rests.get(block.name)
        left, retired = (untouched, None) if rest is None else (float(rest.left), rest.retired)
        lines.append(BlockLine(block.name, block.window, block.status, block.dp_count, left, retired))
    return tuple(lines)


def summary(home: Home, stream: str) -> BudgetSummary:
    """The promise, the raw data that is held, and how many blocks there are; reads no block that has expired."""
    spec = home.specs[stream]
    with home.metadata.read() as tx:
        counts, blocks = tx.blocks.dp_counts(stream), tx.blocks.count(stream)
    held = exposure(home.path, spec, counts)
    retired = home.ledger.count_retired(stream)
    lefts = _lefts(home, stream, list(counts))
    promise = spec.policy.as_json()
    return BudgetSummary(
        stream=stream,
        unit=spec.unit,
        epsilon=str(promise["epsilon"]),
        delta=str(promise["delta"]),
        composition=spec.policy.composition,
        exposure=ExposureView(held.oldest_ms, held.newest_ms, held.blocks, held.dp_records),
        blocks_alive=blocks - retired,
        blocks_retired=retired,
        least_left=min(lefts, default=None),
        most_left=max(lefts, default=None),
    )


def _lefts(home: Home, stream: str, names: Sequence[str]) -> list[float]:
    """What is left of each block, 0 where it was closed."""
    rests = home.ledger.rests(stream, names)
    found = [float(one.left) for one in rests.values()]
    return found if len(rests) == len(names) else [*found, _untouched(home, stream)]


def _untouched(home: Home, stream: str) -> float:
    """What is left of a block that was never charged."""
    judge = home.judge(stream)
    return float(judge.left([0] * judge.width))
