"""The most valuable shelf at every level: 0/1 knapsacks with the same values and different weights,
solved side by side.

One table of values by (level, units) is filled PTK by PTK; a PTK's weight is constant over runs of
levels, so a step is a few array operations for all levels at once. Where the capacity has too many
units, weights are rounded: **up** for sets to use, **down** for bounds. Levels may be taken
together in *groups*: a group has the weights of its highest level and is compared with the size of
its lowest, which is again on the safe side for bounds.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.shelf.levels import Levels
from allocator.table import Floats, Ints

__all__ = ["Pricing"]

# Cells of the table of one PTK that are handled at a time, so that they stay close to the
# processor.
_CHUNK = 60_000
# Rounding of single precision, over a sum of values.
SAFE = 2e-6
# The most units, and the share of what is left to spend that pricing once with more units may take.
_FINEST = 1 << 12
_SHARE = 0.1
# Undominated sums that are kept at a time.
_SUMS = 20_000


class Pricing:
    """Solves for changing values over fixed levels."""

    def __init__(self, levels: Levels, *, most_units: int, groups: Ints | None = None) -> None:
        """``groups``: the last level of each group, rising; every level by itself, in double
        precision, when left out.
        """
        self._kind = np.float64 if groups is None else np.float32
        self._safe = 1e-12 if groups is None else SAFE
        self._levels = levels
        self._groups = groups
        tops = np.arange(len(levels.sizes)) if groups is None else groups
        bottoms = np.concatenate([[0], tops[:-1] + 1])
        self.tops = tops
        self.single = groups is None
        # What a shelf of the group holds at least and at most.
        self.least: Floats = levels.sizes[bottoms].astype(np.float64)
        self.sizes: Floats = levels.sizes[tops].astype(np.float64)
        self.exact = levels.units <= most_units
        self.units = levels.units if self.exact else most_units
        needs = levels.needs[:, tops]
        self.up, self.down = needs, needs
        if not self.exact:
            beyond = needs > levels.units
            share = most_units / levels.units
            # Floats decide next to a whole number: a unit to the safe side is a unit to the safe
            # side.
            self.up = np.where(
                beyond, most_units + 1, np.ceil(needs * share * (1 + 1e-12)).astype(np.int64)
            )
            self.down = np.where(
                beyond, most_units + 1, np.floor(needs * share * (1 - 1e-12)).astype(np.int64)
            )

    def finer(self, effort: Effort) -> Pricing | None:
        """The same with smaller units; None where these are exact, levels single or smaller ones
        too slow.
        """
        if self.exact or self.single or 4 * self.units > _FINEST:
            return None
        left = effort.limit - effort.spent
        if 4 * self.steps(len(self.tops), len(self.up)) > _SHARE * left:
            return None
        return Pricing(self._levels, most_units=4 * self.units, groups=self._groups)

    def steps(self, count: int, ptks: int) -> float:
        """About what it takes to price so many groups."""
        return ptks * (6000.0 + 0.7 * count * self.units)

    def values(self, prices: Floats, places: Ints, effort: Effort) -> Floats:
        """Upper bounds on the value of a shelf at each of these groups."""
        active = np.flatnonzero(prices > 0)
        effort.spend(self.steps(len(places), len(active)))
        worth = np.zeros(len(places))
        rows = max(1, _CHUNK // (self.units + 1))
        for begin in range(0, len(places), rows):
            some = places[begin : begin + rows]
            worth[begin : begin + rows] = self._filled(prices, active, some, self.down, None)[:, -1]
        return worth * (1 + self._safe)

    def sets(
        self, prices: Floats, places: Ints, effort: Effort, *, loose: bool = False
    ) -> NDArray[np.bool_]:
        """A most valuable shelf, up to rounding, at each of these groups: members by group and PTK.

        ``loose``: with weights rounded down, so that it may not fit.
        """
        weights = self.down if loose else self.up
        active = np.flatnonzero(prices > 0)
        effort.spend(2 * self.steps(len(places), len(active)))
        members = np.zeros((len(places), len(prices)), dtype=bool)
        rows = max(1, 4 * _CHUNK // (self.units + 1))
        for begin in range(0, len(places), rows):
            some = places[begin : begin + rows]
            taken = np.zeros((len(active), len(some), self.units + 1), dtype=bool)
            self._filled(prices, active, some, weights, taken)
            left = np.full(len(some), self.units)
            here = np.arange(len(some))
            for place in range(len(active) - 1, -1, -1):
                i = active[place]
                picked = taken[place, here, left]
                members[begin : begin + rows, i] = picked
                left = left - np.where(picked, weights[i, some], 0)
        return members

    def exactly(
        self, prices: Floats, place: int, floor: float, effort: Effort
    ) -> tuple[float, NDArray[np.bool_]]:
        """A most valuable shelf at one group among those worth more than ``floor``; ``floor`` and
        nobody when there is none.

        By lists of undominated (units, value) sums, most value for its units first; what cannot
        reach the floor is dropped.
        """
        needs = self._levels.needs[:, self.tops[place]]
        capacity = self._levels.units
        usable = np.flatnonzero((prices > 0) & (needs <= capacity))
        order = usable[np.lexsort((usable, -prices[usable] / np.maximum(needs[usable], 0.5)))]
        heavy, worth = (
            np.cumsum(np.append(0, needs[order])),
            np.cumsum(np.append(0.0, prices[order])),
        )
        loads, values = np.zeros(1, dtype=np.int64), np.zeros(1)
        # Which sum of the step before each sum came from, and whether the PTK was added to it.
        history: list[tuple[Ints, NDArray[np.bool_]]] = []
        for k, i in enumerate(order):
            with_it = loads + needs[i]
            fits = np.flatnonzero(with_it <= capacity)
            where = np.concatenate([np.arange(len(loads)), fits])
            added = np.concatenate(
                [np.zeros(len(loads), dtype=bool), np.ones(len(fits), dtype=bool)]
            )
            loads = np.concatenate([loads, with_it[fits]])
            values = np.concatenate([values, values[fits] + prices[i]])
            reach = values + np.interp(
                capacity - loads, heavy[k + 1 :] - heavy[k + 1], worth[k + 1 :] - worth[k + 1]
            )
            order_here = np.lexsort((-values, loads))
            best = np.maximum.accumulate(values[order_here])
            kept = np.concatenate([[True], values[order_here][1:] > best[:-1]]) & (
                reach[order_here] > floor
            )
            chosen = order_here[kept]
            effort.spend(30_000 + 100.0 * len(loads))
            if not len(chosen) or len(chosen) > _SUMS:
                return (
                    (floor, np.zeros(len(prices), dtype=bool))
                    if not len(chosen)
                    else (np.inf, np.zeros(0, dtype=bool))
                )
            history.append((where[chosen], added[chosen]))
            loads, values = loads[chosen], values[chosen]
        members = np.zeros(len(prices), dtype=bool)
        if not len(order) or float(values.max()) <= floor:
            return floor, members
        at = int(values.argmax())
        top = float(values[at])
        for k in range(len(order) - 1, -1, -1):
            where, added = history[k]
            members[order[k]] = added[at]
            at = int(where[at])
        return top * (1 + 1e-12), members

    def _filled(
        self,
        prices: Floats,
        active: Ints,
        places: Ints,
        weights: Ints,
        taken: NDArray[np.bool_] | None,
    ) -> NDArray[Any]:
        units = self.units
        best = np.zeros((len(places), units + 1), dtype=self._kind)
        heavy = weights[np.ix_(active, places)]
        worth = prices.astype(self._kind)
        for place, i in enumerate(active):
            row = heavy[place]
            cuts = np.flatnonzero(row[1:] != row[:-1]) + 1
            begin = 0
            for end in (*cuts.tolist(), len(row)):
                weight = int(row[begin])
                if weight <= units:
                    target = best[begin:end, weight:]
                    candidate = best[begin:end, : units + 1 - weight] + worth[i]
                    if taken is None:
                        np.maximum(target, candidate, out=target)
                    else:
                        better = candidate > target
                        taken[place, begin:end, weight:] = better
                        np.copyto(target, candidate, where=better)
                begin = end
        return best
