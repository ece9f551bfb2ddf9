"""Means over seeds, with what chance leaves open."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy import stats

__all__ = ["half_width", "least_gain", "shown"]

Floats = NDArray[np.float64]

_CONFIDENCE = 0.95


def half_width(values: Floats) -> float:
    """Of the 95% interval of the mean (Student's t); infinite for a single value."""
    if len(values) < 2:
        return math.inf
    spread = float(values.std(ddof=1)) / math.sqrt(len(values))
    return float(stats.t.ppf((1 + _CONFIDENCE) / 2, len(values) - 1)) * spread


def shown(values: Floats) -> str:
    """The mean and the half-width of its interval."""
    width = half_width(values)
    return f"{values.mean():.4g}" + (f"±{width:.2g}" if math.isfinite(width) else " (one seed)")


def least_gain(better: Floats, worse: Floats) -> float:
    """The lower end of the 95% interval of the mean of what ``better`` is above ``worse``, seed by
    seed. With one seed: that difference.
    """
    gain = better - worse
    width = half_width(gain)
    return float(gain.mean()) - (width if math.isfinite(width) else 0.0)
