"""Plans at their worst: sound, never longer for more work, for more room, or than other plans at
hand.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from allocator.effort import Effort
from allocator.solving.gap import gap_explained
from allocator.solving.solve import solve
from allocator.strip.area import area_bound, least_area
from allocator.strip.branching import PackedOptions, Search, sort_alike
from allocator.strip.packing import Packed
from allocator.strip.solve import solve_strip
from allocator.table import table_of
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
    "grid": 0.02,
    "doubling": 0.02,
    "cliffs": 0.02,
    "clusters": 0.02,
    "groups": 0.02,
    "squares": 0.02,
    "over": 0.02,
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


@pytest.mark.parametrize("family", sorted(HARD))
def test_a_search_that_is_done_stays_done(family: str) -> None:
    """Also where whole records are what is left of the gap, and there is nothing more to look
    at."""
    for seed in range(3):
        problem = make_hard(family, 9, seed)
        table = table_of(problem)
        assert table is not None
        bound = area_bound(table)
        choice = least_area(table, bound)
        assert choice is not None
        rows = np.arange(len(table))
        alone = Packed(table.samples[rows, choice], np.eye(len(table), dtype=bool))
        search = Search(table, PackedOptions(choice, alone), bound, gap=0.0)
        best, low = search.run(Effort(3e9))
        assert bound <= low <= best.packed.total
        assert best.packed.total <= low * 1.02
        again = search.run(Effort(1e7))
        assert again[0].packed.total <= best.packed.total
        assert again[1] >= low


def test_equal_ptks_are_sorted_and_nothing_is_lost() -> None:
    """What is left of the options is what sorted choices have, and no more."""
    generator = np.random.default_rng(3)
    for _ in range(200):
        count, width = int(generator.integers(2, 5)), int(generator.integers(1, 5))
        allowed = generator.random((count, width)) < 0.6
        sorted_choices = [
            choice
            for choice in product(range(width), repeat=count)
            if list(choice) == sorted(choice)
            and all(allowed[k, place] for k, place in enumerate(choice))
        ]
        kept = allowed.copy()
        sort_alike(kept, np.arange(count))
        if not sorted_choices:
            assert not kept.any(axis=1).all()
            continue
        for k in range(count):
            assert set(np.flatnonzero(kept[k])) == {choice[k] for choice in sorted_choices}


@pytest.mark.parametrize("seed", range(5))
def test_equal_ptks_are_proven_optimal(seed: int) -> None:
    plan = solve(make_hard("equal", 13, seed), time_limit_seconds=4)
    assert plan.status == "OPTIMAL"
