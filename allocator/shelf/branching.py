"""Branch and bound over shelves, for few PTKs: the bound of `allocator.shelf.columns` in every
node.

What is branched on leaves the knapsacks as they are:

1. *how many shelves* are at least so large: a row "sum of u_c with N_c >= N is at most k" or "at
   least k + 1", whose price only changes what a shelf of a level may be worth;
2. *how large the shelf of a PTK is*: at most N or larger, which closes levels to the PTK.

Where both are whole and shelves still are not, the node keeps its bound and is left. Nodes by
lowest bound first; plans come from rounding the shelves of every node.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.shelf.columns import Columns
from allocator.shelf.levels import Levels
from allocator.shelf.local_search import Shelves, improved
from allocator.shelf.pricing import Pricing
from allocator.shelf.rounding import by_parts
from allocator.table import Floats, Ints

__all__ = ["branched"]

_SAFE = 1e-9
_CONVERGED = 1e-7
_WHOLE = 1e-5
_QUICK = 30


@dataclass(frozen=True)
class _Node:
    """Rows: (first level, at most?, how many).

    Levels open to each PTK: from ``low`` to below ``high``.
    """

    rows: tuple[tuple[int, bool, int], ...]
    low: tuple[int, ...]
    high: tuple[int, ...]


@dataclass(frozen=True)
class _Solved:
    bound: float
    parts: Floats


def branched(
    columns: Columns, shelves: Shelves, gap: float, effort: Effort
) -> tuple[Shelves, float]:
    """Better shelves if there are any, and the best bound known."""
    levels = columns.levels
    search = _Search(columns, shelves)
    ptks, width = levels.needs.shape
    root = _Node((), (0,) * ptks, (width,) * ptks)
    heap: list[tuple[float, int, _Node]] = [(columns.bound, 0, root)]
    made, left = 0, np.inf
    wait, tried = 4, 3
    while heap:
        lowest = min(left, heap[0][0])
        if effort.over or search.total <= np.ceil(lowest - 1e-6) * (1 + gap):
            return search.shelves, min(lowest, float(search.total))
        known, _, node = heapq.heappop(heap)
        solved = search.solve(node, effort)
        bound = max(known, solved.bound)
        if np.ceil(bound - 1e-6) >= search.total:
            continue
        tried += 1
        if tried >= wait:
            # As long as it does not help, less often.
            wait, tried = (4, 0) if search.round(effort) else (min(12, wait + 4), 0)
        children = search.by_counts(node, solved)
        if not children and ptks > _QUICK:
            children = search.by_ptk(node, solved)
        if not children:
            # Exchanges hide who is where; to look without them is quick for few.
            solved = search.solve(node, effort, exchanges=False)
            bound = max(bound, solved.bound)
            children = search.by_counts(node, solved) or search.by_ptk(node, solved)
        if not children:
            left = min(left, bound)
        for child in children:
            made += 1
            heapq.heappush(heap, (bound, made, child))
    return search.shelves, min(left, float(search.total))


class _Search:
    def __init__(self, columns: Columns, shelves: Shelves) -> None:
        self.columns = columns
        self.levels: Levels = columns.levels
        self.shelves = shelves
        self.total = sum(self.levels.cost(shelf) for shelf in shelves)
        # The level of each known shelf.
        self.places: Ints = np.searchsorted(self.levels.sizes, columns.costs.astype(np.int64))

    def round(self, effort: Effort) -> bool:
        """Whole shelves from all that are known; True when they are fewer."""
        before = self.total
        for exchanges in (True, False):
            shelves = by_parts(self.columns, effort, exchanges=exchanges)
            shelves = improved(self.levels, shelves, effort.part(0.05 * effort.limit))
            held = sum(self.levels.cost(shelf) for shelf in shelves)
            if held < self.total:
                self.shelves, self.total = shelves, held
        return self.total < before

    def solve(self, node: _Node, effort: Effort, *, exchanges: bool = True) -> _Solved:
        """The relaxation of a node, up to the total: a bound of that much is enough."""
        needs = self.levels.needs.copy()
        for i, (low, high) in enumerate(zip(node.low, node.high, strict=True)):
            needs[i, :low] = self.levels.units + 1
            needs[i, high:] = self.levels.units + 1
        pricing = Pricing(replace(self.levels, needs=needs), most_units=self.columns.pricing.units)
        bound = 0.0
        parts = np.zeros(len(self.places))
        best: tuple[Floats, Floats] | None = None
        while True:
            prices, rates, parts, value = self._master(node, exchanges, effort)
            if (
                value <= bound * (1 + _CONVERGED)
                or np.ceil(bound - 1e-6) >= self.total
                or effort.over
            ):
                break
            added = 0
            for smooth in (0.5, 0.0):
                at, rate = prices, rates
                if best is not None and smooth:
                    at, rate = (
                        smooth * best[0] + (1 - smooth) * prices,
                        smooth * best[1] + (1 - smooth) * rates,
                    )
                room = self._room(node, rate)
                if (room <= 0).any():
                    continue
                worth = pricing.values(at, np.arange(len(room)), effort)
                ratios = worth / room
                chosen = np.flatnonzero(ratios > 1 + _CONVERGED)
                chosen = np.sort(chosen[np.argsort(-ratios[chosen], kind="stable")[:40]])
                if len(chosen):
                    added = self._add(
                        pricing.sets(at, chosen, effort), chosen, prices, self._room(node, rates)
                    )
                if not added and not pricing.exact:
                    added += self._exactly(pricing, at, ratios, room, effort)
                most = max(float(ratios.max()), 1e-300)
                certified = float(at.sum()) / most + self._fixed(node, rate)
                certified -= _SAFE * (float(at.sum()) / most)
                if certified > bound:
                    bound, best = certified, (at / most, rate)
                if added:
                    break
            if not added:
                break
        return _Solved(bound, parts)

    def _exactly(
        self, pricing: Pricing, prices: Floats, ratios: Floats, room: Floats, effort: Effort
    ) -> int:
        """Where rounding may have hidden a shelf, look without; ``ratios`` become exact there.

        How many are new.
        """
        fresh: list[NDArray[np.bool_]] = []
        where: list[int] = []
        for place in np.argsort(-ratios, kind="stable"):
            if ratios[place] <= 1 or effort.over or len(fresh) >= 10:
                break
            value, members = pricing.exactly(
                prices, int(place), float(room[place]) * (1 + _CONVERGED), effort
            )
            if np.isfinite(value):
                ratios[place] = value / room[place]
            if members.any():
                fresh.append(members)
                where.append(int(place))
        return self._add(np.array(fresh), np.array(where), prices, room) if fresh else 0

    def _add(self, sets: NDArray[np.bool_], places: Ints, prices: Floats, room: Floats) -> int:
        """Remember those that cut the prices off; how many are new."""
        added = 0
        for members, place in zip(sets, places, strict=True):
            if not members.any() or float(prices[members].sum()) <= room[place] * (1 + _CONVERGED):
                continue
            if self._raised(members, int(place)):
                added += 1
        return added

    def _raised(self, members: NDArray[np.bool_], place: int) -> bool:
        """Add a shelf at a level that may be above the smallest where it fits: a node may ask for
        that.
        """
        columns = self.columns
        key = np.packbits(members).tobytes() + place.to_bytes(4, "big")
        if key in self._keys():
            return False
        self._keys().add(key)
        columns.members = np.concatenate([columns.members, members[None, :]])
        columns.costs = np.append(columns.costs, float(self.levels.sizes[place]))
        self.places = np.append(self.places, place)
        return True

    def _keys(self) -> set[bytes]:
        if not hasattr(self, "_seen"):
            self._seen = {
                np.packbits(row).tobytes() + int(place).to_bytes(4, "big")
                for row, place in zip(self.columns.members, self.places, strict=True)
            }
        return self._seen

    def _room(self, node: _Node, rates: Floats) -> Floats:
        """What a shelf may be worth at each level: its size, and what the rows pay or charge for
        it.
        """
        room = self.levels.sizes.astype(np.float64)
        for (first, most, _), rate in zip(node.rows, rates, strict=True):
            room[first:] += rate if most else -rate
        return room

    @staticmethod
    def _fixed(node: _Node, rates: Floats) -> float:
        return float(
            sum(
                (-rate if most else rate) * k
                for (_, most, k), rate in zip(node.rows, rates, strict=True)
            )
        )

    def _open(self, node: _Node) -> NDArray[np.bool_]:
        """Which known shelves the node allows."""
        low, high = np.array(node.low), np.array(node.high)
        inside = (self.places[:, None] >= low) & (self.places[:, None] < high)
        return np.asarray((inside | ~self.columns.members).all(axis=1))

    def _master(
        self, node: _Node, exchanges: bool, effort: Effort
    ) -> tuple[Floats, Floats, Floats, float]:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, vstack

        ptks = len(self.columns.own)
        allowed = np.flatnonzero(self._open(node))
        entries = float(self.columns.members[allowed].sum()) + 8.0 * len(
            self.columns.exchanges.pairs
        )
        effort.spend(5e6 + 1500.0 * entries * max(1.0, ptks / 50) ** 0.75)
        scale = float(self.total)
        firsts = [first for first, _, _ in node.rows]
        # Empty shelves may be bought to satisfy a row: their rows keep prices of rows within the
        # sizes.
        places = np.concatenate([self.places[allowed], np.array(firsts, dtype=np.int64)])
        members = vstack(
            [
                csr_array(self.columns.members[allowed], dtype=np.float64),
                csr_array((len(firsts), ptks)),
            ]
        )
        rates = np.array(
            [
                [(-1.0 if most else 1.0) * (place >= first) for first, most, _ in node.rows]
                for place in places
            ]
        ).reshape(len(places), len(node.rows))
        costs = np.concatenate(
            [self.columns.costs[allowed], self.levels.sizes[firsts].astype(np.float64)]
        )
        # An exchange is one in this node if the levels that are open to the other are open to the
        # PTK.
        low, high = np.array(node.low), np.array(node.high)
        easier, harder = self.columns.exchanges.pairs.T
        kept = (low[easier] <= low[harder]) & (high[easier] >= high[harder]) & exchanges
        pairs = np.stack([easier[kept], harder[kept]])
        rows = np.tile(np.arange(pairs.shape[1]), 2)
        more = csr_array(
            (np.repeat([1.0, -1.0], pairs.shape[1]), (rows, pairs.reshape(-1))),
            shape=(pairs.shape[1], ptks + len(firsts)),
        )
        goal = np.concatenate(
            [np.full(ptks, -1.0), [float(k if most else -k) for _, most, k in node.rows]]
        )
        answer = linprog(
            goal,
            A_ub=vstack([hstack([members, csr_array(rates)]), more]).tocsr(),
            b_ub=np.concatenate([costs / scale, np.zeros(pairs.shape[1])]),
            bounds=[(0.0, 1.0)] * ptks + [(0.0, None)] * len(node.rows),
            method="highs-ds",
            options={"presolve": False},
        )
        parts = np.zeros(len(self.places))
        if answer.status != 0:
            return np.zeros(ptks), np.zeros(len(node.rows)), parts, 0.0
        parts[allowed] = -answer.ineqlin.marginals[: len(allowed)]
        return answer.x[:ptks] * scale, answer.x[ptks:] * scale, parts, -float(answer.fun) * scale

    def by_counts(self, node: _Node, solved: _Solved) -> list[_Node]:
        """The two halves of a node by how many shelves are so large, or none where that is
        whole.
        """
        width = len(self.levels.sizes)
        used = np.flatnonzero(solved.parts > 1e-9)
        counts = np.bincount(self.places[used], weights=solved.parts[used], minlength=width)
        above = np.cumsum(counts[::-1])[::-1]
        uneven = np.abs(above - np.round(above))
        if uneven.max() <= _WHOLE:
            return []
        # Between two sizes in use that are far apart: shelves of nearly one size are not worth
        # telling apart.
        taken = np.flatnonzero(counts > 0)
        below = np.concatenate([[0], self.levels.sizes[taken[:-1]]])
        score = np.where(uneven[taken] > _WHOLE, uneven[taken], 0.0) * (
            self.levels.sizes[taken] - below
        )
        best_place = int(score.argmax())
        first = int(taken[best_place])
        middle = (int(self.levels.sizes[first]) + int(below[best_place])) // 2
        first = max(
            int(np.searchsorted(self.levels.sizes, middle)),
            int(taken[best_place - 1]) + 1 if best_place else 0,
        )
        k = int(np.floor(above[first] + 1e-9))
        return [
            replace(node, rows=(*node.rows, (first, True, k))),
            replace(node, rows=(*node.rows, (first, False, k + 1))),
        ]

    def by_ptk(self, node: _Node, solved: _Solved) -> list[_Node]:
        """The two halves of a node by how large the shelf of a PTK is, or none where that is whole
        for all.
        """
        width = len(self.levels.sizes)
        used = np.flatnonzero(solved.parts > 1e-9)
        best: tuple[float, int, int] | None = None
        for i in range(len(node.low)):
            mine = used[self.columns.members[used, i]]
            if len(mine) < 2:
                continue
            shares = np.bincount(self.places[mine], weights=solved.parts[mine], minlength=width)
            passed = np.cumsum(shares) / max(shares.sum(), 1e-12)
            distance = np.abs(passed - 0.5)
            place = int(distance.argmin())
            score = float(self.columns.own[i]) * (0.5 - float(distance[place]))
            if distance[place] < 0.5 - _WHOLE and (best is None or score > best[0]):
                best = score, i, place
        if best is None:
            return []
        _, i, place = best
        low, high = list(node.low), list(node.high)
        high[i], low[i] = place + 1, place + 1
        return [replace(node, high=tuple(high)), replace(node, low=tuple(low))]
