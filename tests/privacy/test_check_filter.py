"""check_filter catches filters that break their promise, one for each of its checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from ptklib.privacy.amounts import NANO, Number
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    GaussianCost,
    LaplaceCost,
    PureCost,
)
from ptklib.privacy.filters import Filter
from ptklib.privacy.filters.base import Bools, Demand, Ints
from ptklib.privacy.filters.basic import BasicFilter
from ptklib.privacy.filters.gaussian import GaussianFilter
from ptklib.testing.filters import CHECKS, check_filter, findings, least_delta


@dataclass(frozen=True, kw_only=True)
class Floats(BasicFilter):
    def fresh_demand(self, cost: Cost) -> Demand:
        return tuple(float(one) for one in super().fresh_demand(cost))  # type: ignore[misc]


@dataclass(frozen=True, kw_only=True)
class RoundsDown(GaussianFilter):
    def fresh_demand(self, cost: Cost) -> Demand:
        mu_squared = cost.mu_squared()
        if mu_squared is None:
            return super().fresh_demand(cost)
        return (min(math.floor(mu_squared * NANO), self.ceiling[0]),)


@dataclass(frozen=True, kw_only=True)
class LikesRoundNumbers(BasicFilter):
    def fresh_demand(self, cost: Cost) -> Demand:
        epsilon, delta = super().fresh_demand(cost)
        return (epsilon if epsilon < NANO // 10 else epsilon // 2), delta


@dataclass(frozen=True, kw_only=True)
class ForgivesTheOverdrawn(BasicFilter):
    def _judge(self, losses: Ints, demand: Ints, fits: Bools) -> Bools:
        return np.asarray(fits.all(axis=1) | (losses[:, 0] > self.capacity[0]))


@dataclass(frozen=True, kw_only=True)
class WholeDeltaTwice(GaussianFilter):
    @classmethod
    def of(cls, composition: str, epsilon: Fraction, delta: Fraction) -> WholeDeltaTwice:
        honest = GaussianFilter.of(composition, epsilon, delta).capacity[0]
        most = honest * 5 // 4
        return cls(
            composition=composition,
            epsilon=epsilon,
            delta=delta,
            capacity=(most,),
            ceiling=(most + 1,),
        )


@dataclass(frozen=True, kw_only=True)
class TakesAnything(GaussianFilter):
    def fresh_demand(self, cost: Cost) -> Demand:
        return (1,) if cost.mu_squared() is None else super().fresh_demand(cost)


@dataclass(frozen=True, kw_only=True)
class ForgetsItsCapacity(GaussianFilter):
    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "capacity": [self.capacity[0] // 2]}


@dataclass(frozen=True, kw_only=True)
class GenerousQuota(BasicFilter):
    def scaled(self, share: Number) -> Filter:
        return replace(self, capacity=self.capacity)


@dataclass(frozen=True, kw_only=True)
class Overflows(BasicFilter):
    def admits(self, losses: Ints, demand: Sequence[int] | Ints) -> Bools:
        with np.errstate(over="ignore"):
            return np.asarray(
                ((losses + np.asarray(demand)) <= np.array(self.capacity)).all(axis=1)
            )


@dataclass(frozen=True, kw_only=True)
class RoundsWhatIsLeft(BasicFilter):
    def left(self, loss: Sequence[int]) -> Fraction:
        return Fraction(round(super().left(loss) * 1000), 1000)


BROKEN: list[tuple[type[Any], str, Number, str]] = [
    (Floats, "basic", "1e-6", "demand_is_whole"),
    (RoundsDown, "gaussian", "1e-6", "demand_rounds_up"),
    (LikesRoundNumbers, "basic", "1e-6", "demand_is_monotone"),
    (ForgivesTheOverdrawn, "basic", "1e-6", "admits_is_monotone"),
    (WholeDeltaTwice, "gaussian", "1e-6", "keeps_its_promise"),
    (TakesAnything, "gaussian", "1e-6", "refuses_unknown_costs"),
    (ForgetsItsCapacity, "gaussian", "1e-6", "survives_json"),
    (GenerousQuota, "basic", "1e-6", "quota_is_never_looser"),
    (Overflows, "basic", "1e-6", "never_overflows"),
    (RoundsWhatIsLeft, "basic", "1e-6", "left_is_exact"),
]


def test_there_is_a_broken_filter_for_every_check() -> None:
    assert [name for *_, name in BROKEN] == [check.__name__ for check in CHECKS]


@pytest.mark.parametrize(
    ("kind", "composition", "delta", "check"), BROKEN, ids=[name for *_, name in BROKEN]
)
def test_check_filter_catches(kind: type[Any], composition: str, delta: Number, check: str) -> None:
    broken = kind.of(composition, Fraction(1), Fraction(delta))
    found = {one.check: one.problem for one in findings(broken)}
    assert check in found
    with pytest.raises(AssertionError, match=check):
        check_filter(broken)


def test_the_independent_accountant_is_below_the_truth_and_close() -> None:
    for costs, true in (
        ([GaussianCost(sigma=20)] * 10, GaussianCost(sigma=20, sensitivity=1).delta),
        ([LaplaceCost(scale=1)], LaplaceCost(scale=1).delta),
        ([PureCost(epsilon=1)], PureCost(epsilon=1).delta),
        ([ApproxCost(epsilon=1, delta="0.01")], ApproxCost(epsilon=1, delta="0.01").delta),
    ):
        at = Fraction(1, 2)
        exact = true(at) if len(costs) == 1 else sum(costs[1:], costs[0]).delta(at)
        assert exact * 0.97 <= least_delta(costs, float(at)) <= exact * (1 + 1e-9)
