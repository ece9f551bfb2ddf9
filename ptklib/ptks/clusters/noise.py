"""Noise for rows of whole numbers of which one record moves one row, by no more than a cube: exact,
at pure epsilon.

Each row v of D numbers gets the noise N with P(N) proportional to exp(-|N|_max / scale) on the whole numbers, scale =
sensitivity / epsilon, where |N|_max is the largest of its D absolute values.

**Proof note.** *Unit:* that of the data, integers. *Neighbours:* add or remove one unit of privacy (record or user).
*Sensitivity:* ``sensitivity`` bounds the sum over rows of the largest change within the row. *Cost:* neighbours'
probabilities of an output differ by a factor of at most exp(sum over rows of |v - v'|_max / scale) <= exp(epsilon), by
the triangle inequality.

Why not Laplace noise: a record (1, x) with every |x_j| <= 1 moves a count and D-1 sums by up to D in L1, but all within a
cube, and the cube is the whole of what records can do. Each number has the standard deviation sqrt((D+1)(D+2)/3) scale
here, with Laplace noise sqrt(2) D: 1.6 times as much for D = 3, 2.4 times for large D.

**Exact.** A radius m with P(m) proportional to (2m+1)^D q^m, q = exp(-1/scale), and then D uniform numbers of -m to m:
summed over m >= |N|_max this gives (1/(1-q)) q^|N|_max. The sum of D+1 geometric draws has P(m) proportional to
(m+1)...(m+D) q^m; it is accepted with probability (m+1/2)^D / ((m+1)...(m+D)), as D independent events of probability
(2m+1)/(2m+2i), each decided by one uniform whole number. A small scale would accept few: there the data is multiplied by
a power of two first, and the result is divided again, which is post-processing.

Reasons: those of `mechanisms.inputs` and `amounts`; SCALE_TOO_LARGE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.privacy.costs import PureCost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.inputs import IntegerData, integer_array, sensitivity_integer
from ptklib.privacy.noise.sampler import MAX_SCALE, geometric
from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["CubeRelease"]

Integers = NDArray[np.int64]

# Values beyond are clamped, which moves no two of them apart; beyond the second they would not fit,
# times the factor.
_MOST, _MOST_FINE = 2**46, 2**61
# A radius is below 2**51 then, but for a chance of less than exp(-2**9), and uniform numbers have
# exact floats.
_MAX_RADIUS = 2**42
# The least scale in units of D+1 without refinement: two draws in three are accepted, or more.
_COARSE = 4


@dataclass(frozen=True, init=False)
class CubeRelease:
    """Noise of the shape of a cube on every row. The proof note is in the module."""

    epsilon: Fraction
    sensitivity: int
    width: int
    scale: Fraction
    factor: int
    cost: PureCost

    def __init__(self, *, epsilon: Number, sensitivity: int, width: int) -> None:
        """Check the parameters and fix the cost; no data yet.

        ``width`` is the length D of a row.
        """
        level, reach = epsilon_exact(epsilon), sensitivity_integer(sensitivity)
        scale, factor = reach / level, 1
        # Radii are sums of draws that have a limit of their own.
        most = min(Fraction(_MAX_RADIUS, width + 1), Fraction(MAX_SCALE))
        if scale > most:
            raise InvalidInput(
                "SCALE_TOO_LARGE",
                f"scale must be at most {show(most)}, got {show(scale)}; use a larger epsilon",
            )
        while factor * scale < _COARSE * (width + 1):
            factor *= 2
        keep(
            self,
            epsilon=level,
            sensitivity=reach,
            width=width,
            scale=scale,
            factor=factor,
            cost=PureCost(epsilon=level),
        )

    @property
    def spread(self) -> float:
        """The standard deviation of each number's noise, nearly."""
        return float(self.scale) * math.sqrt((self.width + 1) * (self.width + 2) / 3)

    def release(self, values: IntegerData, *, source: BitSource | None = None) -> Integers:
        """The rows with fresh noise. Every call costs ``cost``."""
        bits = require_secure(source)
        most = min(_MOST, _MOST_FINE // self.factor)
        data = np.clip(integer_array(values, name="values"), -most, most)
        # The law of the radius is that of rows of this width and no other.
        if data.ndim != 2 or data.shape[1] != self.width:
            raise InvalidInput(
                "DATA_SHAPE_INVALID",
                f"values must be rows of {self.width} numbers, got the shape {data.shape}",
            )
        radii = self._radii(len(data), bits)[:, None]
        noise = _below(np.broadcast_to(2 * radii + 1, data.shape), bits) - radii
        # Half up: floor((x + factor/2) / factor).
        return np.asarray(
            (data * self.factor + noise + self.factor // 2) // self.factor, dtype=np.int64
        )

    def _radii(self, count: int, bits: BitSource) -> Integers:
        """Radii with P(m) proportional to (2m+1)^D q^m."""
        radii = np.zeros(count, dtype=np.int64)
        left = np.arange(count)
        steps = 2 * np.arange(1, self.width + 1)
        while len(left):
            tried = geometric(
                (len(left), self.width + 1), self.factor * self.scale, source=bits
            ).sum(axis=1)
            kept = (_below(2 * tried[:, None] + steps, bits) < 2 * tried[:, None] + 1).all(axis=1)
            radii[left[kept]] = tried[kept]
            left = left[~kept]
        return radii


def _below(bounds: Integers, bits: BitSource) -> Integers:
    """Uniform whole numbers of 0 to bound - 1, each for its own bound below 2**53: leading bits of
    a word, or another word.
    """
    flat = np.ascontiguousarray(bounds).reshape(-1)
    # frexp is exact: bound <= 2**exponent.
    shifts = (64 - np.frexp(flat.astype(np.float64))[1]).astype(np.uint64)
    drawn = (bits.words(len(flat)) >> shifts).astype(np.int64)
    left = np.flatnonzero(drawn >= flat)
    while len(left):
        drawn[left] = (bits.words(len(left)) >> shifts[left]).astype(np.int64)
        left = left[drawn[left] >= flat[left]]
    return drawn.reshape(bounds.shape)
