"""The published tests of a mean loss: ACCEPT by Bernstein's inequality (listing 2), REJECT by
Hoeffding's (appendix B.1, Proposition B.2).

**Proof notes.** *Unit:* one record. *Neighbours:* add or remove one. *Sensitivity:* of the number
of records 1; of the sum of losses, clipped to [0, bound] one by one and rounded up to units of
bound/`UNIT`, UNIT units. *Cost:* two Laplace releases at epsilon/2 each. For REJECT the sum is the
least there is on these very records (`rejecting` says why it moves by [0, bound] as well, and what
`SLACK_UNITS` are). *Validity of ACCEPT:* with probability eta/3 each, the noisy number less 2
ln(3/(2 eta))/epsilon is above the number; the noisy sum with 2 bound ln(3/(2 eta))/epsilon is below
the sum; and the mean exceeds L + sqrt(2 bound L l/n) + 4 bound l/n with l = ln(3/eta), L the mean
of the records (Bernstein). The last rises with L and falls with n. *Validity of REJECT:* three
events of eta/3 as well; the best state's own mean on n records is below its loss by bound
sqrt(l/(2n)) or more with probability eta/3, and the minimiser's is no larger than that state's. The
number is bounded from both sides.

A lower bound of the number that is not positive is RETRY.

Reasons: those of `betting`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.betting import clipped, target_within
from ptklib.validators.rejecting import SLACK_UNITS
from ptklib.validators.verdict import ACCEPT, REJECT, RETRY, eta_exact

__all__ = ["UNIT", "PublishedLossTest", "PublishedRejectTest", "ToldSums"]

# Units of the bound.
UNIT = 2**20


@dataclass(frozen=True)
class ToldSums:
    """What was released: the number of records, and a sum in units. DP."""

    records: int
    total: int


@dataclass(frozen=True, init=False)
class PublishedLossTest:
    """A test of "the mean loss is at most ``target``", wrong with probability at most ``eta``."""

    target: Fraction
    epsilon: Fraction
    eta: Fraction
    bound: Fraction
    number: LaplaceRelease = field(repr=False)
    total: LaplaceRelease = field(repr=False)

    def __init__(self, *, target: Number, epsilon: Number, eta: Number, bound: Number = 1) -> None:
        """Check the parameters; fix sensitivities and price."""
        keep(self, **_parameters(target, epsilon, eta, bound, reach=UNIT))

    @property
    def cost(self) -> Cost:
        """What one verdict costs, whatever the records are."""
        return self.number.cost + self.total.cost

    def tell(self, losses: ArrayLike, *, source: BitSource | None = None) -> ToldSums:
        """Both numbers with noise. Every call costs `cost`."""
        units = self.units(losses)
        number = self.number.release([len(units)], source=source)
        total = self.total.release([int(units.sum())], source=source)
        return ToldSums(int(number.values[0]), int(total.values[0]))

    def units(self, losses: ArrayLike) -> NDArray[np.int64]:
        """Losses in units, clipped one by one and rounded up. Raw: not to be published."""
        share = clipped(losses, float(self.bound)) / float(self.bound)
        return np.clip(np.ceil(share * UNIT), 0, UNIT).astype(np.int64)

    def verdict(self, losses: ArrayLike, *, source: BitSource | None = None) -> str:
        """ACCEPT or RETRY, by the records of the test slice."""
        return ACCEPT if self.bounded(self.tell(losses, source=source)) else RETRY

    def bounded(self, told: ToldSums) -> bool:
        """The mean loss is at most the target. Post-processing."""
        shift, log, bound = self.correction, math.log(3 / float(self.eta)), float(self.bound)
        least = told.records - shift
        if least <= 0:
            return False
        mean = max(0.0, bound * (told.total / UNIT + shift)) / least
        upper = mean + math.sqrt(2 * bound * mean * log / least) + 4 * bound * log / least
        return upper <= float(self.target)

    @property
    def correction(self) -> float:
        """What one of the two draws exceeds with probability eta/3, in records."""
        return 2 * math.log(3 / (2 * float(self.eta))) / float(self.epsilon)


@dataclass(frozen=True, init=False)
class PublishedRejectTest:
    """A test of "no state of this class has a mean loss of at most ``target``", wrong with
    probability at most ``eta``.
    """

    target: Fraction
    epsilon: Fraction
    eta: Fraction
    bound: Fraction
    number: LaplaceRelease = field(repr=False)
    total: LaplaceRelease = field(repr=False)

    def __init__(self, *, target: Number, epsilon: Number, eta: Number, bound: Number = 1) -> None:
        """Check the parameters; fix sensitivities and price."""
        keep(self, **_parameters(target, epsilon, eta, bound, reach=UNIT + SLACK_UNITS))

    @property
    def cost(self) -> Cost:
        """What one verdict costs, whatever the records are."""
        return self.number.cost + self.total.cost

    def verdict(self, least_losses: ArrayLike, *, source: BitSource | None = None) -> str:
        """REJECT or RETRY, by the losses of the exact minimiser on the records of the train
        slice."""
        known = clipped(least_losses, float(self.bound))
        units = math.floor(math.fsum(known) / float(self.bound) * UNIT)
        number = self.number.release([len(known)], source=source)
        total = self.total.release([units], source=source)
        told = ToldSums(int(number.values[0]), int(total.values[0]))
        return REJECT if self.beyond(told) else RETRY

    def beyond(self, told: ToldSums) -> bool:
        """No state of the minimiser's class has a loss of at most the target. Post-processing."""
        log, bound, eta = math.log(3 / float(self.eta)), float(self.bound), float(self.eta)
        both = 2 * log / float(self.epsilon)
        least, most = told.records - both, told.records + both
        if least <= 0:
            return False
        shift = float(self.total.scale) / UNIT * math.log(3 / (2 * eta))
        mean = bound * max(0.0, (told.total - SLACK_UNITS) / UNIT - shift) / most
        return mean - bound * math.sqrt(log / (2 * least)) > float(self.target)


def _parameters(
    target: Number, epsilon: Number, eta: Number, bound: Number, *, reach: int
) -> dict[str, Any]:
    """Half of epsilon for the number of records, half for the sum of their losses, which one record
    moves by at most ``reach``.
    """
    wanted, most = target_within(target, bound)
    half = epsilon_exact(epsilon) / 2
    return {
        "target": wanted,
        "epsilon": 2 * half,
        "eta": eta_exact(eta),
        "bound": most,
        "number": LaplaceRelease(epsilon=half, sensitivity=1),
        "total": LaplaceRelease(epsilon=half, sensitivity=reach),
    }
