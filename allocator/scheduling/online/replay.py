"""Drives a policy through a whole instance: blocks open when they arrive, each decision is charged
at once and stands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockPolicy, BlockRequest
from allocator.scheduling.problem.singles import Singles

__all__ = ["Replayed", "replay"]


@dataclass(frozen=True)
class Replayed:
    """Pairs (block, query) in the order in which they were granted, and the seconds each decision
    took (0 without a clock).
    """

    pairs: tuple[tuple[int, int], ...]
    seconds: tuple[float, ...]


def replay(
    problem: Singles,
    policy: BlockPolicy,
    *,
    clock: Callable[[], float] | None = None,
    told: Callable[[Pool, BlockRequest, BlockDecision], None] | None = None,
) -> Replayed:
    """Every query in order. ``told`` hears of each decision before it is charged."""
    order = np.argsort(problem.arrives, kind="stable")
    budgets, arrives = problem.budget[order].tolist(), problem.arrives[order].tolist()
    # One contiguous row per query: a decision reads a row, not a column.
    rows = np.ascontiguousarray(problem.significance[order].T)
    pool = Pool(len(order))
    pairs: list[tuple[int, int]] = []
    seconds: list[float] = []
    for query, (cost, limit) in enumerate(
        zip(problem.cost.tolist(), problem.limit.tolist(), strict=True)
    ):
        while pool.count < len(budgets) and arrives[pool.count] <= query:
            pool.open(budgets[pool.count], before=query)
        row: NDArray[np.int64] = rows[query, : pool.count]
        request = BlockRequest(query, cost, limit, row)
        begun = clock() if clock else 0.0
        decision = policy.decide(pool, request)
        seconds.append(clock() - begun if clock else 0.0)
        if told is not None:
            told(pool, request, decision)
        pool.charge(decision.blocks, decision.amounts, row[decision.blocks])
        whole = decision.blocks[decision.amounts >= cost]
        pairs += [(int(block), query) for block in order[whole]]
    return Replayed(tuple(pairs), tuple(seconds))
