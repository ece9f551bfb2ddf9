"""The best shelf plan of a handful of PTKs, by trying all: over sets, each set's lowest PTK chooses
its companions.

The cost of a set is the smallest level where it fits; best(S) = min over T with the lowest PTK of S
of cost(T) + best(S - T). 3**13 steps are 1.6 million.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.shelf.levels import Levels
from allocator.shelf.local_search import Shelves
from allocator.table import Ints

__all__ = ["MOST_PTKS", "best_cover"]

MOST_PTKS = 13
_NEVER = 1 << 60


def best_cover(levels: Levels, effort: Effort) -> Shelves:
    """An optimal set of shelves; of equal ones the one whose first shelves come first by number."""
    count = len(levels.needs)
    effort.spend(float(3**count) + 2.0**count * (levels.needs.shape[1] + 20_000))
    costs = _costs(levels)
    best: Ints = np.full(1 << count, _NEVER, dtype=np.int64)
    with_whom: Ints = np.zeros(1 << count, dtype=np.int64)
    best[0] = 0
    for whole in range(1, 1 << count):
        lowest = whole & -whole
        companions = _subsets(whole ^ lowest)
        totals = costs[companions | lowest] + best[whole ^ lowest ^ companions]
        place = int(totals.argmin())
        best[whole], with_whom[whole] = totals[place], companions[place] | lowest
    shelves, left = [], (1 << count) - 1
    while left:
        taken = int(with_whom[left])
        shelves.append(np.array([i for i in range(count) if taken >> i & 1], dtype=np.int64))
        left ^= taken
    return shelves


def _costs(levels: Levels) -> Ints:
    count, width = levels.needs.shape
    sizes = np.append(levels.sizes, _NEVER >> 4)
    costs = np.zeros(1 << count, dtype=np.int64)
    # Loads of the sets of the last few PTKs, added to those of the first: never all at once in
    # memory.
    low = min(count, 8)
    inner = np.zeros((1, width), dtype=np.int64)
    for i in range(low):
        inner = np.concatenate([inner, inner + levels.needs[i]])
    for outer in range(1 << (count - low)):
        more = sum(
            (levels.needs[low + k] for k in range(count - low) if outer >> k & 1),
            np.zeros(width, dtype=np.int64),
        )
        costs[outer << low : (outer + 1) << low] = sizes[
            ((inner + more) > levels.units).sum(axis=1)
        ]
    costs[0] = 0
    return costs


def _subsets(mask: int) -> Ints:
    """All subsets of a mask, rising."""
    subsets = np.zeros(1, dtype=np.int64)
    bit = 1
    while bit <= mask:
        if mask & bit:
            subsets = np.concatenate([subsets, subsets | bit])
        bit <<= 1
    return subsets
