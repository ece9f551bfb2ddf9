"""Packings of blocks as columns of a master program: the bound of `multipliers`, to the end.

A pattern is a set of queries that one block can serve. The master mixes the patterns that are known
(at most one per block, queries within their limits); its duals are multipliers for queries, at
which every block looks for a better pattern (`knapsack.packed`). Multipliers asked for lie between
those of the best bound and those of the master, since a master with few patterns exaggerates. Every
round's packings give a bound, whatever HiGHS said. In the end the master is asked for a mix without
fractions: an assignment.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array

from allocator.effort import Effort
from allocator.scheduling.offline.filling import Filling
from allocator.scheduling.offline.knapsack import packed
from allocator.scheduling.offline.multipliers import Bracket, evaluated
from allocator.scheduling.problem.singles import Singles

__all__ = ["Patterns"]

_Flags = NDArray[np.bool_]
_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]
_STAY = 0.6
_BITS = 12


class Patterns:
    """The patterns that are known, and the master over them."""

    def __init__(self, problem: Singles) -> None:
        """None yet."""
        self._problem = problem
        self._known: set[tuple[int, bytes]] = set()
        self._blocks: list[int] = []
        self._queries: list[NDArray[np.int64]] = []
        self._worth: list[int] = []

    def add(self, take: NDArray[np.bool_]) -> int:
        """Learn the row of every block; how many were new."""
        new = 0
        for i in range(len(take)):
            (at,) = np.nonzero(take[i])
            key = (i, at.tobytes())
            if not len(at) or key in self._known:
                continue
            self._known.add(key)
            self._blocks.append(i)
            self._queries.append(at)
            self._worth.append(int(self._problem.significance[i, at].sum()))
            new += 1
        return new

    def close(self, known: Bracket, effort: Effort, *, within: float) -> None:
        """Generate patterns until the bound stands, time is over, or the gap is ``within``."""
        self.add(known.best.taken)
        asked = known.multipliers
        while not effort.over:
            bound, take = evaluated(self._problem, asked, _BITS, effort)
            if bound is None:
                return
            if bound < known.bound:
                known.bound, known.multipliers = bound, asked.copy()
            new = self.add(take)
            if known.bound - known.best.value <= within * known.bound:
                return
            master = self._master(effort)
            if master is None:
                return
            value, duals = master
            if known.bound - value <= 1e-6 * known.bound + 0.5:
                return
            stay = _STAY if new else _STAY / 3
            asked = stay * known.multipliers + (1 - stay) * duals
            if not new and np.abs(duals - known.multipliers).max(initial=0.0) < 1e-9:
                return

    def dive(self, known: Bracket, effort: Effort) -> None:
        """Fix the patterns that the master likes best, a few blocks at a time, and look for new
        ones among what is left; the assignment counts if it is better.
        """
        problem = self._problem
        open_blocks = np.ones(len(problem.block_ids), dtype=np.bool_)
        limit = problem.limit.copy()
        filling = Filling(problem)
        while open_blocks.any() and not effort.over:
            duals = None
            for _ in range(3):
                master = self._master(effort, open_blocks, limit)
                if master is None:
                    break
                _, duals = master
                take = self._priced(duals, open_blocks, limit, effort)
                if not self.add(take):
                    break
            if duals is None:
                break
            share, index = self._mix(open_blocks, limit, effort)
            if share is None or not len(index):
                break
            order = np.argsort(-share, kind="stable")
            few = max(1, int(open_blocks.sum()) // 8)
            fixed = 0
            for k in order.tolist():
                if fixed and (share[k] < 0.5 or (share[k] < 0.999 and fixed >= few)):
                    break
                block, at = self._blocks[index[k]], self._queries[index[k]]
                if not open_blocks[block] or (limit[at] < 1).any():
                    continue
                filling.put(np.full(len(at), block), at)
                limit[at] -= 1
                open_blocks[block] = False
                fixed += 1
            if not fixed:
                break
        while not effort.over and filling.improve(effort):
            pass
        filling.fill(np.zeros(len(problem.block_ids)))
        if filling.value > known.best.value:
            known.best = filling
        self.add(filling.taken)

    def _priced(self, duals: _Floats, open_blocks: _Flags, limit: _Ints, effort: Effort) -> _Flags:
        """What every open block would take within the limits that are left."""
        problem = self._problem
        units = np.rint(duals * 2.0**_BITS).astype(np.int64)
        take = np.zeros(problem.significance.shape, dtype=np.bool_)
        for i in np.nonzero(open_blocks)[0].tolist():
            if effort.over:
                break
            row = problem.significance[i]
            profit = np.where((row > 0) & (limit > 0), (row << _BITS) - units, 0)
            take[i, packed(profit, problem.cost, int(problem.budget[i])).chosen] = True
        return take

    def _usable(self, open_blocks: _Flags, limit: _Ints) -> _Ints:
        return np.array(
            [
                k
                for k, at in enumerate(self._queries)
                if open_blocks[self._blocks[k]] and (limit[at] > 0).all()
            ],
            dtype=np.int64,
        )

    def _mix(
        self, open_blocks: _Flags, limit: _Ints, effort: Effort
    ) -> tuple[_Floats | None, _Ints]:
        index = self._usable(open_blocks, limit)
        if not len(index):
            return None, index
        matrix, _, worth = self._program()
        limits = np.concatenate([np.ones(len(open_blocks)), limit]).astype(np.float64)
        answer = linprog(
            -worth[index] / worth.max(),
            A_ub=matrix[:, index],
            b_ub=limits,
            bounds=(0, None),
            method="highs",
            options=dict(effort.time_limit),
        )
        if answer.status != 0:
            return None, index
        return np.asarray(answer.x), index

    def _program(self) -> tuple[csc_array, _Floats, _Floats]:
        blocks, queries = self._problem.significance.shape
        sizes = np.array([len(at) for at in self._queries])
        rows = np.concatenate([np.array(self._blocks), blocks + np.concatenate(self._queries)])
        columns = np.concatenate([np.arange(len(sizes)), np.repeat(np.arange(len(sizes)), sizes)])
        matrix = csc_array(
            (np.ones(len(rows)), (rows, columns)), shape=(blocks + queries, len(sizes))
        )
        limits = np.concatenate([np.ones(blocks), self._problem.limit]).astype(np.float64)
        return matrix, limits, np.array(self._worth, dtype=np.float64)

    def _master(
        self, effort: Effort, open_blocks: _Flags | None = None, limit: _Ints | None = None
    ) -> tuple[float, _Floats] | None:
        matrix, limits, worth = self._program()
        if open_blocks is not None and limit is not None:
            index = self._usable(open_blocks, limit)
            if not len(index):
                return None
            matrix, worth = matrix[:, index], worth[index]
            limits = np.concatenate([np.ones(len(open_blocks)), limit]).astype(np.float64)
        scale = float(worth.max())
        answer = linprog(
            -worth / scale,
            A_ub=matrix,
            b_ub=limits,
            bounds=(0, None),
            method="highs",
            options=dict(effort.time_limit),
        )
        if answer.status != 0:
            return None
        duals = -np.asarray(answer.ineqlin.marginals)[len(self._problem.block_ids) :] * scale
        return -float(answer.fun) * scale, np.maximum(duals, 0.0)

    def whole(self, known: Bracket, effort: Effort) -> None:
        """The best mix without fractions, repaired and filled, if it is better."""
        matrix, limits, worth = self._program()
        scale = float(worth.max())
        answer = milp(
            -worth / scale,
            constraints=LinearConstraint(matrix, -np.inf, limits),
            integrality=np.ones(len(worth)),
            bounds=Bounds(0, 1),
            options={**effort.time_limit, "mip_rel_gap": 1e-5},
        )
        if answer.x is None:
            return
        filling = Filling(self._problem)
        for k in np.nonzero(np.asarray(answer.x) > 0.5)[0].tolist():
            at = self._queries[k]
            filling.put(np.full(len(at), self._blocks[k]), at)
        while filling.improve(effort) and not effort.over:
            pass
        filling.fill(np.zeros(len(self._problem.block_ids)))
        if filling.value > known.best.value:
            known.best = filling
