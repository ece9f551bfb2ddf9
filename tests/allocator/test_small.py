"""Ten thousand small problems, each against all there is to try."""

from __future__ import annotations

import pytest

from allocator.shelf.fig4 import solve_fig4
from allocator.shelf.solve import solve_shelf
from allocator.strip.solve import solve_strip
from allocator.verify import faults, faults_of_shelf
from tests.allocator.small import best_shelf, best_strip, small_problems

SEEDS, EACH = 20, 500


@pytest.mark.parametrize("seed", range(SEEDS))
def test_plans_are_what_brute_force_finds(seed: int) -> None:
    for problem in small_problems(seed, EACH):
        shelf, strip = solve_shelf(problem), solve_strip(problem)
        assert faults_of_shelf(problem, shelf) == faults(problem, strip) == ()
        assert (shelf.total_samples, strip.total_samples) == (
            best_shelf(problem),
            best_strip(problem),
        ), problem
        assert shelf.status == ("INFEASIBLE" if shelf.total_samples is None else "OPTIMAL")
        assert strip.status == ("INFEASIBLE" if strip.total_samples is None else "OPTIMAL")


@pytest.mark.parametrize("solver", ["cbc", "highs"])
def test_the_paper_s_program_agrees(solver: str) -> None:
    for problem in small_problems(99, 12):
        plan = solve_fig4(problem, solver=solver)
        assert faults_of_shelf(problem, plan) == ()
        assert plan.total_samples == best_shelf(problem), problem
