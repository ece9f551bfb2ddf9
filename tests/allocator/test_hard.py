"""Plans at their worst: sound, never longer for more work, for more room, or than other plans at
hand.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from allocator.effort import Effort
from allocator.solving.gap import gap_explained
from allocator.solving.solve import solve
from allocator.strip.solve import solve_strip
from allocator.verify import faults
from tests.allocator.hard import HARD, make_hard

# What half a second is enough for, in 13 PTKs, by family.
BARS = {
    "jagged": 0.05,
    "halves": 0.01,
    "few": 0.01,
    "giant": 0.01,
    "equal": 0.001,
    "subset-sum": 0.001,
    "unreachable": 0.01,
    "mixed": 0.01,
}


@pytest.mark.parametrize("family", sorted(HARD))
def test_more_work_never_gives_a_longer_plan_or_a_lower_bound(family: str) -> None:
    problem = make_hard(family, 13, 0)
    plans = [solve_strip(problem, effort=Effort(steps)) for steps in (0.0, 5e7, 2e8, 6e8)]
    for before, after in pairwise(plans):
        assert (after.total_samples or 0) <= (before.total_samples or 0)
        assert (after.lower_bound or 0) >= (before.lower_bound or 0)
    assert faults(problem, plans[-1]) == ()
    assert (plans[-1].gap or 0.0) <= BARS[family]


@pytest.mark.parametrize("family", sorted(HARD))
def test_no_strip_plan_is_longer_than_a_shelf_plan(family: str) -> None:
    problem = make_hard(family, 20, 1)
    strip = solve(problem, time_limit_seconds=0.4)
    shelf = solve(problem, method="shelf", time_limit_seconds=0.4)
    assert (strip.total_samples or 0) <= (shelf.total_samples or 0)
    assert (strip.lower_bound or 0) <= (shelf.total_samples or 0)


@pytest.mark.parametrize("family", ["jagged", "few", "mixed"])
def test_a_plan_at_hand_is_never_made_longer(family: str) -> None:
    problem = make_hard(family, 40, 2)
    current = solve(problem, time_limit_seconds=0.2)
    assert current.total_samples is not None
    for roomier in (
        replace(problem, capacity=problem.capacity * 11 // 10),
        replace(problem, n_max=current.total_samples),
        problem,
    ):
        again = solve(roomier, time_limit_seconds=0.02, current=current)
        assert faults(roomier, again) == ()
        assert again.total_samples is not None
        assert again.total_samples <= current.total_samples


def test_a_limit_is_used_until_the_gap_is_closed_or_small_enough() -> None:
    problem = make_hard("jagged", 13, 0)
    quick = solve(problem, time_limit_seconds=0.5)
    coarse = solve(problem, time_limit_seconds=0.5, gap=0.5)
    assert quick.gap is not None
    assert coarse.gap is not None
    assert quick.gap <= coarse.gap <= 0.5


def test_a_gap_is_explained_by_its_bound_and_the_ptks_that_fill_more_than_they_must() -> None:
    problem = make_hard("mixed", 13, 0)
    plan = solve(problem, time_limit_seconds=0.3)
    told = gap_explained(problem, plan)
    assert told is not None
    assert told.bound == ("program" if (plan.lower_bound or 0) > told.by_areas else "areas")
    filled = sum(one.samples * one.demand for one in plan.assignments) / problem.capacity
    assert told.unfilled == pytest.approx((plan.total_samples or 0) - filled)
    for name, more in told.dearer:
        taken = next(one for one in plan.assignments if one.id == name)
        options = next(one for one in problem.ptks if one.id == name).options
        least = min(
            one.samples * one.demand for one in options if one.samples <= (plan.total_samples or 0)
        )
        assert more * problem.capacity == pytest.approx(taken.samples * taken.demand - least)
        assert more > 0
    assert str(plan.lower_bound) in told.text
    tight = replace(problem, n_max=1)
    assert gap_explained(tight, solve(tight, remedy=False)) is None
