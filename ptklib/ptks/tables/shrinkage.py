"""Means of groups from a noisy table: each is pulled towards what the groups have in common, by as
much as the table itself says.

A group has a noisy count c and a noisy total b. Its plain mean b / c is best where noise is small
beside what the groups differ by, and the mean of all records together where groups hardly differ.
Which of them holds can be read from the table, for the noise is known: deviations d = b - g c (g
the mean of all together) vary by the noise alone, v, and by what groups differ by, (c s)^2 for a
spread s. Everything here is post-processing of a DP table: free.

What is computed ---------------- For each of a few spreads s, from half the range down to noise:

* a *centre*: the mean of all groups, with the weights of their counts where s is far below the
  noise, and more and more even ones where it is above, because then it is small groups that are
  pulled, and they may differ from large ones;
* the *likelihood* of all deviations from it. Means of groups are taken as a mixture of normals,
  most of them near and a few far (`_FAR`): real groups have outliers. Laplace noise is taken as a
  mixture of two normals with its variance and fourth moment (`tails_of`): rare large noise is not
  mistaken for a spread. Sums over windows are nearer to normal;
* the *posterior mean* of each group, which is linear in d for each pair of these normals.

Spreads are then averaged with the weights likelihood times prior. The prior is that of an
unknown scale: one over the root of the Fisher information, so that a spread which the table could
hardly show is preferred to one that it would have shown (`_UNSEEN` keeps it finite).

All of it was chosen on made-up tables (7 to 400 groups; even, lognormal and Zipf sizes; normal,
skewed and sparse means, a few far ones, rates near 0, also means that follow sizes; noise from far
below to far above the spread) against one normal, other mixtures, centres and priors, and a hard
limit of the pull. Nothing is better than both simple ways on every table. A few groups cannot show
a spread far below their noise, where the mean of all would be better still; and a small group that
is far from all others is pulled too far, as long as its noise could explain it.

**Proof note.** *Unit, cost:* none; whatever is read has its noise already. Numbers depend on the
table alone and are rounded to `_GRID`, far above the last bits in which logarithms of two platforms
may differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["TableNoise", "pulled_means", "tails_of"]

Floats = NDArray[np.float64]

# By factors of two, as parts of the range: below the last nothing is pulled apart any more.
_SPREADS: Floats = np.exp2(-np.arange(1.0, 14.0))
# How much wider than the spread, and for which part of the groups: squares.
_FAR = ((0.3, 0.6), (1.5, 0.3), (10.0, 0.07), (100.0, 0.03))
_UNSEEN = 0.01
_GRID = 2.0**-32
# Groups that spreads are weighed with: more hardly tell more.
_WEIGHED = 4096
_PIECE = 1 << 12
# A spread with less weight than this is left out of the average.
_LEAST_WEIGHT = 1e-4


@dataclass(frozen=True, kw_only=True)
class TableNoise:
    """The noise of each of the totals that a group has; the mean is their sum at `places`, over
    their sum.
    """

    variance: float
    places: tuple[float, ...]  # in the range
    windows: float  # that were summed, each with Laplace noise; infinite where it is Gaussian

    def along(self, centre: float) -> tuple[float, float]:
        """The variance of a deviation from the centre, and how many windows its tails are like."""
        squares = np.square(np.array(self.places) - centre)
        whole = float(squares.sum())
        return self.variance * whole, self.windows * whole**2 / float(np.square(squares).sum())


def pulled_means(counts: Floats, totals: Floats, noise: TableNoise) -> Floats | None:
    """The means of all groups, as parts of the range. None where the table says nothing: without
    noise, or without records.
    """
    whole = float(counts.sum())
    if noise.variance <= 0 or whole <= 0 or not np.isfinite(noise.variance):
        return None
    middle = float(np.clip(totals.sum() / whole, 0.0, 1.0))
    variance, windows = noise.along(middle)
    mixture = tails_of(windows)
    # Negative counts are those of groups with hardly a record.
    records, away = np.maximum(counts, 0.0), totals - middle * counts
    shifts = _centres(records, away, variance, middle)
    step = -(-len(counts) // _WEIGHED)
    weights = _weights(records[::step], away[::step], shifts, variance, mixture)
    kept = weights > _LEAST_WEIGHT
    weights, shifts = weights / weights[kept].sum(), shifts[kept]
    made = np.empty(len(counts))
    for part in _parts(len(counts)):
        means, _ = _posterior(records[part], away[part], shifts, _SPREADS[kept], variance, mixture)
        made[part] = _summed((means * weights[kept]).T)
    return np.clip(np.rint((middle + made) / _GRID) * _GRID, 0.0, 1.0)


def tails_of(windows: float) -> tuple[tuple[float, float], ...]:
    """Variances and weights of two normals that are as heavy-tailed as the sum of so many Laplace
    draws: the two-point rule of a Gamma distribution of this shape and mean 1.
    """
    if not np.isfinite(windows):
        return ((1.0, 1.0),)
    root = float(np.sqrt(windows + 1))
    low, high = (windows + 1 - root) / windows, (windows + 1 + root) / windows
    share = (high - 1) / (high - low)
    return ((low, share), (high, 1 - share))


def _centres(records: Floats, away: Floats, variance: float, middle: float) -> Floats:
    """For each spread, how far the centre is from the mean of all records together."""
    upper, lower = np.zeros(len(_SPREADS)), np.zeros(len(_SPREADS))
    for part in _parts(len(records)):
        near = variance / (variance + np.square(records[part, None] * _SPREADS))
        upper += _summed(near * away[part, None])
        lower += _summed(near * records[part, None])
    moved = np.divide(upper, lower, out=np.zeros_like(upper), where=lower > 0)
    return np.clip(middle + moved, 0.0, 1.0) - middle


def _weights(
    records: Floats,
    away: Floats,
    shifts: Floats,
    variance: float,
    mixture: tuple[tuple[float, float], ...],
) -> Floats:
    """Of the spreads: likelihood times prior."""
    likelihood = np.zeros(len(_SPREADS))
    seen = np.zeros(len(_SPREADS))
    for part in _parts(len(records)):
        _, logs = _posterior(records[part], away[part], shifts, _SPREADS, variance, mixture)
        likelihood += _summed(logs)
        own = np.square(records[part, None] * _SPREADS)
        seen += _summed(np.square(own / (own + variance))) / 2
    weights = np.exp(likelihood - likelihood.max()) / np.sqrt(_UNSEEN + seen)
    return np.asarray(weights / weights.sum())


def _posterior(
    records: Floats,
    away: Floats,
    shifts: Floats,
    spreads: Floats,
    variance: float,
    mixture: tuple[tuple[float, float], ...],
) -> tuple[Floats, Floats]:
    """Of each group (row) under each spread: the mean, and the logarithm of its likelihood."""
    own = np.square(records[:, None] * spreads)
    apart = away[:, None] - records[:, None] * shifts
    squares = np.square(apart)
    logs, pulls = [], []
    for tail, share in mixture:
        for far, part in _FAR:
            both = far * own + tail * variance
            logs.append(np.log(share * part) - (np.log(both) + squares / both) / 2)
            pulls.append(far * np.square(spreads) / both)
    top = np.maximum.reduce(logs)
    odds = [np.exp(log - top) for log in logs]
    whole = sum(odds[1:], odds[0])
    pull = sum(
        (odd * pulled for odd, pulled in zip(odds[1:], pulls[1:], strict=True)), odds[0] * pulls[0]
    )
    return shifts + pull / whole * records[:, None] * apart, top + np.log(whole)


def _parts(size: int) -> Iterator[slice]:
    for start in range(0, size, _PIECE):
        yield slice(start, start + _PIECE)


def _summed(lines: Floats) -> Floats:
    """The sum of all lines, in the order that they come in."""
    return np.asarray(np.add.reduce(lines, axis=0))
