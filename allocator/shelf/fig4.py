"""The integer program of `ptk` Fig. 4, literally: the reference for shelf plans. Slow, obviously
right.

With x_ijk = 1 when PTK i trains in partition k with option j, and z_k the size of partition k:

    minimise sum_k z_k   subject to   z_k >= sum_j n_ij x_ijk  for all i, k,   sum_ij d_ij x_ijk <= capacity  for all k,
    sum_jk x_ijk = 1  for all i,   x binary.

The paper raises K until there is a plan and stops there (``first_feasible``). That is not the best
over all K: more partitions may hold fewer samples, because their members can afford dearer options.
So without it K goes on rising until no plan with more partitions can be better: with K of them in
use, each has a member of its own, and their fewest samples add up.

CBC and Gurobi are asked through PuLP, HiGHS through SciPy where PuLP has none. Nothing they say is
believed: x is rounded, the plan is made of integers, and it counts only if they fit. Reason:
SOLVER_UNAVAILABLE.
"""

from __future__ import annotations

import importlib
from math import gcd
from typing import Any

import numpy as np

from allocator.effort import Clock
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.single.program import require, solver_of
from allocator.strip.area import area_bound
from allocator.strip.branching import PackedOptions
from allocator.strip.building import as_plan, no_plan, nothing_asked, unsettled
from allocator.strip.packing import Packed
from allocator.table import Ints, OptionTable, table_of, why_no_table

__all__ = ["NAME", "solve_fig4"]

NAME = "fig4"


def solve_fig4(
    problem: Problem,
    *,
    partitions: int | None = None,
    first_feasible: bool = False,
    solver: str = "cbc",
    time_limit_seconds: float = 60.0,
    clock: Clock | None = None,
) -> Plan:
    """The best plan with at most ``partitions``; without it the best over all numbers of them, or
    the paper's first feasible.

    ``time_limit_seconds`` is for each solve, and for all of them together where there is a
    ``clock``. A solve that is cut short leaves the best plan found; its bound is then that of the
    areas.
    """
    if solver != "highs":
        require(solver)
    name = f"{NAME}, {solver}"
    table = table_of(problem)
    if table is None:
        return no_plan(why_no_table(problem), name)
    if not len(table):
        return nothing_asked(name)
    bound = area_bound(table)
    most = problem.n_max
    if most is not None and bound > most:
        return no_plan(f"every plan holds at least {bound} samples, and n_max is {most}", name)
    deadline = None if clock is None else clock() + time_limit_seconds
    best: PackedOptions | None = None
    proved, finished = True, False
    for count in range(1, len(table) + 1) if partitions is None else (partitions,):
        left = time_limit_seconds if clock is None or deadline is None else deadline - clock()
        if best is not None and (first_feasible or _enough(table, count, best.packed.total)):
            finished = True
            break
        if left <= 0:
            proved = False
            break
        packed_options, sure = _solved(table, count, solver, left)
        proved &= sure
        if packed_options is not None and (
            best is None or packed_options.packed.total < best.packed.total
        ):
            best = packed_options
    finished = finished or proved
    if best is None:
        if proved and partitions is not None:
            return no_plan(f"the PTKs do not fit into {partitions} partitions", name)
        best = PackedOptions(np.zeros(len(table), dtype=np.int64), _alone(table))
        proved = False
    total = best.packed.total
    bound = total if proved and finished else min(bound, total)
    if most is not None and total > most:
        if proved:
            return no_plan(
                f"every plan of this form holds at least {total} samples, and n_max is {most}", name
            )
        return unsettled(problem, total, bound, name)
    return as_plan(table, best, bound, name)


def _enough(table: OptionTable, count: int, total: int) -> bool:
    """True when no plan that uses ``count`` partitions or more holds fewer samples."""
    fewest = sorted(min(option.samples for option in row) for row in table.rows)
    return count > len(fewest) or fewest[-1] + sum(fewest[: count - 1]) >= total


def _alone(table: OptionTable) -> Packed:
    """Every PTK in a partition of its own, with its first option."""
    return Packed(table.samples[:, 0].copy(), np.eye(len(table), dtype=bool))


