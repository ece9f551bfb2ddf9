"""No sequence that a filter admits exceeds its promise, by other accountants and against adaptive
analysts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    GaussianCost,
    LaplaceCost,
    PureCost,
    SampledGaussianCost,
)
from ptklib.privacy.filters import Filter, make_filter
from ptklib.privacy.filters.base import Ints
from tests.privacy.filter_points import empty

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
    """The optimistic distribution: its delta is a lower bound, so exceeding the promise would be a
    proof.
    """
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
            2 / (1 + math.exp(0.05)),
            2,
            pessimistic_estimate=False,
            value_discretization_interval=2e-5,
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
@given(
    picks=st.lists(st.integers(0, len(MENU) - 1), min_size=1, max_size=6, unique=True),
    seed=st.integers(0, 999),
)
@settings(max_examples=15, deadline=None)
def test_no_admitted_sequence_exceeds_the_promise(
    composition: str, picks: list[int], seed: int
) -> None:
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
    """The exact delta, at the promised epsilon, of an adaptive analyst who sees randomized
    responses.

    Walks the whole tree of outcomes; ``choose`` sees the privacy loss so far, which an adversary
    who knows both neighbours does see. A leak (the delta of an approx cost) counts in full.
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


@pytest.mark.parametrize(
    "strategy", [press_when_ahead, press_when_behind, leak_when_ahead, take_all_that_is_left]
)
@pytest.mark.parametrize(
    ("composition", "delta"),
    [("basic", "0.02"), ("strong", "0.02"), ("renyi", "0.02"), ("gaussian", "0.02")],
)
def test_adaptive_analysts_stay_within_the_promise(
    composition: str, delta: str, strategy: Any
) -> None:
    one = make_filter(composition, 1, delta)
    assert game(one, strategy, 9) <= float(delta)


def test_the_game_does_catch_a_filter_that_is_too_generous() -> None:
    honest = make_filter("gaussian", 1, "0.02")
    generous = replace(
        honest, capacity=(3 * honest.capacity[0],), ceiling=(3 * honest.capacity[0] + 1,)
    )
    assert game(generous, press_when_ahead, 10) > 0.02
