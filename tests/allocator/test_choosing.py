"""Options chosen and told in turn: charges that every plan pays, prices that no record exceeds, and
a linear program that goes on from its last basis.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from allocator.effort import Effort
from allocator.problem import MAX_AMOUNT, Option, Problem, PtkOptions
from allocator.strip.area import area_bound
from allocator.strip.branching import PackedOptions
from allocator.strip.choosing import Choosing
from allocator.strip.configurations import Configurations
from allocator.strip.covering import Covering
from allocator.strip.packing import Packed
from allocator.strip.prices.charges import OptionCharges
from allocator.strip.prices.lifting import lifted
from allocator.strip.prices.sets import Sets
from allocator.strip.solve import solve_strip
from allocator.table import Floats, OptionTable, table_of
from allocator.verify import faults
from tests.allocator.hard import HARD, make_hard
from tests.allocator.small import best_strip, small_problems

ENOUGH = 1e10


def tables(seed: int, count: int) -> list[tuple[Problem, OptionTable]]:
    found = []
    for problem in small_problems(seed, count):
        free = replace(problem, n_max=None)
        table = table_of(free)
        if table is not None and len(table):
            found.append((free, table))
    return found


def dearest(table: OptionTable, prices: Floats) -> float:
    """What the dearest set that fits costs, by trying all."""
    most = 0.0
    for picks in product(*(range(-1, len(row)) for row in table.rows)):
        chosen = [(i, j) for i, j in enumerate(picks) if j >= 0]
        if sum(table.rows[i][j].demand for i, j in chosen) <= table.capacity:
            most = max(most, float(sum(prices[i, j] for i, j in chosen)))
    return most


def one_after_the_other(table: OptionTable) -> PackedOptions:
    choice = np.zeros(len(table), dtype=np.int64)
    return PackedOptions(choice, Packed(table.samples[:, 0], np.eye(len(table), dtype=bool)))


@pytest.mark.parametrize("units", [3, 2519])
def test_lifted_prices_are_feasible_and_none_is_lower(units: int) -> None:
    rng = np.random.default_rng(units)
    higher = 0
    for _, table in tables(1, 150):
        inside = np.arange(table.width)[None, :] < table.lengths[:, None]
        prices = np.where(inside, rng.random(table.samples.shape), 0.0)
        prices *= rng.random(prices.shape) < 0.6
        prices /= max(dearest(table, prices), 1.0)
        order = rng.permutation(len(table)).astype(np.int64)
        raised = lifted(Sets(table, units=units), prices, order, Effort(ENOUGH))
        assert dearest(table, raised) <= 1 + 1e-9
        assert (raised >= prices).all()
        higher += bool((raised[inside] > prices[inside] + 0.01).any())
    assert higher > 50


def test_a_little_above_one_kth_does_not_fit_k_times_in_the_table_of_units_either() -> None:
    capacity = 1_000_000_007
    for part in range(2, 11):
        ptks = tuple(
            PtkOptions(f"p{i:02}", (Option("1", capacity // part + 1, 5),)) for i in range(part)
        )
        table = table_of(Problem(capacity, None, ptks))
        assert table is not None
        sets = Sets(table)
        most, column = sets.quick(np.ones((part, 1)), Effort(ENOUGH))
        assert most == pytest.approx(part - 1)
        assert (column >= 0).sum() == part - 1


def test_quick_sets_fit_and_what_they_say_of_others_holds() -> None:
    rng = np.random.default_rng(5)
    best, problems = 0, tables(2, 200)
    for _, table in problems:
        values = rng.random(table.samples.shape)
        most, column = Sets(table).quick(values, Effort(ENOUGH))
        inside = [(i, int(j)) for i, j in enumerate(column) if j >= 0]
        assert sum(table.rows[i][j].demand for i, j in inside) <= table.capacity
        there = dearest(table, values)
        assert most >= there - 1e-9
        best += abs(sum(values[i, j] for i, j in inside) - there) < 1e-9
    assert best >= 0.9 * len(problems)


def test_every_plan_pays_at_most_its_length() -> None:
    for problem, table in tables(3, 120):
        charges = OptionCharges(table)
        sets = Sets(table)
        start = np.zeros(table.samples.shape)
        charges.add(lifted(sets, start, np.arange(len(table)), Effort(ENOUGH)))
        for picks in product(*(range(len(row)) for row in table.rows)):
            rows = tuple(
                PtkOptions(name, (row[j],))
                for name, row, j in zip(table.ids, table.rows, picks, strict=True)
            )
            shortest = best_strip(Problem(problem.capacity, None, rows))
            assert shortest is not None
            assert charges.paid(np.array(picks)) <= shortest + 1e-6


def test_the_cheapest_choice_is_the_cheapest() -> None:
    for _, table in tables(4, 80):
        charges = OptionCharges(table)
        below = int(table.samples.max(axis=1).sum()) + 1
        least = min(
            charges.paid(np.array(picks)) for picks in product(*(range(len(r)) for r in table.rows))
        )
        allowed = table.allowed(below)
        answer = charges.cheapest(allowed, below=below, low=0.0, gap=1e-9, effort=Effort(ENOUGH))
        assert answer.choice is not None
        assert answer.bound <= least + 1e-6
        assert charges.paid(answer.choice) == pytest.approx(least, abs=1e-4)
        low = max(1, int(np.ceil(least)))
        none = charges.cheapest(allowed, below=low, low=0.0, gap=0.0, effort=Effort(ENOUGH))
        assert none.choice is None or charges.paid(none.choice) <= low - 1 + 1e-4


@pytest.mark.parametrize("equal", [False, True])
def test_the_linear_program_says_what_another_solver_says(equal: bool) -> None:
    rng = np.random.default_rng(7 + equal)
    for _ in range(12):
        count = int(rng.integers(2, 25))
        needs = np.full(count, 40.0) if equal else rng.uniform(1, 1e5, count)
        own = rng.uniform(1, 3, count)
        program, columns = Covering(needs, own), np.zeros((0, count))
        for _ in range(4):
            for _ in range(int(rng.integers(1, 30))):
                column = rng.random(count) * (rng.random(count) < 0.4)
                places = np.flatnonzero(column)
                program.add(places, column[places])
                columns = np.vstack([columns, column])
            prices, widths, alone = program.solve(Effort(ENOUGH))
            answer = linprog(
                -needs,
                A_ub=columns,
                b_ub=np.ones(len(columns)),
                bounds=np.column_stack([0 * own, own]),
                method="highs-ds",
            )
            assert prices @ needs == pytest.approx(-answer.fun, rel=1e-6)
            assert (columns @ prices <= 1 + 1e-6).all()
            assert (widths @ columns + alone / own >= needs * (1 - 1e-6)).all()
            assert widths.sum() + alone.sum() == pytest.approx(-answer.fun, rel=1e-6)


def test_small_problems_end_at_the_best_of_all() -> None:
    """Not by trying all configurations, as solving does there, but by choosing alone."""
    problems = tables(11, 250)
    ended = 0
    for problem, table in problems:
        best = best_strip(problem)
        assert best is not None
        choosing = Choosing(
            table,
            one_after_the_other(table),
            area_bound(table),
            gap=0.0,
            configurations=Configurations(table),
        )
        choosing.run(Effort(2e9))
        packed = choosing.best.packed
        rows = np.arange(len(table))
        demands = table.demands[rows, choosing.best.choice]
        assert (packed.members @ demands <= table.capacity).all()
        assert (packed.widths @ packed.members >= table.samples[rows, choosing.best.choice]).all()
        assert choosing.bound <= best <= packed.total
        ended += choosing.bound == best == packed.total
    assert ended > 0.9 * len(problems)


@pytest.mark.parametrize("family", sorted(HARD))
def test_thirteen_ptks_are_proven_optimal(family: str) -> None:
    for seed in range(2):
        plan = solve_strip(make_hard(family, 13, seed), effort=Effort(4e9), gap=0.0)
        assert plan.status == "OPTIMAL"


@pytest.mark.parametrize("family", sorted(HARD))
def test_fifty_ptks_are_within_one_per_cent_with_two_seconds_of_work(family: str) -> None:
    problem = make_hard(family, 50, 3)
    plan = solve_strip(problem, effort=Effort(2e9))
    assert faults(problem, plan) == ()
    assert (plan.gap or 0.0) <= 0.01


def test_large_demands_do_not_overflow_charges() -> None:
    ptks = tuple(
        PtkOptions(
            f"p{i:02}", (Option("a", MAX_AMOUNT // 3, 900 + i), Option("b", MAX_AMOUNT // 2, 600))
        )
        for i in range(25)
    )
    problem = Problem(MAX_AMOUNT, None, ptks)
    plan = solve_strip(problem, effort=Effort(1e9))
    assert faults(problem, plan) == ()
    assert (plan.gap or 0.0) < 0.01
