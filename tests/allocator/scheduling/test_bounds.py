"""Bounds are bounds, packings are exact, and the optimum is one."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest

from allocator.effort import Effort
from allocator.scheduling.duals.bound import certified, trivial
from allocator.scheduling.duals.market import dual_value, market_prices
from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.offline.knapsack import packed
from allocator.scheduling.offline.linear import relaxed
from allocator.scheduling.offline.multipliers import Bracket, lagrangian
from allocator.scheduling.offline.optimum import bounded, optimum
from allocator.scheduling.offline.patterns import Patterns
from allocator.scheduling.problem.singles import Singles
from benchmarks._scheduling.families import drawn as family
from tests.allocator.scheduling.small import best_of_all, drawn


def test_any_prices_give_a_bound() -> None:
    for seed in range(150):
        problem = drawn(seed)
        rng = np.random.default_rng(seed)
        best = best_of_all(problem)
        for scale in (0.0, 0.3, 3.0, 1e6):
            prices = rng.exponential(scale or 1e-9, len(problem.block_ids))
            assert certified(problem, prices) >= best
        assert trivial(problem) >= best


@pytest.mark.parametrize("scale", [1, 10**6, 10**12, 10**15])
def test_bounds_stay_bounds_for_large_integers(scale: int) -> None:
    for seed in range(30):
        problem = drawn(seed)
        large = Singles(
            problem.block_ids,
            problem.query_ids,
            problem.budget * scale,
            problem.arrives,
            problem.cost * scale,
            problem.limit,
            problem.significance * scale,
        )
        best = best_of_all(problem) * scale
        rng = np.random.default_rng(seed)
        assert certified(large, rng.exponential(1.0, len(problem.block_ids))) >= best
        filling, most = optimum(large, Effort(1e12))
        assert filling.value <= best <= most


def test_the_bound_agrees_with_floating_point() -> None:
    problem = Singles.from_json(family("uniform", 1, blocks=10, queries=100))
    value, cost = problem.significance.astype(float), problem.cost.astype(float)
    prices = market_prices(value, cost, problem.limit, problem.budget.astype(float))
    ours = dual_value(value, cost, problem.limit, problem.budget.astype(float), prices)
    assert certified(problem, prices) == pytest.approx(ours, abs=1.0)
    assert certified(problem, prices) < 0.9 * trivial(problem)


def test_market_prices_are_nearly_those_of_the_linear_program() -> None:
    for kind in ("uniform", "heavy", "low rank", "increasing", "mixed"):
        problem = Singles.from_json(family(kind, 1, blocks=12, queries=150, load=2))
        prices = market_prices(
            problem.significance.astype(float),
            problem.cost.astype(float),
            problem.limit,
            problem.budget.astype(float),
        )
        exact = relaxed(problem, prices, seconds=60)
        assert exact is not None
        assert certified(problem, prices) <= 1.01 * certified(problem, exact.prices)


def test_packings_are_exact() -> None:
    for seed in range(300):
        rng = np.random.default_rng(seed)
        count = int(rng.integers(0, 11))
        profit = rng.integers(-3, 40, count)
        weight = rng.integers(0, 15, count)
        room = int(rng.integers(0, 40))
        best = max(
            sum(int(profit[k]) for k in chosen)
            for many in range(count + 1)
            for chosen in itertools.combinations(range(count), many)
            if sum(int(weight[k]) for k in chosen) <= room
        )
        answer = packed(profit, weight, room)
        assert answer.value == answer.bound == best
        assert int(profit[answer.chosen].sum()) == best
        assert int(weight[answer.chosen].sum()) <= room


def test_multipliers_and_patterns_bound_and_close_in() -> None:
    for seed in range(12):
        problem = drawn(seed, blocks=4, queries=7)
        if not problem.significance.any():
            continue
        best = best_of_all(problem)
        known = Bracket(trivial(problem), Filling(problem), np.zeros(len(problem.query_ids)))
        lagrangian(problem, known.multipliers, known, Effort(2e8))
        assert known.best.value <= best <= known.bound
        patterns = Patterns(problem)
        patterns.close(known, Effort(5e8), within=0.0)
        assert known.best.value <= best <= known.bound
        patterns.dive(known, Effort(5e8))
        patterns.whole(known, Effort(5e8))
        assert known.best.value <= best <= known.bound


def test_the_optimum_of_larger_instances_is_near_its_bound() -> None:
    for kind in ("uniform", "low rank"):
        problem = Singles.from_json(family(kind, 2, blocks=20, queries=400, load=2))
        filling, most = optimum(problem, Effort.clocked(1e18, time.monotonic, 3.0))
        assert filling.value >= 0.985 * most
        assert bounded(problem, Effort.clocked(1e18, time.monotonic, 3.0)) >= filling.value
