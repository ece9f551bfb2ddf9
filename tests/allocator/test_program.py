"""The integer program behind PuLP: its answers are only used when integers confirm them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from hypothesis import given, settings

from allocator.problem import Problem
from allocator.single import program
from allocator.single.exact import least_exposure
from allocator.single.program import available, choose
from allocator.single.solve import solve
from allocator.verify import faults_of_single
from ptklib.errors import InvalidInput
from tests.allocator.instances import brute_force, problems, taxi


@settings(max_examples=25, deadline=None)
@given(problems())
def test_cbc_alone_meets_the_first_three_objectives(problem: Problem) -> None:
    exposure, best = least_exposure(problem), brute_force(problem)
    if exposure and best is not None:
        found = choose(problem, exposure, solver="cbc", time_limit_seconds=10)
        assert found.options is not None
        samples = [one.samples for one in found.options]
        assert (max(samples), sum(samples), sum(one.demand for one in found.options)) == best[0][:3]
        assert found.proved


def test_cbc_is_there_and_solves_the_taxi_ptks() -> None:
    assert "cbc" in available()
    plan = solve(taxi(), solver="cbc")
    assert plan.total_samples == 357_009
    assert faults_of_single(taxi(), plan) == ()


@pytest.mark.parametrize("name", ["simplex", "", "COIN"])
def test_an_unknown_solver_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="must be one that is installed") as caught:
        solve(taxi(), solver=name)
    assert caught.value.reason == "SOLVER_UNAVAILABLE"


def test_without_pulp_named_solvers_are_refused_and_the_exact_one_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = importlib.import_module

    def without(name: str) -> Any:
        if name == "pulp":
            raise ImportError(name)
        return real(name)

    monkeypatch.setattr(importlib, "import_module", without)
    assert available() == ()
    assert solve(taxi()).total_samples == 357_009
    with pytest.raises(InvalidInput) as caught:
        solve(taxi(), solver="cbc")
    assert caught.value.reason == "SOLVER_UNAVAILABLE"


class Broken:
    """A solver that dies, or that answers nonsense."""

    def __init__(self, answer: float | None) -> None:
        self.answer = answer

    def available(self) -> bool:
        return True

    def actualSolve(self, model: Any, **_: Any) -> int:  # noqa: N802
        if self.answer is None:
            raise RuntimeError("licence")
        for variable in model.variables():
            variable.varValue = self.answer
        return 1

    solve = actualSolve


@pytest.mark.parametrize("answer", [None, 0.0, 0.4, 1.0])
def test_a_solver_that_dies_or_lies_costs_nothing(
    answer: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "solver_of", lambda name, seconds: Broken(answer))
    plan = solve(taxi(), solver="gurobi")
    assert plan.solver == "gurobi, ties not proven"
    assert plan.total_samples == 357_009
    assert faults_of_single(taxi(), plan) == ()
