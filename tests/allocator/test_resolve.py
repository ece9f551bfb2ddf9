"""Re-solving changes few and costs little; ranges and pictures of what comes out."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import pytest

from allocator.problem import Option, Problem, PtkOptions
from allocator.ranges import partition_ranges, ptk_ranges
from allocator.solving.resolve import changed, kept, resolve
from allocator.solving.solve import solve
from allocator.verify import faults, faults_of_shelf
from ptklib.errors import InvalidInput
from ptkstore.drawing.plan_picture import of_plan
from ptkstore.drawing.plan_svg import document
from tests.allocator.families import FAMILIES, make
from tests.allocator.instances import taxi


def grown(family: str, ptks: int) -> tuple[Problem, Problem]:
    """A problem, and the same with one PTK more."""
    whole = make(family, ptks + 1, 11)
    return replace(whole, ptks=whole.ptks[:-1]), whole


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_one_more_ptk_changes_few_of_the_others(family: str) -> None:
    before, after = grown(family, 120)
    current = solve(before, time_limit_seconds=1)
    plan = resolve(after, current)
    assert faults(after, plan) == ()
    assert current.total_samples is not None
    assert current.gap is not None
    assert plan.total_samples is not None
    assert plan.lower_bound is not None
    # At most 1% above the bound, or above the current plan where that is good.
    least = max(plan.lower_bound, current.total_samples if current.gap <= 0.02 else 0)
    if plan.solver == "kept":
        assert plan.total_samples <= 1.01 * least
        assert len(changed(current, plan)) <= 0.05 * 120
    else:
        # Where that is out of reach everything was tried again, from the kept plan on.
        assert plan.solver == "strip"
        assert current.gap > 0.01


def test_a_poor_plan_is_not_kept_for_being_the_current_one() -> None:
    before, after = grown("heavy", 30)
    poor = solve(replace(before, capacity=before.capacity // 3), time_limit_seconds=1)
    assert poor.total_samples is not None
    bound = solve(before, time_limit_seconds=1).lower_bound
    assert bound is not None
    assert poor.total_samples > 1.5 * bound
    certified = replace(
        poor, lower_bound=bound, status="FEASIBLE", gap=poor.total_samples / bound - 1
    )
    plan = resolve(after, certified)
    assert faults(after, plan) == ()
    assert plan.total_samples is not None
    assert plan.total_samples < 0.8 * poor.total_samples


def test_ptks_that_go_leave_the_others_as_they_are() -> None:
    problem = make("heavy", 100, 5)
    current = solve(problem, time_limit_seconds=1)
    fewer = replace(problem, ptks=problem.ptks[:-3])
    plan = resolve(fewer, current, loss=0.2)
    assert faults(fewer, plan) == ()
    assert changed(current, plan) == ()


def test_a_retargeted_ptk_changes_and_hardly_any_other() -> None:
    problem = make("heavy", 100, 5)
    current = solve(problem, time_limit_seconds=1)
    rows = list(problem.ptks)
    rows[7] = PtkOptions(
        rows[7].id, tuple(replace(one, samples=one.samples * 2) for one in rows[7].options)
    )
    plan = resolve(replace(problem, ptks=tuple(rows)), current)
    assert faults(replace(problem, ptks=tuple(rows)), plan) == ()
    assert len(changed(current, plan)) <= 6


def test_shelves_are_kept_with_the_newcomer_inserted() -> None:
    before, after = grown("gaps", 40)
    current = solve(before, method="shelf", time_limit_seconds=2)
    plan = kept(after, current, "shelf")
    assert plan is not None
    assert faults_of_shelf(after, plan) == ()
    assert len(changed(current, plan)) <= 8


def test_what_has_no_plan_says_so() -> None:
    before, after = grown("gaps", 20)
    current = solve(before, time_limit_seconds=1)
    assert resolve(replace(after, n_max=1000), current).status == "INFEASIBLE"
    assert kept(replace(after, capacity=1), current, "strip") is None


@pytest.mark.parametrize("grid", [1 << 48, 10_000, 7919])
def test_at_no_point_do_the_ranges_carry_more_than_the_capacity(grid: int) -> None:
    rng = random.Random(grid)
    for family in sorted(FAMILIES):
        problem = make(family, 25, rng.randrange(100))
        plan = solve(problem, time_limit_seconds=0.3)
        assert plan.total_samples is not None
        available = int(plan.total_samples * rng.uniform(1.4, 3)) + 1
        start = Fraction(rng.randrange(10), 100)
        ranges = ptk_ranges(plan, available, start=start, grid=grid)
        rise: dict[Fraction, int] = defaultdict(int)
        for one in plan.assignments:
            mine = ranges[one.id]
            assert sum((r.stop - r.start for r in mine), Fraction(0)) * available >= one.samples
            assert all(a.stop < b.start for a, b in pairwise(mine))
            for r in mine:
                rise[r.start] += one.demand
                rise[r.stop] -= one.demand
        carried = 0
        for place in sorted(rise):
            assert start <= place <= 1
            carried += rise[place]
            assert 0 <= carried <= problem.capacity
        assert carried == 0


def test_a_window_that_is_too_small_is_refused() -> None:
    plan = solve(taxi())
    assert partition_ranges(plan, 357_009)[0].stop >= 1
    for available, start in ((357_008, Fraction(0)), (400_000, Fraction(1, 2))):
        with pytest.raises(InvalidInput) as caught:
            partition_ranges(plan, available, start=start)
        assert caught.value.reason == "WINDOW_TOO_SMALL"
    none = solve(Problem(1, None, (PtkOptions("a", (Option("1", 2, 1),)),)))
    with pytest.raises(InvalidInput) as caught:
        ptk_ranges(none, 10)
    assert caught.value.reason == "PLAN_MISSING"


@pytest.mark.parametrize("ptks", [0, 1, 13, 400])
def test_pictures_are_well_formed_and_of_a_sensible_size(ptks: int) -> None:
    problem = make("gaps", ptks, 2)
    picture = document(of_plan(problem, solve(problem, time_limit_seconds=0.5)))
    root = ET.fromstring(picture)
    assert root.tag.endswith("svg")
    assert len(picture) < 500_000
    names = [one.text or "" for one in root.iter() if one.tag.endswith("text")]
    assert names[0].startswith(("OPTIMAL", "FEASIBLE"))
    if ptks == 13:
        assert sum(name.startswith("ptk") for name in names) >= 5


def test_the_picture_of_no_plan_says_why() -> None:
    problem = Problem(1, None, (PtkOptions("<a>", (Option("1", 2, 1),)),))
    picture = document(of_plan(problem, solve(problem)))
    assert "&lt;a&gt;" in picture
    ET.fromstring(picture)
