"""Does a stream hold raw data for longer than its window, by the clock on the wall? Event time
alone does not tell.

What may be held: a window, the lateness, and two blocks. Three ways to hold more, each with what to
do about it:

* the watermark is ahead of the clock, so what arrives now joins blocks that end far in the future;
* blocks were sealed longer ago than that and have not expired: their window was never run;
* the watermark has not moved for longer than that: what arrived since (nobody knows whether
  anything did) is still there.

Watermarks and the times they moved at (`ptkstore.streams.progress.moves`): public.
"""

from __future__ import annotations

from collections.abc import Iterator

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import Finding
from ptkstore.engine.parts import Parts
from ptkstore.streams.blocks.vault import Vault
from ptkstore.streams.progress.moves import Moves
from ptkstore.streams.progress.progress import Progress
from ptkstore.streams.spans import QUARANTINE, Spans

__all__ = ["examine_holding"]

_HOUR_MS = 3_600_000


def examine_holding(parts: Parts) -> Iterator[Finding]:
    """One finding for each stream."""
    now_ms = parts.now_ms()
    for name in sorted(parts.specs):
        spec = parts.specs[name]
        faults = list(_faults(parts, spec, now_ms))
        what = f"exposure of {name} by the clock"
        yield from (Finding(level, what, text) for level, text in faults)
        if not faults:
            yield Finding(
                "OK", what, f"nothing is held for longer than {_hours(_allowed_ms(spec))}"
            )


def _allowed_ms(spec: StreamSpec) -> int:
    return (spec.window_seconds + spec.lateness_seconds + 2 * spec.block_seconds) * 1000


def _faults(parts: Parts, spec: StreamSpec, now_ms: int) -> Iterator[tuple[str, str]]:
    vault, spans, allowed_ms = Vault(parts.path, spec.name), Spans(spec), _allowed_ms(spec)
    if not vault.files.exists():
        return
    progress, moves = Progress.read(vault.files, spans.first), Moves.read(vault.files)
    watermark_ms, window_ms = progress.oldest_open * spans.span_ms, spec.window_seconds * 1000
    end_ms = (watermark_ms // window_ms + 1) * window_ms + spec.lateness_seconds * 1000
    # A stream may begin in the future; nothing was sealed there.
    if progress.oldest_open > spans.first and end_ms - now_ms > allowed_ms:
        yield (
            "ERROR",
            f"the watermark is {_hours(watermark_ms - now_ms)} ahead of the clock: what arrives "
            "now is held for "
            f"{_hours(end_ms - now_ms)}, and may be for {_hours(allowed_ms)}. Let producers wait, "
            "or use a new stream",
        )
    old = sorted(
        name
        for name in vault.blocks()
        if not name.startswith(QUARANTINE)
        and vault.holds(name)
        and spans.number(name) < progress.sealed_before
        for sealed_ms in [moves.sealed_ms(spans.number(name))]
        if sealed_ms is not None and now_ms - sealed_ms > allowed_ms
    )
    if old:
        yield (
            "ERROR",
            f"{len(old)} blocks were sealed more than {_hours(allowed_ms)} ago and are still held: "
            f"{', '.join(old[:5])}. "
            "Run their windows",
        )
    if moves.last_ms is not None and now_ms - moves.last_ms > allowed_ms:
        yield (
            "WARNING",
            f"the watermark has not moved for {_hours(now_ms - moves.last_ms)}: what arrived since "
            "is held for longer than "
            f"{_hours(allowed_ms)}. Run the windows, or say how far data has arrived with --until",
        )


def _hours(ms: int) -> str:
    hours = -(-ms // _HOUR_MS)
    return f"{hours} hours" if hours < 72 else f"{-(-hours // 24)} days"
