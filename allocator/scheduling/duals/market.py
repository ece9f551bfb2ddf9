"""Prices of blocks at which demand meets the budgets: nearly optimal duals of the linear
relaxation.

Request j values block i at ``value[i, j]`` (0: not eligible), pays ``cost[j]`` and takes at most
``limit[j]`` blocks. At prices L it wants the blocks with the largest ``value - cost * L``, if
positive. Prices are moved until nobody wants more of a block than there is, or the block costs
nothing: a market. Any prices give a valid bound on the optimum (`offline.bound`), so nothing here
has to be exact, only good: each round a block looks for the price at which its own demand meets its
budget while all others stand still, and goes a part of the way there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["dual_value", "market_prices"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


def dual_value(
    value: _Floats, cost: _Floats, limit: _Ints, budget: _Floats, prices: _Floats, weight: float = 1
) -> float:
    """The bound that these prices give, in floating point: for steering, never for proof."""
    margins = value - np.multiply.outer(prices, cost)
    best = _largest(margins, limit)
    return float(budget @ prices) + weight * float(np.where(best > 0, best, 0).sum())


def market_prices(
    value: _Floats,
    cost: _Floats,
    limit: _Ints,
    budget: _Floats,
    *,
    weight: float | _Floats = 1.0,
    start: _Floats | None = None,
    rounds: int = 30,
) -> _Floats:
    """Prices after some rounds, those of the lowest bound. ``weight`` requests stand for each."""
    blocks, requests = value.shape
    if blocks == 0 or requests == 0:
        return np.zeros(blocks)
    weights = np.broadcast_to(np.asarray(weight, dtype=np.float64), (requests,))
    load = weights * cost
    # What costs nothing fills nothing, whatever is asked.
    per_cost = np.where(cost > 0, 1.0 / np.where(cost > 0, cost, 1.0), 0.0)
    prices = _level(value, cost, limit, budget, weights) if start is None else start.copy()
    best, lowest = prices, np.inf
    step = 0.5
    for _ in range(rounds):
        margins = value - np.multiply.outer(prices, cost)
        inside, outside, total = _rivals(margins, limit, weights)
        bound = float(budget @ prices) + total
        if bound < lowest:
            best, lowest = prices, bound
            step = min(0.7, step * 1.1)
        else:
            step = max(0.03, step * 0.75)
        # What a block may ask of a request before the request turns to another one.
        chosen = margins >= inside
        offers = np.where(value > 0, (value - np.where(chosen, outside, inside)) * per_cost, 0.0)
        wanted = _clearing(offers, load, budget)
        # Blocks that are alike cannot outbid each other: what moves them is their demand.
        crowd = np.maximum(chosen.sum(axis=0), 1)
        sold = (np.where(chosen & (margins > 0), np.minimum(limit / crowd, 1.0), 0.0) * load).sum(
            axis=1
        )
        push = np.clip((sold - budget) / np.maximum(sold + budget, 1e-300), -0.5, 0.5)
        prices = np.maximum(prices + step * (wanted - prices), 0.0) * (1 + 0.1 * step * push)
    return best


def _level(
    value: _Floats, cost: _Floats, limit: _Ints, budget: _Floats, weights: _Floats
) -> _Floats:
    """The common price at which all demand together meets all budgets together."""
    priced = cost > 0
    most = float((value.max(axis=0)[priced] / cost[priced]).max(initial=0.0))
    if most <= 0:
        return np.zeros(len(budget))
    low, high = most * 1e-6, most
    room = float(budget.sum())
    for _ in range(14):
        price = float(np.sqrt(low * high))
        wanting = (value > price * cost).sum(axis=0)
        demand = float((np.minimum(wanting, limit) * cost) @ weights)
        low, high = (price, high) if demand > room else (low, price)
    return np.full(len(budget), high if low > most * 1e-6 else 0.0)


def _rivals(margins: _Floats, limit: _Ints, weights: _Floats) -> tuple[_Floats, _Floats, float]:
    """Per request the margin of the last block that it takes and of the first that it does not
    (both at least 0), and what all it takes is worth.
    """
    blocks, requests = margins.shape
    most = int(min(blocks, limit.max(initial=0) + 1))
    top = (
        np.partition(margins, blocks - most, axis=0)[blocks - most :] if most < blocks else margins
    )
    top = -np.sort(-np.maximum(top, 0.0), axis=0)
    padded = np.vstack([np.full((1, requests), np.inf), top, np.zeros((1, requests))])
    column = np.arange(requests)
    taken = np.minimum(limit, blocks)
    inside = padded[np.minimum(taken, padded.shape[0] - 1), column]
    outside = padded[np.minimum(taken + 1, padded.shape[0] - 1), column]
    sums = np.vstack([np.zeros((1, requests)), np.cumsum(top, axis=0)])
    total = float(sums[np.minimum(taken, most), column] @ weights)
    return inside, outside, total


def _clearing(offers: _Floats, load: _Floats, budget: _Floats) -> _Floats:
    """Per block the price at which what is offered above it fills the budget; 0 where all fits."""
    order = np.argsort(-offers, axis=1)
    ranked = np.take_along_axis(offers, order, axis=1)
    filled = np.cumsum(load[order], axis=1)
    over = filled > budget[:, None]
    first = np.argmax(over, axis=1)
    price = ranked[np.arange(len(offers)), first]
    return np.where(over.any(axis=1), np.maximum(price, 0.0), 0.0)


def _largest(margins: _Floats, limit: _Ints) -> Any:
    """Per request its ``limit`` largest margins (others as 0)."""
    blocks = margins.shape[0]
    most = int(min(blocks, limit.max(initial=0)))
    if most == 0:
        return np.zeros((0, margins.shape[1]))
    top = -np.sort(-np.partition(margins, blocks - most, axis=0)[blocks - most :], axis=0)
    return np.where(np.arange(most)[:, None] < limit[None, :], top, 0.0)
