"""Adding up whole numbers by cell, as fast for sorted records as for shuffled ones.

A processor waits when it adds to the cell it has just added to, so records in the order of their
keys (times, most often) would take three times as long. Neighbouring records are therefore added to
different copies of the cells, *lanes*, which are added up at the end. Counts and sums are had in
one pass, as the high and the low digits of one sum.

**Proof note.** *Unit:* one record, which adds to its own cell alone. All numbers are whole and
below 2^53 on the way, so sums are exact and the order of the records changes nothing. *Cost:* none.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptklib.columns.keys import Codes

__all__ = ["Adder"]

_LANES = 4
# Beyond this many cells neighbours hardly meet, and the copies would fill the cache.
_MOST_CELLS = 1 << 11
_EXACT_BITS = 53

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


class Adder:
    """Adds up over ``cells`` codes. Values are whole numbers from 0 to ``most``, as floats."""

    def __init__(self, cells: int, most: int = 1) -> None:
        """Give the number of cells and the largest value."""
        self._cells = cells
        self._most = most
        self._lanes = _LANES if cells <= _MOST_CELLS else 1
        self._offsets = np.zeros(0, dtype=np.intp)

    def places(self, codes: Codes) -> Codes:
        """The codes, each in its lane: what the other methods take."""
        if self._lanes == 1:
            return codes
        if len(self._offsets) < len(codes):
            self._offsets = np.arange(len(codes), dtype=np.intp) % self._lanes * self._cells
        return codes + self._offsets[: len(codes)]

    def counts(self, places: Codes) -> Integers:
        """How many records each cell has."""
        return self._folded(np.bincount(places, minlength=self._lanes * self._cells))

    def sums(self, places: Codes, values: Floats) -> Integers:
        """The sum of the values of each cell; together they must stay below 2^53."""
        by_lane = np.bincount(places, weights=values, minlength=self._lanes * self._cells)
        return self._folded(by_lane.astype(np.int64))

    def counts_and_sums(self, places: Codes, values: Floats) -> tuple[Integers, Integers]:
        """Both at once, where 53 bits hold them side by side."""
        bits = (len(places) * self._most).bit_length()
        if bits + len(places).bit_length() >= _EXACT_BITS:
            return self.counts(places), self.sums(places, values)
        both = np.bincount(
            places, weights=values + float(1 << bits), minlength=self._lanes * self._cells
        )
        whole = both.astype(np.int64)
        return self._folded(whole >> bits), self._folded(whole & ((1 << bits) - 1))

    def _folded(self, by_lane: Integers) -> Integers:
        if self._lanes == 1:
            return by_lane
        total: Integers = by_lane.reshape(self._lanes, self._cells).sum(axis=0)
        return total
