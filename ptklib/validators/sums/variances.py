"""The variance of a number, with how far from that of the world it may be.

The variance is E(x - c)^2 - (mu - c)^2 for any c; c is 1/2 here, the middle of the bounds, where
y = 4 (x - c)^2 is in [0, 1]. Both means follow from the sums of `means`, released once.

**Proof notes.** *Unit, neighbours, sensitivity, cost:* those of `means.MeanTest`. *Validity:* half of eta
is for the mean (`means.mean_error`). The other half is for E y, estimated by the noisy sum of y over N,
the noisy number: N (e - E y) = sum (y - E y) + noise, in which each Z has a coefficient of size 2 at
most. Of that half, one half is for |Z| <= z of all three, so that the mean of y over the records is
within 3 * 2 z/N + 3z/N of e (the second for N in place of n), and one for Chernoff's bound
of a mean of numbers in [0, 1] (`told.divergence_bounds`). The error of the variance is at most
that of E y over 4, and d (2 |e - c| + d) for an error d of the mean.

Reasons: those of `means`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.enough import least_records
from ptklib.validators.noises import Noise
from ptklib.validators.sums.means import GRID, UNIT, MeanTest, ToldMoments, mean_error
from ptklib.validators.sums.told import (
    SumVerdict,
    divergence_bounds,
    tolerance_exact,
)

__all__ = ["VarianceTest"]


@dataclass(frozen=True, init=False)
class VarianceTest:
    """A variance that is told with noise, and ACCEPTed where its absolute error is at most
    ``tolerance`` (in squares of the value), but for a chance of ``eta``.
    """

    tolerance: Fraction
    mean: MeanTest

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
        mean = MeanTest(
            tolerance=tolerance, eta=eta, lower=lower, upper=upper, epsilon=epsilon, noise=noise
        )
        keep(self, tolerance=tolerance_exact(tolerance), mean=mean)

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.mean.cost

    def verdict(self, values: ArrayLike, *, source: BitSource | None = None) -> SumVerdict:
        """Tell the variance and judge it. Every call costs `cost`."""
        return self.judged(self.mean.tell(values, source=source))

    def judged(self, told: ToldMoments) -> SumVerdict:
        """What follows from what was told. Post-processing."""
        squares, _ = told.around(0.5)
        share = squares / told.records if told.records > 0 else 0.0
        variance = max(0.0, min(0.25, share) - (told.mean - 0.5) ** 2)
        scale = self.mean.width**2
        return SumVerdict.of((scale * variance,), scale * self.error(told), self.tolerance)

    def error(self, told: ToldMoments) -> float:
        """Of x: how far off its variance may be."""
        noise, eta = self.mean.noise, float(self.mean.eta) / 2
        z = noise.beyond(eta / 6, UNIT)
        least = told.records - 3 * z
        off = mean_error(noise, eta, told)
        if least <= 2 or not math.isfinite(off):
            return math.inf
        squares, _ = told.around(0.5)
        share = min(1.0, max(0.0, 4 * squares / told.records))
        ends = np.clip(share + 9 * z / least * np.array([-1.0, 1.0]), 0.0, 1.0)
        below, above = divergence_bounds(ends, math.log(4 / eta) / least)
        second = float(max(above[1] - share, share - below[0])) / 4
        return second + off * (2 * abs(told.mean - 0.5) + off) + 1 / GRID

    def needed(self, spread: Number) -> int | None:
        """Records with which the variance of numbers of this standard deviation, in the middle of
        the bounds, is most likely ACCEPTed. No data.
        """
        share = float(exact(spread, name="spread")) / self.mean.width
        second = min(0.25, share * share)
        luck = 2.2 * self.mean.noise.beyond(0.2, UNIT)

        def enough(records: int) -> bool:
            low = high = records * (0.25 + second)
            told = ToldMoments(low, records - low - high - luck, high)
            return self.mean.width**2 * self.error(told) <= self.tolerance

        return least_records(enough)
