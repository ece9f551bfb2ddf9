"""Small instances from a seed, and their optimum by trying everything."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from allocator.scheduling.problem.singles import Singles

__all__ = ["best_of_all", "body", "drawn"]


def body(seed: int, *, blocks: int = 3, queries: int = 5, share: float = 1.0) -> dict[str, Any]:
    """Anything may be 0; blocks arrive when they like; ``share``: the largest cost of a budget."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(0, blocks + 1)), int(rng.integers(0, queries + 1))
    budget = int(rng.choice([5, 20, 100]))
    most = max(1, int(budget * share))
    kind = int(rng.integers(0, 3))
    worth = (
        rng.integers(0, 50, (m, n))
        if kind == 0
        else rng.integers(0, 2, (m, n)) * 7
        if kind == 1
        else np.rint(rng.pareto(1, (m, n)) * 5).astype(np.int64)
    )
    return {
        "blocks": [
            {
                "id": f"b{i}",
                "budget": int(rng.integers(0, 2) * budget + rng.integers(0, budget + 1)),
                "arrives": int(rng.integers(0, n + 2)) if rng.random() < 0.4 else 0,
            }
            for i in range(m)
        ],
        "queries": [
            {"id": j, "cost": int(rng.integers(0, most + 1)), "limit": int(rng.integers(0, 4))}
            for j in range(n)
        ],
        "significance": worth.tolist(),
    }


def drawn(seed: int, **knobs: Any) -> Singles:
    """`body` as a problem."""
    return Singles.from_json(body(seed, **knobs))


def best_of_all(problem: Singles) -> int:
    """The optimum: query after query, over every state of the budgets."""
    states: dict[tuple[int, ...], int] = {tuple(problem.budget.tolist()): 0}
    for j, (cost, limit) in enumerate(
        zip(problem.cost.tolist(), problem.limit.tolist(), strict=True)
    ):
        able = [i for i in range(len(problem.budget)) if problem.significance[i, j] > 0]
        after: dict[tuple[int, ...], int] = {}
        for left, value in states.items():
            for many in range(min(limit, len(able)) + 1):
                for chosen in itertools.combinations(able, many):
                    if any(left[i] < cost for i in chosen):
                        continue
                    rest = tuple(b - cost * (i in chosen) for i, b in enumerate(left))
                    worth = value + sum(int(problem.significance[i, j]) for i in chosen)
                    after[rest] = max(after.get(rest, 0), worth)
        states = after
    return max(states.values())
