"""The integer program of one partition, for a solver behind PuLP.

With x_ij = 1 when PTK i takes option j, and z the exposure:

    minimise z        subject to  sum_j x_ij = 1  and  z >= sum_j n_ij x_ij  for every PTK i,   sum_ij d_ij x_ij <= capacity;
    then sum n_ij x_ij  over the options with n_ij <= z;   then sum d_ij x_ij  with the sum of samples kept.

Solvers work in floating point, so nothing they say is believed: x is rounded, and a stage counts
only if the integers fit the capacity and do not undo the stage before. The first stage must find
the exposure that dominance has proven, or the solver has not proved anything.

Works with PuLP 4 and with 3.3, the last line for Python 3.11. Reason: SOLVER_UNAVAILABLE.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Any

from allocator.problem import Option, Problem
from ptklib.errors import InvalidInput

__all__ = ["SOLVERS", "ProgramSolution", "available", "choose", "require", "solver_of"]

SOLVERS = ("cbc", "highs", "gurobi")
_NAMES = {"cbc": "COIN_CMD", "highs": "HiGHS", "gurobi": "GUROBI"}
# A solve that took most of its time may have been cut short; the versions of PuLP say so in
# different ways.
_FINISHED = 0.8


@dataclass(frozen=True)
class ProgramSolution:
    """What a solver found: options in the order of the problem, or None; ``proved``: it finished
    every stage.
    """

    options: tuple[Option, ...] | None
    proved: bool
    solver: str
    seconds: float


def available() -> tuple[str, ...]:
    """The solvers that answer on this machine."""
    return tuple(name for name in SOLVERS if solver_of(name, 1.0) is not None)


def require(name: str) -> None:
    """Refuse a solver that is unknown or not installed (SOLVER_UNAVAILABLE)."""
    if name not in SOLVERS or solver_of(name, 1.0) is None:
        there = ", ".join(("exact", *available()))
        raise InvalidInput(
            "SOLVER_UNAVAILABLE",
            f"solver must be one that is installed ({there}), got {name!r}: "
            "use 'exact', or install pulp[cbc] for cbc, highspy for highs, gurobipy for "
            "gurobi",
            solver=name,
        )


def choose(
    problem: Problem, exposure: int, *, solver: str, time_limit_seconds: float
) -> ProgramSolution:
    """The solver's choice.

    ``exposure`` is what dominance has proven. Never raises because the solver gave up.
    """
    require(solver)
    rows = [
        [
            option
            for option in ptk.options
            if problem.n_max is None or option.samples <= problem.n_max
        ]
        for ptk in problem.ptks
    ]
    limit = max(0.1, time_limit_seconds / 3)
    options, seconds = _stage(rows, problem, solver, limit, "exposure", None)
    finished = seconds < _FINISHED * limit
    if options is None or max(option.samples for option in options) != exposure:
        return ProgramSolution(None, False, solver, seconds)
    rows = [[option for option in row if option.samples <= exposure] for row in rows]
    for goal in ("samples", "demand"):
        most = None if goal == "samples" else sum(option.samples for option in options)
        better, spent = _stage(rows, problem, solver, limit, goal, most)
        seconds += spent
        finished &= spent < _FINISHED * limit
        if better is None or (most is not None and sum(option.samples for option in better) > most):
            return ProgramSolution(options, False, solver, seconds)
        options = better
    return ProgramSolution(options, finished, solver, seconds)


def _stage(
    rows: Sequence[Sequence[Option]],
    problem: Problem,
    name: str,
    seconds: float,
    goal: str,
    most: int | None,
) -> tuple[tuple[Option, ...] | None, float]:
    """One solve; (options that fit, seconds), or (None, seconds)."""
    pulp = importlib.import_module("pulp")
    model = pulp.LpProblem("plan", pulp.LpMinimize)
    chosen = [
        [model.add_variable(f"x_{i}_{j}", cat="Binary") for j in range(len(row))]
        for i, row in enumerate(rows)
    ]
    flat = [
        (x, option)
        for xs, row in zip(chosen, rows, strict=True)
        for x, option in zip(xs, row, strict=True)
    ]
    # Small coefficients are kinder to floating point.
    unit = gcd(*(option.demand for _, option in flat)) or 1
    if goal == "exposure":
        top = model.add_variable("z", 0, max(option.samples for _, option in flat))
        model.setObjective(top + 0)
        for xs, row in zip(chosen, rows, strict=True):
            model.addConstraint(
                pulp.lpSum(option.samples * x for x, option in zip(xs, row, strict=True)) - top <= 0
            )
    else:
        model.setObjective(
            pulp.lpSum(
                (option.samples if goal == "samples" else option.demand // unit) * x
                for x, option in flat
            )
        )
    for xs in chosen:
        model.addConstraint(pulp.lpSum(xs) == 1)
    model.addConstraint(
        pulp.lpSum(option.demand // unit * x for x, option in flat) <= problem.capacity // unit
    )
    if most is not None:
        model.addConstraint(pulp.lpSum(option.samples * x for x, option in flat) <= most)
    engine = solver_of(name, seconds)
    try:
        answer = model.solve(engine)
    except Exception:
        # A licence that refuses, a process that dies: the solver gave up, and the caller has its
        # own plan.
        return None, 0.0
    spent = float(getattr(answer, "time", None) or getattr(model, "solutionTime", None) or 0.0)
    options = []
    for xs, row in zip(chosen, rows, strict=True):
        values = [x.value() or 0.0 for x in xs]
        if sum(value > 0.5 for value in values) != 1:
            return None, spent
        options.append(row[values.index(max(values))])
    fits = sum(option.demand for option in options) <= problem.capacity
    return (tuple(options) if fits else None), spent


def solver_of(name: str, seconds: float) -> Any:
    """PuLP's object for a solver, or None when it is not there."""
    try:
        pulp = importlib.import_module("pulp")
        kind = getattr(pulp, _NAMES[name])
        solver = kind(msg=False, timeLimit=seconds)
        if name == "cbc" and not solver.available():
            # PuLP 3 carries CBC inside; PuLP 4 finds the one of cbcbox by itself.
            solver = kind(msg=False, timeLimit=seconds, path=pulp.PULP_CBC_CMD.pulp_cbc_path)
        return solver if solver.available() else None
    except (ImportError, AttributeError):
        return None
    except Exception:
        # Some wrappers raise when their library or licence is missing.
        return None
