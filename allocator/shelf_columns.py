"""The linear program over shelves: the fewest records when shelves may be used in parts.

A column is a set of PTKs at the cost of the smallest level where it fits. With u_c of column c:

    minimise sum_c cost_c u_c   subject to   sum_{c has i} u_c >= 1  for every PTK i,   u >= 0.

Its dual has a price for every PTK and, for every shelf, that its members' prices are at most its size; it is solved by cutting
planes, the most violated shelves being knapsacks (`allocator.shelf_pricing`). *Certificate:* for any prices, if at every level
N no shelf is worth more than r * N, then prices / r are feasible and their sum is a lower bound on every shelf plan (Farley).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.levels import Levels
from allocator.shelf_pricing import Pricing
from allocator.table import Floats, Ints

__all__ = ["Columns", "Relaxed"]

_SAFE = 1e-9
_CONVERGED = 1e-7
_SMOOTHING = 0.5
_KEPT = 12
_FRESH = 20
# Steps of the linear solver for each entry of its matrix.
_ENTRY = 1500.0


@dataclass(frozen=True)
class Relaxed:
    """A solved relaxation: ``bound`` is certified by ``prices``; ``parts`` of the columns make a plan in parts of ``value``."""

    bound: float
    value: float
    prices: Floats
    parts: Floats


class Columns:
    """The shelves found so far."""

    def __init__(self, levels: Levels, pricing: Pricing) -> None:
        """Start without any but single PTKs, which are there always."""
        self.levels = levels
        self.pricing = pricing
        count = len(levels.needs)
        self.own = np.array([float(levels.sizes[int((row > levels.units).sum())]) for row in levels.needs])
        self.members: NDArray[np.bool_] = np.zeros((0, count), dtype=bool)
        self.costs: Floats = np.zeros(0)
        self._known: set[bytes] = set()
        self.bound = 0.0
        self.prices = np.zeros(count)
        self._classes: Ints = np.arange(count)
        self._base: Floats = np.ones(count)

    def add(self, members: NDArray[np.bool_]) -> int:
        """Remember shelves; how many are new."""
        fresh = []
        for row in members:
            key = np.packbits(row).tobytes()
            if key not in self._known and row.any():
                self._known.add(key)
                fresh.append(row)
        if fresh:
            costs = [float(self.levels.cost(np.flatnonzero(row))) for row in fresh]
            self.members = np.concatenate([self.members, np.array(fresh)])
            self.costs = np.concatenate([self.costs, costs])
        return len(fresh)

    def tie(self, classes: Ints, base: Floats) -> None:
        """From now on prices are ``base`` times one unknown for each class."""
        self._classes, self._base = classes, base

    def relax(
        self, *, enough: float, effort: Effort, columns: int = 60, rounds: int = 1000, gap: float = 0.0
    ) -> Relaxed:
        """Solve. Stops early when the bound reaches ``enough``, is within ``gap`` of the value, or effort is over."""
        places = np.arange(len(self.pricing.tops))
        # Groups that were worth something last time come first; the others are looked at when those are done.
        likely = places
        while True:
            prices, parts, value = self.master(effort)
            rounds -= 1
            if value <= self.bound * (1 + max(gap, _CONVERGED)) or self.bound >= enough or rounds < 0 or effort.over:
                break
            found = 0
            for at in (_SMOOTHING * self.prices + (1 - _SMOOTHING) * prices, prices):
                for group in (likely, places):
                    ratios = self.pricing.values(at, group, effort) / self.pricing.least[group]
                    if group is places:
                        self._certify(at, float(ratios.max()))
                        likely = places[ratios > 0.97 * ratios.max()] if len(places) > 200 else places
                    chosen = group[np.argsort(-ratios, kind="stable")[:columns]]
                    chosen = np.sort(chosen[ratios[np.searchsorted(group, chosen)] > 1 + _CONVERGED])
                    if len(chosen):
                        sets = self.pricing.sets(at, chosen, effort)
                        worth = (sets * prices).sum(axis=1)
                        cuts = worth > np.array(
                            [self.levels.cost(np.flatnonzero(s)) if s.any() else 1e300 for s in sets]
                        ) * (1 + _CONVERGED)
                        found += self.add(sets[cuts])
                    if found or group is places:
                        break
                if found:
                    break
            if not found and not self._exactly(prices, effort):
                break
        return Relaxed(self.bound, value, self.prices, parts)

    def _exactly(self, prices: Floats, effort: Effort) -> int:
        """Where rounding may have hidden a shelf, look without; certify what is found. How many shelves are new."""
        if self.pricing.exact or len(self.pricing.tops) != len(self.levels.sizes):
            return 0
        places = np.arange(len(self.pricing.tops))
        ratios = self.pricing.values(prices, places, effort) / self.pricing.least
        fresh: list[NDArray[np.bool_]] = []
        for place in np.argsort(-ratios, kind="stable"):
            if ratios[place] <= 1 or effort.over or len(fresh) >= _FRESH:
                break
            size = float(self.pricing.sizes[place])
            value, members = self.pricing.exactly(prices, int(place), size * (1 + _CONVERGED), effort)
            if np.isfinite(value):
                ratios[place] = value / size
            if members.any():
                fresh.append(members)
        self._certify(prices, float(ratios.max()))
        return self.add(np.array(fresh)) if fresh else 0

    def _certify(self, prices: Floats, most: float) -> None:
        bound = float(prices.sum()) / max(most, 1e-300) * (1 - _SAFE)
        if bound > self.bound:
            self.bound, self.prices = bound, prices / most * (1 - _SAFE)

    def master(self, effort: Effort) -> tuple[Floats, Floats, float]:
        """Best prices for the columns at hand, the parts of the columns, and the value."""
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        count = int(self._classes.max()) + 1
        effort.spend(4e6 + _ENTRY * float(min(self.members.sum(), len(self.costs) * count)))
        if not len(self.costs):
            return self.own, np.zeros(0), float(self.own.sum())
        # Unknowns in units of the most that a class can be paid, so that numbers are of one size.
        most = np.full(count, np.inf)
        np.minimum.at(most, self._classes, self.own / self._base)
        base = self._base * most[self._classes]
        scale = float(self.own.max())
        ties = csr_array((base / scale, (np.arange(len(base)), self._classes)), shape=(len(base), count))
        answer = linprog(
            -np.bincount(self._classes, weights=base, minlength=count) / scale,
            A_ub=csr_array(self.members, dtype=np.float64) @ ties,
            b_ub=self.costs / scale,
            bounds=(0, 1),
            method="highs-ds",
        )
        if answer.status != 0:
            return self.own, np.zeros(len(self.costs)), float(self.own.sum())
        parts = -answer.ineqlin.marginals
        prices = np.asarray(answer.x)[self._classes] * base
        if len(self.costs) > _KEPT * count + 400:
            slack = np.where(parts > 0, -1.0, answer.ineqlin.residual / self.costs)
            stay = np.sort(np.argsort(slack, kind="stable")[: (len(slack) + 1) // 2])
            self.members, self.costs, parts = self.members[stay], self.costs[stay], parts[stay]
            self._known = {np.packbits(row).tobytes() for row in self.members}
        return prices, parts, float(prices.sum())
