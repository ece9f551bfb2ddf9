"""How many records a loss test needs, and which stake it should play. Public numbers only: all of
this is known before a record is.

**What is bounded.** A state of mean loss ``loss`` below the target is not accepted when
S + Z < t. By Chernoff, for every theta with 0 < theta < 1/scale (in nats)

    P(S + Z < t)  <=  exp(theta t) E[exp(-theta Z)] E[exp(-theta S)].

A score is concave in its loss, so exp(-theta score) is convex, and of all losses in [0, bound] with
that mean it is largest in expectation for those that are 0 or ``bound`` and nothing between: the
bound with them holds for every law of losses with that mean. With r records per user, Hoelder's
inequality gives 1/r of the exponent for each record, however the records of one user agree. So with
`samples_needed` records a state of that mean loss is accepted at least as often as is asked for. (Real
losses mostly lie between the ends, and need fewer.)

**The stake** is chosen for the number of records that are planned: the one that accepts the largest
mean loss that any stake accepts with that many. No guess of the loss is needed, and none can be so
wrong that the test never accepts: more records make the stake smaller, and the test finer.

The real number of records is random; that moves power, never validity.

Reasons: POWER_INVALID, and those of `betting`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.validators.betting import UNIT, LossTest, largest_stake, target_within
from ptklib.validators.threshold import likely_threshold

__all__ = ["POWER", "planned_test", "samples_needed", "stakes"]

# How often a state that is as good as expected shall be accepted.
POWER = Fraction(9, 10)
# Stakes that are tried: the largest there is, and each next one a fifth smaller.
_STAKES, _SMALLER = 32, Fraction(4, 5)
_THETAS = 48
_HALVINGS = 24


@dataclass(frozen=True)
class _Side:
    """One stake in floats: what a record without loss and one of the worst add, in nats."""

    test: LossTest
    good: float
    bad: float

    @classmethod
    def of(cls, test: LossTest) -> _Side:
        ends = (test.high_units, test.low_units)
        # Scores are divided by r, and r of them belong together.
        return cls(test, *(end * test.records_per_unit / UNIT for end in ends))

    def needed(self, loss: float, power: float) -> float:
        """Records, by the best theta; infinite where no number is enough."""
        scale = float(self.test.release.scale) / UNIT
        thetas = np.geomspace(1e-3, 1.0, _THETAS) * min(0.999 / scale, 40.0)
        share = min(1.0, max(0.0, loss / float(self.test.bound)))
        worst = np.log(
            (1 - share) * np.exp(-thetas * self.good) + share * np.exp(-thetas * self.bad)
        )
        each = -worst / self.test.records_per_unit
        threshold = likely_threshold(scale, float(self.test.eta))
        asked = -math.log(1 - power) + thetas * threshold - np.log1p(-((thetas * scale) ** 2))
        useful = each > 0
        return float((asked[useful] / each[useful]).min()) if useful.any() else math.inf


def samples_needed(
    *,
    target: Number,
    epsilon: Number,
    eta: Number,
    loss: Number,
    bound: Number = 1,
    records_per_unit: int = 1,
    power: Number = POWER,
) -> int | None:
    """Records with which a state of mean loss ``loss`` is accepted with probability ``power`` or
    more, by the best stake; None where the loss is not below the target.
    """
    wanted, most = target_within(target, bound)
    mean, chance = exact(loss, name="loss"), _power(power)
    if mean >= wanted:
        return None
    sides = _sides(wanted, epsilon, eta, most, records_per_unit)
    needed = min(side.needed(float(mean), chance) for side in sides)
    return math.ceil(needed) if needed < 10**15 else None


def planned_test(
    *,
    target: Number,
    epsilon: Number,
    eta: Number,
    records: int,
    bound: Number = 1,
    records_per_unit: int = 1,
    power: Number = POWER,
) -> LossTest:
    """The test with the stake that accepts the largest mean loss with so many records (see the
    module); where not even a loss of 0 would be accepted, the one that comes nearest.
    """
    wanted, most = target_within(target, bound)
    chance = _power(power)
    sides = list(_sides(wanted, epsilon, eta, most, records_per_unit))

    def best(loss: float) -> tuple[float, int]:
        return min((side.needed(loss, chance), place) for place, side in enumerate(sides))

    low, high = 0.0, float(wanted)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if best(middle)[0] <= records else (low, middle)
    return sides[best(low)[1]].test


def stakes(target: Number, bound: Number = 1) -> tuple[Fraction, ...]:
    """All that are tried, the largest first. Short fractions, for they are part of certificates."""
    largest = largest_stake(*target_within(target, bound))
    grain = Fraction(1, 2**20) / math.ceil(exact(bound, name="bound"))
    return tuple(largest * _SMALLER**place // grain * grain for place in range(_STAKES))


def _sides(
    target: Fraction, epsilon: Number, eta: Number, bound: Fraction, records_per_unit: int
) -> Iterator[_Side]:
    for stake in stakes(target, bound):
        yield _Side.of(
            LossTest(
                target=target,
                epsilon=epsilon,
                eta=eta,
                stake=stake,
                bound=bound,
                records_per_unit=records_per_unit,
            )
        )


def _power(power: Number) -> float:
    exact_power = exact(power, name="power")
    if not 0 < exact_power < 1:
        raise InvalidInput(
            "POWER_INVALID", f"power must be above 0 and below 1, got {show(exact_power)}"
        )
    return float(exact_power)
