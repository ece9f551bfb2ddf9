"""Assignments made feasible and better: blocks filled greedily, then re-packed one after another.

`Filling` holds an assignment: which pairs are in, what blocks have left, what queries may still
take. `improve` empties one block at a time and packs it again (`knapsack`), where a query that is
full elsewhere may be taken over at the price of what it is worth there. The value never falls.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.scheduling.offline.knapsack import packed
from allocator.scheduling.problem.singles import Singles

__all__ = ["Filling"]


class Filling:
    """A feasible assignment that grows."""

    def __init__(self, problem: Singles) -> None:
        """Empty."""
        self.problem = problem
        self.taken = np.zeros(problem.significance.shape, dtype=np.bool_)
        self.left = problem.budget.copy()
        self.may = problem.limit.copy()

    @property
    def value(self) -> int:
        """The sum of significance, exactly."""
        return sum(self.problem.significance[self.taken].tolist())

    def pairs(self) -> list[tuple[int, int]]:
        """(block, query), by query and then block."""
        queries, blocks = np.nonzero(self.taken.T)
        return list(zip(blocks.tolist(), queries.tolist(), strict=True))

    def copy(self) -> Filling:
        """Another one, equal."""
        other = Filling(self.problem)
        other.taken, other.left, other.may = self.taken.copy(), self.left.copy(), self.may.copy()
        return other

    def put(self, blocks: NDArray[np.int64], queries: NDArray[np.int64]) -> None:
        """Add pairs in the given order, those that still fit."""
        cost, left, may = self.problem.cost.tolist(), self.left.tolist(), self.may.tolist()
        rows, columns = [], []
        for i, j in zip(blocks.tolist(), queries.tolist(), strict=True):
            if may[j] > 0 and cost[j] <= left[i] and not self.taken[i, j]:
                may[j] -= 1
                left[i] -= cost[j]
                self.taken[i, j] = True
                rows.append(i)
                columns.append(j)
        self.left, self.may = np.array(left, dtype=np.int64), np.array(may, dtype=np.int64)

    def fill(
        self, prices: NDArray[np.float64], multipliers: NDArray[np.float64] | None = None
    ) -> None:
        """Add what fits, the largest gain beyond the prices of block and query first."""
        worth = self.problem.significance
        open_pairs = (worth > 0) & ~self.taken & (self.may > 0)[None, :]
        open_pairs &= self.problem.cost[None, :] <= self.left[:, None]
        rows, columns = np.nonzero(open_pairs)
        if not len(rows):
            return
        gain = worth[rows, columns].astype(np.float64)
        rank = gain - self.problem.cost[columns] * prices[rows]
        if multipliers is not None:
            rank -= multipliers[columns]
        order = np.argsort(-rank, kind="stable")
        self.put(rows[order], columns[order])

    def improve(self, effort: Effort, order: NDArray[np.int64] | None = None) -> bool:
        """Re-pack every block once; whether anything got better."""
        worth, cost = self.problem.significance, self.problem.cost
        better = False
        for i in range(len(worth)) if order is None else order.tolist():
            if effort.over:
                break
            effort.spend(20_000 + 4.0 * worth.shape[1])
            row = worth[i]
            mine = self.taken[i]
            # What a query gives up elsewhere when it is full.
            price = np.zeros(worth.shape[1], dtype=np.int64)
            full = (self.may == 0) & ~mine & (row > 0)
            (at,) = np.nonzero(full)
            if len(at):
                held = np.where(self.taken[:, at], worth[:, at], np.iinfo(np.int64).max)
                price[at] = held.min(axis=0)
            profit = row - price
            best = packed(profit, cost, int(self.problem.budget[i]))
            if best.value <= int(row[mine].sum()):
                continue
            better = True
            self._replace(i, best.chosen)
        return better

    def _replace(self, i: int, chosen: NDArray[np.int64]) -> None:
        worth, cost = self.problem.significance, self.problem.cost
        (old,) = np.nonzero(self.taken[i])
        self.taken[i, old] = False
        self.may[old] += 1
        self.left[i] = self.problem.budget[i]
        for j in chosen.tolist():
            if self.may[j] == 0:
                held = np.where(self.taken[:, j], worth[:, j], np.iinfo(np.int64).max)
                other = int(held.argmin())
                self.taken[other, j] = False
                self.left[other] += cost[j]
                self.may[j] += 1
            self.taken[i, j] = True
            self.may[j] -= 1
            self.left[i] -= cost[j]
