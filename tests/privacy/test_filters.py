"""Filters keep their promise, exactly where it is exact, and check_filter catches those that do not."""

from __future__ import annotations

import json
import math
import pickle
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import NANO, Number
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    GaussianCost,
    LaplaceCost,
    PureCost,
    RenyiCost,
    SampledGaussianCost,
    ZcdpCost,
)
from ptklib.privacy.filters import COMPOSITIONS, LOSS_LIMIT, Filter, filter_from_json, make_filter
from ptklib.privacy.filters.base import Bools, Demand, Ints
from ptklib.privacy.filters.basic import BasicFilter
from ptklib.privacy.filters.gaussian import GaussianFilter
from ptklib.privacy.filters.renyi import SLACK_SHARE, RenyiFilter, shares
from ptklib.privacy.filters.strong import STEPS, StrongFilter
from ptklib.testing.filters import CHECKS, check_filter, findings, least_delta

PROMISES: list[tuple[str, Number, Number]] = [
    ("pure", 1, 0),
    ("basic", 1, "1e-6"),
    ("basic", 1, 0),
    ("strong", 1, "1e-6"),
    ("strong", "0.1", "1e-9"),
    ("renyi", 1, "1e-6"),
    ("renyi", 10, "1e-9"),
    ("gaussian", 1, "1e-6"),
    ("gaussian", 5, "0.001"),
]


def filled(one: Filter, cost: Cost) -> int:
    """How many such costs a fresh point admits."""
    demand = np.array(one.demand(cost), dtype=np.int64)
    loss = np.zeros((1, one.width), dtype=np.int64)
    count = 0
    while one.admits(loss, demand)[0]:
        loss = loss + demand
        count += 1
    return count


def empty(one: Filter) -> Ints:
    return np.zeros((1, one.width), dtype=np.int64)


# -- policies ------------------------------------------------------------------------------------------------------


def test_compositions_are_listed() -> None:
    assert COMPOSITIONS == ("basic", "gaussian", "pure", "renyi", "strong")
    assert {name for name, _, _ in PROMISES} == set(COMPOSITIONS)