def _solved(
    table: OptionTable, count: int, solver: str, seconds: float
) -> tuple[PackedOptions | None, bool]:
    """The best plan with at most ``count`` partitions or None, and whether the solver finished."""
    engine = solver_of(solver, seconds)
    if engine is None:
        values, sure = _by_scipy(table, count, seconds)
    else:
        values, sure = _by_pulp(table, count, engine)
    if values is None:
        return None, sure
    chosen = np.argwhere(values > 0.5)
    if len(chosen) != len(table) or len(np.unique(chosen[:, 0])) != len(table):
        return None, False
    choice: Ints = np.zeros(len(table), dtype=np.int64)
    members = np.zeros((count, len(table)), dtype=bool)
    for i, j, k in chosen:
        choice[i] = j
        members[k, i] = True
    rows = np.arange(len(table))
    demands, samples = table.demands[rows, choice], table.samples[rows, choice]
    if any(sum(map(int, demands[row])) > table.capacity for row in members):
        return None, False
    used = members[members.any(axis=1)]
    widths = np.array([samples[row].max() for row in used], dtype=np.int64)
    return PackedOptions(choice, Packed(widths, used)), sure


def _by_pulp(
    table: OptionTable, count: int, engine: Any
) -> tuple[np.ndarray[Any, np.dtype[np.float64]] | None, bool]:
    pulp = importlib.import_module("pulp")
    model = pulp.LpProblem("fig4", pulp.LpMinimize)
    unit = gcd(table.capacity, *map(int, np.unique(table.demands))) or 1
    x = {
        (i, j, k): model.add_variable(f"x_{i}_{j}_{k}", cat="Binary")
        for i, row in enumerate(table.rows)
        for j in range(len(row))
        for k in range(count)
    }
    z = [model.add_variable(f"z_{k}", 0) for k in range(count)]
    model.setObjective(pulp.lpSum(z))
    for i, row in enumerate(table.rows):
        model.addConstraint(
            pulp.lpSum(x[i, j, k] for j in range(len(row)) for k in range(count)) == 1
        )
        for k in range(count):
            model.addConstraint(
                pulp.lpSum(option.samples * x[i, j, k] for j, option in enumerate(row)) - z[k] <= 0
            )
    for k in range(count):
        demands = (
            option.demand // unit * x[i, j, k]
            for i, row in enumerate(table.rows)
            for j, option in enumerate(row)
        )
        model.addConstraint(pulp.lpSum(demands) <= table.capacity // unit)
    try:
        model.solve(engine)
    except Exception:
        # A licence that refuses, a process that dies: the solver gave up.
        return None, False
    infeasible = model.status == pulp.LpStatusInfeasible
    if model.status != pulp.LpStatusOptimal:
        return None, infeasible
    values = np.zeros((len(table), table.width, count))
    for place, variable in x.items():
        values[place] = variable.value() or 0.0
    return values, bool(model.sol_status == pulp.LpSolutionOptimal)


def _by_scipy(
    table: OptionTable, count: int, seconds: float
) -> tuple[np.ndarray[Any, np.dtype[np.float64]] | None, bool]:
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_array

    unit = gcd(table.capacity, *map(int, np.unique(table.demands))) or 1
    places = [(i, j) for i, row in enumerate(table.rows) for j in range(len(row))]
    many = len(places) * count
    entries: list[tuple[int, int, float]] = []
    lower: list[float] = []
    upper: list[float] = []

    def add(columns: list[tuple[int, float]], least: float, most: float) -> None:
        entries.extend((len(lower), column, value) for column, value in columns)
        lower.append(least)
        upper.append(most)

    for i in range(len(table)):
        mine = [p for p, (ptk, _) in enumerate(places) if ptk == i]
        add([(p * count + k, 1.0) for p in mine for k in range(count)], 1, 1)
        for k in range(count):
            needs = [(p * count + k, float(table.rows[i][places[p][1]].samples)) for p in mine]
            add([*needs, (many + k, -1.0)], -np.inf, 0)
    for k in range(count):
        loads = [
            (p * count + k, float(table.rows[i][j].demand // unit))
            for p, (i, j) in enumerate(places)
        ]
        add(loads, -np.inf, float(table.capacity // unit))
    rows, columns, values = zip(*entries, strict=True)
    answer = milp(
        np.concatenate([np.zeros(many), np.ones(count)]),
        constraints=LinearConstraint(
            coo_array((values, (rows, columns)), shape=(len(lower), many + count)).tocsr(),
            lower,
            upper,
        ),
        integrality=np.concatenate([np.ones(many), np.zeros(count)]),
        bounds=Bounds(0, np.concatenate([np.ones(many), np.full(count, np.inf)])),
        options={"time_limit": seconds, "mip_rel_gap": 0.0},
    )
    if answer.x is None:
        return None, answer.status == 2
    solution = np.zeros((len(table), table.width, count))
    for p, (i, j) in enumerate(places):
        solution[i, j] = answer.x[p * count : (p + 1) * count]
    return solution, answer.status == 0
