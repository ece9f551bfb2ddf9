"""REJECT: no state of a class keeps the promise, so training again is in vain.

For the least sum of losses that any state of the class has on the records of the *train* slice, M,
and their number n, the evidence is ``(theta M - k n)/r`` with k = ln(1 - m + m exp(theta)) and m
the target, for losses in [0, 1]. Noise is added once; a REJECT needs the threshold of `threshold`.

**It takes the exact minimiser** of the mean of the clipped losses on those very records: a closed
form, or a convex problem solved to the end (`Ptk.exact`). Of any other state - one trained with
noise, by gradient steps, a tree, a clustering - the sum may move by far more than one loss when a
record comes, and a poor one says nothing of the others. Where there is none, there is no REJECT:
`reject_test` of the caller is None, and a validator says ACCEPT or RETRY.

**Proof notes.** *Unit:* one record, or one user with at most r of them. *Neighbours:* add or remove
one. *Sensitivity:* with a record more M does not fall (the new minimiser was no better before), and
it grows by the record's loss under the old minimiser at most. So a record moves theta M - k n by
[-k, theta - k], and a unit the evidence by max(k, theta - k). The sum is that of rounded numbers,
and minimisers are found in floats: `SLACK_UNITS` of 2**20 units of a loss are added to the
sensitivity of M for that. *Cost:* that of one release of the noise. *Validity:* let some state f of
the class have a mean loss of at most m. exp is convex, so E[exp(theta l(f))] <= exp(k), and
exp(theta sum l(f) - k n) has expectation 1 at most, whatever n is; f is fixed, though nobody knows
it. M <= sum l(f), so the evidence is below its logarithm (1/r of it is for users, `betting`).

The train slice is not the test slice: where both are judged, each is charged its own.

Reasons: TARGET_INVALID, BOUND_INVALID, ETA_INVALID, NOISE_INVALID.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.validators.betting import UNIT, clipped, target_within
from ptklib.validators.noises import Noise, noise_of
from ptklib.validators.verdict import REJECT, RETRY, LossVerdict, eta_exact

__all__ = ["SLACK_UNITS", "RejectTest"]

# Of 2**20 in a loss: rounding, and how far from the least sum a minimiser may end.
SLACK_UNITS = 2**10
_SLACK = Fraction(SLACK_UNITS, 2**20)
_RATES = tuple(np.geomspace(0.005, 3.0, 48))


@dataclass(frozen=True, init=False)
class RejectTest:
    """A test of "no state of this class has a mean loss of at most ``target``", wrong in a REJECT
    with probability at most ``eta``. ``records`` are those of the train slice as planned: they
    choose theta, and move power alone.
    """

    target: Fraction
    noise: Noise
    eta: Fraction
    records: int
    bound: Fraction
    records_per_unit: int
    theta: Fraction
    each_units: int = field(repr=False)
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        target: Number,
        eta: Number,
        records: int,
        epsilon: Number | None = None,
        noise: Noise | None = None,
        bound: Number = 1,
        records_per_unit: int = 1,
    ) -> None:
        """Check the parameters; fix theta, sensitivity and price."""
        wanted, most = target_within(target, bound)
        added, chance = noise_of(epsilon, noise), eta_exact(eta)
        units, planned = count_of(records_per_unit), count_of(records, name="records")
        mean = float(wanted / most)

        def reach(theta: float) -> int:
            each = _each(theta, mean)
            return math.ceil(max(each, theta - each) * UNIT + theta * float(_SLACK) * UNIT) + 2

        def least_loss(theta: float) -> float:
            """The mean that is rejected with so many records, but for luck."""
            asked = added.likely(reach(theta) / UNIT, float(chance))
            return (_each(theta, mean) + asked * units / planned) / theta

        theta = Fraction(round(min(_RATES, key=least_loss) * 1024), 1024)
        keep(
            self,
            target=wanted,
            noise=added,
            eta=chance,
            records=planned,
            bound=most,
            records_per_unit=units,
            theta=theta,
            each_units=math.ceil(_each(float(theta), mean) * UNIT) + 1,
            release=added.release(reach(float(theta))),
        )

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.release.cost

    @property
    def threshold(self) -> int:
        """How much noisy evidence a REJECT needs, in units of 1/`betting.UNIT` of a nat."""
        return self.noise.threshold(int(self.release.sensitivity), Fraction(1, UNIT), self.eta)

    def evidence(self, least_losses: ArrayLike) -> int:
        """Of the losses of the exact minimiser on its own records. Raw: not to be published."""
        known = clipped(least_losses, float(self.bound))
        total = math.fsum(known) / float(self.bound)
        spent = max(0.0, total - float(_SLACK)) * float(self.theta) * UNIT
        return (math.floor(spent) - self.each_units * len(known)) // self.records_per_unit

    def verdict(self, least_losses: ArrayLike, *, source: BitSource | None = None) -> LossVerdict:
        """REJECT where the evidence reaches the threshold, else RETRY. Every call costs `cost`."""
        told = self.release.release([self.evidence(least_losses)], source=source)
        evidence, threshold = int(told.values[0]), self.threshold
        return LossVerdict(REJECT if evidence >= threshold else RETRY, evidence, threshold)


def _each(theta: float, mean: float) -> float:
    """What a record takes from the evidence: k."""
    return math.log1p(mean * math.expm1(theta))
