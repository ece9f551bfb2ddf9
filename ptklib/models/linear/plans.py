"""What a linear regression spends: made before the data, by `cost` and by training alike.

**Proof note.** Sensitivities are those of `structure`, `boosting`, `moments` and `adassp`, times
the records of a unit. *Boosted:* a part q of the noise budget has the noise multiplier sigma / q,
sigma being that of the whole budget; the squares of all parts sum to at most 1, so the sum of mu^2
is at most 1/sigma^2, that of the one Gaussian whose price is charged (composition of Gaussian DP is
adaptive).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.models.inputs import STEPS
from ptklib.models.linear.reading import MOST_STEPS
from ptklib.models.linear.structure import GRAIN, OFF, ON, Structure
from ptklib.price_first import Budget
from ptklib.privacy.amounts import exact
from ptklib.privacy.costs import Composed, Cost, GaussianCost
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease

__all__ = [
    "AdasspPlan",
    "BoostedPlan",
    "LinearPlan",
    "MomentsPlan",
    "plan_of",
    "release_of",
    "root_above",
]

# Roots of the shares: of the products, of the label's moments; rounds share the rest. Of a table of
# rides and of synthetic records: the error is flat around them, and from 5 to 12 rounds.
_PRODUCTS, _LABEL = Fraction(9, 20), Fraction(9, 40)
ROUNDS = 8
_FINE = 1 << 20
# Of a computed eigenvalue: see `adassp`.
_SLACK = Fraction(1, 1024)


@dataclass(frozen=True)
class BoostedPlan:
    """Products of entries, moments of the label, and rounds of residuals at a noise multiplier."""

    products: GaussianRelease
    label: GaussianRelease
    multiplier: Fraction
    rounds: int
    records: int
    cost: Cost

    def round_of(self, structure: Structure, most: int) -> GaussianRelease:
        """The release of a round that clips residuals at so many steps. See `boosting`."""
        square = most**2 * (structure.rows.limit + STEPS**2)
        return release_of(self.multiplier, self.records * root_above(square))


@dataclass(frozen=True)
class MomentsPlan:
    """One release of all products."""

    release: GaussianRelease | LaplaceRelease
    cost: Cost


@dataclass(frozen=True)
class AdasspPlan:
    """The least eigenvalue, the products and the products with the label."""

    smallest: GaussianRelease
    products: GaussianRelease
    label: GaussianRelease
    # What is subtracted from the eigenvalue, and the strength of the ridge before that.
    below: float
    ridge: float
    cost: Cost


LinearPlan = BoostedPlan | MomentsPlan | AdasspPlan


@lru_cache(maxsize=256)
def plan_of(mechanism: str, structure: Structure, rounds: int | None, budget: Budget) -> LinearPlan:
    """The mechanisms for a budget; refuses what cannot be spent."""
    if mechanism == "laplace":
        # The label is one more entry of at most 1.
        length = structure.lengths + GRAIN
        reach = (length**2 + structure.limit + GRAIN**2) // 2
        release = LaplaceRelease(epsilon=budget.epsilon, sensitivity=budget.records * reach)
        return MomentsPlan(release, release.cost)
    if mechanism == "moments":
        more = ON**2 * ((structure.limit + GRAIN**2) ** 2 - structure.limit**2)
        return _moments(budget, structure.weighted_square + more)
    if mechanism == "adassp":
        return _adassp(budget, structure)
    return _boosted(budget, structure, rounds or ROUNDS)


def release_of(multiplier: Fraction, sensitivity: Fraction) -> GaussianRelease:
    """Noise of so many sensitivities, rounded up to a whole number."""
    return GaussianRelease(sigma=math.ceil(multiplier * sensitivity), sensitivity=sensitivity)


def root_above(square: int) -> Fraction:
    """A fraction at least the root, by less than 2**-20 of it where that is 1 or more."""
    return Fraction(math.isqrt(square * _FINE**2) + 1, _FINE)


def _moments(budget: Budget, square: int) -> MomentsPlan:
    sensitivity = budget.records * root_above(square)
    sigma = budget.gaussian_sigma(sensitivity, instead="laplace")
    release = GaussianRelease(sigma=sigma, sensitivity=sensitivity)
    return MomentsPlan(release, release.cost)


def _boosted(budget: Budget, structure: Structure, rounds: int) -> BoostedPlan:
    sigma = exact(budget.gaussian_sigma(instead="laplace"))
    products = budget.records * root_above(structure.weighted_square)
    label = budget.records * root_above(2 * GRAIN**4)
    rest = (1 - _PRODUCTS**2 - _LABEL**2) / rounds
    part = Fraction(math.isqrt(int(rest * _FINE**2)), _FINE)
    plan = BoostedPlan(
        release_of(sigma / _PRODUCTS, products),
        release_of(sigma / _LABEL, label),
        sigma / part,
        rounds,
        budget.records,
        GaussianCost(sigma=sigma),
    )
    # What no round could release is refused now, before the data is opened.
    plan.round_of(structure, MOST_STEPS)
    return plan


def _adassp(budget: Budget, structure: Structure) -> AdasspPlan:
    least = exact(budget.gaussian_sigma(instead="laplace")) * root_above(3)
    third = float(budget.epsilon) / 3
    logs = math.log(6 / float(budget.delta))
    # Enough as published unless epsilon is large.
    sigma = max(least, exact(math.sqrt(logs) / third))
    square = budget.records * structure.limit
    smallest = square * (1 + _SLACK)
    label = budget.records * root_above(structure.limit * GRAIN**2)
    first, second, last = (
        release_of(sigma, reach) for reach in (smallest, Fraction(ON * square), label)
    )
    width = structure.width
    ridge = math.sqrt(width * logs * math.log(2 * width**2 / 0.05)) * float(square) / third
    return AdasspPlan(
        first,
        second,
        last,
        below=logs / third * float(square),
        ridge=ridge,
        cost=Composed(parts=[first.cost, second.cost, last.cost]),
    )


assert OFF**2 < 2 * ON**2
