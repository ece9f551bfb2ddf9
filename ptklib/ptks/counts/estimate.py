"""What noisy counts say: non-negative counts, and conditional probabilities that fall back to the
prior.

The state keeps the noisy integers as they are, below zero too: they have no bias, and so have their
sums over windows and cells. Only what is read out is shrunk; all of it is post-processing.

* **Count** of a class: c³ / (c² + v) for a noisy count c > 0 whose noise has variance v, and 0
  below. Cutting at zero alone would give every empty cell a count of about a third of the noise.
  This pulls what the noise alone explains towards zero and leaves the rest: its bias is small on
  both sides, and its squared error below that of cutting wherever most cells are nearly empty.
* **Probability** of a class, from its noisy counts c_l, their sum n and the prior p::

      p_l + w (c_l / n - p_l)       w = n² / (n² + k²)      k² = V / (s G)

  where V = v (L - 2 + L sum p²) is the noise of the deviations c_l - n p_l, summed over the L
  classes, and G = 1 - sum p². It is the best linear estimate where the values differ in their
  probabilities by the *spread* s, a part of the most that they could (by a variance of s p (1-p)).
  A value that was never seen has the prior, and so has one with n <= 0; without noise it is c / n.
  The strength k follows the noise and, in skewed classes, the rarity of the rare one: additive
  smoothing with a constant k, by contrast, turns noise into large probabilities of the rare class.

The **spread** is read from the table itself (`spread_weights`): deviations have the variance of
their noise, which is known, and n² s p (1-p). w is averaged over a few spreads, each with its
likelihood times a prior that prefers wide ones: where a table cannot tell, least is lost by
believing it.

Counts of single rows are cut at zero before they are read: no count is below. At large epsilons
many cells have no noise at all, and then c / n is the truth, however rare the class. With the
chance `untouched` that this is so, a line has c / n instead: the chance of no noise in any of its
cells, less the part of such sums that empty lines make up, which is known from as many sums below
zero. (Of single rows alone.)

These rules were chosen by measurement on made-up tables (8 to 300 values, even and Zipf, classes
from even to 3%, spreads from 0.005 to 0.8, empty lines beside them, noise from far below to the
size of the counts) against cutting at zero, a fixed spread of 0.1, one fitted by moments, the
mixtures of `tables.shrinkage`, a spread for each line, and posterior means over a grid of
probabilities or of pairs of counts, which are better at epsilon 1 and 3 and far worse below. What
is done to single rows was added after a look at real tables, and found better on made-up ones too.
Nothing was best everywhere: where values are nearly pure, cutting alone still is.

Rows of a hashed feature are combined by the median of their noisy cells, class by class. The least
row, as in a count-min sketch, takes the lowest noise for the truth; the mean is spoilt by one
collision with a frequent value; and subtracting the expected load of a cell before made neither the
counts nor the probabilities better.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ptklib.serving.steps import STEPS

__all__ = [
    "SPREADS",
    "combined",
    "combined_variance",
    "prior_of",
    "probabilities",
    "shrunk_counts",
    "spread_weights",
    "untouched",
]

Floats = NDArray[np.float64]

# Parts of p (1-p), by factors of the root of two.
SPREADS: Floats = np.append(0.95, np.exp2(-np.arange(1.0, 24.0) / 2))
# Lines that spreads are weighed with: those with the most records tell the most.
_WEIGHED = 4096
_GRID = 2.0**-30
# Of lines that have no record, at most this part among those that are taken to have some.
_FALSE = 0.02
# Half standard deviations: no noise is beyond them.
_STEPS = 80
# Sums that are told apart when asked whether a line may be without noise.
_SUMS = 64
# Where no line has records enough: about a tenth.
_USUAL = 7
_FEW_ROWS = 2


def combined(rows: Floats) -> Floats:
    """One noisy count from the (rows, ...) of a feature: the median, which is the mean of two."""
    return rows[0] if len(rows) == 1 else np.median(rows, axis=0)


def combined_variance(variance: float, rows: int) -> float:
    """The variance of `combined`; that of a median is at most pi/2 that of a mean, for Gaussian
    noise.
    """
    return variance / rows * (1.0 if rows <= _FEW_ROWS else math.pi / 2)


def prior_of(totals: Floats) -> Floats:
    """Class shares from noisy class totals; even where none is positive."""
    positive = np.maximum(totals, 0.0)
    whole = positive.sum()
    return positive / whole if whole > 0 else np.full(len(totals), 1 / len(totals))


def shrunk_counts(counts: Floats, variance: float) -> Floats:
    """Non-negative counts; see the module."""
    positive = np.maximum(counts, 0.0)
    squares = np.square(positive)
    weight = squares + variance
    return positive * np.divide(squares, weight, out=np.zeros_like(squares), where=weight > 0)


def spread_weights(counts: Floats, prior: Floats, variance: float) -> Floats:
    """How much each of `SPREADS` is to be believed, for noisy counts of all lines of a table.

    Rounded, so that the last bits of a platform's logarithms do not show.
    """
    sums = counts.sum(axis=1)
    classes = len(prior)
    room = prior * (1 - prior)
    if variance <= 0 or not room.all():
        return np.asarray(SPREADS.max() == SPREADS, dtype=np.float64)
    seen = _seen(sums, math.sqrt(classes * variance))
    if not len(seen):
        return np.asarray(SPREADS[_USUAL] == SPREADS, dtype=np.float64)
    lines, n = counts[seen], sums[seen][:, None]
    logs, told = np.zeros(len(SPREADS)), np.zeros(len(SPREADS))
    # The last class follows from the others; of two, one tells all.
    for place in range(classes if classes > 2 else 1):
        noise = variance * ((1 - prior[place]) ** 2 + (classes - 1) * prior[place] ** 2)
        own = np.square(n) * SPREADS * room[place]
        both = own + noise
        away = lines[:, place, None] - n * prior[place]
        logs -= np.add.reduce(np.log(both / noise) + np.square(away) / both, axis=0) / 2
        told += np.add.reduce(np.square(own / both), axis=0) / 2
    logs *= 1.0 if classes == 2 else 1 - 1 / classes
    weights = np.exp(logs - logs.max()) * SPREADS / np.sqrt(1 + told)
    return np.asarray(np.rint(weights / weights.sum() / _GRID) * _GRID)


def _seen(sums: Floats, deviation: float) -> NDArray[np.intp]:
    """The lines that have records: those whose sums are so large that hardly any is as far below
    zero, for empty lines are there as often. Of very many, the largest.
    """
    for step in range(1, _STEPS + 1):
        least = step * deviation / 2
        if np.count_nonzero(sums <= -least) <= _FALSE * np.count_nonzero(sums >= least):
            break
    else:
        return np.zeros(0, dtype=np.intp)
    # The first empty lines beyond the last one below zero would look like a wide spread.
    seen = np.flatnonzero(sums >= (least if step == 1 else least + 2 * deviation))
    if len(seen) > _WEIGHED:
        seen = np.sort(seen[np.argsort(-sums[seen], kind="stable")[:_WEIGHED]])
    return seen


def untouched(counts: Floats, variance: float) -> Floats:
    """The chance that a line has no noise, by its sum, 0 to `_SUMS` and above, for noisy counts of
    all lines of a table.
    """
    if variance <= 0:
        return np.ones(_SUMS + 1)
    # Of discrete Laplace noise with this variance.
    root = math.sqrt((1 + 1 / variance) ** 2 - 1)
    base = 1 / (1 + 1 / variance + root)
    chance = ((1 - base) / (1 + base)) ** counts.shape[1]
    sums = np.clip(np.rint(counts.sum(axis=1)), -_SUMS, _SUMS).astype(np.int64)
    above = np.bincount(np.maximum(sums, 0), minlength=_SUMS + 1)
    below = np.bincount(np.maximum(-sums, 0), minlength=_SUMS + 1)
    return np.asarray(chance * (1 - np.minimum(below / np.maximum(above, 1), 1.0)))


def probabilities(
    counts: Floats, prior: Floats, variance: float, weights: Floats, chances: Floats | None = None
) -> Floats:
    """P(class | value) for noisy counts of shape (values, classes), the weights of spreads and the
    chances of no noise; see the module.

    Rows sum to one.
    """
    shares: Floats = STEPS["class_shares"]([counts], prior, variance, SPREADS, weights, chances)
    return shares
