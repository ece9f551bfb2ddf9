"""The verifier notices every way to spoil a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from allocator.plan import Assignment, Explanation, Partition, Plan
from allocator.problem import Option, Problem, PtkOptions
from allocator.single.solve import solve
from allocator.verify import faults, faults_of_single
from ptklib.errors import InvalidInput
from tests.allocator.instances import problems

PROBLEM = Problem(
    10,
    100,
    (
        PtkOptions("a", (Option("1", 3, 50), Option("2", 6, 20))),
        PtkOptions("b", (Option("1", 4, 60), Option("2", 9, 10))),
    ),
)
PLAN = solve(PROBLEM)
FIRST, SECOND = PLAN.assignments
(WHOLE,) = PLAN.partitions


def test_the_plan_itself_is_sound() -> None:
    assert faults_of_single(PROBLEM, PLAN) == ()
    assert (FIRST.level, SECOND.level, WHOLE.samples) == ("2", "1", 60)


def spoiled(
    first: dict[str, Any] | None = None, whole: dict[str, Any] | None = None, **plan: Any
) -> Plan:
    changed: dict[str, Any] = {}
    if first:
        changed["assignments"] = (replace(FIRST, **first), SECOND)
    if whole:
        changed["partitions"] = (replace(WHOLE, **whole),)
    return replace(PLAN, **{**changed, **plan})


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (spoiled(status="GREAT"), "unknown"),
        (spoiled(assignments=(FIRST,)), "b has no assignment"),
        (spoiled(assignments=(FIRST, FIRST, SECOND)), "a is assigned 2 times"),
        (spoiled(assignments=(FIRST, SECOND, replace(FIRST, id="c"))), "c is not in the problem"),
        (spoiled({"level": "7"}), "a has no option"),
        (spoiled({"demand": 5}), "a has no option"),
        (spoiled({"samples": 19}), "a has no option"),
        (spoiled({"partitions": ()}), "none, or one of them twice"),
        (spoiled({"partitions": (0, 0)}), "none, or one of them twice"),
        (spoiled({"partitions": (1,)}), "does not have"),
        (spoiled({"partitions": (-1,)}), "does not have"),
        (
            spoiled(whole={"samples": 59}, total_samples=59, lower_bound=59),
            "hold fewer than its 60 samples",
        ),
        (spoiled(whole={"members": ("a",)}), "lists other members"),
        (spoiled(whole={"demand": 9}), "its members demand 10"),
        (
            spoiled(partitions=(WHOLE, Partition(5, 0, ())), total_samples=65, lower_bound=65),
            "partition 1 is empty",
        ),
        (spoiled(total_samples=61, lower_bound=61), "says it holds 61"),
        (spoiled(whole={"samples": 101}, total_samples=101, lower_bound=101), "of at most 100"),
        (spoiled(lower_bound=None), "no lower bound"),
        (spoiled(gap=None), "no gap"),
        (spoiled(lower_bound=61), "not between"),
        (spoiled(lower_bound=30), "the gap 0.0 should be 1.0"),
        (spoiled(lower_bound=30, gap=1.0), "does not go with"),
        (spoiled(status="FEASIBLE"), "does not go with"),
        (spoiled(explanation=Explanation("why")), "explains"),
        (spoiled(status="INFEASIBLE"), "assigns something"),
        (replace(PLAN, status="REJECTED", assignments=(), partitions=()), "has numbers"),
        (Plan("INFEASIBLE", None, None, None, (), (), "x"), "does not say why"),
    ],
)
def test_a_spoiled_plan_is_noticed(plan: Plan, says: str) -> None:
    assert any(says in fault for fault in faults(PROBLEM, plan)), faults(PROBLEM, plan)


def test_too_much_demand_is_noticed() -> None:
    found = faults(replace(PROBLEM, capacity=9), PLAN)
    assert found == ("partition 0 demands 10 of a capacity of 9",)


def test_false_claims_are_noticed() -> None:
    why = Explanation("because")
    nothing = Plan("INFEASIBLE", None, None, None, (), (), "x", 0.0, why)
    assert faults_of_single(PROBLEM, nothing) == (
        "the plan says infeasible, and the cheapest options fit",
    )
    larger = replace(PROBLEM, capacity=15)
    assert faults(larger, PLAN) == ()
    assert faults_of_single(larger, PLAN) == (
        "the plan says 60 samples are the fewest, and fewer suffice",
    )
    assert faults_of_single(PROBLEM, replace(nothing, status="REJECTED")) == ()


def test_plans_with_several_partitions_and_ptks_across_them_are_understood() -> None:
    plan = Plan(
        "FEASIBLE",
        80,
        60,
        20 / 60,
        (Partition(20, 9, ("a", "b")), Partition(60, 4, ("b",))),
        (Assignment("a", "2", 6, 20, (0,)), Assignment("b", "1", 4, 60, (0, 1))),
        "x",
    )
    assert faults(PROBLEM, plan) == ("partition 0 says it demands 9, its members demand 10",)
    plan = replace(plan, partitions=(Partition(20, 10, ("a", "b")), Partition(60, 4, ("b",))))
    assert faults(PROBLEM, plan) == ()
    assert "partitions, not one" in faults_of_single(PROBLEM, plan)[0]


@given(problems())
def test_the_json_form_reads_back(problem: Problem) -> None:
    plan = solve(problem)
    assert Plan.from_json(plan.as_json()) == plan


@pytest.mark.parametrize(
    "body",
    [
        None,
        {},
        {**PLAN.as_json(), "more": 1},
        {**PLAN.as_json(), "status": "FINE"},
        {**PLAN.as_json(), "assignments": [{"id": "a"}]},
        {**PLAN.as_json(), "partitions": [{"samples": 1, "demand": 1, "members": "ab"}]},
    ],
)
def test_what_is_no_plan_is_refused(body: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        Plan.from_json(body)
    assert caught.value.reason == "PLAN_INVALID"
