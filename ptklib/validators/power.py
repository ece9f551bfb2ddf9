"""How many records a loss test needs, and which stake it should play. Public numbers only: all of
this is known before a record is.

**What is bounded.** A state of mean loss ``loss`` below the target is not accepted when S + Z < t.
By Chernoff, for every theta with 0 < theta < 1/scale (in nats; any theta for Gaussian noise)

    P(S + Z < t)  <=  exp(theta t) E[exp(-theta Z)] E[exp(-theta S)].

A score is concave in its loss, so exp(-theta score) is convex, and of all losses in [0, bound] with
that mean it is largest in expectation for those that are 0 or ``bound`` and nothing between: the
bound with them holds for every law of losses with that mean. With r records per user, Hoelder's
inequality gives 1/r of the exponent for each record, however the records of one user agree. So with
`samples_needed` records a state of that mean loss is accepted at least as often as is asked for.
(Real losses mostly lie between the ends, and need fewer: what they are ``supposed`` to look like, a
mean and a spread or what a pilot told, takes the place of the worst law. It decides power alone.)

**The stake** is chosen for the number of records that are planned: the one that accepts the largest
mean loss that any stake accepts with that many. No guess of the loss is needed, and none can be so
wrong that the test never accepts: more records make the stake smaller, and the test finer.

Scores are rounded to units of 1/`betting.UNIT` nat. Where small stakes meet many records that is
coarse; with ``least_reach`` units are halved until a unit of privacy moves the evidence by so many.

The real number of records is random; that moves power, never validity.

Reasons: POWER_INVALID, and those of `betting`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.validators.betting import LossTest, largest_stake, target_within
from ptklib.validators.noises import Noise, noise_of
from ptklib.validators.supposed import SupposedLosses, worst_losses

__all__ = ["POWER", "planned_test", "samples_needed", "stakes"]

# How often a state that is as good as expected shall be accepted.
POWER = Fraction(9, 10)
# Stakes that are tried: the largest there is, and each next one a fifth smaller.
_STAKES, _SMALLER = 32, Fraction(4, 5)
_THETAS = 48
_HALVINGS = 24

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Sides:
    """All stakes in floats: one row of ``thetas``, and of what an ACCEPT asks for at them, each."""

    tests: tuple[LossTest, ...]
    stakes: Floats
    units: Floats
    thetas: Floats
    asked: Floats

    def needed(self, loss: float, supposed: SupposedLosses | None, power: float) -> Floats:
        """Records by the best theta of each stake; infinite where no number is enough."""
        test = self.tests[0]
        law = worst_losses if supposed is None else supposed.at
        points, weights = law(loss, float(test.bound))
        scores = np.log1p(self.stakes[:, None] * (float(test.target) - points))
        scores -= self.units[:, None]
        moments = np.exp(-self.thetas[:, :, None] * scores[:, None, :]) @ weights
        each = -np.log(moments) / test.records_per_unit
        asked = self.asked - math.log1p(-power)
        counts = np.divide(asked, each, out=np.full(each.shape, np.inf), where=each > 0)
        return np.asarray(counts.min(axis=1))


def samples_needed(
    *,
    target: Number,
    eta: Number,
    loss: Number,
    epsilon: Number | None = None,
    noise: Noise | None = None,
    supposed: SupposedLosses | None = None,
    bound: Number = 1,
    records_per_unit: int = 1,
    power: Number = POWER,
    least_reach: int = 1,
) -> int | None:
    """Records with which a state of mean loss ``loss`` is accepted with probability ``power`` or
    more, by the best stake; None where the loss is not below the target. What losses are supposed
    to look like is moved to that mean.
    """
    wanted, most = target_within(target, bound)
    mean, chance = exact(loss, name="loss"), _power(power)
    if mean >= wanted:
        return None
    added, allowed = noise_of(epsilon, noise), exact(eta, name="eta")
    sides = _sides(wanted, added, allowed, most, records_per_unit, least_reach)
    needed = float(sides.needed(float(mean), supposed, chance).min())
    return math.ceil(needed) if needed < 10**15 else None


def planned_test(
    *,
    target: Number,
    eta: Number,
    records: int,
    epsilon: Number | None = None,
    noise: Noise | None = None,
    supposed: SupposedLosses | None = None,
    bound: Number = 1,
    records_per_unit: int = 1,
    power: Number = POWER,
    least_reach: int = 1,
) -> LossTest:
    """The test with the stake that accepts the largest mean loss with so many records (see the
    module); where not even a loss of 0 would be accepted, the one that comes nearest.
    """
    wanted, most = target_within(target, bound)
    chance = _power(power)
    added, allowed = noise_of(epsilon, noise), exact(eta, name="eta")
    sides = _sides(wanted, added, allowed, most, records_per_unit, least_reach)
    low, high = 0.0, float(wanted)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        enough = sides.needed(middle, supposed, chance).min() <= records
        low, high = (middle, high) if enough else (low, middle)
    return sides.tests[int(sides.needed(low, supposed, chance).argmin())]


def stakes(target: Number, bound: Number = 1) -> tuple[Fraction, ...]:
    """All that are tried, the largest first. Short fractions, for they are part of certificates."""
    largest = largest_stake(*target_within(target, bound))
    grain = Fraction(1, 2**20) / math.ceil(exact(bound, name="bound"))
    return tuple(largest * _SMALLER**place // grain * grain for place in range(_STAKES))


@lru_cache(maxsize=256)
def _sides(
    target: Fraction,
    noise: Noise,
    eta: Fraction,
    bound: Fraction,
    records_per_unit: int,
    least_reach: int,
) -> _Sides:
    terms: dict[str, Any] = {
        "target": target,
        "noise": noise,
        "eta": eta,
        "bound": bound,
        "records_per_unit": records_per_unit,
    }
    tests, thetas, asked = [], [], []
    for stake in stakes(target, bound):
        test = LossTest(stake=stake, **terms)
        while test.reach < least_reach:
            test = LossTest(stake=stake, grain=2 * test.grain, **terms)
        reach = test.reach / test.grain
        rates = np.geomspace(1e-3, 1.0, _THETAS) * min(noise.steepest(reach), 40.0)
        tests.append(test)
        thetas.append(rates)
        asked.append(rates * noise.likely(reach, float(eta)) + noise.log_moment(rates, reach))
    played = np.array([float(test.stake) for test in tests])
    units = np.array([1 / test.grain for test in tests])
    return _Sides(tuple(tests), played, units, np.array(thetas), np.array(asked))


def _power(power: Number) -> float:
    exact_power = exact(power, name="power")
    if not 0 < exact_power < 1:
        raise InvalidInput(
            "POWER_INVALID", f"power must be above 0 and below 1, got {show(exact_power)}"
        )
    return float(exact_power)
