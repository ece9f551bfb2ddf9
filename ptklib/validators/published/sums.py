"""The published test of the mean of a number: Hoeffding's bound and noisy sums (appendix B.3).

**Proof notes.** *Unit:* one record. *Neighbours:* add or remove one. *Sensitivity:* 1 of the number
of records; `UNIT` units of the sum of values, clipped to [0, 1] of their bounds and rounded.
*Cost:* two Laplace releases at epsilon/2. *Validity:* each with probability eta/3: both draws are
within 2 ln(3/eta)/epsilon, and the mean of the sample is within sqrt(ln(6/eta)/(2n)). The text
forgets that the noisy number is also what the noisy sum is divided by, and the bound of the values
in front of the noise; with both, the estimate is off by the sample's error and twice the quantile
over the least number.

Reasons: those of `sums.means`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.sums.told import SumVerdict, tolerance_exact
from ptklib.validators.verdict import eta_exact

__all__ = ["UNIT", "PublishedMeanTest"]

UNIT = 2**20


@dataclass(frozen=True, init=False)
class PublishedMeanTest:
    """A mean that is ACCEPTed where its absolute error is at most ``tolerance``, but for
    ``eta``."""

    tolerance: Fraction
    epsilon: Fraction
    eta: Fraction
    values: FixedPoint
    number: LaplaceRelease = field(repr=False)
    total: LaplaceRelease = field(repr=False)

    def __init__(
        self, *, tolerance: Number, epsilon: Number, eta: Number, lower: Number, upper: Number
    ) -> None:
        """Check the parameters; fix the price."""
        half = epsilon_exact(epsilon) / 2
        keep(
            self,
            tolerance=tolerance_exact(tolerance),
            epsilon=2 * half,
            eta=eta_exact(eta),
            values=FixedPoint(lower, upper, "1e-9"),
            number=LaplaceRelease(epsilon=half, sensitivity=1),
            total=LaplaceRelease(epsilon=half, sensitivity=UNIT),
        )

    @property
    def cost(self) -> Cost:
        """What one verdict costs, whatever the records are."""
        return self.number.cost + self.total.cost

    def verdict(self, values: ArrayLike, *, source: BitSource | None = None) -> SumVerdict:
        """Tell the mean and judge it. Every call costs `cost`."""
        lower, width = float(self.values.lower), float(self.values.upper - self.values.lower)
        known = np.nan_to_num((np.array(values, dtype=np.float64) - lower) / width, nan=0.5)
        units = np.rint(np.clip(known, 0.0, 1.0) * UNIT).astype(np.int64).reshape(-1)
        number = self.number.release([len(units)], source=source)
        total = self.total.release([int(units.sum())], source=source)
        return self.judged(int(number.values[0]), int(total.values[0]))

    def judged(self, records: int, total: int) -> SumVerdict:
        """What follows from both noisy numbers. Post-processing."""
        lower, width = float(self.values.lower), float(self.values.upper - self.values.lower)
        mean = min(1.0, max(0.0, total / UNIT / records)) if records > 0 else 0.5
        return SumVerdict.of((lower + width * mean,), width * self.error(records), self.tolerance)

    def error(self, records: int) -> float:
        """Of values in [0, 1]: how far off the mean may be."""
        quantile = 2 * math.log(3 / float(self.eta)) / float(self.epsilon)
        least = records - quantile
        if least <= 0:
            return math.inf
        sample = math.sqrt(math.log(6 / float(self.eta)) / (2 * least))
        return sample + 2 * quantile / least + 0.5 / UNIT
