"""A plan in a filter's currency is one that the filter admits, and no coordinate has a smaller
one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.admission.single import Offer, PtkOffers, problem_at, settle, usable_coordinates
from allocator.verify import faults_of_single
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import NANO
from ptklib.privacy.costs import ApproxCost, Cost, GaussianCost, PureCost
from ptklib.privacy.filters import Filter, make_filter

LEVELS = ("0.05", "0.1", "0.3", "0.6")


def pure(level: str, i: int) -> Cost:
    return PureCost(epsilon=level)


def approx(level: str, i: int) -> Cost:
    return ApproxCost(epsilon=level, delta="1e-7")


def gaussian(level: str, i: int) -> Cost:
    return GaussianCost(sigma=float(3 / Fraction(level)))


def mixed(level: str, i: int) -> Cost:
    return (pure, gaussian)[i % 2](level, i)


def offers(
    privacy_filter: Filter, cost: Callable[[str, int], Cost], seed: int, ptks: int = 4
) -> list[PtkOffers]:
    rng = random.Random(seed)
    found = []
    for i in range(ptks):
        scale = rng.randrange(100, 5000)
        row = tuple(
            Offer(level, int(scale / Fraction(level)), privacy_filter.demand(cost(level, i)))
            for level in LEVELS[rng.randrange(2) :]
        )
        found.append(PtkOffers(f"p{i}", row))
    return found


def best_by_force(
    privacy_filter: Filter, loss: Sequence[int], ptks: Sequence[PtkOffers]
) -> int | None:
    """The least exposure over all combinations that the filter itself admits."""
    row = np.array([loss], dtype=np.int64)
    best = None
    for chosen in product(*(ptk.offers for ptk in ptks)):
        total = np.minimum(
            np.array([one.demand for one in chosen]).sum(axis=0), np.array(privacy_filter.ceiling)
        )
        if privacy_filter.admits(row, total)[0]:
            exposure = max(one.samples for one in chosen)
            best = exposure if best is None else min(best, exposure)
    return best


CASES = [
    ("pure", 0, pure),
    ("basic", "1e-6", approx),
    ("renyi", "1e-6", pure),
    ("renyi", "1e-6", gaussian),
    ("renyi", "1e-6", mixed),
    ("gaussian", "1e-6", gaussian),
]


@pytest.mark.parametrize(("composition", "delta", "cost"), CASES)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10**6), used=st.integers(0, 9))
def test_the_plan_is_the_best_that_the_filter_admits(
    composition: str, delta: str, cost: Callable[[str, int], Cost], seed: int, used: int
) -> None:
    privacy_filter = make_filter(composition, 1, delta)
    loss = tuple(most * used // 10 for most in privacy_filter.capacity)
    ptks = offers(privacy_filter, cost, seed)
    settled = settle(privacy_filter, loss, ptks)
    best = best_by_force(privacy_filter, loss, ptks)
    assert settled.plan.total_samples == best
    if settled.problem is not None:
        assert faults_of_single(settled.problem, settled.plan) == ()
    if best is not None:
        assert settled.problem is not None
        row = np.array([loss], dtype=np.int64)
        assert privacy_filter.admits(row, settled.demand)[0]
    else:
        assert settled.plan.explanation is not None
        assert settled.plan.explanation.text


def test_orders_that_are_used_up_are_left_alone() -> None:
    privacy_filter = make_filter("renyi", 1, "1e-6")
    loss = [most if i % 2 else 0 for i, most in enumerate(privacy_filter.capacity)]
    loss[-1] = 0
    assert usable_coordinates(privacy_filter, loss) == tuple(range(0, privacy_filter.width - 1, 2))
    settled = settle(privacy_filter, loss, offers(privacy_filter, gaussian, 1))
    assert settled.coordinate is not None
    assert settled.coordinate % 2 == 0


def test_nothing_left_is_said() -> None:
    privacy_filter = make_filter("pure", 1)
    settled = settle(privacy_filter, privacy_filter.capacity, offers(privacy_filter, pure, 1))
    assert (settled.plan.status, settled.coordinate) == ("INFEASIBLE", None)
    assert settled.plan.explanation is not None
    assert "Nothing is left" in settled.plan.explanation.text


def test_delta_must_fit_as_well() -> None:
    privacy_filter = make_filter("basic", 1, "3e-7")
    settled = settle(privacy_filter, (0, 0), offers(privacy_filter, approx, 1))
    assert settled.plan.status == "INFEASIBLE"
    assert settled.plan.explanation is not None
    assert settled.plan.explanation.text == (
        "The PTKs need a delta of at least 4e-07 together, and 3e-07 is left: "
        "give each charge a smaller delta, or the stream a larger one."
    )
    assert settled.demand == (0, 0)
    assert (
        settle(privacy_filter, (0, 0), offers(privacy_filter, approx, 1, ptks=3)).plan.status
        == "OPTIMAL"
    )


def test_where_options_differ_in_delta_the_smaller_one_is_tried() -> None:
    privacy_filter = make_filter("basic", 1, "1e-6")
    row = (
        Offer("rich", 10, privacy_filter.demand(ApproxCost(epsilon="0.1", delta="9e-7"))),
        Offer("poor", 20, privacy_filter.demand(ApproxCost(epsilon="0.1", delta="1e-7"))),
    )
    settled = settle(privacy_filter, (0, 0), [PtkOffers("a", row), PtkOffers("b", row)])
    assert settled.plan.total_samples == 20
    assert settled.demand == (200_000_000, 200_000_000_000)


def test_explanations_are_in_the_units_of_the_policy() -> None:
    privacy_filter = make_filter("pure", 1)
    ptks = [
        PtkOffers(f"p{i}", (Offer("0.6", 10, privacy_filter.demand(PureCost(epsilon="0.6"))),))
        for i in range(2)
    ]
    told = settle(privacy_filter, (NANO // 4, 0), ptks).plan.explanation
    assert told is not None
    assert (
        told.text
        == "Even at their cheapest, the 2 PTKs need 1.2 epsilon together, and the capacity is 0.75 epsilon."
    )


def test_no_ptks_are_settled_at_once() -> None:
    settled = settle(make_filter("pure", 1), (0, 0), [])
    assert (settled.plan.status, settled.demand) == ("OPTIMAL", (0, 0))


def test_strong_composition_is_refused() -> None:
    with pytest.raises(InvalidInput) as caught:
        settle(make_filter("strong", 1, "1e-6"), (0, 0, 0), [])
    assert caught.value.reason == "PLAN_COMPOSITION"


def test_vectors_of_the_wrong_width_are_refused() -> None:
    privacy_filter = make_filter("pure", 1)
    for call in (
        lambda: settle(privacy_filter, (0,), []),
        lambda: problem_at(
            privacy_filter, (0, 0), [PtkOffers("a", (Offer("1", 1, (1, 2, 3)),))], 0
        ),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert caught.value.reason == "LOSS_INVALID"
