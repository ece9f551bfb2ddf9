"""Shelf plans: sound, best over all numbers of partitions, certified."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from allocator.effort import Effort
from allocator.problem import MAX_AMOUNT, MAX_SAMPLES, Option, Problem, PtkOptions
from allocator.shelf.columns import Columns
from allocator.shelf.fig4 import solve_fig4
from allocator.shelf.levels import levels_of
from allocator.shelf.local_search import improved, inserted
from allocator.shelf.pricing import Pricing
from allocator.shelf.solve import solve_shelf
from allocator.shelf.subsets import best_cover
from allocator.single.solve import solve as solve_single
from allocator.strip.classes import classes_of
from allocator.strip.solve import solve_strip
from allocator.table import table_of
from allocator.verify import faults_of_shelf
from tests.allocator.families import FAMILIES, make
from tests.allocator.instances import problems, taxi


@settings(max_examples=100, deadline=None)
@given(problems())
def test_strip_is_at_most_shelf_is_at_most_single(problem: Problem) -> None:
    single, shelf, strip = solve_single(problem), solve_shelf(problem), solve_strip(problem)
    assert faults_of_shelf(problem, shelf) == ()
    if single.total_samples is not None:
        assert shelf.total_samples is not None
        assert shelf.total_samples <= single.total_samples
    if shelf.total_samples is not None:
        assert strip.total_samples is not None
        assert strip.total_samples <= shelf.total_samples
        assert (shelf.lower_bound or 0) <= shelf.total_samples


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_families_have_sound_plans(family: str) -> None:
    for ptks, steps, gap in ((12, 1e9, 0.0), (30, 8e8, 0.15), (90, 1.5e9, 0.3)):
        problem = make(family, ptks, 3)
        plan = solve_shelf(problem, effort=Effort(steps))
        assert faults_of_shelf(problem, plan) == ()
        assert plan.gap is not None
        assert plan.gap <= gap, (family, ptks)


def test_the_taxi_ptks_hold_357009_samples_in_one_partition() -> None:
    for plan in (
        solve_shelf(taxi()),
        solve_fig4(taxi(), first_feasible=True),
        solve_fig4(taxi(), partitions=1),
    ):
        assert (plan.status, plan.total_samples, len(plan.partitions)) == ("OPTIMAL", 357_009, 1)
        assert sum(one.demand for one in plan.assignments) <= 10**9


def test_more_partitions_can_hold_fewer_samples_than_the_first_that_fit() -> None:
    # Together everybody must be cheap; apart each takes its dear and quick option.
    ptks = tuple(PtkOptions(name, (Option("low", 5, 100), Option("high", 10, 10))) for name in "ab")
    problem = Problem(10, None, ptks)
    first = solve_fig4(problem, first_feasible=True)
    assert (first.total_samples, len(first.partitions)) == (100, 1)
    for best in (solve_fig4(problem), solve_fig4(problem, solver="highs"), solve_shelf(problem)):
        assert (best.status, best.total_samples, len(best.partitions)) == ("OPTIMAL", 20, 2)


def test_a_number_of_partitions_may_be_too_small() -> None:
    problem = Problem(10, None, tuple(PtkOptions(name, (Option("1", 10, 5),)) for name in "abc"))
    plan = solve_fig4(problem, partitions=2)
    assert plan.status == "INFEASIBLE"
    assert plan.explanation is not None
    assert plan.explanation.text == "There is no plan: the PTKs do not fit into 2 partitions."
    assert solve_fig4(problem, partitions=3).total_samples == 15


def test_what_cannot_be_says_so() -> None:
    assert solve_shelf(Problem(0, None, ())).status == "OPTIMAL"
    assert (
        solve_shelf(Problem(0, None, (PtkOptions("a", (Option("1", 1, 1),)),))).status
        == "INFEASIBLE"
    )
    assert (
        solve_shelf(Problem(0, None, (PtkOptions("a", (Option("1", 0, 7),)),))).total_samples == 7
    )
    # Two that do not fit together on fewer than four samples.
    tight = Problem(5, 3, tuple(PtkOptions(name, (Option("1", 5, 2),)) for name in "ab"))
    assert solve_shelf(tight).status == "INFEASIBLE"
    assert solve_shelf(replace(tight, n_max=4)).total_samples == 4


def test_numbers_at_the_limits_do_not_overflow() -> None:
    ptks = tuple(
        PtkOptions(
            f"p{i:03}",
            (Option("a", MAX_AMOUNT // 3, MAX_SAMPLES), Option("b", MAX_AMOUNT, MAX_SAMPLES - 1)),
        )
        for i in range(20)
    )
    problem = Problem(MAX_AMOUNT, None, ptks)
    plan = solve_shelf(problem, effort=Effort(3e8))
    assert faults_of_shelf(problem, plan) == ()


@pytest.mark.parametrize("family", ["gaps", "partition", "distinct"])
def test_prices_certify_and_the_bound_is_below_the_best(family: str) -> None:
    table = table_of(make(family, 10, 5))
    assert table is not None
    levels = levels_of(table)
    best = sum(levels.cost(one) for one in best_cover(levels, Effort(1e12)))
    columns = Columns(levels, Pricing(levels, most_units=1024))
    relaxed = columns.relax(enough=np.inf, effort=Effort(1e12))
    assert relaxed.bound <= best
    assert relaxed.value <= best * (1 + 1e-6)
    assert abs(relaxed.bound - relaxed.value) < 1e-3 * best
    # No shelf is worth more than its size: any set, at the smallest level where it fits.
    for mask in range(1, 1 << 10):
        members = np.array([i for i in range(10) if mask >> i & 1])
        if (levels.needs[members].sum(axis=0) <= levels.units).any():
            assert relaxed.prices[members].sum() <= levels.cost(members) * (1 + 1e-9)
    # Tied prices and levels in groups are a weaker bound, and a bound.
    columns = Columns(
        levels, Pricing(levels, most_units=200, groups=np.array([4, len(levels.sizes) - 1]))
    )
    columns.tie(classes_of(table, 3), np.ones(10))
    assert columns.relax(enough=np.inf, effort=Effort(1e9)).bound <= best


def test_small_changes_only_ever_help() -> None:
    table = table_of(make("heavy", 40, 2))
    assert table is not None
    levels = levels_of(table)
    apart = [np.array([i]) for i in range(40)]
    better = improved(levels, apart, Effort(1e10))
    assert sum(levels.cost(one) for one in better) < 0.5 * sum(levels.cost(one) for one in apart)
    assert sorted(int(i) for one in better for i in one) == list(range(40))
    laid = inserted(
        levels, better[:2], np.setdiff1d(np.arange(40), np.concatenate(better[:2])), Effort(1e10)
    )
    assert sorted(int(i) for one in laid for i in one) == list(range(40))


def test_work_that_is_used_up_ends_with_a_sound_plan_and_the_same_each_time() -> None:
    for ptks in (30, 100):
        problem = make("gaps", ptks, 2)
        for steps in (0.0, 1e8):
            plan = solve_shelf(problem, effort=Effort(steps))
            assert faults_of_shelf(problem, plan) == ()
            assert plan == solve_shelf(problem, effort=Effort(steps))
