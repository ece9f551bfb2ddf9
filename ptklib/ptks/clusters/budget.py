"""What k-means spends: made before the data, by `cost` and by training alike.

The grid has one release. Iterations have growing shares of the budget: of epsilon, which they sum
to, or of mu^2, which they sum to less of than one Gaussian release of the whole, whose price it is.
Those that begin at the centres of a last state are fewer, and share the same budget.

Reasons: DELTA_NEEDED, and those of `amounts`, `clusters.noise` and `mechanisms.release`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptklib.price_first import Budget
from ptklib.privacy.costs import Cost, PureCost
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptks.clusters.noise import CubeRelease
from ptklib.ptks.tables.noisy_totals import Release
from ptklib.ptks.vectors import STEPS

__all__ = ["ClusterReleases", "RowRelease", "Rows", "grid_plan", "rows_plan", "shares_of"]

Integers = NDArray[np.int64]

# Iterations that a last state saves.
_FEWER = 3
# Shares of the budget grow by this from one iteration to the next, in whole parts.
_GROWTH, _PARTS = 1.4, 10


@dataclass(frozen=True)
class RowRelease:
    """The mechanism of one iteration, which counts a record as ``weight``."""

    release: CubeRelease | GaussianRelease
    weight: int

    @property
    def variance(self) -> float:
        """Of the noise of each number, in records squared."""
        spread = (
            self.release.spread
            if isinstance(self.release, CubeRelease)
            else float(self.release.sigma)
        )
        return (spread / STEPS) ** 2

    def weighted(self, exact: Integers) -> Integers:
        """Counts and sums, with the count in units of the weight: what has the sensitivity."""
        made = exact.copy()
        made[:, 0] *= self.weight
        return made

    def noisy(self, exact: Integers, source: BitSource | None) -> Integers:
        """Counts and sums with noise, the count in steps."""
        if isinstance(self.release, CubeRelease):
            return self.release.release(self.weighted(exact), source=source)
        noisy: Integers = self.release.release(self.weighted(exact), source=source).values.copy()
        noisy[:, 0] = np.rint(noisy[:, 0] * (STEPS / self.weight))
        return noisy


@dataclass(frozen=True)
class ClusterReleases:
    """The mechanisms of one training and their cost: of the grid, or of all iterations, those from
    a start without data and those from a last state.
    """

    cost: Cost
    grid: Release | None = None
    first: tuple[RowRelease, ...] = ()
    later: tuple[RowRelease, ...] = ()


@dataclass(frozen=True)
class Rows:
    """What the plan of iterations depends on, besides the budget: the columns and the ``limit`` of
    a vector (`vectors.Space`).
    """

    mechanism: str
    size: int
    limit: int
    iterations: int

    @property
    def weight(self) -> int:
        """What stands for one record beside its sums: with Gaussian noise near the least error of a
        mean.
        """
        if self.mechanism == "pure":
            return STEPS
        return max(1, round(STEPS * math.sqrt(math.sqrt(self.size / 3))))


def grid_plan(mechanism: str, weight: int, budget: Budget) -> ClusterReleases:
    """The one release of a grid on which a record has this weight; refuses what cannot be spent."""
    reach = budget.records * weight
    if mechanism == "pure":
        grid: Release = LaplaceRelease(epsilon=budget.epsilon, sensitivity=reach)
    else:
        grid = GaussianRelease(
            sigma=budget.gaussian_sigma(reach, instead="pure"), sensitivity=reach
        )
    return ClusterReleases(grid.cost, grid=grid)


@lru_cache(maxsize=256)
def rows_plan(rows: Rows, budget: Budget) -> ClusterReleases:
    """The mechanisms of all iterations; refuses what cannot be spent. Remembered: the same plan is
    priced many times.
    """
    later = max(1, rows.iterations - _FEWER)
    if rows.mechanism == "pure":
        cubes = [_cubes(rows, budget, number) for number in (rows.iterations, later)]
        return ClusterReleases(PureCost(epsilon=budget.epsilon), None, *cubes)
    reach = budget.records * _root_up(Fraction(rows.weight**2 + rows.limit))
    whole = GaussianRelease(sigma=budget.gaussian_sigma(reach, instead="pure"), sensitivity=reach)
    parts = [_parts(rows, whole, number) for number in (rows.iterations, later)]
    return ClusterReleases(whole.cost, None, *parts)


def _cubes(rows: Rows, budget: Budget, number: int) -> tuple[RowRelease, ...]:
    reach, width = budget.records * STEPS, rows.size + 1
    cubes = (
        CubeRelease(epsilon=budget.epsilon * share, sensitivity=reach, width=width)
        for share in shares_of(number)
    )
    return tuple(RowRelease(cube, rows.weight) for cube in cubes)


def _parts(rows: Rows, whole: GaussianRelease, number: int) -> tuple[RowRelease, ...]:
    # Rounded up, so that the parts of mu^2 never exceed their shares.
    parts = (
        GaussianRelease(sigma=whole.sigma * _root_up(1 / share), sensitivity=whole.sensitivity)
        for share in shares_of(number)
    )
    return tuple(RowRelease(part, rows.weight) for part in parts)


def shares_of(number: int) -> list[Fraction]:
    """Shares of the budget, growing, that sum to one."""
    parts = [round(_PARTS * _GROWTH**place) for place in range(number)]
    return [Fraction(part, sum(parts)) for part in parts]


def _root_up(value: Fraction) -> Fraction:
    """The square root, rounded up at nine digits."""
    unit = 10**9
    return Fraction(math.isqrt(math.ceil(value * unit**2)) + 1, unit)
