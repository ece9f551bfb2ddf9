"""Small instances, proved: all pairs in one program, by HiGHS.

The answer is an assignment that is checked like any other; that nothing is better rests on HiGHS,
so it is asked for a proof without a gap, and only where all numbers are far inside its precision.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.problem.singles import Singles

__all__ = ["MOST_PAIRS", "proved"]

MOST_PAIRS = 4_000
_PRECISE = 1 << 30


def proved(problem: Singles, *, seconds: float) -> tuple[Filling, int] | None:
    """The best assignment found and a bound on all; None where this is not for HiGHS."""
    rows, columns = np.nonzero(problem.significance)
    worth = problem.significance[rows, columns]
    if not len(rows) or len(rows) > MOST_PAIRS or int(worth.sum()) >= _PRECISE:
        return None
    if int(problem.budget.max()) >= _PRECISE:
        return None
    blocks, queries = problem.significance.shape
    index = np.arange(len(rows))
    matrix = csc_array(
        (
            np.concatenate([problem.cost[columns], np.ones(len(rows), dtype=np.int64)]).astype(
                float
            ),
            (np.concatenate([rows, blocks + columns]), np.concatenate([index, index])),
        ),
        shape=(blocks + queries, len(rows)),
    )
    limits = np.concatenate([problem.budget, np.minimum(problem.limit, blocks)]).astype(float)
    answer = milp(
        -worth.astype(float),
        constraints=LinearConstraint(matrix, -np.inf, limits),
        integrality=np.ones(len(rows)),
        bounds=Bounds(0, 1),
        options={"time_limit": max(0.05, seconds), "mip_rel_gap": 0.0},
    )
    if answer.x is None or answer.mip_dual_bound is None:
        return None
    filling = Filling(problem)
    use = np.asarray(answer.x) > 0.5
    filling.put(rows[use], columns[use])
    filling.fill(np.zeros(blocks))
    return filling, max(filling.value, math.floor(-float(answer.mip_dual_bound) + 1e-3))
