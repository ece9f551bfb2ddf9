"""The curve of a profile as characters, for terminals."""

from __future__ import annotations

import math

from profiler.analytic import Profile

__all__ = ["profile_text"]


def profile_text(profile: Profile, *, width: int = 48) -> str:
    """One bar for each level, as long as its samples on a logarithmic scale."""
    known = [sample for sample in profile.samples if sample is not None]
    top = math.log10(max([*known, 10])) or 1.0
    lines = []
    for level, samples in zip(profile.levels, profile.samples, strict=True):
        label = f"{float(level):>8.4g}"
        if samples is None:
            lines.append(f"{label}  not reached")
            continue
        bar = "█" * max(1, round(width * math.log10(max(samples, 1) + 1) / top))
        lines.append(f"{label}  {bar[:width]} {samples:,}")
    head = f" epsilon  samples for a loss within {float(profile.promised):g} ({profile.source})"
    return "\n".join([head, *lines])
