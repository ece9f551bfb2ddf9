"""The linear relaxation over the pairs that matter, by HiGHS; duals for a bound, a start for
fillings.

Prices of blocks that are nearly right say which pairs nobody would take: with them left out the
program is small. Its answer is a suggestion only: the duals are turned into a bound by `certified`,
the solution into an assignment by `Filling`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import csr_array

from allocator.scheduling.problem.singles import Singles

__all__ = ["Relaxed", "query_prices", "reduced", "relaxed"]

_Floats = NDArray[np.float64]


class Relaxed:
    """Pairs with how much of each is taken, and prices of blocks and queries."""

    def __init__(
        self,
        pairs: tuple[NDArray[np.int64], NDArray[np.int64]],
        share: _Floats,
        prices: _Floats,
        multipliers: _Floats,
    ) -> None:
        """``share`` of every pair; ``prices`` of blocks, ``multipliers`` of queries."""
        self.pairs = pairs
        self.share = share
        self.prices = prices
        self.multipliers = multipliers


def query_prices(problem: Singles, prices: _Floats) -> _Floats:
    """Per query the margin of the first block that it does not take, at least 0."""
    margins = problem.significance.astype(np.float64) - np.multiply.outer(prices, problem.cost)
    margins = np.where(problem.significance > 0, margins, 0.0)
    blocks, queries = margins.shape
    most = int(min(blocks, problem.limit.max(initial=0) + 1))
    top = (
        np.partition(margins, blocks - most, axis=0)[blocks - most :] if most < blocks else margins
    )
    top = np.vstack([-np.sort(-np.maximum(top, 0.0), axis=0), np.zeros((1, queries))])
    edge: _Floats = top[np.minimum(problem.limit, len(top) - 1), np.arange(queries)]
    return edge


def reduced(problem: Singles, prices: _Floats, multipliers: _Floats) -> _Floats:
    """Significance less what block and query ask; minus infinity where not eligible."""
    worth = problem.significance - np.multiply.outer(prices, problem.cost) - multipliers
    return np.where(problem.significance > 0, worth, -np.inf)


def relaxed(
    problem: Singles, prices: _Floats, *, seconds: float, most: int = 120_000
) -> Relaxed | None:
    """The relaxation over at most ``most`` pairs; None where HiGHS gave no answer in time."""
    multipliers = query_prices(problem, prices)
    margins = reduced(problem, prices, multipliers)
    wanted = int((margins >= 0).sum())
    count = min(most, int((margins > -np.inf).sum()), 2 * wanted + 2 * sum(margins.shape) + 2000)
    if count == 0:
        return None
    flat = np.argpartition(margins.ravel(), margins.size - count)[margins.size - count :]
    flat = np.sort(flat[np.isfinite(margins.ravel()[flat])])
    rows, columns = np.unravel_index(flat, margins.shape)
    blocks, queries = margins.shape
    scale = float(problem.significance.max())
    budget = np.maximum(problem.budget, 1).astype(np.float64)
    index = np.arange(len(flat))
    matrix = csr_array(
        (
            np.concatenate([problem.cost[columns] / budget[rows], np.ones(len(flat))]),
            (np.concatenate([rows, blocks + columns]), np.concatenate([index, index])),
        ),
        shape=(blocks + queries, len(flat)),
    )
    limits = np.concatenate([np.minimum(problem.budget, 1), problem.limit]).astype(np.float64)
    answer = linprog(
        -problem.significance[rows, columns] / scale,
        A_ub=matrix,
        b_ub=limits,
        bounds=(0, 1),
        method="highs",
        options={"time_limit": max(0.1, seconds)},
    )
    if answer.status != 0:
        return None
    duals = -np.asarray(answer.ineqlin.marginals) * scale
    return Relaxed(
        (rows, columns),
        np.asarray(answer.x),
        np.maximum(duals[:blocks] / budget, 0.0),
        np.maximum(duals[blocks:], 0.0),
    )
