"""Noise for a part of a budget, and how large it is."""

from __future__ import annotations

import math
from fractions import Fraction

from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease

__all__ = ["Release", "deviation_of", "gaussian_part"]

Release = LaplaceRelease | GaussianRelease

_ROOT_DIGITS = 2**20
# Far more than a few operations in float64 can lose.
_MARGIN = 1e-12


def deviation_of(release: Release) -> float:
    """The standard deviation of the noise of a cell, in the unit of the data."""
    return (
        math.sqrt(2) * float(release.scale)
        if isinstance(release, LaplaceRelease)
        else float(release.sigma)
    )


def gaussian_part(sigma: float, reach: int, times: int, part: Fraction) -> GaussianRelease:
    """Noise on ``times`` cells of a record, each moved by at most ``reach``, at a part of
    1/sigma^2, where sigma is that of the whole budget at a sensitivity of 1.

    Roots are rounded up, so that parts which sum to 1 cost less than the whole.
    """
    moved = reach * Fraction(math.isqrt(times * _ROOT_DIGITS**2 - 1) + 1, _ROOT_DIGITS)
    return GaussianRelease(
        sigma=sigma * float(moved) / math.sqrt(part) * (1 + _MARGIN), sensitivity=moved
    )
