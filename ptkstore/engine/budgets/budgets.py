"""What a stream promises and what is left of it, whole or a page of its blocks at a time.

Public and DP values alone. Reasons: STREAM_UNKNOWN, BLOCK_UNKNOWN, PAGE_INVALID,
PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ptklib.ledger.slices import TagRange
from ptkstore.api.paging import PageRequest
from ptkstore.api.views import BlockLine, BlockPage, BudgetSummary, BudgetView, ExposureView
from ptkstore.engine.parts import Parts
from ptkstore.metadata import rows
from ptkstore.streams.progress.exposure import exposure

__all__ = ["BlockAccount", "block", "block_page", "budget", "summary"]


@dataclass(frozen=True)
class BlockAccount:
    """A block, and what was lost at which of its tags; nothing where it was never charged."""

    line: BlockLine
    losses: tuple[tuple[TagRange, Sequence[int]], ...]


def budget(parts: Parts, stream: str) -> BudgetView:
    """The promise, the raw data that is held, and every block."""
    told = summary(parts, stream)
    with parts.metadata.read() as tx:
        blocks = tx.blocks.list(stream)
    return BudgetView(
        stream,
        told.unit,
        told.epsilon,
        told.delta,
        told.composition,
        told.exposure,
        _lines(parts, stream, blocks),
    )


def block_page(parts: Parts, stream: str, *, limit: int, page_token: str) -> BlockPage:
    """The blocks of a stream, oldest first."""
    parts.specs.named(stream)
    page = PageRequest(f"blocks {stream}", limit, page_token, kind=str)
    with parts.metadata.read() as tx:
        blocks = tx.blocks.list(stream, limit=page.size + 1, after=page.after)
    part, token = page.cut(blocks, lambda row: row.name)
    return BlockPage(_lines(parts, stream, part), token)


def block(parts: Parts, stream: str, name: str) -> BlockAccount:
    """One block. Refused: BLOCK_UNKNOWN."""
    parts.specs.named(stream)
    with parts.metadata.read() as tx:
        row = tx.blocks.get(stream, name)
    (line,) = _lines(parts, stream, [row])
    charged = parts.ledger.rests(stream, [row.name])
    losses = parts.ledger.block(stream, row.name).losses if charged else ()
    return BlockAccount(line, tuple(losses))


def _lines(parts: Parts, stream: str, blocks: Sequence[rows.BlockRow]) -> tuple[BlockLine, ...]:
    """Blocks with what the ledger says of them, in one look at it."""
    rests = parts.ledger.rests(stream, [block.name for block in blocks])
    untouched = _untouched(parts, stream) if len(rests) < len(blocks) else 0.0
    lines = []
    for block in blocks:
        rest = rests.get(block.name)
        left, retired = (untouched, None) if rest is None else (float(rest.left), rest.retired)
        lines.append(
            BlockLine(block.name, block.window, block.status, block.dp_count, left, retired)
        )
    return tuple(lines)


def summary(parts: Parts, stream: str) -> BudgetSummary:
    """The promise, the raw data that is held, and how many blocks there are; reads no block that
    has expired.
    """
    spec = parts.specs.named(stream)
    with parts.metadata.read() as tx:
        counts, blocks = tx.blocks.dp_counts(stream), tx.blocks.count(stream)
    held = exposure(parts.path, spec, counts)
    retired = parts.ledger.count_retired(stream)
    lefts = _lefts(parts, stream, list(counts))
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


def _lefts(parts: Parts, stream: str, names: Sequence[str]) -> list[float]:
    """What is left of each block, 0 where it was closed."""
    rests = parts.ledger.rests(stream, names)
    lefts = [float(rest.left) for rest in rests.values()]
    return lefts if len(rests) == len(names) else [*lefts, _untouched(parts, stream)]


def _untouched(parts: Parts, stream: str) -> float:
    """What is left of a block that was never charged."""
    privacy_filter = parts.privacy_filter(stream)
    return float(privacy_filter.left([0] * privacy_filter.width))
