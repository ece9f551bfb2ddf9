"""An upper bound on every assignment that needs no trust: the value of a feasible dual, in
integers.

For any prices l_i >= 0 on blocks the optimum is at most ``sum b_i l_i + sum_j (the limit_j largest
positive p_ij - e_j l_i)``. Prices are taken as multiples of 2**-k, so that every term is an exact
integer multiple of it; where 64 bits might not hold a term, the arithmetic is done with Python's
integers, on coarser prices. The optimum is an integer, so the bound is rounded down.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.problem.singles import Singles

__all__ = ["certified", "trivial"]

_SAFE = 1 << 62


def certified(problem: Singles, prices: NDArray[np.float64]) -> int:
    """The bound that these prices prove."""
    worth = problem.significance
    if not worth.size or not problem.limit.any():
        return 0
    most_cost = int(problem.cost.max())
    most = int(worth.max())
    finite = np.where(np.isfinite(prices) & (prices > 0), prices, 0.0)
    top = max(1.0, float(finite.max()))
    bits = 24
    while bits > 0 and (most + most_cost * top) * 2.0**bits * 4 >= _SAFE:
        bits -= 1
    if (most + most_cost * top) * 2.0**bits * 4 >= _SAFE:
        return _with_integers(problem, finite)
    units = np.rint(finite * 2.0**bits).astype(np.int64)
    total: int = sum(b * u for b, u in zip(problem.budget.tolist(), units.tolist(), strict=True))
    # A few queries at a time keeps the arrays in the cache.
    width = max(1, 2_000_000 // max(1, len(units)))
    for begin in range(0, worth.shape[1], width):
        part = slice(begin, begin + width)
        total += _gains(worth[:, part], problem.cost[part], problem.limit[part], units, bits)
    return total >> bits


def trivial(problem: Singles) -> int:
    """The bound at price 0: every query takes what it likes best."""
    return certified(problem, np.zeros(len(problem.block_ids)))


def _gains(
    worth: NDArray[np.int64],
    cost: NDArray[np.int64],
    limit: NDArray[np.int64],
    units: NDArray[np.int64],
    bits: int,
) -> int:
    margins = np.maximum((worth << bits) - np.multiply.outer(units, cost), 0)
    margins[worth == 0] = 0
    most = int(min(len(margins), limit.max(initial=0)))
    if most == 0:
        return 0
    if most < len(margins):
        margins = np.partition(margins, len(margins) - most, axis=0)[len(margins) - most :]
    margins = np.sort(margins, axis=0)[::-1]
    margins[np.arange(len(margins))[:, None] >= limit[None, :]] = 0
    # Halves, so that sums of many large terms stay within 64 bits.
    high, low = margins >> 31, margins & ((1 << 31) - 1)
    upper: int = sum(high.sum(axis=0).tolist())
    lower: int = sum(low.sum(axis=0).tolist())
    return (upper << 31) + lower


def _with_integers(problem: Singles, prices: NDArray[np.float64]) -> int:
    units = [round(price) for price in prices.tolist()]
    total: int = sum(b * u for b, u in zip(problem.budget.tolist(), units, strict=True))
    for j, (cost, limit) in enumerate(
        zip(problem.cost.tolist(), problem.limit.tolist(), strict=True)
    ):
        column = problem.significance[:, j].tolist()
        margins = (p - cost * u for p, u in zip(column, units, strict=True) if p > 0)
        total += sum(sorted((m for m in margins if m > 0), reverse=True)[:limit])
    return total
