"""One release of a vector of whole totals, and the sum of such releases over windows.

**Proof note.** *Unit, neighbours:* the caller's; ``reach`` bounds what one record moves the vector
by: its L1 norm, or the square of its L2 norm. r records move it by at most r times that norm.
*Cost:* that of the release. Adding the totals of the last window is post-processing.

Reasons: DELTA_NEEDED, and those of `ptk.count_of`, `amounts` and `mechanisms.release`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.price_first import Budget, windows_after
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.ptk import Arrays, check_arrays

__all__ = [
    "Mechanism",
    "Release",
    "check_totals",
    "merged",
    "release_of",
    "scale_of",
    "variance_of",
]

Mechanism = Literal["laplace", "gaussian"]
Release = LaplaceRelease | GaussianRelease
# A root that is no fraction is rounded up to a multiple of this.
_ROOT_STEP = 10**6


def release_of(mechanism: Mechanism, budget: Budget, *, l1: int, l2_squared: int) -> Release:
    """The one mechanism of a training, before any data, at the sensitivity of its records."""
    if mechanism == "laplace":
        return LaplaceRelease(epsilon=budget.epsilon, sensitivity=budget.records * l1)
    reach = budget.records * _root(l2_squared)
    sigma = budget.gaussian_sigma(reach, instead="laplace")
    return GaussianRelease(sigma=sigma, sensitivity=reach)


def scale_of(release: Release) -> float:
    """The scale, or the standard deviation, of the noise on each total."""
    return float(release.scale if isinstance(release, LaplaceRelease) else release.sigma)


def variance_of(release: Release) -> float:
    """Of the noise on each total: of the discrete Laplace noise, or of the Gaussian and its
    rounding.
    """
    if isinstance(release, GaussianRelease):
        return float(release.sigma) ** 2 + 1 / 12
    inverse = float(1 / release.scale)
    return 2 * math.exp(-inverse) / math.expm1(-inverse) ** 2


def merged(totals: NDArray[np.int64], previous: Arrays | None) -> dict[str, NDArray[np.int64]]:
    """A state: the totals and how many windows they are of, with those of the last state added."""
    if previous is not None:
        # Each is at most LIMIT = 2**60, so the sum fits.
        totals = np.clip(totals + previous["totals"], -LIMIT, LIMIT)
    return {"totals": totals, "windows": windows_after(previous)}


def check_totals(
    arrays: Arrays,
    shape: tuple[int, ...],
    *,
    kind: str,
    also: Mapping[str, tuple[str, tuple[int, ...]]] | None = None,
) -> None:
    """Refuse arrays that `merged` cannot have made: names, dtypes, shapes, ranges
    (PTK_MISMATCH). ``also`` are arrays that a state has besides (`ptk.check_arrays`).
    """
    wanted = {"totals": ("int64", shape), "windows": ("int64", (1,)), **(also or {})}
    check_arrays(arrays, wanted, kind=kind)
    totals = arrays["totals"]
    if np.any((totals < -LIMIT) | (totals > LIMIT)) or not 1 <= arrays["windows"][0] <= LIMIT:
        raise InvalidInput("PTK_MISMATCH", "totals must be within 2**60 and windows at least 1")


def _root(square: int) -> Fraction:
    """The square root, exact or rounded up."""
    root = math.isqrt(square)
    if root * root == square:
        return Fraction(root)
    return Fraction(math.isqrt(square * _ROOT_STEP**2) + 1, _ROOT_STEP)
