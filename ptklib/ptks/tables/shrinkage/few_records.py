"""Groups that have so few records that their noisy count may be all noise.

A plain mean is then one noise over another, and a large noisy count goes with a large noisy total,
for they share their noise: closed forms that take the count for known see differences that are not
there. So the count is one more unknown here. A group of n records with the mean m has the totals
n (1-m) and n m at the two ends of the range, each with noise. Its likelihood is summed over a grid
of n, weighted by how many records such groups have on average, for a grid of m; a model is a vector
of weights of the same grid. So one pass over the groups serves all models and spreads.

With three corners the noise of the ends is a little correlated; that is left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.tables.shrinkage.models import FAR, PriorModel

__all__ = ["FewRecords"]

Floats = NDArray[np.float64]

_PIECE = 1 << 9
# Of means: near the middle of all, and beyond.
_NEAR = (0.0, 0.004, 0.008, 0.016, 0.032)
_STEP = 0.05
# Of numbers of records: how many, and the least, in scales of the noise.
_NUMBERS, _LEAST = 16, 0.1
# The part of groups whose number of records may be anything, on a scale of logarithms.
_ANY = 0.1
# Of the noise of an end, where groups are so many that a table of means is read instead.
_LATTICE_STEP, _LATTICE_FROM, _LATTICE_TO = 0.2, -7.0, 12.0


@dataclass(frozen=True, kw_only=True)
class FewRecords:
    """What all groups of a table have in common."""

    middle: float  # the mean of all records
    shifts: Floats  # of the centre of each spread from there
    spreads: Floats
    average: float  # the mean of the noisy counts of these groups
    most: float  # the largest of them
    variance: float  # of the noise of each end
    mixture: tuple[tuple[float, float], ...] | None  # of that noise; None for one Laplace draw

    def posterior(
        self, counts: Floats, totals: Floats, models: tuple[PriorModel, ...]
    ) -> tuple[list[Floats], list[Floats]]:
        """As `ManyRecords.posterior`; likelihoods are but for a factor of each group."""
        near, anywhere, coins = self._weights
        made: list[list[Floats]] = [[] for _ in range(2 * len(models))]
        for start in range(0, len(counts), _PIECE):
            part = slice(start, start + _PIECE)
            likely = self._likelihood(counts[part] - totals[part], totals[part])
            weighted = likely * self._means
            whole = [likely @ weights for weights in (near, anywhere, coins)]
            upper = [weighted @ weights for weights in (near, anywhere, coins)]
            for place, model in enumerate(models):
                shares = (1 - model.far - model.coins, model.far, model.coins)
                below, above = (
                    shares[0] * sums[0] + shares[1] * sums[1] + shares[2] * sums[2]
                    for sums in (whole, upper)
                )
                made[place].append(above / below - self.middle)
                made[len(models) + place].append(np.log(below))
        joined = [np.concatenate(pieces) for pieces in made]
        return joined[: len(models)], joined[len(models) :]

    @property
    def lattice(self) -> tuple[Floats, Floats]:
        """Counts and totals of the groups that `between` wants the means of."""
        ends = self._line * math.sqrt(self.variance)
        low, high = (side.ravel() for side in np.meshgrid(ends, ends, indexing="ij"))
        return low + high, high

    def between(self, counts: Floats, totals: Floats, means: Floats) -> Floats:
        """Means of any groups from those of `lattice`: straight between them."""
        size = len(self._line)
        table = means.reshape(size, size)
        corners = []
        for end in (counts - totals, totals):
            steps = (end / math.sqrt(self.variance) - _LATTICE_FROM) / _LATTICE_STEP
            steps = np.clip(steps, 0.0, size - 1.001)
            place = steps.astype(np.intp)
            corners.append((place, steps - place))
        (row, down), (column, right) = corners
        upper = table[row, column] * (1 - right) + table[row, column + 1] * right
        lower = table[row + 1, column] * (1 - right) + table[row + 1, column + 1] * right
        return np.asarray(upper * (1 - down) + lower * down)

    @property
    def _line(self) -> Floats:
        return np.arange(_LATTICE_FROM, _LATTICE_TO, _LATTICE_STEP)

    @cached_property
    def _means(self) -> Floats:
        """The grid of means: about the middle of all, and both ends."""
        away = np.concatenate([_NEAR, np.arange(_NEAR[-1] + _STEP, 1.0, _STEP)])
        return np.unique(
            np.clip(np.concatenate([self.middle - away, self.middle + away, [0.0, 1.0]]), 0.0, 1.0)
        )

    @cached_property
    def _numbers(self) -> tuple[Floats, Floats]:
        """The grid of numbers of records, and the logarithms of their weights."""
        scale = math.sqrt(self.variance / 2)
        above = np.geomspace(_LEAST * scale, 1.6 * self.most, _NUMBERS - 1)
        numbers = np.append(0.0, above)
        ends = np.concatenate([[0.0], (numbers[1:] + numbers[:-1]) / 2, [1.2 * numbers[-1]]])
        average = max(self.average, scale / 20)
        usual = -np.diff(np.exp(-ends / average))
        any_ = np.diff(np.log1p(ends / scale)) / np.log1p(ends[-1] / scale)
        return numbers, np.log((1 - _ANY) * usual + _ANY * any_)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats, Floats]:
        """Of the grid of means: a column for each spread; anywhere; as coins fall."""
        even = np.zeros(len(self._means))
        even[:-1] += np.diff(self._means) / 2
        even[1:] += np.diff(self._means) / 2
        ends, coins = np.zeros(len(even)), np.zeros(len(even))
        ends[[0, -1]] = 0.5
        coins[[0, -1]] = 1 - self.middle, self.middle
        near = [
            sum(part * _hats(self._means, centre, math.sqrt(wide) * spread) for wide, part in FAR)
            for centre, spread in zip(
                (self.middle + self.shifts).tolist(), self.spreads.tolist(), strict=True
            )
        ]
        return (
            np.stack(near, axis=1),
            ((even + ends) / 2)[:, None],
            (0.7 * coins + 0.3 * even)[:, None],
        )

    def _likelihood(self, low: Floats, high: Floats) -> Floats:
        """Of each mean of the grid, for the noisy ends of each group, but for a factor of the
        group.
        """
        numbers, weights = self._numbers
        logs = (
            weights[:, None]
            + self._log_density(low[:, None, None] - numbers[:, None] * (1 - self._means))
            + self._log_density(high[:, None, None] - numbers[:, None] * self._means)
        )
        logs -= logs.max(axis=(1, 2), keepdims=True)
        return np.asarray(np.exp(logs, out=logs).sum(axis=1))

    def _log_density(self, noise: Floats) -> Floats:
        """Of the noise of an end, but for a constant."""
        if self.mixture is None:
            return np.asarray(-np.abs(noise) / math.sqrt(self.variance / 2))
        squares = np.square(noise) / self.variance
        logs = [
            math.log(share / math.sqrt(tail)) - squares / (2 * tail) for tail, share in self.mixture
        ]
        return np.asarray(np.logaddexp.reduce(logs))


def _hats(grid: Floats, centre: float, deviation: float) -> Floats:
    """Weights of the grid with the mean of a normal that is cut at the ends of the grid: the means
    of the functions that are 1 at one place, 0 at all others, and straight between.
    """
    away = (grid - centre) / deviation
    above = np.array([math.erfc(far / math.sqrt(2)) / 2 for far in away.tolist()])
    beyond = deviation * (np.exp(-np.square(away) / 2) / math.sqrt(2 * math.pi) - away * above)
    slopes = np.diff(beyond) / np.diff(grid)
    return np.asarray(np.append(slopes, 0.0) - np.append(-1.0, slopes))
