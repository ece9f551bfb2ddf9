from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from allocator.newcomer import admit, nearest_target
from allocator.problem import Option, Problem, PtkOptions
from allocator.single import solve
from allocator.verify import faults_of_single
from ptklib.errors import InvalidInput
from tests.allocator.instances import taxi

LEVELS = (1, 2, 5, 10, 20)


def options_of(target: Fraction) -> tuple[Option, ...]:
    """A loss that needs 100 / (target * level) samples, where that product is a tenth or more."""
    reached = [level for level in LEVELS if target * level >= Fraction(1, 10)]
    return tuple(Option(str(level), level, int(100 / (target * level)) + 1) for level in reached)


def room(capacity: int, n_max: int | None) -> Problem:
    return Problem(capacity, n_max, (PtkOptions("old", (Option("1", 10, 100), Option("2", 15, 50))),))


def test_a_newcomer_that_fits_is_admitted() -> None:
    plan = admit(room(30, None), "new", options_of, target="0.1", loosest=1)
    assert plan.status == "OPTIMAL"
    assert {one.id for one in plan.assignments} == {"new", "old"}


@settings(max_examples=150, deadline=None)
@given(st.integers(10, 20), st.integers(100, 2000), st.integers(1, 99), st.integers(1, 100))
def test_the_nearest_target_fits_and_the_step_before_does_not(
    capacity: int, n_max: int, target: int, loosest: int
) -> None:
    problem = room(capacity, n_max)
    asked, last, step = Fraction(target, 1000), Fraction(max(target, loosest), 100), Fraction(1, 1000)

    def beside(at: Fraction) -> Problem:
        return replace(problem, ptks=(*problem.ptks, PtkOptions("new", options_of(at))))

    def fits(at: Fraction) -> bool:
        return solve(beside(at)).status == "OPTIMAL"

    found = nearest_target(problem, "new", options_of, target=asked, loosest=last, step=step)
    plan = admit(problem, "new", options_of, target=asked, loosest=last, step=step)
    together = problem if plan.status == "REJECTED" else beside(asked)
    assert faults_of_single(together, plan) == ()
    if found is None:
        assert not fits(last)
        assert plan.status == "REJECTED"
    elif found == asked:
        assert fits(asked)
        assert plan.status == "OPTIMAL"
    else:
        assert fits(found)
        assert not fits(found - step)
        assert plan.status == "REJECTED"
        assert plan.explanation is not None
        first = plan.explanation.changes[0]
        assert (first.kind, first.ptk) == ("target", "new")
        assert Fraction(str(first.value)) == found


def test_a_score_is_loosened_downwards() -> None:
    def of_score(target: Fraction) -> tuple[Option, ...]:
        return (Option("1", int(target * 100), 10),)

    found = nearest_target(room(60, None), "new", of_score, target="0.9", loosest="0.1", step="0.01")
    assert found == Fraction(1, 2)


def test_the_others_come_first() -> None:
    plan = admit(taxi(10**9 - 1), "new", lambda target: [Option("1", 0, 1)], target="0.1", loosest=1)
    assert plan.status == "INFEASIBLE"
    assert plan.explanation is not None
    assert "13 PTKs" in plan.explanation.text


def test_what_else_would_help_is_said_too() -> None:
    plan = admit(taxi(), "new", lambda target: [Option("1", 10**7, 5)], target="0.1", loosest="0.2")
    assert plan.status == "REJECTED"
    assert plan.explanation is not None
    assert plan.explanation.text.startswith("new does not fit even at its loosest target 0.2.")
    assert ("capacity", 1_010_000_000) in [(one.kind, one.value) for one in plan.explanation.changes]
    assert all(one.ptk != "new" for one in plan.explanation.changes)


@pytest.mark.parametrize("step", [0, "1e-9"])
def test_steps_that_lead_nowhere_are_refused(step: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        nearest_target(taxi(), "new", lambda target: [], target="0.1", loosest=1, step=step)
    assert caught.value.reason == "TARGET_STEPS_INVALID"


def test_a_newcomer_needs_a_name_of_its_own() -> None:
    with pytest.raises(InvalidInput) as caught:
        admit(room(30, None), "old", options_of, target="0.1", loosest=1)
    assert caught.value.reason == "PROBLEM_DUPLICATE_ID"
