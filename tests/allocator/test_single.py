"""Plans with one partition against brute force, against CBC, and on the numbers the paper
published.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.plan import Plan
from allocator.problem import Option, Problem, PtkOptions
from allocator.single.solve import solve
from allocator.verify import faults_of_single
from tests.allocator.instances import brute_force, problems, realistic, sums, taxi


@settings(max_examples=600, deadline=None)
@given(problems())
def test_the_plan_is_the_one_brute_force_finds(problem: Problem) -> None:
    plan, best = solve(problem), brute_force(problem)
    assert faults_of_single(problem, plan) == ()
    if best is None:
        assert plan.status == "INFEASIBLE"
        return
    key, levels = best
    assert plan.status == "OPTIMAL"
    assert plan.solver == "exact"
    assert sums(plan) == key[:3]
    assert {one.id: one.level for one in plan.assignments} == levels


@settings(max_examples=40, deadline=None)
@given(st.data(), st.sampled_from([1, 2, 300]))
def test_bounds_and_short_first_lists_change_nothing(data: st.DataObject, first: int) -> None:
    pairs = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 12)), min_size=4, max_size=4)
    table = data.draw(st.lists(pairs, min_size=6, max_size=6))
    ptks = tuple(
        PtkOptions(f"p{i}", tuple(Option(str(j), d, n) for j, (d, n) in enumerate(row)))
        for i, row in enumerate(table)
    )
    problem = Problem(data.draw(st.integers(10, 40)), None, ptks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("allocator.single.exact._FIRST_STATES", first)
        plan = solve(problem)
    best = brute_force(problem)
    assert (plan.status == "OPTIMAL") == (best is not None)
    if best is not None:
        assert plan.solver == "exact"
        assert {one.id: one.level for one in plan.assignments} == best[1]


@settings(max_examples=100, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_ptks_does_not_matter(problem: Problem, rng: random.Random) -> None:
    shuffled = list(problem.ptks)
    rng.shuffle(shuffled)
    other = solve(replace(problem, ptks=tuple(shuffled)))
    assert other == solve(problem)
    assert Plan.from_json(other.as_json()) == other


def test_the_taxi_ptks_hold_357009_samples_in_one_partition() -> None:
    plan = solve(taxi())
    assert (plan.status, plan.total_samples, plan.lower_bound, plan.gap) == (
        "OPTIMAL",
        357_009,
        357_009,
        0.0,
    )
    assert len(plan.assignments) == 13
    (partition,) = plan.partitions
    # The published epsilons add up to exactly one: 10 of 0.01, 2 of 0.2 and one of 0.5.
    assert partition.demand == 10**9
    assert sorted(one.level for one in plan.assignments) == ["0.01"] * 10 + ["0.2"] * 2 + ["0.5"]
    assert solve(taxi(10**9 - 1)).status == "INFEASIBLE"


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize(("ptks", "levels"), [(13, 7), (20, 10), (50, 7), (50, 10)])
def test_cbc_finds_no_better_plan(ptks: int, levels: int, uneven: bool) -> None:
    problem = realistic(ptks + levels, ptks, levels, uneven=uneven)
    plan, other = solve(problem), solve(problem, solver="cbc")
    assert plan.solver == "exact"
    assert faults_of_single(problem, plan) == faults_of_single(problem, other) == ()
    assert other.solver == "cbc"
    assert other.seconds > 0
    assert sums(other) == sums(plan)


def test_fifty_ptks_take_well_under_150_ms() -> None:
    problem = realistic(5, 50, 10, uneven=True)
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        solve(problem)
        taken.append(time.perf_counter() - start)
    assert min(taken) < 0.15


def hard(ptks: int) -> Problem:
    """Samples and demands that add up to a constant: every choice is undominated, no bound
    helps.
    """
    rng = random.Random(3)
    rows = [
        PtkOptions(
            f"p{i:02}",
            tuple(Option(str(j), d, 10**9 - d) for j, d in enumerate(rng.sample(range(10**8), 10))),
        )
        for i in range(ptks)
    ]
    return Problem(10**9, None, (*rows, PtkOptions("z", (Option("only", 1, 10**9),))))


def test_when_the_work_is_used_up_the_plan_is_verified_and_of_least_exposure() -> None:
    problem = hard(30)
    few, many = solve(problem, states=20), solve(problem, states=2000)
    for plan in (few, many):
        assert plan.solver == "exact, ties not proven"
        assert plan.status == "OPTIMAL"
        assert faults_of_single(problem, plan) == ()
    assert sums(many) <= sums(few)
    assert solve(problem, states=20) == few


def test_a_solver_without_time_gives_the_best_verified_plan_and_no_exception() -> None:
    problem = hard(40)
    plan = solve(problem, solver="cbc", time_limit_seconds=0.0)
    assert plan.status == "OPTIMAL"
    assert faults_of_single(problem, plan) == ()


def test_no_ptks_need_nothing() -> None:
    plan = solve(Problem(0, None, ()))
    assert (plan.status, plan.total_samples, plan.assignments) == ("OPTIMAL", 0, ())
    assert faults_of_single(Problem(0, None, ()), plan) == ()


def test_numbers_at_the_limits_do_not_overflow() -> None:
    most = (1 << 62) - 1
    ptks = tuple(
        PtkOptions(f"p{i:03}", (Option("a", most // 1000, 10**14), Option("b", most, 10**14 - 1)))
        for i in range(1000)
    )
    plan = solve(Problem(most, 10**14, ptks))
    assert plan.total_samples == 10**14
    assert faults_of_single(Problem(most, 10**14, ptks), plan) == ()
