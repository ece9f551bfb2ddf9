"""What losses are supposed to look like, before a test has seen any: for planning alone.

A supposition never touches validity. It is a law of losses on a few points, from public numbers (a
mean and a spread that somebody expects) or from DP ones (a pilot). `at` moves it to another mean:
losses shrink in proportion to a smaller one; what is lacking to a larger one is made of losses at
the bound, the worst that may hide behind what was not seen.

Reason: LOSS_INVALID, and those of `amounts`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact

__all__ = ["SupposedLosses", "worst_losses"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SupposedLosses:
    """A law of losses: ``points`` and how likely each is."""

    points: tuple[float, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        """Refuse what is no law of losses."""
        numbers = (*self.points, *self.weights)
        good = all(math.isfinite(number) and number >= 0 for number in numbers)
        if not good or len(self.points) != len(self.weights) or not sum(self.weights) > 0:
            raise InvalidInput(
                "LOSS_INVALID",
                "supposed losses must be finite points that are not negative, with a weight each",
            )

    @classmethod
    def of(cls, losses: Iterable[float]) -> SupposedLosses:
        """Each as likely as the next. Not for losses of a protected stream."""
        points = tuple(float(loss) for loss in losses)
        return cls(points, (1.0,) * len(points))

    @classmethod
    def spread_around(cls, mean: Number, spread: Number) -> SupposedLosses:
        """Of this mean and standard deviation, on 0 and another point: as skewed as such a law
        is."""
        middle, deviation = float(exact(mean, name="mean")), float(exact(spread, name="spread"))
        if middle == 0:
            return cls((0.0,), (1.0,))
        second = middle * middle + deviation * deviation
        share = middle * middle / second
        return cls((0.0, second / middle), (1 - share, share))

    @property
    def mean(self) -> float:
        """The expected loss."""
        return float(np.dot(self.points, self.weights) / sum(self.weights))

    def at(self, mean: float, bound: float) -> tuple[Floats, Floats]:
        """Points and probabilities of the law with that mean, for losses up to ``bound``."""
        points = np.minimum(np.array(self.points), bound)
        weights = np.array(self.weights) / sum(self.weights)
        known = float(points @ weights)
        if mean <= known:
            points = points * (mean / known) if known > 0 else points
            known = float(points @ weights)
        worst = min(1.0, max(0.0, (mean - known) / (bound - known))) if known < bound else 0.0
        return np.append(points, bound), np.append(weights * (1 - worst), worst)


def worst_losses(mean: float, bound: float) -> tuple[Floats, Floats]:
    """All or nothing: of all losses with that mean a test needs most records for these."""
    share = min(1.0, max(0.0, mean / bound))
    return np.array([0.0, bound]), np.array([1 - share, share])
