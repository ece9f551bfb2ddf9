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

# What is left free by a robbed block is not sold again at its full price.
_RESALE = 0.97


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

    def improve(self, effort: Effort, prices: NDArray[np.float64] | None = None) -> bool:
        """Re-pack every block once; whether anything got better.

        ``prices`` of blocks: what a robbed block can get for the room that it is left with. With
        them queries are taken over for less, the robbed are packed again at once, and what did not
        pay is undone.
        """
        ask = np.zeros(len(self.left)) if prices is None else _RESALE * prices
        weak, holder = self._weakest(np.arange(len(self.may)), ask)
        better = False
        for i in range(len(self.left)):
            if effort.over:
                break
            effort.spend(20_000 + 4.0 * len(self.may))
            changed = self._again(i, ask, weak, holder)
            if changed is not None:
                better = True
                weak[changed], holder[changed] = self._weakest(changed, ask)
        return better

    def _again(
        self,
        i: int,
        ask: NDArray[np.float64],
        weak: NDArray[np.float64],
        holder: NDArray[np.int64],
    ) -> NDArray[np.int64] | None:
        """Pack block i again; the queries that changed, None where it did not pay."""
        worth, cost = self.problem.significance, self.problem.cost
        row, mine = worth[i], self.taken[i]
        full = (self.may == 0) & ~mine
        profit = np.where(full, row - np.ceil(weak).astype(np.int64), row)
        profit[row == 0] = 0
        best = packed(profit, cost, int(self.problem.budget[i]))
        before = int(row[mine].sum())
        if best.value <= before:
            return None
        (old,) = np.nonzero(mine)
        stolen = best.chosen[full[best.chosen]]
        robbed = sorted(set(holder[stolen].tolist()))
        rows = [i, *robbed]
        kept = (self.taken[rows].copy(), self.left[rows].copy(), self.may.copy())
        gain = int(row[best.chosen].sum()) - before
        gain -= sum(int(worth[holder[j], j]) for j in stolen.tolist())
        self._give(i, best.chosen, stolen, holder)
        changed = [old, best.chosen]
        if ask.any():
            for other in robbed:
                gain += self._refill(other, changed)
        if gain <= 0:
            self.taken[rows], self.left[rows], self.may = kept
            return None
        return np.unique(np.concatenate(changed))

    def _refill(self, i: int, changed: list[NDArray[np.int64]]) -> int:
        """Pack a block again from its own and what nobody has; what it gained."""
        row, mine = self.problem.significance[i], self.taken[i]
        profit = np.where(mine | (self.may > 0), row, 0)
        best = packed(profit, self.problem.cost, int(self.problem.budget[i]))
        before = int(row[mine].sum())
        if best.value <= before:
            return 0
        (old,) = np.nonzero(mine)
        self._give(i, best.chosen, np.zeros(0, dtype=np.int64), old)
        changed += [old, best.chosen]
        return best.value - before

    def _weakest(
        self, queries: NDArray[np.int64], ask: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """For each query what its weakest holder would want for it, and who that is."""
        worth, cost = self.problem.significance, self.problem.cost
        wants = worth[:, queries] - np.multiply.outer(ask, cost[queries])
        wants = np.where(self.taken[:, queries], np.maximum(wants, 0.0), np.inf)
        who = wants.argmin(axis=0) if len(wants) else np.zeros(len(queries), dtype=np.int64)
        least = wants[who, np.arange(len(queries))] if len(wants) else wants.sum(axis=0)
        return np.where(np.isfinite(least), least, 0.0), who

    def _give(
        self,
        i: int,
        chosen: NDArray[np.int64],
        stolen: NDArray[np.int64],
        holder: NDArray[np.int64],
    ) -> None:
        """Block i holds exactly ``chosen``; ``stolen`` are taken from their holders."""
        cost = self.problem.cost
        (old,) = np.nonzero(self.taken[i])
        self.taken[i, old] = False
        self.may[old] += 1
        for j in stolen.tolist():
            self.taken[holder[j], j] = False
            self.left[holder[j]] += cost[j]
            self.may[j] += 1
        self.taken[i, chosen] = True
        self.may[chosen] -= 1
        self.left[i] = self.problem.budget[i] - int(cost[chosen].sum())
