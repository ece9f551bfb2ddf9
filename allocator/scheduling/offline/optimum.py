"""The optimum of a whole instance as well as the time allows, and a bound that says how well.

1. Prices on blocks (`pricing`) and their bound: seconds at any size.
2. The linear relaxation over the pairs that matter (`linear`): the best prices, and a start.
3. Small instances: HiGHS over all pairs, proved (`exact`).
4. Where the assignment is not near the bound, queries are large against budgets: multipliers on
   queries with a knapsack per block (`multipliers`), their patterns in a master program
   (`patterns`), and diving in it. Where it is near, a program over the pairs that are undecided.

Every bound that is used is a feasible dual, evaluated in integers, or proved by HiGHS on a small
instance. Never below the value: both are of the same integers.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.scheduling.duals.bound import certified, trivial
from allocator.scheduling.duals.market import market_prices
from allocator.scheduling.offline.exact import proved
from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.offline.linear import Relaxed, query_prices, relaxed
from allocator.scheduling.offline.multipliers import Bracket, lagrangian
from allocator.scheduling.offline.patterns import Patterns
from allocator.scheduling.offline.undecided import settled
from allocator.scheduling.problem.singles import Singles

__all__ = ["bounded", "optimum"]

_NEAR = 2e-4
_MASTER_PAIRS = 60_000


def bounded(problem: Singles, effort: Effort, *, reached: int = 0) -> int:
    """An upper bound on every assignment, for those who have one already, worth ``reached``: a
    proof by HiGHS that it contradicts is no proof.
    """
    known, _ = _linear(problem, effort)
    if _small(problem):
        exact = proved(problem, seconds=effort.time_limit.get("time_limit", 10.0) / 2)
        if exact is not None and exact[1] >= reached:
            return min(known.bound, exact[1])
    if known.bound - known.best.value > 0.01 * known.bound:
        _knapsacks(problem, known, effort.share(0.5), dive=False)
    return known.bound


def optimum(problem: Singles, effort: Effort) -> tuple[Filling, int]:
    """The best assignment found, and the bound."""
    if not problem.significance.any():
        return Filling(problem), 0
    if _small(problem) and problem.significance.size <= 600:
        exact = proved(problem, seconds=effort.time_limit.get("time_limit", 10.0) / 2)
        if exact is not None and exact[0].value >= exact[1]:
            return exact
    known, start = _linear(problem, effort)
    if _gap(known) > 0 and _small(problem):
        exact = proved(problem, seconds=effort.time_limit.get("time_limit", 10.0) / 2)
        if exact is not None:
            _better(known, exact[0])
            known.bound = min(known.bound, exact[1])
    if _gap(known) > _NEAR and start is not None:
        part = effort.share(0.15 if _large(problem) else 0.6)
        while _gap(known) > _NEAR and not part.over and known.best.improve(part, start.prices):
            pass
        if _gap(known) > 2 * _NEAR and not _large(problem):
            settling = settled(problem, start, known.best, effort.share(0.4))
            while settling.improve(effort.share(0.5), start.prices) and not effort.over:
                pass
            _better(known, settling)
        if _gap(known) > 5 * _NEAR and not effort.over:
            _knapsacks(problem, known, effort, dive=True)
        while _gap(known) > _NEAR and not effort.over and known.best.improve(effort, start.prices):
            pass
    return known.best, max(known.bound, known.best.value)


def _linear(problem: Singles, effort: Effort) -> tuple[Bracket, Relaxed | None]:
    """Bound and assignment by prices on blocks."""
    empty = Filling(problem)
    known = Bracket(trivial(problem), empty, np.zeros(len(problem.query_ids)))
    if not problem.significance.any():
        return known, None
    prices = market_prices(
        problem.significance.astype(np.float64),
        problem.cost.astype(np.float64),
        problem.limit,
        problem.budget.astype(np.float64),
        rounds=8 if problem.significance.size > 1_000_000 else 20,
    )
    known.bound = min(known.bound, certified(problem, prices))
    known.best.fill(prices, query_prices(problem, prices))
    if _gap(known) <= 0 or effort.over:
        return known, None
    start = relaxed(problem, prices, seconds=effort.time_limit.get("time_limit", 60.0) * 0.7)
    if start is None:
        return known, None
    known.bound = min(known.bound, certified(problem, start.prices))
    known.multipliers = start.multipliers
    rounded = Filling(problem)
    order = np.argsort(-start.share, kind="stable")
    order = order[start.share[order] > 0.01]
    rounded.put(start.pairs[0][order], start.pairs[1][order])
    rounded.fill(start.prices, start.multipliers)
    _better(known, rounded)
    return known, start


def _knapsacks(problem: Singles, known: Bracket, effort: Effort, *, dive: bool) -> None:
    if dive:
        while known.best.improve(effort.share(0.2)) and not effort.over:
            pass
    few = problem.significance.size <= _MASTER_PAIRS
    lagrangian(problem, known.multipliers, known, effort.share(0.08 if few else 0.7), within=_NEAR)
    if not few:
        return
    patterns = Patterns(problem)
    patterns.close(known, effort.share(0.3), within=_NEAR)
    if dive and _gap(known) > _NEAR:
        patterns.dive(known, effort.share(0.75))
        if _gap(known) > _NEAR and not effort.over:
            patterns.whole(known, effort)


def _better(known: Bracket, filling: Filling) -> None:
    if filling.value > known.best.value:
        known.best = filling


def _gap(known: Bracket) -> float:
    return (known.bound - known.best.value) / max(1, known.bound)


def _small(problem: Singles) -> bool:
    return problem.significance.size <= 4_000


def _large(problem: Singles) -> bool:
    """Whether queries are large against the budgets: few fit into a block."""
    eligible = (problem.significance > 0).sum(axis=0) > 0
    if not eligible.any():
        return False
    return float(problem.cost[eligible].mean()) * 8 > float(np.median(problem.budget))
