"""The mean of a number, with how far from the mean of the world it may be.

A value is clipped to [lower, upper], brought to x in [0, 1] and rounded to a grid of 1/`GRID`. A
record adds ((1-x)^2, 2x(1-x), x^2): three numbers that make 1, and from whose sums number, mean and
spread follow.

**Proof notes.** *Unit:* one record. *Neighbours:* add or remove one. *Sensitivity:* the three are
non-negative whole numbers of `UNIT` = GRID^2, and add up to UNIT: L1 and L2 norm are at most UNIT. *Cost:*
that of one release of the noise. *Validity:* let n be the number of records, N the noisy one (the sum
of all three), and e = (A2 + A1/2)/N the estimate. Then N (e - mu) = sum (x - mu) + W with
W = (1 - mu) Z2 + (1/2 - mu) Z1 - mu Z0, as N is known: a noisy divisor costs nothing more. |W| is convex in mu,
so at most the larger of |Z2 + Z1/2| and |Z0 + Z1/2|. Of eta,

* 3/4 are for the sample: |sum (x - mu)| <= n r with r the smaller of sqrt(2 s^2 l/n) + l/(3n) (Bernstein)
  and sqrt(l/(2n)) (Hoeffding), l = ln(8/(3 eta)), s the true deviation. Which is smaller follows from s
  and n, no data, so it is one event. n r grows with n and with s;
* 1/8 for the two sums of noise in W, by their law (`noisy_law`);
* 1/16 for |Z| <= z of each of the three: n is within 3z of N, and the sum of squares around e, which no
  other point has less of than the mean of the records, within z times the sum of its coefficients' sizes;
* 1/16 for s <= sqrt(V) + sqrt(2 ln(16/eta)/(n-1)), V the sample's variance (Maurer and Pontil
2009).

Rounding to the grid adds half a step. Floats are granted a millionth.

Reasons: TOLERANCE_INVALID, BOUNDS_INVALID, ETA_INVALID, NOISE_INVALID.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.enough import least_records
from ptklib.validators.noises import Noise, noise_of
from ptklib.validators.noisy_law import NoisyLaw
from ptklib.validators.sums.told import SumVerdict, tolerance_exact
from ptklib.validators.verdict import eta_exact

__all__ = ["GRID", "UNIT", "MeanTest", "ToldMoments", "mean_error"]

GRID = 2**12
UNIT = GRID**2
_ROUND = 1 + 1e-6


@dataclass(frozen=True)
class ToldMoments:
    """What was released, in records: noisy sums of (1-x)^2, 2x(1-x) and x^2. DP."""

    low: float
    middle: float
    high: float

    @property
    def records(self) -> float:
        """A noisy number of records."""
        return self.low + self.middle + self.high

    @property
    def mean(self) -> float:
        """Of x, inside [0, 1]; a half where nothing is known."""
        if self.records <= 0:
            return 0.5
        return min(1.0, max(0.0, (self.high + self.middle / 2) / self.records))

    def around(self, point: float) -> tuple[float, tuple[float, float, float]]:
        """The noisy sum of squares around a point, and its coefficients."""
        ends = point * point, point * point - point, (1 - point) ** 2
        told = ends[0] * self.low + ends[1] * self.middle + ends[2] * self.high
        return told, ends


@dataclass(frozen=True, init=False)
class MeanTest:
    """A mean that is told with noise, and ACCEPTed where its absolute error is at most
    ``tolerance``, but for a chance of ``eta``.
    """

    tolerance: Fraction
    noise: Noise
    eta: Fraction
    values: FixedPoint
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        tolerance: Number,
        eta: Number,
        lower: Number,
        upper: Number,
        epsilon: Number | None = None,
        noise: Noise | None = None,
    ) -> None:
        """Check the parameters; fix the price."""
        added = noise_of(epsilon, noise)
        # Only to refuse bounds that are none.
        bounds = FixedPoint(lower, upper, "1e-9")
        keep(
            self,
            tolerance=tolerance_exact(tolerance),
            noise=added,
            eta=eta_exact(eta),
            values=bounds,
            release=added.release(UNIT),
        )

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.release.cost

    @property
    def width(self) -> float:
        """Between the bounds."""
        return float(self.values.upper - self.values.lower)

    def sums(self, values: ArrayLike) -> NDArray[np.int64]:
        """The three sums, in units. Raw: not to be published."""
        known = np.array(values, dtype=np.float64).reshape(-1)
        # What is no number counts as the middle.
        np.copyto(known, float(self.values.lower) + self.width / 2, where=np.isnan(known))
        share = (known - float(self.values.lower)) / self.width
        steps = np.rint(np.clip(share, 0.0, 1.0) * GRID).astype(np.int64)
        rest = GRID - steps
        return np.array(
            [(rest * rest).sum(), (2 * steps * rest).sum(), (steps * steps).sum()], dtype=np.int64
        )

    def tell(self, values: ArrayLike, *, source: BitSource | None = None) -> ToldMoments:
        """The sums with noise. Every call costs `cost`."""
        told = self.release.release(self.sums(values), source=source).values
        return ToldMoments(*(int(value) / UNIT for value in told))

    def verdict(self, values: ArrayLike, *, source: BitSource | None = None) -> SumVerdict:
        """Tell the mean and judge it. Every call costs `cost`."""
        return self.judged(self.tell(values, source=source))

    def judged(self, told: ToldMoments) -> SumVerdict:
        """What follows from what was told. Post-processing."""
        estimate = float(self.values.lower) + self.width * told.mean
        return SumVerdict.of((estimate,), self.width * self.error(told), self.tolerance)

    def error(self, told: ToldMoments) -> float:
        """Of x: how far off its mean may be."""
        return mean_error(self.noise, float(self.eta), told)

    def needed(self, spread: Number) -> int | None:
        """Records with which a mean of numbers of this standard deviation is most likely ACCEPTed.
        No data.
        """
        share = float(exact(spread, name="spread")) / self.width
        second = min(0.25, share * share)
        # Noise that takes records away and spreads the others, in nine of ten cases no more.
        luck = 2.2 * self.noise.beyond(0.2, UNIT)

        def enough(records: int) -> bool:
            low = high = records * (0.25 + second)
            told = ToldMoments(low, records - low - high - luck, high)
            return self.width * self.error(told) <= self.tolerance

        return least_records(enough)


def mean_error(noise: Noise, eta: float, told: ToldMoments) -> float:
    """See the module: how far the mean of x may be off, by what was told, but for a chance of
    eta."""
    z = noise.beyond(eta / 48, UNIT)
    least, most = told.records - 3 * z, told.records + 3 * z
    if least <= 2:
        return math.inf
    squares, ends = told.around(told.mean)
    variance = max(0.0, squares + z * sum(abs(end) for end in ends)) / (least - 1)
    deviation = math.sqrt(variance) + math.sqrt(2 * math.log(16 / eta) / (least - 1))
    log = math.log(8 / (3 * eta))
    bernstein = deviation * math.sqrt(2 * log * most) + log / 3
    off = min(bernstein, math.sqrt(log * most / 2)) + _noise_of_mean(noise, eta)
    return _ROUND * off / told.records + 0.5 / GRID


@lru_cache(maxsize=1024)
def _noise_of_mean(noise: Noise, eta: float) -> float:
    # Two sums, both sides of each.
    return NoisyLaw.of(noise, 1.0, 0.5, UNIT).quantile(eta / 32)
