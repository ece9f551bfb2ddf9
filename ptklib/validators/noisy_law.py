"""The law of a sum of two noises on a grid, and of a binomial statistic with it.

`NoisyLaw` is that of ``first * Z1 + second * Z2`` for two independent draws of a validator's noise
at sensitivity 1 (both laws are symmetric, so signs do not matter), each term rounded *up* to a
grid: its tail is nowhere below the true one. No data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.validators.noises import Laplace, Noise

__all__ = ["NoisyLaw", "chance_of_reaching"]

Floats = NDArray[np.float64]

# Of the grid: cells on either side of 0 that the wider term has, and in how many scales they end.
_CELLS = 1500
_SCALES, _DEVIATIONS = 42.0, 9.0
# A binomial number of errors is this many standard deviations off its mean with a chance below 1e-20.
_FAR = 10.0
# Of a cell: more than a quotient of floats is wrong by.
_HAIR = 1e-6


@dataclass(frozen=True)
class NoisyLaw:
    """P(sum >= k step) for k from ``first`` on. What is outside of the grid, less than 1e-18,
    counts as its ends.
    """

    step: float
    first: int
    tails: Floats

    @classmethod
    def of(cls, noise: Noise, first: float, second: float, grain: int = 1) -> NoisyLaw:
        """That of ``first Z1 + second Z2``; draws are on a grid of parts of 1/``grain``."""
        wide = max(first, second)
        if isinstance(noise, Laplace):
            reach = _SCALES * max(wide / float(noise.epsilon), wide / 8)
        else:
            reach = _DEVIATIONS * wide / float(noise.mu) + wide
        step = reach / _CELLS
        cells = np.arange(-_CELLS, _CELLS + 1)
        sides = [_cells(noise, weight, cells, step, grain) for weight in (first, second)]
        law = np.convolve(sides[0], sides[1])
        tails = np.minimum(1.0, np.cumsum(law[::-1])[::-1])
        return cls(step, -2 * _CELLS, tails)

    def tail(self, values: Floats) -> Floats:
        """P(sum >= value), or a little more."""
        places = np.ceil(values / self.step - _HAIR).astype(np.int64) - self.first
        inside = np.clip(places, 0, len(self.tails) - 1)
        return np.where(places < 0, 1.0, self.tails[inside])

    def quantile(self, chance: float) -> float:
        """The least value on the grid that is reached with at most this chance."""
        place = int(np.argmax(self.tails <= chance))
        return (self.first + place) * self.step


def chance_of_reaching(
    law: NoisyLaw, threshold: float, records: int, target: Fraction, accuracy: float | None = None
) -> float:
    """P(p n - wrong + noise >= threshold) for ``records`` answers, each right with probability
    ``accuracy`` (the target itself if none is given), and p = 1 - target.
    """
    allowed = float(1 - target)
    rate = allowed if accuracy is None else 1 - accuracy
    middle, spread = records * rate, math.sqrt(records * rate * (1 - rate))
    low = max(0, math.floor(middle - _FAR * spread - 60))
    high = min(records, math.ceil(middle + _FAR * spread + 60))
    wrong = np.arange(low, high + 1)
    values = np.asarray(threshold - (allowed * records - wrong), dtype=np.float64)
    return float(np.dot(_binomial(wrong, records, rate), law.tail(values)))


def _binomial(wrong: NDArray[np.int64], records: int, rate: float) -> Floats:
    from scipy.special import gammaln, xlog1py, xlogy  # slow to import

    logs = gammaln(records + 1) - gammaln(wrong + 1) - gammaln(records - wrong + 1)
    logs += xlogy(wrong, rate) + xlog1py(records - wrong, -rate)
    return np.asarray(np.exp(logs))


def _cells(
    noise: Noise, weight: float, cells: NDArray[np.int64], step: float, grain: int
) -> Floats:
    """The chance of each cell of the grid, for one draw times ``weight``, rounded up to it."""
    # Z weight is in a cell (k-1, k] where Z is in ((k-1) step/weight, k step/weight].
    edges = np.append(cells - 1, cells[-1]) * step / weight
    below = _below(noise, edges, grain)
    chances = np.diff(below)
    # What is outside belongs to the first cell or, though hardly ever, to the last.
    chances[0] += below[0]
    chances[-1] += 1 - below[-1]
    return chances


def _below(noise: Noise, edges: Floats, grain: int) -> Floats:
    """P(Z <= edge) of one draw at sensitivity 1."""
    if isinstance(noise, Laplace):
        whole, rate = np.floor(edges * grain), float(noise.epsilon) / grain
        scale = 1 / (1 + math.exp(-rate))
        upper = 1 - scale * np.exp(-rate * (np.maximum(whole, 0) + 1))
        lower = scale * np.exp(rate * np.minimum(whole, 0))
        return np.asarray(np.where(whole >= 0, upper, lower))
    from scipy.special import ndtr  # slow to import

    # Rounded to the grid: at most half a part above the continuous draw.
    return np.asarray(ndtr((edges - 0.5 / grain) * float(noise.mu)))
