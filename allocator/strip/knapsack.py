"""The most valuable set of PTKs that one record can carry: at most one option each, demands within
the capacity.

Demands are counted in units. Where the capacity is a modest multiple of their common divisor the
units are exact. Otherwise they are rounded: **up** for sets to use (they fit for sure), **down**
for bounds (nothing that fits is missed). Time is PTKs times options times units; memory a byte for
each PTK and unit.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import NDArray

from allocator.table import Floats, Ints, OptionTable

__all__ = ["CELLS", "Knapsack"]

# Cells of the table of one solve, and the most units that are worth it.
CELLS = 3_000_000
_MOST_UNITS = 1 << 16
_LEAST_UNITS = 1 << 12


class Knapsack:
    """Solves for changing values over the fixed demands of one table."""

    def __init__(self, table: OptionTable, *, cells: int = CELLS) -> None:
        """Choose the units: as many as ``cells`` allow."""
        demands = table.demands
        self.units, self.exact, self._up, self._down = _in_units(table.capacity, demands, cells)
        self.cells = float(demands.size * (2 * self.units + 6000))
        self._inside = np.arange(table.width)[None, :] < table.lengths[:, None]

    def best(self, values: Floats) -> tuple[float, Ints]:
        """A set to use: its value and, for each PTK, the place of its option or -1.

        Options of value <= 0 are left out.
        """
        return self._solved(values, self._up)

    def bound(self, values: Floats) -> float:
        """No set that fits is worth more."""
        if self.exact:
            return self._solved(values, self._up)[0]
        return self._solved(values, self._down, choose=False)[0]

    def rooms(self, values: Floats, without: int) -> Floats:
        """For each option of one PTK: at most what the others are worth on a record that carries
        this option.
        """
        others = values.copy()
        others[without] = 0.0
        best = self._filled(others, self._down, None)
        return np.where(
            self._down[without] <= self.units,
            best[np.maximum(self.units - self._down[without], 0)],
            0.0,
        )

    def _solved(self, values: Floats, weights: Ints, *, choose: bool = True) -> tuple[float, Ints]:
        worth = np.where(self._inside, values, 0.0)
        chosen = np.full(len(worth), -1, dtype=np.int64)
        active = np.flatnonzero((worth > 0).any(axis=1))
        picks: NDArray[np.int16] = np.zeros(
            (len(active) if choose else 0, self.units + 1), dtype=np.int16
        )
        best = self._filled(worth, weights, picks if choose else None)
        if choose:
            left = int(np.argmax(best))
            for place in range(len(active) - 1, -1, -1):
                pick = int(picks[place, left])
                if pick:
                    i = active[place]
                    chosen[i] = pick - 1
                    left -= int(weights[i, pick - 1])
        return float(best.max()), chosen

    def _filled(self, worth: Floats, weights: Ints, picks: NDArray[np.int16] | None) -> Floats:
        """The most worth within each number of units; ``picks`` receives one more than the option,
        0 for none.
        """
        units = self.units
        best = np.zeros(units + 1)
        for place, i in enumerate(np.flatnonzero((worth > 0).any(axis=1))):
            before = best.copy()
            top = 0.0
            # By rising weight: an option that is worth no more than a lighter one never helps.
            for j in np.argsort(weights[i], kind="stable"):
                value, weight = float(worth[i, j]), int(weights[i, j])
                if value <= top or weight > units:
                    continue
                top = value
                candidate = before[: units + 1 - weight] + value
                target = best[weight:]
                better = candidate > target
                np.copyto(target, candidate, where=better)
                if picks is not None:
                    picks[place, weight:][better] = j + 1
        return best


def _in_units(capacity: int, demands: Ints, cells: int) -> tuple[int, bool, Ints, Ints]:
    most = int(min(_MOST_UNITS, max(min(_LEAST_UNITS, cells // 64), cells // max(1, demands.size))))
    unit = gcd(capacity, *map(int, np.unique(demands))) or 1
    if capacity // unit <= most:
        weights = demands // unit
        return capacity // unit, True, weights, weights
    # Python's integers: demands may be close to 64 bits.
    up = np.array([[-(-int(d) * most // capacity) for d in row] for row in demands], dtype=np.int64)
    down = np.array([[int(d) * most // capacity for d in row] for row in demands], dtype=np.int64)
    return most, False, up, down
