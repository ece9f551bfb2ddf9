"""Strip plans: sound, never below what areas allow, and as short as they can be where that is
known.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.effort import Effort
from allocator.problem import MAX_AMOUNT, MAX_SAMPLES, Option, Problem, PtkOptions
from allocator.strip.area import area_bound
from allocator.strip.packing import pack
from allocator.strip.prices.sets import Sets
from allocator.strip.solve import solve_strip
from allocator.table import table_of
from allocator.verify import faults
from tests.allocator.families import FAMILIES, make
from tests.allocator.instances import problems, taxi

QUICK = 2e8


def quick(problem: Problem) -> Effort:
    return Effort(QUICK)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_every_plan_is_sound_and_between_its_bounds(problem: Problem) -> None:
    plan = solve_strip(problem, effort=quick(problem))
    assert faults(problem, plan) == ()
    table = table_of(problem)
    if table is not None and plan.total_samples is not None:
        assert area_bound(table) <= (plan.lower_bound or 0) <= plan.total_samples


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("ptks", [5, 40, 150])
def test_families_have_sound_plans_with_small_gaps(family: str, ptks: int) -> None:
    problem = make(family, ptks, 7)
    plan = solve_strip(problem, effort=quick(problem))
    assert faults(problem, plan) == ()
    assert plan.gap is not None
    assert plan.gap < 0.2


def test_the_taxi_ptks_need_no_more_than_in_one_partition() -> None:
    plan = solve_strip(taxi())
    assert plan.total_samples == plan.lower_bound == 357_009


def test_a_ptk_may_span_partitions() -> None:
    # Three PTKs of which two fit on a record: three halves of what one needs, and no shelf plan
    # does that.
    problem = Problem(10, None, tuple(PtkOptions(name, (Option("1", 5, 100),)) for name in "abc"))
    plan = solve_strip(problem)
    assert (plan.status, plan.total_samples) == ("OPTIMAL", 150)
    assert any(len(one.partitions) > 1 for one in plan.assignments)


def test_numbers_at_the_limits_do_not_overflow() -> None:
    ptks = tuple(
        PtkOptions(
            f"p{i:03}",
            (Option("a", MAX_AMOUNT // 3, MAX_SAMPLES), Option("b", MAX_AMOUNT, MAX_SAMPLES - 1)),
        )
        for i in range(60)
    )
    problem = Problem(MAX_AMOUNT, None, ptks)
    plan = solve_strip(problem)
    assert faults(problem, plan) == ()
    assert plan.total_samples == 20 * MAX_SAMPLES


def test_what_cannot_be_says_so() -> None:
    assert solve_strip(Problem(0, None, ())).status == "OPTIMAL"
    assert (
        solve_strip(Problem(0, None, (PtkOptions("a", (Option("1", 1, 1),)),))).status
        == "INFEASIBLE"
    )
    assert (
        solve_strip(Problem(0, None, (PtkOptions("a", (Option("1", 0, 7),)),))).total_samples == 7
    )
    none = solve_strip(Problem(5, None, (PtkOptions("a", ()),)))
    assert none.explanation is not None
    assert (
        none.explanation.text
        == "There is no plan: the target of a is not reachable at any profiled level."
    )
    tight = solve_strip(replace(make("heavy", 20, 1), n_max=1000))
    assert (tight.status, faults(make("heavy", 20, 1), tight)) == ("INFEASIBLE", ())


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_sets_are_the_best_of_all_and_their_bound_holds(data: st.DataObject) -> None:
    pairs = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), min_size=1, max_size=3)
    rows = data.draw(st.lists(pairs, min_size=1, max_size=4))
    ptks = tuple(
        PtkOptions(f"p{i}", tuple(Option(str(j), d, n) for j, (d, n) in enumerate(row)))
        for i, row in enumerate(rows)
    )
    table = table_of(Problem(9, None, ptks))
    assert table is not None
    values = np.array(
        [[data.draw(st.integers(0, 5)) for _ in range(table.width)] for _ in range(len(table))],
        dtype=np.float64,
    )
    best = 0.0
    beside = np.zeros((len(table), table.width))
    for picks in product(*(range(-1, len(row)) for row in table.rows)):
        chosen = [(i, j) for i, j in enumerate(picks) if j >= 0]
        if sum(table.rows[i][j].demand for i, j in chosen) <= 9:
            worth = sum(values[i, j] for i, j in chosen)
            best = max(best, worth)
            for i, j in chosen:
                beside[i, j] = max(beside[i, j], worth - values[i, j])
    # However coarse the guide is and however few partial sets are kept.
    for units in (1, 3, 9, 2048):
        sets = Sets(table, units=units)
        for above in (0.0, 2.5):
            found = sets.best(values, above, Effort(1e9))
            assert found.most == pytest.approx(max(best, above), rel=1e-9)
            for column in found.sets:
                inside = [(i, int(j)) for i, j in enumerate(column) if j >= 0]
                assert sum(table.rows[i][j].demand for i, j in inside) <= 9
                assert sum(values[i, j] for i, j in inside) > above
            assert sets.best(values, above, Effort(1e9), states=1).most >= max(best, above)
        rooms = sets.rooms(values, np.arange(len(table)), Effort(1e9))
        for i, row in enumerate(table.rows):
            for j in range(len(row)):
                assert rooms[i, j] >= beside[i, j]
                if units == 9:
                    assert rooms[i, j] == beside[i, j]


@pytest.mark.parametrize("capacity", [1_000_003, MAX_AMOUNT])
def test_what_is_a_trace_too_heavy_is_no_set(capacity: int) -> None:
    tall = capacity // 2 + 1
    ptks = tuple(PtkOptions(name, (Option("1", tall, 7),)) for name in "abc")
    table = table_of(Problem(capacity, None, ptks))
    assert table is not None
    found = Sets(table).best(np.ones((3, 1)), 0.5, Effort(1e9))
    assert found.most == pytest.approx(1.0, rel=1e-9)


def test_heights_a_trace_above_a_half_are_proven_to_stand_alone() -> None:
    tall = 500_000_001
    problem = Problem(
        10**9, None, tuple(PtkOptions(f"p{i}", (Option("1", tall, 100 + i),)) for i in range(20))
    )
    plan = solve_strip(problem, effort=quick(problem))
    assert (plan.status, plan.total_samples) == ("OPTIMAL", sum(100 + i for i in range(20)))


def test_packing_levels_the_loads() -> None:
    packed = pack(10, np.array([5, 5, 10]), np.array([6, 6, 4]), 10)
    assert packed is not None
    assert packed.total == 10
    assert packed.members.sum(axis=1).tolist() == [2, 2]
    assert pack(9, np.array([5, 5, 9]), np.array([6, 6, 4]), 10) is None


def test_work_that_is_used_up_ends_the_search_with_a_sound_plan() -> None:
    problem = make("noisy", 30, 2)
    for steps in (0.0, 1e7, 1e8):
        plan = solve_strip(problem, effort=Effort(steps))
        assert faults(problem, plan) == ()
        assert plan == solve_strip(problem, effort=Effort(steps))


def test_a_clock_is_a_second_limit() -> None:
    ticks = iter(range(1000))
    effort = Effort(1e12, clock=lambda: float(next(ticks)), seconds=5)
    assert effort.limit == 2.5e9
    assert not effort.over
    part = effort.part(1e9)
    part.spend(1e8)
    assert (effort.spent, part.over) == (1e8, False)
    for _ in range(5):
        effort.over  # noqa: B018
    assert (part.over, effort.cut) == (True, True)
