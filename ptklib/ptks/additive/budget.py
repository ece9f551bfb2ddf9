"""What an additive model spends: made before the data, by `cost` and by training alike."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.price_first import Budget
from ptklib.privacy.costs import Composed, Cost, GaussianCost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptks.additive.link import REACH
from ptklib.ptks.binned.noise import Release, gaussian_part

__all__ = ["MAX_RELEASES", "AdditiveMechanisms", "Sizes", "plan_of"]

# Of sums; more have a part of the budget each that tells nothing, and a price with as many parts.
MAX_RELEASES = 1024

# Of the budget: for the whole, for the tables; the rest for the sums.
_WHOLE, _TABLES = Fraction(1, 20), Fraction(9, 20)
# Rounds for epsilons below the first number. More rounds come nearer to the best shapes and have
# more noise in each: tuned on Adult and on synthetic records.
_ROUNDS = {
    "laplace": ((Fraction(1, 5), 1), (Fraction(7, 10), 2), (Fraction(2), 3), (None, 5)),
    "gaussian": ((Fraction(1, 5), 3), (Fraction(7, 10), 4), (Fraction(2), 6), (None, 10)),
}


@dataclass(frozen=True)
class AdditiveMechanisms:
    """The mechanisms of one training and their cost: ``sums`` is released ``rounds`` times for each
    input.

    Sensitivities: see the proof note of `additive`.
    """

    whole: Release
    tables: Release
    sums: Release
    rounds: int
    cost: Cost


@dataclass(frozen=True)
class Sizes:
    """What the plan depends on, besides the budget. ``weight`` is D."""

    mechanism: str
    weight: int
    inputs: int
    rounds: int | None


# Remembered: the same plan is priced many times.
@lru_cache(maxsize=256)
def plan_of(sizes: Sizes, budget: Budget) -> AdditiveMechanisms:
    """The mechanisms for a budget; refuses what cannot be spent."""
    epsilon, records = budget.epsilon, budget.records
    most = max(1, MAX_RELEASES // sizes.inputs)
    rounds = sizes.rounds or min(_rounds(sizes.mechanism, epsilon), most)
    times = rounds * sizes.inputs
    weight, reach = records * sizes.weight, records * REACH
    each = (1 - _WHOLE - _TABLES) / times
    if sizes.mechanism == "gaussian":
        sigma = budget.gaussian_sigma(instead="laplace")
        whole: Release = gaussian_part(sigma, weight, 1, _WHOLE)
        tables: Release = gaussian_part(sigma, weight, sizes.inputs, _TABLES)
        sums: Release = gaussian_part(sigma, reach, 1, each)
        # Parts of mu^2 that sum to less than that of the whole: see `gaussian_part`.
        cost: Cost = GaussianCost(sigma=sigma)
    else:
        whole = LaplaceRelease(epsilon=epsilon * _WHOLE, sensitivity=weight)
        tables = LaplaceRelease(epsilon=epsilon * _TABLES, sensitivity=weight * sizes.inputs)
        sums = LaplaceRelease(epsilon=epsilon * each, sensitivity=reach)
        cost = Composed(parts=[whole.cost, tables.cost, *[sums.cost] * times])
    return AdditiveMechanisms(whole, tables, sums, rounds, cost)


def _rounds(mechanism: str, epsilon: Fraction) -> int:
    return next(rounds for below, rounds in _ROUNDS[mechanism] if below is None or epsilon < below)
