"""Prices on queries and one exact knapsack per block: the relaxation for large costs.

Where queries are large against budgets the linear relaxation cuts them in pieces that nobody can
have. Here the limits of queries are priced instead (m_j >= 0) and every block packs its budget
exactly: for any prices the optimum is at most ``sum limit_j m_j + sum_i K_i(p_i - m)``, K_i the
best packing of block i (`knapsack.packed`, in integers). Prices follow the subgradient, with steps
by how far the bound is from what is known to be possible (Polyak), smoothed over directions.

Every round's packings are also a proposal: queries that were taken too often keep their best
blocks, and what becomes free is filled and re-packed.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.offline.knapsack import packed
from allocator.scheduling.problem.singles import Singles

__all__ = ["Bracket", "evaluated", "lagrangian"]

_Floats = NDArray[np.float64]
_BITS = 10


class Bracket:
    """The best bound and assignment so far, and the multipliers of the bound."""

    def __init__(self, bound: int, best: Filling, multipliers: _Floats) -> None:
        """What is known."""
        self.bound = bound
        self.best = best
        self.multipliers = multipliers


def lagrangian(
    problem: Singles, start: _Floats, known: Bracket, effort: Effort, *, within: float = 0.0
) -> Bracket:
    """Improve what is ``known`` from multipliers ``start`` until the relative gap is ``within``."""
    m = np.maximum(start, 0.0)
    direction = np.zeros_like(m)
    scale, stalled, rounds = 1.0, 0, 0
    while not effort.over:
        bound, take = evaluated(problem, m, _BITS, effort)
        if bound is None:
            break
        if bound < known.bound:
            known.bound, known.multipliers, stalled = bound, m.copy(), 0
        else:
            stalled += 1
            if stalled >= 6:
                scale, stalled = scale * 0.6, 0
                m = known.multipliers.copy()
        if rounds % 10 == 0:
            _propose(problem, take, m, known, effort)
        if known.bound - known.best.value <= within * known.bound:
            break
        slack = problem.limit - take.sum(axis=0)
        # A price of 0 that wants to fall does not move.
        step = np.where((m <= 0) & (slack > 0), 0, slack).astype(np.float64)
        direction = step + 0.5 * direction
        norm = float(direction @ direction)
        if norm <= 0 or scale < 1e-4:
            break
        gap = bound - known.best.value
        m = np.maximum(m - scale * 0.7 * gap / norm * direction, 0.0)
        rounds += 1
    return known


def evaluated(
    problem: Singles, multipliers: _Floats, bits: int, effort: Effort
) -> tuple[int | None, NDArray[np.bool_]]:
    """The bound at these multipliers (in units of 2**-bits), and what the blocks would take; None
    where time ran out.
    """
    while bits and int(problem.significance.max(initial=0)) << bits >= 1 << 50:
        bits -= 1
    units = np.rint(multipliers * 2.0**bits).astype(np.int64)
    worth = problem.significance
    total = sum(c * u for c, u in zip(problem.limit.tolist(), units.tolist(), strict=True))
    take = np.zeros(worth.shape, dtype=np.bool_)
    for i in range(len(worth)):
        if i % 32 == 0 and effort.over:
            return None, take
        effort.spend(100_000 + 3.0 * worth.shape[1])
        profit = np.where(worth[i] > 0, (worth[i] << bits) - units, 0)
        best = packed(profit, problem.cost, int(problem.budget[i]))
        take[i, best.chosen] = True
        total += best.bound
    return total >> bits, take


def _propose(
    problem: Singles,
    take: NDArray[np.bool_],
    multipliers: _Floats,
    known: Bracket,
    effort: Effort,
) -> None:
    rows, columns = np.nonzero(take)
    filling = Filling(problem)
    margin = problem.significance[rows, columns] - multipliers[columns]
    order = np.argsort(-margin, kind="stable")
    filling.put(rows[order], columns[order])
    for _ in range(4):
        if not filling.improve(effort):
            break
    filling.fill(np.zeros(len(problem.block_ids)))
    if filling.value > known.best.value:
        known.best = filling
