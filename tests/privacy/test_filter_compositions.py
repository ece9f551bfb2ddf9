"""What each composition admits, exactly where it is exact."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import NANO, Number
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    GaussianCost,
    PureCost,
    RenyiCost,
    SampledGaussianCost,
    ZcdpCost,
)
from ptklib.privacy.filters import LOSS_LIMIT, filter_from_json, make_filter
from ptklib.privacy.filters.renyi import SLACK_SHARE, RenyiFilter, shares
from ptklib.privacy.filters.strong import STEPS, StrongFilter
from tests.privacy.filter_points import empty, filled


@pytest.mark.parametrize(
    ("composition", "delta"), [("pure", 0), ("basic", 0), ("basic", "1e-6"), ("renyi", "1e-6")]
)
def test_ten_tenths_fit_one_and_the_eleventh_does_not(composition: str, delta: Number) -> None:
    one = make_filter(composition, 1, delta)
    assert filled(one, PureCost(epsilon=0.1)) >= 10
    assert one.left([0] * one.width) >= 1
    if composition != "renyi":
        assert filled(one, PureCost(epsilon=0.1)) == 10
        assert one.left(one.demand(PureCost(epsilon="0.1"))) == Fraction(9, 10)


def test_basic_deltas_add_up_exactly() -> None:
    one = make_filter("basic", 1, "1e-6")
    assert filled(one, ApproxCost(epsilon="0.001", delta="1e-7")) == 10
    assert one.spent(one.demand(ApproxCost(epsilon="0.001", delta="1e-7"))) == (0.001, 1e-7)


@pytest.mark.parametrize(
    ("composition", "delta", "cost"),
    [
        ("pure", 0, GaussianCost(sigma=1)),
        ("basic", "1e-6", GaussianCost(sigma=1)),
        ("basic", "1e-6", PureCost(epsilon="0.1") + ZcdpCost(rho="0.1")),
        ("strong", "1e-6", PureCost(epsilon="0.1") + ZcdpCost(rho="0.1")),
        ("gaussian", "1e-6", ZcdpCost(rho="0.01")),
        ("gaussian", "1e-6", ApproxCost(epsilon="0.1", delta="1e-9")),
        ("gaussian", "1e-6", SampledGaussianCost(rate="0.01", sigma=5, steps=1)),
        ("renyi", "1e-6", RenyiCost(orders=["1.5", 2], values=["0.001", "0.001"])),
    ],
)
def test_costs_without_a_bound_are_refused_with_advice(
    composition: str, delta: Number, cost: Cost
) -> None:
    with pytest.raises(InvalidInput, match="COST_UNSUPPORTED") as refusal:
        make_filter(composition, 1, delta).demand(cost)
    assert refusal.value.reason == "COST_UNSUPPORTED"
    assert refusal.value.details["composition"] == composition


def test_a_gaussian_can_be_charged_as_the_advice_says() -> None:
    cost = GaussianCost(sigma=80)
    assert (
        filled(
            make_filter("basic", 1, "1e-6"), ApproxCost(epsilon=cost.epsilon("1e-7"), delta="1e-7")
        )
        >= 8
    )


def rogers(epsilons: Sequence[float], promise: float, delta: float) -> float:
    """Theorem 5.1, written once more and naively."""
    square = sum(e * e for e in epsilons)
    weight = 28.04 * math.log(1 / delta)
    return sum(e * (math.exp(e) - 1) / 2 for e in epsilons) + math.sqrt(
        2
        * (square + promise**2 / weight)
        * (1 + 0.5 * math.log(weight * square / promise**2 + 1))
        * math.log(2 / delta)
    )


@pytest.mark.parametrize("epsilon", ["0.001", "0.01", "0.05", "0.1"])
def test_strong_is_the_theorem_less_at_most_one_step(epsilon: str) -> None:
    count = filled(make_filter("strong", 1, "1e-6"), PureCost(epsilon=epsilon))
    assert rogers([float(epsilon)] * count, 1, 1e-6) <= 1
    assert rogers([float(epsilon)] * (count + 1 + math.ceil(2 * count / STEPS)), 1, 1e-6) > 1


def test_strong_takes_the_parts_of_a_sum_one_by_one() -> None:
    one = make_filter("strong", 1, "1e-6")
    two = PureCost(epsilon="0.01") + PureCost(epsilon="0.01")
    assert one.demand(two)[1] == 2 * one.demand(PureCost(epsilon="0.01"))[1]


def test_strong_gives_deltas_half() -> None:
    assert filled(make_filter("strong", 1, "1e-6"), ApproxCost(epsilon="0.0001", delta="1e-7")) == 5


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "1e-6"), ("0.01", "1e-9"), (50, "0.1"), (1000, "1e-18")]
)
def test_gaussian_capacity_is_the_last_nano_that_fits(epsilon: Number, delta: str) -> None:
    most = make_filter("gaussian", epsilon, delta).capacity[0]
    level, target = curves.precise(Fraction(epsilon)), curves.precise(Fraction(delta))
    assert curves.delta_of_gaussian(curves.root(Fraction(most, NANO)), level) <= target
    assert curves.delta_of_gaussian(curves.root(Fraction(most + 1, NANO)), level) > target


@pytest.mark.parametrize(
    ("epsilon", "delta"),
    [(1, "1e-6"), ("0.001", "1e-18"), ("0.1", "1e-9"), (10, "1e-6"), (1000, "1e-6"), (1, "0.9")],
)
def test_renyi_shares_of_delta_add_up_to_at_most_one(epsilon: Number, delta: str) -> None:
    promise, chance = Fraction(epsilon), Fraction(delta)
    given_out = shares(promise, chance)
    assert sum(given_out.values()) + SLACK_SHARE <= 1
    one = make_filter("renyi", epsilon, delta)
    assert isinstance(one, RenyiFilter)
    assert one.orders[-1] is None
    assert one.capacity[-2] == promise * NANO
    for order, most in zip(one.orders[:-1], one.capacity, strict=False):
        assert order is not None
        assert most <= curves.capacity_at(order, promise, chance * given_out[order]) * NANO
    assert 2 <= len(one.orders) <= 16
    assert one.width == len(one.orders) + 1


def test_renyi_admits_most_of_the_optimum_for_gaussians() -> None:
    best = make_filter("gaussian", 1, "1e-6").capacity[0]
    one = make_filter("renyi", 1, "1e-6")
    assert filled(one, GaussianCost(sigma=80)) * NANO / 80**2 >= 0.86 * best


def test_renyi_orders_without_a_bound_die_and_the_others_live() -> None:
    one = make_filter("renyi", 1, "1e-6")
    assert isinstance(one, RenyiFilter)
    cost = RenyiCost(orders=[22], values=["0.01"])
    demand = one.demand(cost)
    dead = [a == b for a, b in zip(demand, one.ceiling, strict=True)]
    assert dead == [order is None or order > 22 for order in one.orders] + [False]
    assert one.admits(empty(one), demand)[0]


def test_renyi_slack_is_a_share_of_delta() -> None:
    one = make_filter("renyi", 1, "1e-6")
    assert one.admits(empty(one), one.demand(ApproxCost(epsilon="0.01", delta="2e-8")))[0]
    assert not one.admits(empty(one), one.demand(ApproxCost(epsilon="0.01", delta="2.1e-8")))[0]


def test_spent_grows_to_the_promise() -> None:
    for composition in ("basic", "strong", "renyi", "gaussian"):
        one = make_filter(composition, 1, "1e-6")
        demand = np.array(one.demand(PureCost(epsilon="0.01")), dtype=np.int64)
        count = filled(one, PureCost(epsilon="0.01"))
        assert one.spent([0] * one.width) == (0.0, 0.0)
        figures = [
            one.spent((n * demand).tolist())[0] for n in (1, 2, count // 2, count - 1, count)
        ]
        assert figures == sorted(figures)
        assert figures[0] > 0
        assert 0.9 <= figures[-1] <= 1 + 1e-9


def test_a_dead_coordinate_never_wraps_round() -> None:
    one = make_filter("renyi", 1000, "1e-6")
    loss = empty(one) + (LOSS_LIMIT - 1)
    top = np.array(one.ceiling, dtype=np.int64)
    assert (loss + top > 0).all()
    assert not one.admits(loss + top, top).any()


def test_strong_tables_from_a_journal_are_checked() -> None:
    one = make_filter("strong", 1, "1e-6")
    assert isinstance(one, StrongFilter)
    body = one.as_json()
    body["linears"] = list(reversed(body["linears"]))
    with pytest.raises(InvalidInput) as refusal:
        filter_from_json(body)
    assert refusal.value.reason == "FILTER_INVALID"
