"""The linear program over shelves: the fewest records when shelves may be used in parts.

A column is a set of PTKs at the cost of the smallest level where it fits. With u_c of column c:

    minimise sum_c cost_c u_c   subject to   sum_{c has i} u_c >= 1  for every PTK i,   u >= 0.

Its dual has a price for every PTK and, for every shelf, that its members' prices are at most its
size; it is solved by cutting planes, the most violated shelves being knapsacks
(`allocator.shelf.pricing`), from the prices of areas on, and only over prices that respect
exchanges (`allocator.shelf.exchange`). *Certificate:* for any prices, if at every level N no shelf
is worth more than r * N, then prices / r are feasible and their sum is a lower bound on every shelf
plan (Farley).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.shelf.exchange import Exchanges, exchanges_of
from allocator.shelf.levels import Levels
from allocator.shelf.pricing import Pricing
from allocator.table import Floats, Ints

__all__ = ["Columns", "ShelfRelaxation"]

_SAFE = 1e-9
_CONVERGED = 1e-7
_SMOOTHING = 0.6
# Below this the prices of the linear program are taken as they are.
_LITTLE = 0.3
_KEPT = 4
_FRESH = 20
# Groups whose best shelves are there from the beginning.
_FIRST = 200
# Sets that fit by rounding that are added at a time.
_LOOSE = 100
_PATIENCE = 12
# Steps of the linear solver for each entry of its matrix.
_ENTRY = 1500.0


@dataclass(frozen=True)
class ShelfRelaxation:
    """A solved relaxation:

    ``bound`` is certified by ``prices``; ``parts`` of the columns make a plan in parts of
    ``value``.
    """

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
        self.own = np.array(
            [float(levels.sizes[int((row > levels.units).sum())]) for row in levels.needs]
        )
        self.members: NDArray[np.bool_] = np.zeros((0, count), dtype=bool)
        self.costs: Floats = np.zeros(0)
        self._known: set[bytes] = set()
        self.bound = 0.0
        self.prices = np.zeros(count)
        self._classes: Ints = np.arange(count)
        self._base: Floats = np.ones(count)
        self._tied = False

    @cached_property
    def exchanges(self) -> Exchanges:
        """Who can take whose place."""
        return exchanges_of(self.levels)

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
        self._tied = len(np.unique(classes)) < len(classes)

    def relax(
        self,
        *,
        enough: float,
        effort: Effort,
        columns: int = 60,
        rounds: int = 1000,
        gap: float = 0.0,
    ) -> ShelfRelaxation:
        """Solve.

        Stops early when the bound reaches ``enough``, is within ``gap`` of the value, or effort is
        over.
        """
        if not self.bound:
            self._begin(effort)
        lowest, idle = np.inf, 0
        while True:
            prices, parts, value = self.master(effort)
            rounds -= 1
            lowest, idle = (value, 0) if value < lowest * (1 - gap / 10) else (lowest, idle + 1)
            # Where the bound cannot follow because of rounding, the value is all there is to gain.
            if gap and idle > _PATIENCE and not self.pricing.single:
                break
            if (
                value <= self.bound * (1 + max(gap, _CONVERGED))
                or self.bound >= enough
                or rounds < 0
                or effort.over
            ):
                break
            if self._cut_off(prices, columns, effort):
                continue
            # Nothing is found where rounding lets in what does not fit: look more closely.
            finer = self.pricing.finer(effort)
            if finer is None:
                break
            self.pricing = finer
        return ShelfRelaxation(self.bound, value, self.prices, parts)

    def tighten(self, *, gap: float, effort: Effort) -> None:
        """A better bound where units and groups are rounded, from the rounded problem itself.

        Sets that fit only by rounding keep the certificate low for prices that do not know of them.
        Here they are cuts like the shelves, at the size of the lowest level of their group, until
        the prices respect them all.
        """
        if self.pricing.exact and self.pricing.single:
            return
        places = np.arange(len(self.pricing.tops))
        members: NDArray[np.bool_] = np.zeros((0, len(self.own)), dtype=bool)
        costs: Floats = np.zeros(0)
        while not effort.over:
            prices, _, value = self.master(effort, members, costs)
            if value <= self.bound * (1 + gap):
                break
            at = _SMOOTHING * self.prices + (1 - _SMOOTHING) * prices
            ratios = self.pricing.values(at, places, effort) / self.pricing.least
            self._certify(at, float(ratios.max()))
            chosen = np.argsort(-ratios, kind="stable")[:_LOOSE]
            chosen = np.sort(chosen[ratios[chosen] > 1 + _CONVERGED])
            sets = self.pricing.sets(at, chosen, effort, loose=True)
            cuts = (sets @ prices) > self.pricing.least[chosen] * (1 + _CONVERGED)
            if not cuts.any():
                chosen = np.sort(np.argsort(-ratios, kind="stable")[:_LOOSE])
                sets = self.pricing.sets(prices, chosen, effort, loose=True)
                cuts = (sets @ prices) > self.pricing.least[chosen] * (1 + _CONVERGED)
            if not cuts.any():
                break
            members = np.concatenate([members, sets[cuts]])
            costs = np.concatenate([costs, self.pricing.least[chosen[cuts]]])

    def _begin(self, effort: Effort) -> None:
        """Prices by area, or those that were set before; and the shelves that are worth most at
        those.
        """
        if not self.prices.any():
            levels = self.levels
            areas = np.where(
                levels.needs <= levels.units, levels.needs * levels.sizes.astype(np.float64), np.inf
            )
            areas = areas.min(axis=1) / max(1, levels.units)
            self.prices = np.minimum(np.maximum(areas, 1e-9 * float(areas.max()) + 1e-9), self.own)
        places = np.arange(len(self.pricing.tops))
        at = self.prices
        self._certify(
            at, float((self.pricing.values(at, places, effort) / self.pricing.least).max())
        )
        self.add(self.pricing.sets(at, places[:: 1 + len(places) // _FIRST], effort))

    def _cut_off(self, prices: Floats, columns: int, effort: Effort) -> int:
        """Shelves that are worth more than they hold at these prices, found at prices between these
        and the certified ones.
        """
        places = np.arange(len(self.pricing.tops))
        share = _SMOOTHING
        while not effort.over:
            at = share * self.prices + (1 - share) * prices
            ratios = self.pricing.values(at, places, effort) / self.pricing.least
            before = self.bound
            self._certify(at, float(ratios.max()))
            chosen = np.argsort(-ratios, kind="stable")[:columns]
            chosen = np.sort(chosen[ratios[chosen] > 1 + _CONVERGED])
            if len(chosen):
                sets = self.pricing.sets(at, chosen, effort)
                sets = sets[(sets @ prices) > self._costs(sets) * (1 + _CONVERGED)]
                if cut_off := self.add(sets):
                    return cut_off
            if self.pricing.finer(effort) is not None:
                return 0
            if not share:
                return self._exactly(prices, ratios, effort)
            if self.bound <= before:
                share = share / 2 if share > _LITTLE else 0.0
        return 0

    def _costs(self, sets: NDArray[np.bool_]) -> Floats:
        return np.array(
            [self.levels.cost(np.flatnonzero(set_)) if set_.any() else np.inf for set_ in sets],
            dtype=np.float64,
        )

    def _exactly(self, prices: Floats, ratios: Floats, effort: Effort) -> int:
        """Where rounding may have hidden a shelf, look without; certify what is found.

        How many shelves are new.
        """
        if self.pricing.exact or not self.pricing.single:
            return 0
        fresh: list[NDArray[np.bool_]] = []
        for place in np.argsort(-ratios, kind="stable"):
            if ratios[place] <= 1 or effort.over or len(fresh) >= _FRESH:
                break
            size = float(self.pricing.sizes[place])
            value, members = self.pricing.exactly(
                prices, int(place), size * (1 + _CONVERGED), effort
            )
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

    def master(
        self,
        effort: Effort,
        more_members: NDArray[np.bool_] | None = None,
        more_costs: Floats | None = None,
    ) -> tuple[Floats, Floats, float]:
        """Best prices for the columns at hand (and more), the parts of the columns, and the
        value.
        """
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, vstack

        count = int(self._classes.max()) + 1
        entries = float(min(self.members.sum(), len(self.costs) * count))
        entries += 0.0 if self._tied else 8.0 * len(self.exchanges.pairs)
        effort.spend(4e6 + _ENTRY * entries * max(1.0, count / 50) ** 0.75)
        if not len(self.costs):
            return self.own, np.zeros(0), float(self.own.sum())
        # Unknowns in units of the most that a class can be paid, so that numbers are of one size.
        most = np.full(count, np.inf)
        np.minimum.at(most, self._classes, self.own / self._base)
        base = self._base * most[self._classes]
        scale = float(self.own.max())
        ties = csr_array(
            (base / scale, (np.arange(len(base)), self._classes)), shape=(len(base), count)
        )
        matrix, limits = csr_array(self.members, dtype=np.float64) @ ties, self.costs / scale
        if more_members is not None and more_costs is not None:
            matrix = vstack([matrix, csr_array(more_members, dtype=np.float64) @ ties])
            limits = np.concatenate([limits, more_costs / scale])
        if not self._tied:
            easier, harder = self.exchanges.pairs.T
            rows = np.arange(len(easier))
            values = np.concatenate([self.own[easier], -self.own[harder]]) / scale
            more = csr_array(
                (values, (np.tile(rows, 2), np.concatenate([easier, harder]))),
                shape=(len(rows), count),
            )
            matrix, limits = (
                vstack([matrix, more]).tocsr(),
                np.concatenate([limits, np.zeros(len(rows))]),
            )
        answer = linprog(
            -np.bincount(self._classes, weights=base, minlength=count) / scale,
            A_ub=matrix,
            b_ub=limits,
            bounds=(0, 1),
            method="highs-ds",
            options={"presolve": False},
        )
        if answer.status != 0:
            return self.own, np.zeros(len(self.costs)), float(self.own.sum())
        parts = -answer.ineqlin.marginals[: len(self.costs)]
        prices = np.asarray(answer.x)[self._classes] * base
        if len(self.costs) > _KEPT * count + 200:
            slack = np.where(
                parts > 0, -1.0, answer.ineqlin.residual[: len(self.costs)] / self.costs
            )
            stay = np.sort(np.argsort(slack, kind="stable")[: (len(slack) + 1) // 2])
            self.members, self.costs, parts = self.members[stay], self.costs[stay], parts[stay]
            self._known = {np.packbits(row).tobytes() for row in self.members}
        return prices, parts, float(prices.sum())
