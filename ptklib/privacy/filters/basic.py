"""Basic composition: epsilons add up, deltas add up. Exact integers, sound for any adaptive
analyst.

Loss: [epsilon in nano, delta in atto]. Ten charges of 0.1 fit a promise of 1.0, the eleventh does
not. ``pure`` is the same with a delta of zero. (Rogers et al. 2016, Thm 3.6: basic composition is a
filter.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import ATTO, MAX_EPSILON, NANO, ceil_units, floor_units, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.filters.base import Bools, Demand, Filter, Ints, unsupported

__all__ = ["BasicFilter"]


@dataclass(frozen=True, kw_only=True)
class BasicFilter(Filter):
    """``pure`` and ``basic``."""

    compositions: ClassVar[tuple[str, ...]] = ("pure", "basic")

    @classmethod
    def of(cls, composition: str, epsilon: Fraction, delta: Fraction) -> BasicFilter:
        """The filter of a policy."""
        if composition == "pure" and delta != 0:
            raise InvalidInput(
                "POLICY_INVALID_DELTA",
                f"pure composition must have delta = 0, got {show(delta)}: use basic or renyi",
                field="delta",
            )
        capacity = (floor_units(epsilon, NANO), floor_units(delta, ATTO))
        return cls._promised(composition, epsilon, delta, capacity)

    def fresh_demand(self, cost: Cost) -> Demand:
        """Epsilon and delta, rounded up to whole units."""
        known = cost.basic()
        if known is None:
            raise unsupported(
                cost,
                self.composition,
                "choose a delta d and charge ApproxCost(epsilon=cost.epsilon(d), delta=d)"
                if self.delta
                else "use Laplace noise, or a policy with delta > 0",
            )
        demand = (ceil_units(known[0], NANO), ceil_units(known[1], ATTO))
        return min(demand[0], self.ceiling[0]), min(demand[1], self.ceiling[1])

    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:  # noqa: ARG002
        return np.asarray(fits.all(axis=1))

    def left(self, loss: Sequence[int]) -> Fraction:
        """What is missing to the capacity."""
        if loss[1] > self.capacity[1]:
            return Fraction(0)
        return min(Fraction(MAX_EPSILON), Fraction(max(0, self.capacity[0] - loss[0]), NANO))

    def spent(self, loss: Sequence[int]) -> tuple[float, float]:
        """The sums."""
        return loss[0] / NANO, loss[1] / ATTO
