"""Exposure: how much raw data a stream still holds, in public and DP numbers only.

Spans and the number of blocks follow from watermarks and expiry. Records come from the blocks' DP
counts, and bytes are those records times the public width of one: the true length of a file is as
sensitive as the true count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import QUARANTINE, Spans

__all__ = ["Exposure", "exposure", "exposure_of", "record_bytes"]

_TAG_BYTES = 8
_UNBOUNDED_STRING_BYTES = 36


class Exposure(NamedTuple):
    """What is held: the span of time from the oldest block to the oldest open one, and DP sizes of
    the sealed blocks.
    """

    oldest_ms: int
    newest_ms: int
    blocks: int
    dp_records: int
    bytes: int


def exposure_of(
    spec: StreamSpec,
    spans: Spans,
    held: Iterable[str],
    oldest_open: int,
    dp_counts: Mapping[str, int],
) -> Exposure:
    """The exposure while the ``held`` blocks are sealed and not expired; a block without a count
    counts as 0.
    """
    blocks = list(held)
    oldest = min([oldest_open, *(spans.number(block) for block in blocks)])
    records = max(0, sum(dp_counts.get(block, 0) for block in blocks))
    return Exposure(
        oldest * spans.span_ms,
        (oldest_open + 1) * spans.span_ms,
        len(blocks) + 1,
        records,
        records * record_bytes(spec),
    )


def exposure(store: Path, spec: StreamSpec, dp_counts: Mapping[str, int]) -> Exposure:
    """The exposure as the files say, for any process: no writer is needed."""
    vault, spans = Vault(store, spec.name), Spans(spec)
    if not vault.files.exists():
        return exposure_of(spec, spans, (), spans.first, dp_counts)
    progress = Progress.read(vault.files, spans.first)
    held = [
        name
        for name in vault.blocks()
        if not name.startswith(QUARANTINE)
        and vault.holds(name)
        and spans.number(name) < progress.sealed_before
    ]
    return exposure_of(spec, spans, held, progress.oldest_open, dp_counts)


def record_bytes(spec: StreamSpec) -> int:
    """The public width of a record: fixed widths, and for strings the most they may have."""
    return _TAG_BYTES + sum(_width(column) for column in spec.columns)


def _width(column: Column) -> int:
    if column.domain is not None:
        return 1 if len(column.domain) <= 2**7 else 2 if len(column.domain) <= 2**15 else 4
    if column.type == "string":
        return 4 + (column.upper if isinstance(column.upper, int) else _UNBOUNDED_STRING_BYTES)
    return max(1, int(column.arrow.bit_width) // 8)
