"""One entry: statuses, explanations, ties, limits, determinism."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from allocator.plan import Change
from allocator.problem import MAX_AMOUNT, MAX_SAMPLES, Option, Problem, PtkOptions
from allocator.solving.solve import METHODS, solve
from allocator.verify import faults
from ptklib.errors import InvalidInput
from tests.allocator.families import FAMILIES, make
from tests.allocator.instances import taxi


def ptk(name: str, *options: tuple[int, int]) -> PtkOptions:
    return PtkOptions(name, tuple(Option(str(j), d, n) for j, (d, n) in enumerate(options)))


HUGE = ptk("a", (MAX_AMOUNT, MAX_SAMPLES))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("problem", "status", "total"),
    [
        (Problem(0, None, ()), "OPTIMAL", 0),
        (Problem(7, 1, ()), "OPTIMAL", 0),
        (Problem(0, None, (ptk("a", (1, 1)),)), "INFEASIBLE", None),
        (Problem(0, None, (ptk("a", (0, 9)), ptk("b", (0, 4)))), "OPTIMAL", 9),
        (Problem(5, None, (ptk("a"),)), "INFEASIBLE", None),
        (Problem(5, None, (ptk("a", (6, 1)),)), "INFEASIBLE", None),
        (Problem(5, 3, (ptk("a", (1, 4)),)), "INFEASIBLE", None),
        (Problem(5, 3, (ptk("a", (5, 2)), ptk("b", (5, 2)))), "INFEASIBLE", None),
        (Problem(5, 4, (ptk("a", (5, 2)), ptk("b", (5, 2)))), "OPTIMAL", 4),
        # Options that are equal, in another order, or dominated.
        (
            Problem(5, None, (ptk("a", (5, 2), (5, 2), (4, 2), (3, 9)), ptk("b", (1, 1)))),
            "OPTIMAL",
            2,
        ),
        (Problem(MAX_AMOUNT, None, (HUGE, replace(HUGE, id="b"))), "OPTIMAL", 2 * MAX_SAMPLES),
        (Problem(MAX_AMOUNT, MAX_SAMPLES, (HUGE, replace(HUGE, id="b"))), "INFEASIBLE", None),
    ],
)
def test_problems_at_the_edges_have_the_documented_status(
    method: str, problem: Problem, status: str, total: int | None
) -> None:
    plan = solve(problem, method=method)
    assert (plan.status, plan.total_samples) == (status, total)
    assert faults(problem, plan) == ()
    if total is None:
        assert plan.explanation is not None
        assert plan.explanation.text.startswith("There is no plan: ")


def changes(problem: Problem, method: str = "strip") -> dict[str, Change]:
    told = solve(problem, method=method).explanation
    assert told is not None
    return {one.kind: one for one in told.changes}


def check(problem: Problem, found: dict[str, Change], method: str) -> None:
    """Every change is enough, and those with a value are the least."""
    for kind, one in found.items():
        assert one.text.endswith(".")
        value = one.value if isinstance(one.value, int) else 0
        if kind == "capacity":
            assert solve(replace(problem, capacity=value), method=method).total_samples is not None
            assert solve(replace(problem, capacity=value - 1), method=method).total_samples is None
        elif kind == "n_max":
            assert solve(replace(problem, n_max=value), method=method).total_samples is not None
            assert solve(replace(problem, n_max=value - 1), method=method).total_samples is None
        elif kind == "remove":
            left = tuple(each for each in problem.ptks if each.id != one.ptk)
            assert solve(replace(problem, ptks=left), method=method).total_samples is not None
        else:
            assert kind == "option"
            rows = tuple(
                PtkOptions(each.id, (*each.options, Option("new", value, 1)))
                if each.id == one.ptk
                else each
                for each in problem.ptks
            )
            assert solve(replace(problem, ptks=rows), method=method).total_samples is not None


@pytest.mark.parametrize("method", ["strip", "shelf"])
def test_explanations_name_changes_that_help(method: str) -> None:
    tight = Problem(10, 20, tuple(ptk(name, (5, 20), (9, 19)) for name in "abc"))
    found = changes(tight, method)
    assert {"capacity", "n_max", "remove"} <= set(found)
    check(tight, found, method)
    lost = Problem(10, None, (ptk("a", (3, 4)), ptk("b", (11, 4))))
    found = changes(lost, method)
    assert set(found) == {"capacity", "option", "remove"}
    assert found["capacity"].value == 11
    check(lost, found, method)
    none = Problem(10, None, (ptk("a"), ptk("b")))
    assert changes(none, method) == {}


def test_of_equal_plans_the_one_with_fewest_partitions_is_taken() -> None:
    plan = solve(taxi())
    assert (plan.status, plan.total_samples, len(plan.partitions)) == ("OPTIMAL", 357_009, 1)


def test_of_equal_plans_the_one_that_changes_least_is_taken() -> None:
    # Two ways to be one partition of ten: either PTK may be the dear one.
    problem = Problem(3, None, (ptk("a", (1, 10), (2, 8)), ptk("b", (1, 10), (2, 8))))
    fresh = solve(problem)
    other = {"a": "1", "b": "0"} if fresh.assignments[0].level == "0" else {"a": "0", "b": "1"}
    current = replace(
        fresh,
        partitions=(replace(fresh.partitions[0], demand=3),),
        assignments=tuple(
            replace(
                one,
                level=other[one.id],
                demand=1 + int(other[one.id]),
                samples=10 - 2 * int(other[one.id]),
            )
            for one in fresh.assignments
        ),
    )
    assert faults(problem, current) == ()
    again = solve(problem, current=current)
    assert {one.id: one.level for one in again.assignments} == other


@pytest.mark.parametrize("family", sorted(FAMILIES))
@pytest.mark.parametrize("method", ["strip", "shelf"])
def test_one_second_is_enough_for_a_verified_plan(method: str, family: str) -> None:
    problem = make(family, 150, 4)
    plan = solve(problem, method=method, time_limit_seconds=1)
    assert plan.total_samples is not None
    assert faults(problem, plan) == ()


def test_a_clock_that_runs_out_is_said() -> None:
    problem = make("noisy", 40, 0)
    ticks = iter(range(10**6))
    plan = solve(problem, time_limit_seconds=3, clock=lambda: float(next(ticks)))
    assert faults(problem, plan) == ()
    assert plan.solver == "strip, cut short by the clock"
    assert plan.seconds > 0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"method": "best"}, "METHOD_UNKNOWN"),
        ({"solver": "cplex"}, "SOLVER_UNAVAILABLE"),
        ({"time_limit_seconds": 0.0}, "TIME_LIMIT_INVALID"),
        ({"time_limit_seconds": float("nan")}, "TIME_LIMIT_INVALID"),
    ],
)
def test_wrong_requests_are_refused(wrong: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        solve(Problem(1, None, ()), **wrong)  # type: ignore[arg-type]
    assert caught.value.reason == reason


_RUN = """
import json, sys
from tests.allocator.families import make
from allocator.solving.solve import solve
for family, ptks in (("noisy", 20), ("distinct", 20), ("heavy", 90)):
    for method in ("strip", "shelf"):
        plan = solve(make(family, ptks, 1), method=method, time_limit_seconds=0.6)
        print(json.dumps(plan.as_json()))
"""


def test_two_runs_with_other_thread_counts_and_hash_seeds_give_the_same_bytes() -> None:
    outputs = []
    for threads, seed in (("1", "1"), ("4", "2")):
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "HIGHS_THREADS")
        settings = {**os.environ, **dict.fromkeys(names, threads), "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", _RUN],
            env=settings,
            capture_output=True,
            text=True,
            timeout=300,
            check=True,
        )
        outputs.append(done.stdout)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 6
    assert json.loads(outputs[0].splitlines()[0])["seconds"] == 0.0


def test_the_order_of_ptks_does_not_matter() -> None:
    problem = make("gaps", 25, 3)
    other = replace(problem, ptks=tuple(reversed(problem.ptks)))
    for method in ("strip", "shelf"):
        assert solve(problem, method=method, time_limit_seconds=0.5) == solve(
            other, method=method, time_limit_seconds=0.5
        )
