"""What a forest spends on splits and on leaves: made before the data, by `cost` and by training
alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.errors import InvalidInput
from ptklib.price_first import Budget
from ptklib.privacy.costs import ApproxCost, Composed, Cost
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.mechanisms.selection import NoisyMax
from ptklib.ptks.binned.noise import Release, gaussian_part

__all__ = ["ForestMechanisms", "Shape", "plan_of"]


@dataclass(frozen=True)
class ForestMechanisms:
    """The mechanisms of one training and their cost.

    Sensitivities: see the proof notes of `forest` and `forest_splits`.
    """

    tables: Release | None
    levels: tuple[NoisyMax | LargeMargin, ...]
    leaves: Release
    cost: Cost


@dataclass(frozen=True)
class Shape:
    """What the plan of a forest depends on, besides the budget.

    ``weight`` is D, ``half_range`` that of split scores.
    """

    method: str
    mechanism: str
    weight: int
    half_range: int
    features: int
    trees: int
    depth: int
    share: float


# Remembered: the same plan is priced many times.
@lru_cache(maxsize=256)
def plan_of(shape: Shape, budget: Budget) -> ForestMechanisms:
    """The mechanisms for a budget; refuses what cannot be spent."""
    epsilon, delta, records = budget.epsilon, budget.delta, budget.records
    if delta == 0 and shape.method == "margin":
        raise InvalidInput("DELTA_NEEDED", "the large margin mechanism needs a delta above 0")
    part = Fraction(0) if shape.method == "random" else Fraction(repr(shape.share))
    reach = records * shape.weight
    if shape.mechanism == "gaussian":
        sigma = budget.gaussian_sigma(instead="laplace")
        leaves: Release = gaussian_part(sigma, reach, shape.trees, 1 - part)
    else:
        leaves = LaplaceRelease(epsilon=epsilon * (1 - part), sensitivity=reach)
    if shape.method == "random":
        return ForestMechanisms(None, (), leaves, leaves.cost)
    if shape.method == "guided":
        tables: Release = (
            gaussian_part(sigma, reach, shape.features, part)
            if shape.mechanism == "gaussian"
            else LaplaceRelease(epsilon=epsilon * part, sensitivity=reach * shape.features)
        )
        return ForestMechanisms(tables, (), leaves, tables.cost + leaves.cost)
    level, chance, moved = (
        epsilon * part / shape.depth,
        delta / shape.depth,
        records * shape.half_range,
    )
    if shape.method == "margin":
        # A user's records may be in as many nodes as there are records: each may fail with its part
        # of delta.
        choice: NoisyMax | LargeMargin = LargeMargin(
            epsilon=level, delta=chance / records, sensitivity=moved
        )
        spent: Cost = ApproxCost(epsilon=level, delta=chance)
    else:
        choice = NoisyMax(epsilon=level, sensitivity=moved)
        spent = choice.cost
    return ForestMechanisms(
        None, (choice,) * shape.depth, leaves, Composed(parts=[leaves.cost, *[spent] * shape.depth])
    )
