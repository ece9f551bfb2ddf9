"""Means of groups that are pulled towards what the groups have in common.

A group has a noisy count c and a noisy total b. Its plain mean b / c is best where noise is small
beside what the groups differ by, and the mean of all records together where groups hardly differ.
Which of them holds can be read from the table, for the noise is known. Everything here is
post-processing of a DP table: free.

What is computed ---------------- For each spread and each model (`models`):

* a *centre*: the mean of all groups, with the weights of their counts where the spread is far below
  the noise, and more and more even ones where it is above, because then it is small groups that are
  pulled, and they may differ from large ones;
* the *likelihood* of the whole table and the *posterior mean* of each group: in closed form where
  it has many records beside the noise of its count (`many_records`), with the count as one more
  unknown where it has few (`few_records`).

Posterior means are then averaged with the weights likelihood times prior.

All of it was chosen on made-up tables (5 to 400 groups; even, lognormal and Zipf sizes; normal,
skewed, sparse, binary and rare values, a few far means, means that follow sizes, none that differ;
noise from far below to far above the spread) against one normal, other mixtures, centres and
priors, and a hard limit of the pull. Nothing is better than both simple ways on every table:
`models` has what is possible with a few groups.

**Proof note.** *Unit, cost:* none; whatever is read has its noise already. Numbers depend on the
table alone and are rounded to `_GRID`, far above the last bits in which logarithms of two platforms
may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.tables.shrinkage.few_records import FewRecords
from ptklib.ptks.tables.shrinkage.many_records import ManyRecords
from ptklib.ptks.tables.shrinkage.models import MODELS, SPREADS, PriorModel, prior
from ptklib.ptks.tables.shrinkage.noise import TableNoise, tails

__all__ = ["pulled_means"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_GRID = 2.0**-32
# Standard deviations of a noisy count: above, a group has many records.
_MANY = 5.0
# Groups that models are weighed with: more hardly tell more.
_WEIGHED = 4096
_PIECE = 1 << 10
# A model with less weight than this is left out of the average.
_LEAST_WEIGHT = 1e-4
# Groups with few records beyond so many are read from a table.
_TABULATED = 1 << 14


@dataclass(frozen=True, kw_only=True)
class _Estimator:
    """The models that are kept, and what each says."""

    many: ManyRecords
    few: FewRecords
    models: tuple[PriorModel, ...]
    weights: Floats  # a row for each model

    def many_means(self, counts: Floats, away: Floats) -> Floats:
        """Of groups with many records, less the middle."""
        made = np.empty(len(counts))
        for part in _parts(len(counts)):
            means, _ = self.many.posterior(counts[part], away[part], self.models)
            made[part] = self._averaged(means)
        return made

    def few_means(self, counts: Floats, totals: Floats) -> Floats:
        """Of groups with few records, less the middle."""
        if len(counts) > _TABULATED:
            return self.few.between(counts, totals, self.few_means(*self.few.lattice))
        made = np.empty(len(counts))
        for part in _parts(len(counts)):
            means, _ = self.few.posterior(counts[part], totals[part], self.models)
            made[part] = self._averaged(means)
        return made

    def _averaged(self, means: list[Floats]) -> Floats:
        made = np.zeros(len(means[0]))
        for lines, weights in zip(means, self.weights, strict=True):
            for column, weight in zip(lines.T, weights.tolist(), strict=True):
                made += weight * column
        return made


def pulled_means(counts: Floats, totals: Floats, noise: TableNoise) -> Floats | None:
    """The means of all groups, as parts of the range. None where the table says nothing: without
    noise, or without records.
    """
    whole = float(counts.sum())
    if noise.variance <= 0 or whole <= 0 or not np.isfinite(noise.variance):
        return None
    middle = float(np.clip(totals.sum() / whole, 0.0, 1.0))
    away = totals - middle * counts
    many = counts > _MANY * np.sqrt(noise.of_counts)
    estimator = _estimator(counts, totals, away, many, noise, middle)
    made = np.empty(len(counts))
    made[many] = estimator.many_means(counts[many], away[many])
    made[~many] = estimator.few_means(counts[~many], totals[~many])
    return np.clip(np.rint((middle + made) / _GRID) * _GRID, 0.0, 1.0)


def _estimator(
    counts: Floats, totals: Floats, away: Floats, many: Flags, noise: TableNoise, middle: float
) -> _Estimator:
    """With the models that the table believes."""
    variance, windows = noise.along(middle)
    average = max(float(counts[~many].mean()), 0.0) if not many.all() else 0.0
    # The noisy counts of small groups are noise: all stand for their mean.
    records = np.where(many, counts, average)
    shifts = _centres(records, away, variance, middle)
    ends, alike = noise.along(0.0)
    from_many = ManyRecords(
        middle=middle, shifts=shifts, spreads=SPREADS, variance=variance, mixture=tails(windows)
    )
    from_few = FewRecords(
        middle=middle,
        shifts=shifts,
        spreads=SPREADS,
        average=average,
        most=_MANY * float(np.sqrt(noise.of_counts)),
        variance=ends,
        mixture=None if alike == 1.0 else tails(alike),
    )
    step = slice(None, None, -(-len(counts) // _WEIGHED))
    weights = _weights(
        counts[step], totals[step], away[step], many[step], records[step], from_many, from_few
    )
    rows = weights.max(axis=1) > _LEAST_WEIGHT
    columns = weights.max(axis=0) > _LEAST_WEIGHT
    kept = weights[rows][:, columns]
    shared = {"shifts": shifts[columns], "spreads": SPREADS[columns]}
    return _Estimator(
        many=replace(from_many, **shared),
        few=replace(from_few, **shared),
        models=tuple(model for model, row in zip(MODELS, rows, strict=True) if row),
        weights=kept / kept.sum(),
    )


def _centres(records: Floats, away: Floats, variance: float, middle: float) -> Floats:
    """For each spread, how far the centre is from the mean of all records together."""
    upper, lower = np.zeros(len(SPREADS)), np.zeros(len(SPREADS))
    for part in _parts(len(records)):
        near = variance / (variance + np.square(records[part, None] * SPREADS))
        upper += np.add.reduce(near * away[part, None], axis=0)
        lower += np.add.reduce(near * records[part, None], axis=0)
    moved = np.divide(upper, lower, out=np.zeros_like(upper), where=lower > 0)
    return np.clip(middle + moved, 0.0, 1.0) - middle


def _weights(
    counts: Floats,
    totals: Floats,
    away: Floats,
    many: Flags,
    records: Floats,
    from_many: ManyRecords,
    from_few: FewRecords,
) -> Floats:
    """Of the models (rows) and spreads: likelihood times prior."""
    logs = np.zeros((len(MODELS), len(SPREADS)))
    sides = (
        (from_many, counts[many], away[many]),
        (from_few, counts[~many], totals[~many]),
    )
    for side, first, second in sides:
        for part in _parts(len(first)):
            _, likely = side.posterior(first[part], second[part], MODELS)
            logs += np.stack([np.add.reduce(lines, axis=0) for lines in likely])
    coin = max(from_many.middle * (1 - from_many.middle), 1e-4)
    for row, model in enumerate(MODELS):
        own = np.square(records[:, None] * SPREADS)
        own += model.drawn * coin * np.where(many, records, 0.0)[:, None]
        logs[row] += model.likely + prior(
            np.add.reduce(own / (own + from_many.variance)) / len(own)
        )
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


def _parts(size: int) -> Iterator[slice]:
    for start in range(0, size, _PIECE):
        yield slice(start, start + _PIECE)
