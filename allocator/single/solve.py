"""Plans with one partition: the program of `ptk` Fig. 4 with K = 1, every PTK in the same slice of
the window.

One option per PTK, demands within the capacity together, samples within n_max. The objectives in
their order:

1. the largest samples (exposure);
2. the sum of samples;
3. the sum of demands;
4. the demands in the order of ids, the first PTK's first; options that are equal in both numbers:
   the one listed first.

The default solver ``exact`` meets all four with integers alone, hence deterministically on any
machine. ``cbc``, ``highs`` and ``gurobi`` solve the same program through PuLP and are there for
comparison and for what is to come: they meet the first three up to their tolerances, and their
answer is used only if it fits in integers and is no worse than the greedy plan. The exposure is
certified by dominance in every case, so that the status never depends on a solver or a time limit.

Reason: SOLVER_UNAVAILABLE (a solver that is not known or not installed).
"""

from __future__ import annotations

from collections.abc import Callable

from allocator.plan import Assignment, Partition, Plan
from allocator.problem import Option, Problem
from allocator.single.exact import STATES, best_choice, greedy_choice, least_exposure
from allocator.single.explain import explain
from allocator.single.program import choose, require

__all__ = ["EXACT", "solve"]

EXACT = "exact"


def solve(
    problem: Problem,
    *,
    solver: str = EXACT,
    time_limit_seconds: float = 10.0,
    states: int = STATES,
    show: Callable[[int], str] = str,
) -> Plan:
    """The best plan with one partition; INFEASIBLE with an explanation when there is none.

    ``solver``: exact, cbc, highs or gurobi. ``time_limit_seconds`` bounds those of PuLP, ``states``
    (undominated sums) the exact one; when either is used up the plan is the best verified one, of
    least exposure all the same, and ``Plan.solver`` says that its ties are not proven. ``show``
    prints amounts in explanations.
    """
    if solver != EXACT:
        require(solver)
    exposure = least_exposure(problem)
    if exposure is None:
        return Plan(
            "INFEASIBLE",
            None,
            None,
            None,
            (),
            (),
            solver=EXACT,
            explanation=explain(problem, show=show),
        )
    if not problem.ptks:
        return Plan("OPTIMAL", 0, 0, 0.0, (), (), solver=EXACT)
    if solver == EXACT:
        choice = best_choice(problem, exposure, states=states)
        name = EXACT if choice.proved else f"{EXACT}, ties not proven"
        return _plan(problem, exposure, choice.options, name, 0.0)
    start = greedy_choice(problem, exposure).options
    program_solution = choose(
        problem, exposure, solver=solver, time_limit_seconds=time_limit_seconds
    )
    options = (
        start
        if program_solution.options is None
        else min(program_solution.options, start, key=_key)
    )
    name = (
        program_solution.solver
        if program_solution.proved
        else f"{program_solution.solver}, ties not proven"
    )
    return _plan(problem, exposure, options, name, program_solution.seconds)


def _key(options: tuple[Option, ...]) -> tuple[int, int, int]:
    samples = [option.samples for option in options]
    return max(samples), sum(samples), sum(option.demand for option in options)


def _plan(
    problem: Problem, exposure: int, options: tuple[Option, ...], solver: str, seconds: float
) -> Plan:
    pairs = sorted(
        zip((ptk.id for ptk in problem.ptks), options, strict=True), key=lambda pair: pair[0]
    )
    demand = sum(option.demand for option in options)
    assert demand <= problem.capacity
    assert max(option.samples for option in options) == exposure
    return Plan(
        status="OPTIMAL",
        total_samples=exposure,
        lower_bound=exposure,
        gap=0.0,
        partitions=(
            Partition(samples=exposure, demand=demand, members=tuple(name for name, _ in pairs)),
        ),
        assignments=tuple(Assignment.of(name, option, (0,)) for name, option in pairs),
        solver=solver,
        seconds=seconds,
    )
