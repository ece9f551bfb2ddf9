"""The sets of most worth that one record can carry, exactly, however odd the demands are.

A table of rounded demands is quick and says a little too much: a set that is a millionth too heavy
counts as one that fits, and where demands lie a little above one half of the capacity that doubles
what a record seems to carry. Rounding helps where it can: demands are whole numbers, so those that
fit stay below the capacity plus one, and a demand of d counts floor(d (units + 1) / (capacity + 1)).
With a number of units one below a multiple of 2 to 10, k demands a little above one k-th do not fit
in the table either.

Here the table, filled from the last PTK to the first, is only a guide. Partial sets are built from
the first PTK to the last with their exact demands, and one is dropped when

- what it is worth and what is promised for the rest come to no more than ``above``: by the table,
  and by what the rest is worth at most for each unit of demand;
- another one is worth as much and demands no more;
- there are too many: those of least promise go, and their promise is kept as part of the bound.

So ``most`` holds whatever happens: no set that fits is worth more.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.table import Floats, Ints, OptionTable

__all__ = ["STATES", "Found", "Sets"]

# One below a multiple of the numbers from 2 to 10.
_UNITS = 2519
# Sets to hand out.
_SETS = 20
# Products of units and amounts below this stay exact in 64 bits.
_EXACT = 1 << 46
# Partial sets kept at a time.
STATES = 250
# Room for the rounding of sums of floats.
_ULPS = 1e-12


@dataclass(frozen=True)
class Found:
    """No set that fits is worth more than ``most``; ``sets`` are worth more than was asked, best
    first: by PTK the place of the option or -1.
    """

    most: float
    sets: tuple[Ints, ...]


class Sets:
    """Solves for changing values over the fixed demands of one table."""

    def __init__(self, table: OptionTable, *, units: int = _UNITS) -> None:
        """Round the demands once: ``weights`` are by PTK and option."""
        self.table = table
        self._capacity = max(1, table.capacity)
        # Where the demands are multiples of something large, fewer units tell everything.
        shared = gcd(self._capacity, *map(int, np.unique(table.demands)))
        self.units = min(units, self._capacity // shared)
        self.weights = self._rounded(table.demands)
        self._demands = [[option.demand for option in row] for row in table.rows]
        self._inside = np.arange(table.width)[None, :] < table.lengths[:, None]

    def best(
        self,
        values: Floats,
        above: float,
        effort: Effort,
        *,
        most_sets: int = _SETS,
        states: int = STATES,
    ) -> Found:
        """Sets worth more than ``above``, and what none is worth more than (at least ``above``)."""
        worth = np.where(self._inside, values, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = np.where(worth > 0, worth / self.table.demands, 0.0).max(axis=1)
        rows = np.argsort(-rates, kind="stable")
        rows = rows[rates[rows] > 0]
        # Worth for each unit of demand that the PTKs from a place on give at most.
        slopes = np.append(rates[rows], 0.0) * (1 + _ULPS)
        # An option that is worth no more than one of less demand never helps.
        so_far = np.maximum.accumulate(worth, axis=1)
        useful = worth > 0
        useful[:, 1:] &= worth[:, 1:] > so_far[:, :-1]
        promise = self._promises(worth, useful, rows)
        effort.spend(1.5 * float(useful[rows].sum()) * (self.units + 2000))
        limit = above * (1 + _ULPS)
        weights, values_now = np.zeros(1, dtype=np.int64), np.zeros(1)
        trail: list[tuple[NDArray[np.int64], NDArray[np.int16]]] = []
        dropped = 0.0
        for k, i in enumerate(rows):
            weights, values_now, parents, picks, lost = self._extended(
                weights,
                values_now,
                worth[i],
                useful[i],
                int(i),
                promise[k + 1],
                slopes[k + 1],
                limit,
                states,
            )
            dropped = max(dropped, lost)
            effort.spend(200.0 * len(weights) + 5e4)
            trail.append((parents, picks))
            if not len(weights):
                break
        most = max(above, dropped, float(values_now.max(initial=0.0))) * (1 + _ULPS)
        if not len(rows) or not len(weights):
            return Found(most, ())
        ranked = np.argsort(-values_now, kind="stable")[:most_sets]
        return Found(most, tuple(self._traced(int(last), trail, rows) for last in ranked))

    def quick(self, values: Floats, effort: Effort) -> tuple[float, Ints]:
        """A set of much worth, and what none is worth more than by the table alone.

        The table is followed from the first PTK to the last with the room that is left exactly.
        """
        worth = np.where(self._inside, values, 0.0)
        best = worth.max(axis=1)
        rows = np.flatnonzero(best > 0)
        # The tallest first: the low ones fill what they leave.
        tall = self.table.demands[rows, worth[rows].argmax(axis=1)]
        rows = rows[np.argsort(-tall, kind="stable")]
        promise = self._promises(worth, worth > 0, rows)
        effort.spend(1.5 * float((worth[rows] > 0).sum()) * (self.units + 2000) + 2e3 * len(rows))
        chosen = np.full(len(self.table), -1, dtype=np.int64)
        room, left = self._capacity, self.units
        for k, i in enumerate(rows.tolist()):
            most, taken = float(promise[k + 1, left]), -1
            for j, demand in enumerate(self._demands[i]):
                if demand <= room and worth[i, j] > 0:
                    gain = float(worth[i, j] + promise[k + 1, self._units_of(room - demand)])
                    if gain > most:
                        most, taken = gain, j
            if taken >= 0:
                chosen[i] = taken
                room -= self._demands[i][taken]
                left = self._units_of(room)
        return float(promise[0, self.units]) * (1 + _ULPS), chosen

    def _units_of(self, room: int) -> int:
        return min(self.units, room * (self.units + 1) // (self._capacity + 1))

    def rooms(self, values: Floats, rows: Ints, effort: Effort) -> Floats:
        """For each option of these PTKs: at most what the others are worth on a record that carries
        it; by place in ``rows`` and option.

        What those before a PTK and those after it are worth within each number of units is known
        from two sweeps; one more look for each option puts them together.
        """
        worth = np.where(self._inside & (values > 0), values, 0.0)
        useful = worth > 0
        everyone = np.arange(len(self.table))
        after = self._promises(worth, useful, everyone)
        before = self._promises(worth, useful, everyone[::-1])[::-1]
        effort.spend(4.0 * float(useful.sum() + self._inside[rows].sum()) * (self.units + 2000))
        room = self.room(np.minimum(self.table.demands, self._capacity))
        rooms = np.zeros((len(rows), self.table.width))
        for k, i in enumerate(rows):
            for j in range(int(self.table.lengths[i])):
                left = min(self.units - int(self.weights[i, j]), int(room[i, j]))
                if left >= 0:
                    rooms[k, j] = (before[i, : left + 1] + after[i + 1, left::-1]).max()
        return rooms

    def _rounded(self, demands: Ints) -> Ints:
        if self._capacity < _EXACT:
            return np.asarray(demands * (self.units + 1) // (self._capacity + 1))
        return np.array(
            [
                [int(demand) * (self.units + 1) // (self._capacity + 1) for demand in row]
                for row in demands
            ],
            dtype=np.int64,
        ).reshape(demands.shape)

    def room(self, weights: Ints) -> Ints:
        """The units that are left beside these weights, rounded up where they are not exact."""
        left = self._capacity - weights
        if self._capacity < _EXACT:
            return np.asarray(left * (self.units + 1) // (self._capacity + 1))
        about = np.floor(left / self._capacity * self.units).astype(np.int64) + 1
        return np.minimum(about, self.units)

    def _promises(self, worth: Floats, useful: NDArray[np.bool_], rows: Ints) -> Floats:
        """By place: at most what the PTKs from there on are worth within each number of units."""
        promise = np.zeros((len(rows) + 1, self.units + 1))
        for k in range(len(rows) - 1, -1, -1):
            i = rows[k]
            promise[k] = promise[k + 1]
            for j in np.flatnonzero(useful[i]):
                weight = int(self.weights[i, j])
                np.maximum(
                    promise[k, weight:],
                    promise[k + 1, : self.units + 1 - weight] + worth[i, j],
                    out=promise[k, weight:],
                )
        return promise

    def _extended(
        self,
        weights: Ints,
        values: Floats,
        worth: Floats,
        useful: NDArray[np.bool_],
        i: int,
        promise: Floats,
        slope: float,
        limit: float,
        states: int,
    ) -> tuple[Ints, Floats, Ints, NDArray[np.int16], float]:
        """The partial sets with and without one of this PTK's options; the best promise of those
        that were too many.
        """
        places = np.flatnonzero(useful)
        demands = np.concatenate([[0], self.table.demands[i, places]])
        gains = np.concatenate([[0.0], worth[places]])
        new_weights = (weights[:, None] + demands).ravel()
        new_values = (values[:, None] + gains).ravel()
        fits = np.flatnonzero(new_weights <= self._capacity)
        new_weights, new_values = new_weights[fits], new_values[fits]
        left = promise[self.room(new_weights)]
        # What demands nothing has no slope.
        if np.isfinite(slope):
            left = np.minimum(left, (self._capacity - new_weights) * slope)
        promised = new_values + left
        kept = np.flatnonzero(promised > limit)
        order = kept[np.lexsort((-new_values[kept], new_weights[kept]))]
        tops = np.maximum.accumulate(new_values[order])
        better = np.ones(len(order), dtype=bool)
        better[1:] = new_values[order][1:] > tops[:-1]
        order = order[better]
        lost = 0.0
        if len(order) > states:
            ranked = np.argsort(-promised[order], kind="stable")
            lost = float(promised[order[ranked[states]]])
            order = order[np.sort(ranked[:states])]
        parents, which = np.divmod(fits[order], len(demands))
        picks = np.concatenate([[-1], places])[which].astype(np.int16)
        return new_weights[order], new_values[order], parents, picks, lost

    def _traced(self, last: int, trail: list[tuple[Ints, NDArray[np.int16]]], rows: Ints) -> Ints:
        chosen = np.full(len(self.table), -1, dtype=np.int64)
        for k in range(len(trail) - 1, -1, -1):
            parents, picks = trail[k]
            chosen[rows[k]] = int(picks[last])
            last = int(parents[last])
        return chosen
