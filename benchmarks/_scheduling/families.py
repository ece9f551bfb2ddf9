"""Families of problem (5) in the JSON form of the command, from a seed; every knob can be
turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FAMILIES", "drawn", "mixed_costs"]

# ruff: noqa: ARG001 (all families are asked alike)
_Array = NDArray[Any]
_GRID = 1000


def drawn(
    family: str,
    seed: int,
    *,
    blocks: int = 50,
    queries: int = 2000,
    load: float = 8.0,
    limits: tuple[int, int] = (1, 5),
    costs: tuple[int, int] = (5, 20),
) -> dict[str, Any]:
    """One instance; all queries together want ``load`` times the budgets."""
    rng = np.random.default_rng([seed, sorted(FAMILIES).index(family)])
    cost = (
        mixed_costs(rng, queries, costs[1] * 10)
        if family == "mixed"
        else rng.integers(costs[0], costs[1] + 1, queries)
    )
    limit = rng.integers(limits[0], limits[1] + 1, queries)
    budget = max(int(cost.max()), round((cost * limit).sum() / blocks / load))
    arrives = np.zeros(blocks, dtype=np.int64)
    if family == "recency":
        start = max(1, blocks // 10)
        arrives[start:] = (np.arange(blocks - start) + 1) * queries // (blocks - start + 1)
    significance = FAMILIES[family](rng, blocks, queries, arrives, cost)
    grid = np.rint(significance).astype(np.int64)
    grid[np.arange(queries)[None, :] < arrives[:, None]] = 0
    return {
        "blocks": [
            {"id": f"b{i}", "budget": budget, "arrives": int(a)} for i, a in enumerate(arrives)
        ],
        "queries": [
            {"id": f"q{j}", "cost": int(c), "limit": int(k)}
            for j, (c, k) in enumerate(zip(cost, limit, strict=True))
        ],
        "significance": grid.tolist(),
    }


def mixed_costs(rng: np.random.Generator, queries: int, most: int) -> _Array:
    """Three in four small, the rest up to ten times as large."""
    small = rng.integers(max(1, most // 40), max(2, most // 10), queries)
    large = rng.integers(max(1, most // 10), most + 1, queries)
    return np.where(rng.random(queries) < 0.75, small, large)


def _uniform(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    return rng.uniform(0.01, 1, (m, n)) * _GRID


def _heavy(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    return np.clip(rng.pareto(1.5, (m, n)) + 0.05, 0, 300) * _GRID / 10 + 1


def _low_rank(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    return rng.gamma(1, 1, (m, 3)) @ rng.gamma(1, 1, (3, n)) * _GRID / 5 + 1


def _drift(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    t = np.linspace(0, 1, n)
    a, b = rng.gamma(1, 1, (m, 3)), rng.gamma(1, 1, (m, 3))
    g = rng.gamma(1, 1, (3, n))
    return ((a @ g) * (1 - t) + (b @ g) * t) * _GRID / 5 + 1


def _rising(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    t = np.linspace(0, 1, n)
    return rng.uniform(0.2, 1, (m, n)) * (1 + 2 * t) * _GRID / 3


def _falling(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    return _rising(rng, m, n, arrives, cost)[:, ::-1]


def _switch(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    p = _low_rank(rng, m, n, arrives, cost)
    q = _low_rank(rng, m, n, arrives, cost)
    p[:, n // 2 :] = q[:, n // 2 :]
    return p


def _rotating(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    phase = rng.uniform(0, 1, (m, 1))
    t = np.linspace(0, 1, n)[None, :]
    return (1 + 0.8 * np.cos(2 * np.pi * (t - phase))) * rng.uniform(0.1, 1, (m, n)) * _GRID / 2 + 1


def _recency(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    age = np.maximum(np.arange(n)[None, :] - arrives[:, None], 0)
    return np.exp(-age / (n / 8)) * rng.uniform(0.3, 1, (m, n)) * _GRID + 1


def _increasing(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    ratio = 100.0 ** np.linspace(0, 1, n)
    return np.broadcast_to(ratio * cost, (m, n)) * 10


def _steps(rng: np.random.Generator, m: int, n: int, arrives: _Array, cost: _Array) -> _Array:
    ratio = 100.0 ** (np.floor(np.linspace(0, 0.999, n) * 8) / 7)
    return np.broadcast_to(ratio * cost, (m, n)) * 10


FAMILIES: dict[str, Callable[..., _Array]] = {
    "uniform": _uniform,
    "heavy": _heavy,
    "low rank": _low_rank,
    "drift": _drift,
    "rising": _rising,
    "falling": _falling,
    "switch": _switch,
    "rotating": _rotating,
    "recency": _recency,
    "increasing": _increasing,
    "steps": _steps,
    "mixed": _uniform,
}