@pytest.mark.parametrize(
    ("composition", "epsilon", "delta", "reason"),
    [
        ("free", 1, 0, "POLICY_INVALID_COMPOSITION"),
        (None, 1, 0, "POLICY_INVALID_COMPOSITION"),
        ("pure", 1, "1e-6", "POLICY_INVALID_DELTA"),
        ("renyi", 1, 0, "POLICY_INVALID_DELTA"),
        ("gaussian", 1, 0, "POLICY_INVALID_DELTA"),
        ("strong", 1, 0, "POLICY_INVALID_DELTA"),
        ("strong", 1, "0.4", "POLICY_INVALID_DELTA"),
        ("renyi", "0.0001", "1e-6", "POLICY_INVALID_EPSILON"),
        ("strong", "1e-6", "1e-6", "POLICY_INVALID_EPSILON"),
        ("gaussian", "1e-8", "1e-18", "POLICY_INVALID_EPSILON"),
        ("basic", 0, 0, "AMOUNT_ZERO"),
        ("basic", 1001, 0, "AMOUNT_TOO_LARGE"),
        ("basic", 1, 1, "AMOUNT_TOO_LARGE"),
        ("basic", float("nan"), 0, "AMOUNT_NOT_FINITE"),
        ("basic", "9" * 400, 0, "AMOUNT_TOO_LONG"),
    ],
)
def test_bad_policies_are_refused(composition: Any, epsilon: Number, delta: Number, reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_filter(composition, epsilon, delta)
    assert refusal.value.reason == reason


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_filter_keeps_the_contract(promise: tuple[str, Number, Number]) -> None:
    check_filter(make_filter(*promise))


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_every_quota_is_exact_json_too(promise: tuple[str, Number, Number]) -> None:
    quota = make_filter(*promise).scaled("1/3")
    assert filter_from_json(json.loads(json.dumps(quota.as_json()))) == quota
    assert pickle.loads(pickle.dumps(quota)) == quota


def test_recorded_capacities_count_and_nothing_is_recomputed() -> None:
    body = make_filter("gaussian", 1, "1e-6").as_json()
    body["capacity"] = [12345]
    assert filter_from_json(body).capacity == (12345,)


@pytest.mark.parametrize(
    "change",
    [
        {"capacity": [1.5]},
        {"capacity": [-1]},
        {"capacity": []},
        {"capacity": "1"},
        {"capacity": [True]},
        {"capacity": [2**62]},
        {"capacity": [1, 2]},
        {"ceiling": [0]},
        {"extra": 1},
    ],
)
def test_a_damaged_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        filter_from_json({**make_filter("gaussian", 1, "1e-6").as_json(), **change})
    assert refusal.value.reason == "FILTER_INVALID"


@pytest.mark.parametrize("share", [0, "1.1", -1, "1e-10", float("nan")])
def test_a_share_is_between_a_billionth_and_one(share: Number) -> None:
    with pytest.raises(InvalidInput):
        make_filter("pure", 1).scaled(share)


@pytest.mark.parametrize(
    ("losses", "demand"),
    [
        (np.zeros((1, 3), dtype=np.int64), (1, 1)),
        (np.zeros(2, dtype=np.int64), (1, 1)),
        (np.zeros((1, 2), dtype=np.int64), (1,)),
        (np.zeros((1, 2), dtype=np.int64), (1, -1)),
        (np.zeros((1, 2), dtype=np.int64), (1, 2**63)),
        (np.zeros((1, 2), dtype=np.int64), (0.5, 0)),
        (np.zeros((1, 2)), (1, 1)),
    ],
)
def test_losses_and_demands_of_the_wrong_form_are_refused(losses: Any, demand: Any) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make_filter("pure", 1).admits(losses, demand)
    assert refusal.value.reason == "LOSS_INVALID"


# -- each composition ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("composition", "delta"), [("pure", 0), ("basic", 0), ("basic", "1e-6"), ("renyi", "1e-6")])
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
def test_costs_without_a_bound_are_refused_with_advice(composition: str, delta: Number, cost: Cost) -> None:
    with pytest.raises(InvalidInput, match="COST_UNSUPPORTED") as refusal:
        make_filter(composition, 1, delta).demand(cost)
    assert refusal.value.reason == "COST_UNSUPPORTED"
    assert refusal.value.details["composition"] == composition


def test_a_gaussian_can_be_charged_as_the_advice_says() -> None:
    cost = GaussianCost(sigma=80)
    assert filled(make_filter("basic", 1, "1e-6"), ApproxCost(epsilon=cost.epsilon("1e-7"), delta="1e-7")) >= 8


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


@pytest.mark.parametrize(("epsilon", "delta"), [(1, "1e-6"), ("0.01", "1e-9"), (50, "0.1"), (1000, "1e-18")])
def test_gaussian_capacity_is_the_last_nano_that_fits(epsilon: Number, delta: str) -> None:
    most = make_filter("gaussian", epsilon, delta).capacity[0]
    level, target = curves.precise(Fraction(epsilon)), curves.precise(Fraction(delta))
    assert curves.delta_of_gaussian(curves.root(Fraction(most, NANO)), level) <= target
    assert curves.delta_of_gaussian(curves.root(Fraction(most + 1, NANO)), level) > target


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1, "1e-6"), ("0.001", "1e-18"), ("0.1", "1e-9"), (10, "1e-6"), (1000, "1e-6"), (1, "0.9")]
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
        figures = [one.spent((n * demand).tolist())[0] for n in (1, 2, count // 2, count - 1, count)]
        assert figures == sorted(figures)
        assert figures[0] > 0
        assert 0.9 <= figures[-1] <= 1 + 1e-9


# -- the promise, against other accountants ------------------------------------------------------------------------

MENU: list[Cost] = [
    LaplaceCost(scale=100),
    LaplaceCost(scale=5),
    GaussianCost(sigma=50),
    GaussianCost(sigma=10),
    PureCost(epsilon="0.05"),
    SampledGaussianCost(rate="0.01", sigma=2, steps=20),
]


@cache
def distribution(index: int) -> pld.PrivacyLossDistribution:
    """The optimistic distribution: its delta is a lower bound, so exceeding the promise would be a proof."""
    optimistic: dict[str, Any] = {
        "pessimistic_estimate": False,
        "use_connect_dots": False,
        "value_discretization_interval": 2e-5,
    }
    makers: list[Callable[[], pld.PrivacyLossDistribution]] = [
        lambda: pld.from_laplace_mechanism(100.0, **optimistic),
        lambda: pld.from_laplace_mechanism(5.0, **optimistic),
        lambda: pld.from_gaussian_mechanism(50.0, **optimistic),
        lambda: pld.from_gaussian_mechanism(10.0, **optimistic),
        lambda: pld.from_randomized_response(
            2 / (1 + math.exp(0.05)), 2, pessimistic_estimate=False, value_discretization_interval=2e-5
        ),
        lambda: pld.from_gaussian_mechanism(2.0, sampling_prob=0.01, **optimistic).self_compose(20),
    ]
    return makers[index]()


def demand_or_none(one: Filter, cost: Cost) -> Ints | None:
    try:
        return np.array(one.demand(cost), dtype=np.int64)
    except InvalidInput:
        return None


@pytest.mark.parametrize("composition", ["pure", "basic", "strong", "renyi", "gaussian"])
@given(picks=st.lists(st.integers(0, len(MENU) - 1), min_size=1, max_size=6, unique=True), seed=st.integers(0, 999))
@settings(max_examples=15, deadline=None)
def test_no_admitted_sequence_exceeds_the_promise(composition: str, picks: list[int], seed: int) -> None:
    delta = 0 if composition == "pure" else "1e-6"
    one = make_filter(composition, 1, delta)
    rng = np.random.default_rng(seed)
    loss, admitted, refused = empty(one), Counter[int](), 0
    while refused < 10 and admitted.total() < 400:
        pick = int(rng.choice(picks))
        demand = demand_or_none(one, MENU[pick])
        if demand is not None and one.admits(loss, demand)[0]:
            loss, admitted = loss + demand, admitted + Counter([pick])
        else:
            refused += 1
    if not admitted:
        return
    total = None
    for pick, times in admitted.items():
        part = distribution(pick).self_compose(times)
        total = part if total is None else total.compose(part)
    assert total is not None
    assert total.get_delta_for_epsilon(1.0) <= float(delta) + 1e-10


def game(one: Filter, choose: Callable[[float, Filter, Ints], Cost], rounds: int) -> float:
    """The exact delta, at the promised epsilon, of an adaptive analyst who sees randomized responses.

    Walks the whole tree of outcomes; ``choose`` sees the privacy loss so far, which an adversary who knows both
    neighbours does see. A leak (the delta of an approx cost) counts in full.
    """
    promise = float(one.epsilon)

    def walk(p: float, q: float, loss: Ints, rounds_left: int) -> float:
        if rounds_left == 0:
            return max(0.0, p - math.exp(promise) * q)
        cost = choose(math.log(p / q), one, loss)
        demand = np.array(one.demand(cost), dtype=np.int64)
        if not one.admits(loss, demand)[0]:
            return walk(p, q, loss, rounds_left - 1)
        basic = cost.basic()
        assert basic is not None
        leak, yes = float(basic[1]), 1 / (1 + math.exp(-float(basic[0])))
        after = loss + demand
        kept = (1 - leak) * p, (1 - leak) * q
        return (
            leak * p
            + walk(kept[0] * yes, kept[1] * (1 - yes), after, rounds_left - 1)
            + walk(kept[0] * (1 - yes), kept[1] * yes, after, rounds_left - 1)
        )

    return walk(1.0, 1.0, empty(one), rounds)


def press_when_ahead(loss: float, one: Filter, _: Ints) -> Cost:
    return PureCost(epsilon="0.35") if loss > 0.3 else PureCost(epsilon="0.15")


def press_when_behind(loss: float, one: Filter, _: Ints) -> Cost:
    return PureCost(epsilon="0.05") if loss > 0.3 else PureCost(epsilon="0.3")


def leak_when_ahead(loss: float, one: Filter, _: Ints) -> Cost:
    if loss > 0.2 and one.composition != "gaussian":
        return ApproxCost(epsilon="0.2", delta=one.delta / 100)
    return PureCost(epsilon="0.2")


def take_all_that_is_left(loss: float, one: Filter, losses: Ints) -> Cost:
    left = one.left(losses[0].tolist())
    return PureCost(epsilon=left) if loss > 0.5 and left > 0 else PureCost(epsilon="0.25")


@pytest.mark.parametrize("strategy", [press_when_ahead, press_when_behind, leak_when_ahead, take_all_that_is_left])
@pytest.mark.parametrize(
    ("composition", "delta"), [("basic", "0.02"), ("strong", "0.02"), ("renyi", "0.02"), ("gaussian", "0.02")]
)
def test_adaptive_analysts_stay_within_the_promise(composition: str, delta: str, strategy: Any) -> None:
    one = make_filter(composition, 1, delta)
    assert game(one, strategy, 9) <= float(delta)


def test_the_game_does_catch_a_filter_that_is_too_generous() -> None:
    honest = make_filter("gaussian", 1, "0.02")
    generous = replace(honest, capacity=(3 * honest.capacity[0],), ceiling=(3 * honest.capacity[0] + 1,))
    assert game(generous, press_when_ahead, 10) > 0.02


# -- check_filter catches what it should ---------------------------------------------------------------------------


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
        return cls(composition=composition, epsilon=epsilon, delta=delta, capacity=(most,), ceiling=(most + 1,))


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
            return np.asarray(((losses + np.asarray(demand)) <= np.array(self.capacity)).all(axis=1))


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


@pytest.mark.parametrize(("kind", "composition", "delta", "check"), BROKEN, ids=[name for *_, name in BROKEN])
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
