"""The noise of a noisy table, as the estimators see it.

Laplace noise is taken as a mixture of two normals with its variance and fourth moment: rare large
noise is not mistaken for a difference. Sums over windows are nearer to normal.

**Proof note.** *Unit, cost:* none, the noise of a table is public.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TableNoise", "tails"]

Floats = NDArray[np.float64]
# Variances and weights.
Mixture = tuple[tuple[float, float], ...]


@dataclass(frozen=True, kw_only=True)
class TableNoise:
    """The noise of each of the totals that a group has; the mean is their sum at `places`, over
    their sum.
    """

    variance: float
    places: tuple[float, ...]  # in the range
    windows: float  # that were summed, each with Laplace noise; infinite where it is Gaussian

    @property
    def of_counts(self) -> float:
        """The variance of a noisy count."""
        return self.variance * len(self.places)

    def along(self, centre: float) -> tuple[float, float]:
        """The variance of a deviation from the centre, and how many windows its tails are like."""
        squares = np.square(np.array(self.places) - centre)
        whole = float(squares.sum())
        return self.variance * whole, self.windows * whole**2 / float(np.square(squares).sum())


def tails(windows: float) -> Mixture:
    """Variances and weights of two normals that are as heavy-tailed as the sum of so many Laplace
    draws: the two-point rule of a Gamma distribution of this shape and mean 1.
    """
    if not np.isfinite(windows):
        return ((1.0, 1.0),)
    root = float(np.sqrt(windows + 1))
    low, high = (windows + 1 - root) / windows, (windows + 1 + root) / windows
    share = (high - 1) / (high - low)
    return ((low, share), (high, 1 - share))
