"""How far each user or item is above the level, from noisy counts and sums: shrunken biases.

A row has n records, x is how far its mean is above the level. Known are a noisy count, and a noisy sum
of what its records are above the level: n x, chance n v and noise s^2. What is unknown is learned
from all rows together (empirical Bayes):

1. *Counts.* How many records rows have is taken as a mixture over a grid of numbers, whose weights
   are the most likely ones (a few rounds of EM). The count of a row is then the mean of what it may
   be: rows that noise makes negative may still have a few records, and most rows have few. With it
   the sum becomes the (h, J) of `factorization`, which add up over windows: h has mean J x and
   variance J v.
2. *Spreads.* x is taken as a mixture of normals around 0 with spreads from half the range down to
   next to nothing, most likely weights again. So a few rows far from all others (an airport among
   city zones) do not loosen the others, as one variance for all would.
3. The *guess* is the mean of x given (h, J), averaged over the spreads.

Where there is nothing but noise all guesses are next to 0; where there is hardly any, they are the
plain means. Nothing is tuned to epsilon.

**Proof note.** *Unit, cost:* none, all of it is post-processing of noisy numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["guessed", "likely_counts"]

Floats = NDArray[np.float64]

_SPREADS: Floats = np.exp2(-np.arange(1.0, 11.0))
_COUNTS, _ROUNDS = 32, 60
# Rows that mixtures are learned from: more hardly tell more.
_LEARNED = 4096
_PIECE = 4096
# Rows that are thought to be of each spread before any are seen: where noise could hide any spread,
# rows are taken to be alike.
_NEAR: Floats = np.append(np.full(len(_SPREADS) - 1, 0.1), 1.0)
_TINY = 1e-300
_GRID = 2.0**-40


def guessed(sums: Floats, weights: Floats, spread: float) -> Floats:
    """The mean of each row above the level, in ranges, from (h, J) and v."""
    precision, known = weights / spread, sums / spread
    step = -(-len(sums) // _LEARNED)
    shares = _weights_of(_likelihood(precision[::step], known[::step]), _NEAR)
    guess = np.empty(len(sums))
    for start in range(0, len(sums), _PIECE):
        here = slice(start, start + _PIECE)
        share = _likelihood(precision[here], known[here]) * shares
        pull = 1 / (precision[here, None] + _SPREADS**-2.0)
        guess[here] = (share * pull).sum(axis=1) / share.sum(axis=1) * known[here]
    return np.asarray(np.rint(guess / _GRID) * _GRID)


def _likelihood(precision: Floats, known: Floats) -> Floats:
    """Of each row under each spread, the best one as 1."""
    both = precision[:, None] + _SPREADS**-2.0
    logs = (np.square(known[:, None]) / both - np.log(both * _SPREADS**2)) / 2
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def likely_counts(noisy: Floats, variance: float) -> tuple[Floats, Floats]:
    """The mean and the variance of what each count may have been."""
    deviation = float(np.sqrt(variance))
    top = max(float(noisy.max(initial=0.0)), deviation, 1.0) + deviation
    grid = np.geomspace(max(deviation / 8, 0.5), 2 * top, _COUNTS)
    # A number of the grid stands for those around it.
    around = np.square(grid * np.log(grid[1] / grid[0]) / 2)
    both = around + variance
    step = -(-len(noisy) // _LEARNED)
    weights = _weights_of(_near(noisy[::step], grid, both), np.full(_COUNTS, 1 / _COUNTS))
    counts, spreads = np.empty(len(noisy)), np.empty(len(noisy))
    for start in range(0, len(noisy), _PIECE):
        some = noisy[start : start + _PIECE]
        share = _near(some, grid, both) * weights
        share /= share.sum(axis=1, keepdims=True)
        middle = grid + around / both * (some[:, None] - grid)
        mean = (share * middle).sum(axis=1)
        left = share * (np.square(middle - mean[:, None]) + around * variance / both)
        counts[start : start + _PIECE] = mean
        spreads[start : start + _PIECE] = left.sum(axis=1)
    return np.maximum(counts, 0.0), spreads


def _near(noisy: Floats, grid: Floats, variances: Floats) -> Floats:
    """The likelihood of each number of the grid, for each row, the best one as 1."""
    logs = -(np.square(noisy[:, None] - grid) / variances + np.log(variances)) / 2
    return np.asarray(np.exp(logs - logs.max(axis=1, keepdims=True)))


def _weights_of(likelihood: Floats, before: Floats) -> Floats:
    """The most likely weights of a mixture, by EM; ``before`` are rows that are thought to be of
    each part before any are seen.
    """
    weights = before / before.sum()
    for _ in range(_ROUNDS):
        share = likelihood * weights
        share /= np.maximum(share.sum(axis=1, keepdims=True), _TINY)
        weights = (share.sum(axis=0) + before) / (len(likelihood) + before.sum())
    return np.asarray(weights)
