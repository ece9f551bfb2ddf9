"""A problem as levels: how large a partition is decides what each of its members demands.

In a partition of N samples PTK i demands d_i(N) = min{ d_ij : n_ij <= N }, which falls as N rises.
So a shelf is a *level* N, one of the distinct n_ij, and a set of members with sum d_i(N) <=
capacity; and the cost of a set is the smallest level at which it fits. Which option each member
takes follows.

Demands are counted in units: exactly, by their common divisor, unless the capacity has more than
2**40 of those; then they are rounded up, which never lets in what does not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np

from allocator.table import Ints, OptionTable

__all__ = ["Levels", "coarse", "groups_of", "levels_of"]

_MOST_UNITS = 1 << 40


@dataclass(frozen=True)
class Levels:
    """Sizes by rising samples; ``needs`` by PTK and level in units, ``units + 1`` where the PTK has
    no option that small.
    """

    sizes: Ints
    needs: Ints
    units: int

    def cost_of(self, loads: Ints) -> Ints:
        """The place of the smallest level where each row of loads (sums of needs) fits; the number
        of levels when none.
        """
        return np.asarray((loads > self.units).sum(axis=-1))

    def cost(self, members: Ints) -> int:
        """Samples of the smallest shelf for these PTKs, which must exist."""
        return int(self.sizes[int(self.cost_of(self.needs[members].sum(axis=0)))])


def levels_of(table: OptionTable) -> Levels:
    """All levels of a table."""
    sizes = np.unique(
        np.concatenate([[option.samples for option in row] for row in table.rows]).astype(np.int64)
    )
    # No shelf is lower than what its neediest member asks for at least; all levels from the lowest
    # on may be one.
    unit = gcd(table.capacity, *(option.demand for row in table.rows for option in row)) or 1
    units = table.capacity // unit
    exact = units <= _MOST_UNITS
    if not exact:
        units = _MOST_UNITS
    needs = np.full((len(table), len(sizes)), units + 1, dtype=np.int64)
    for i, row in enumerate(table.rows):
        # By rising demand and falling samples: the cheaper option overwrites the dearer one from
        # its own level on.
        for option in reversed(row):
            demand = option.demand // unit if exact else -(-option.demand * units // table.capacity)
            needs[i, np.searchsorted(sizes, option.samples) :] = demand
    return Levels(sizes, needs, units)


def coarse(levels: Levels, ratio: float) -> Levels:
    """Only the largest level of each run of levels within the ratio: what fits there costs at most
    that much more.
    """
    places = groups_of(levels.sizes, ratio)
    return Levels(levels.sizes[places], levels.needs[:, places], levels.units)


def groups_of(sizes: Ints, ratio: float) -> Ints:
    """The last level of each run whose sizes are within the ratio."""
    tops, lowest = [], int(sizes[0])
    for k, size in enumerate(sizes.tolist()):
        if size > lowest * ratio:
            tops.append(k - 1)
            lowest = size
    return np.array([*tops, len(sizes) - 1], dtype=np.int64)
