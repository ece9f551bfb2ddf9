"""The pairs that the linear relaxation leaves undecided, settled by HiGHS.

Where queries are small the relaxation decides nearly everything: a pair that it takes whole stays,
one that it finds too dear stays out. What is between (cut pairs and those within a little of their
price) is a program of a few thousand pairs over what is left of budgets and limits.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csc_array

from allocator.effort import Effort
from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.offline.linear import Relaxed
from allocator.scheduling.problem.singles import Singles

__all__ = ["settled"]

_PAIRS = 5_000
# Of the whole value: what a better answer is not worth waiting for.
_ENOUGH = 4e-4


def settled(problem: Singles, start: Relaxed, best: Filling, effort: Effort) -> Filling:
    """A filling that is at least as good as ``best``."""
    rows, columns = start.pairs
    worth = problem.significance[rows, columns].astype(np.float64)
    near = np.abs(worth - problem.cost[columns] * start.prices[rows] - start.multipliers[columns])
    near[(start.share > 1e-6) & (start.share < 1 - 1e-6)] = -1.0
    count = min(_PAIRS, len(rows))
    free = np.zeros(len(rows), dtype=np.bool_)
    free[np.argpartition(near, count - 1)[:count]] = True
    filling = Filling(problem)
    sure = ~free & (start.share > 0.5)
    filling.put(rows[sure], columns[sure])
    (at,) = np.nonzero(free)
    undecided = float(worth[at] @ start.share[at])
    whole = float(worth @ start.share)
    rows, columns, worth = rows[at], columns[at], worth[at]
    blocks, queries = problem.significance.shape
    scale = np.maximum(problem.budget, 1).astype(np.float64)
    index = np.arange(len(at))
    matrix = csc_array(
        (
            np.concatenate([problem.cost[columns] / scale[rows], np.ones(len(at))]),
            (np.concatenate([rows, blocks + columns]), np.concatenate([index, index])),
        ),
        shape=(blocks + queries, len(at)),
    )
    answer = milp(
        -worth / worth.max(initial=1.0),
        constraints=LinearConstraint(
            matrix, -np.inf, np.concatenate([filling.left / scale, filling.may.astype(np.float64)])
        ),
        integrality=np.ones(len(at)),
        bounds=Bounds(0, 1),
        options={
            **effort.time_limit,
            "mip_rel_gap": min(0.01, _ENOUGH * whole / max(undecided, 1.0)),
        },
    )
    if answer.x is not None:
        use = np.asarray(answer.x) > 0.5
        filling.put(rows[use], columns[use])
    filling.fill(start.prices, start.multipliers)
    if filling.value < best.value:
        filling = best
    return filling
