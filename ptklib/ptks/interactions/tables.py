"""The tables of a PTK with interactions: one for each key, each pair, each triple; and where the
cells of each are in one long vector.

A key has one value more than its domain, for all that is null or not in it: so a record has exactly
one cell in every table, and the cells of a table are sums of those of a table of more keys.

**Proof note.** *Unit:* one record. Its cell in a table depends on its own keys alone. *Cost:* none;
what is counted by cell gets its noise elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.columns.keys import Codes, Key

__all__ = ["COPIES", "KeyTable", "key_tables"]

# Of a record in the largest table.
COPIES = 61


@dataclass(frozen=True)
class KeyTable:
    """Some of the keys, by their places, and their cells: ``start`` to ``stop`` of the vector."""

    places: tuple[int, ...]
    sizes: tuple[int, ...]  # of the keys, with the value more
    start: int
    copies: int  # how often a record is counted in it: more copies, less noise

    @property
    def size(self) -> int:
        """How many cells it has."""
        return math.prod(self.sizes)

    @property
    def stop(self) -> int:
        """Where the next table begins."""
        return self.start + self.size

    @property
    def order(self) -> int:
        """How many keys it is by."""
        return len(self.places)

    def codes(self, by_key: Sequence[Codes]) -> Codes:
        """The cell of each record, from its code in every key of the PTK."""
        codes = by_key[self.places[0]]
        for place, size in zip(self.places[1:], self.sizes[1:], strict=True):
            codes = codes * size + by_key[place]
        return codes

    def has(self, part: KeyTable) -> bool:
        """Whether the other table is of some of these keys, and fewer."""
        return set(part.places) < set(self.places)

    def along(self, part: KeyTable) -> NDArray[Any]:
        """The cell of ``part``, a table of some of these keys, of each cell."""
        split = np.unravel_index(np.arange(self.size), self.sizes)
        mine = [split[self.places.index(place)] for place in part.places]
        return np.asarray(np.ravel_multi_index(mine, part.sizes))

    def summed(self, values: NDArray[np.float64], part: KeyTable) -> NDArray[np.float64]:
        """Numbers of the cells, a row each, added up by cell of ``part``."""
        rest = tuple(at for at, place in enumerate(self.places) if place not in part.places)
        shaped = values.reshape(*self.sizes, values.shape[1])
        return np.asarray(shaped.sum(axis=rest).reshape(part.size, values.shape[1]))


def key_tables(keys: tuple[Key, ...], most: int, power: float) -> tuple[KeyTable, ...]:
    """Those of one key, then of two, ... up to ``most``; each in the order of the keys.

    Copies are as the number of cells to this power: see `interactions.ptk`.
    """
    wide = [key.size + 1 for key in keys]
    by_order = [combinations(range(len(keys)), order) for order in range(1, most + 1)]
    parts = [places for order in by_order for places in order]
    sizes = [tuple(wide[place] for place in places) for places in parts]
    largest = max(math.prod(mine) for mine in sizes)
    tables: list[KeyTable] = []
    start = 0
    for places, mine in zip(parts, sizes, strict=True):
        copies = max(1, round(COPIES * (math.prod(mine) / largest) ** power))
        tables.append(KeyTable(places, mine, start, copies))
        start = tables[-1].stop
    return tuple(tables)
