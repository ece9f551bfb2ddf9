"""How sure n(epsilon) is: a confidence band from which sample sizes passed and which missed.
Post-processing: free.

Training is random, so the n that is sought is the one at which 19 of 20 trainings pass. The chance
that a training misses falls exponentially with its samples, both for sampling errors and for the
noise of DP mechanisms, so at n samples it is ``0.05^(n / n*)``. A look passes when all of its
states do. That gives every look of a profile a probability for each n*, and a profile a likelihood
for each pair (a, c) of n* = a + c/epsilon. The band at a level holds the n* of all pairs that are
not refuted: twice the difference to the best logarithm stays below the 95% quantile of chi squared
with two degrees of freedom. Curves of other shapes keep their shape, and only their height is in
doubt (one degree).

The test of a look is stricter than what is promised, for it has noise to fear: it asks for a margin
below the target. Excess risk falls at least as 1/n, so the promise may be kept with half of the
samples that pass: the lower end of a band is halved (`SLACK`).

One look in a hundred may be odd (`_ODD`): a guess that was lucky must not refute everything else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from profiler.measuring.retraining import MISSED

__all__ = ["SLACK", "Try", "Unrefuted", "unrefuted_heights", "unrefuted_lines"]

SLACK = 0.5
_ODD = 0.01
_ONE_DEGREE, _TWO_DEGREES = 3.84, 5.99
_RATIOS, _SCALES = 60, 121
# Heights are tried from this factor below the smallest size of all looks to this factor above the
# largest.
_FAR = 8.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Try:
    """One look: the place 1/epsilon of its level, its sample size, how many states it took, and
    whether it passed.
    """

    place: float
    samples: int
    states: int
    passed: bool


@dataclass(frozen=True)
class Unrefuted:
    """The pairs (a, c), or the factors of one curve, that the looks allow."""

    a: Floats
    c: Floats

    def ends(self, place: float) -> tuple[float, float]:
        """Both ends of the band at 1/epsilon = ``place``."""
        heights = self.a + self.c * place
        return float(heights.min()) * SLACK, float(heights.max())


def unrefuted_lines(tries: Sequence[Try]) -> Unrefuted:
    """All a and c, not negative, that the looks allow."""
    places = np.array([tried.place for tried in tries])
    ratios = np.concatenate([[0.0], np.geomspace(places.min() / 100, places.max() * 100, _RATIOS)])
    # From c/epsilon alone to a alone; each shape is 1 at the middle place, so that heights mean the
    # same.
    middle = math.sqrt(places.min() * places.max())
    a, c = ratios / (ratios + middle), 1 / (ratios + middle)
    shapes = a[:, None] + c[:, None] * places
    kept, heights = _kept(shapes, tries, _TWO_DEGREES)
    rows, columns = np.nonzero(kept)
    return Unrefuted(a[rows] * heights[columns], c[rows] * heights[columns])


def unrefuted_heights(tries: Sequence[Try], curve: Sequence[float]) -> tuple[float, float]:
    """Both ends of the band as factors of a curve, which is given at the level of each try."""
    kept, heights = _kept(np.array([curve], dtype=np.float64) / curve[0], tries, _ONE_DEGREE)
    allowed = heights[kept[0]] / curve[0]
    return float(allowed.min()) * SLACK, float(allowed.max())


def _kept(shapes: Floats, tries: Sequence[Try], bound: float) -> tuple[NDArray[np.bool_], Floats]:
    """Which heights of which shapes the looks allow; shapes are given at the level of each try."""
    sizes = np.array([tried.samples for tried in tries], dtype=np.float64)
    states = np.array([tried.states for tried in tries], dtype=np.float64)
    passed = np.array([tried.passed for tried in tries])
    spread = shapes.max() / shapes.min()
    heights = np.geomspace(sizes.min() / _FAR / spread, sizes.max() * _FAR * spread, _SCALES)
    likelihood: Any = 0.0
    for place in range(len(tries)):
        share = sizes[place] / (shapes[:, place, None] * heights)
        passes = (1 - MISSED**share) ** states[place]
        chance = passes if passed[place] else 1 - passes
        likelihood = likelihood + np.log(_ODD / 2 + (1 - _ODD) * chance)
    return 2 * (likelihood.max() - likelihood) <= bound, heights
