"""Where the cells of the counts PTK are: one flat array, a table for each key (for each row of a
hashed one) in it.

A table has a line for every value of the key's domain and one more for what is null or outside, and
a cell for each class in every line. Offsets follow from the configuration alone. Nothing here adds
noise or has a cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories, Codes, IntegerRange, TimePart
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.ptk import Batches, batches_of, column_of
from ptklib.ptks.counts.estimate import combined
from ptklib.ptks.tables.hashing import Hashed

__all__ = [
    "PIECE",
    "ROWS_AT_ONCE",
    "STRETCH",
    "TOP_32",
    "CountTable",
    "Feature",
    "add_saturated",
    "hold",
    "name_of",
    "pieces",
    "rows_of",
    "tally",
]

# Cells are filled, and records counted, in pieces that stay near the processor.
PIECE = 1 << 15
ROWS_AT_ONCE = 1 << 16
# Cells of 32 bits stop here. They are held after so many records at most, which cannot carry one
# past its end.
STRETCH = 1 << 26
TOP_32 = 2**31 - 1 - STRETCH
# Counting into a table of its own and adding that is faster while the table is so much smaller than
# the piece.
_SMALL = 8

Feature = Categories | IntegerRange | Bins | TimePart | Hashed
Floats = NDArray[np.float64]
Integers = NDArray[Any]


@dataclass(frozen=True)
class CountTable:
    """The cells of one key: ``rows`` tables of ``lines`` by ``classes``, from ``start`` on."""

    key: Feature
    rows: int
    lines: int
    classes: int
    start: int

    @property
    def stop(self) -> int:
        """The end of its cells."""
        return self.start + self.rows * self.lines * self.classes

    def row(self, cells: Integers, row: int) -> Integers:
        """One table, flat: a view."""
        size = self.lines * self.classes
        return cells[self.start + row * size : self.start + (row + 1) * size]

    def lines_of(self, cells: Integers) -> Integers:
        """All of them, as (rows, lines, classes): a view."""
        return cells[self.start : self.stop].reshape(self.rows, self.lines, self.classes)

    def codes(self, frame: pa.RecordBatch | pa.Table) -> list[Codes]:
        """The line of each record, for every row. The last line is for what is null or unknown."""
        column = column_of(frame, self.key.column)
        return (
            self.key.row_codes(column) if isinstance(self.key, Hashed) else [self.key.codes(column)]
        )

    def read(self, cells: Integers, codes: list[Codes] | None) -> Floats:
        """Noisy counts by class, of all lines or of those of the codes; rows are combined."""
        tables = self.lines_of(cells)
        chosen = [
            tables[row] if codes is None else tables[row][codes[row]] for row in range(self.rows)
        ]
        return combined(np.stack(chosen).astype(np.float64))


def rows_of(key: Feature) -> int:
    """How many tables a key has."""
    return key.rows if isinstance(key, Hashed) else 1


def name_of(key: Feature) -> str:
    """What its features are named after."""
    return f"{key.column}_{key.part}" if isinstance(key, TimePart) else key.column


def pieces(batches: Batches) -> Iterator[pa.RecordBatch]:
    """The records, `ROWS_AT_ONCE` at most at a time."""
    for batch in batches_of(batches):
        for start in range(0, batch.num_rows, ROWS_AT_ONCE):
            yield batch.slice(start, ROWS_AT_ONCE)


def tally(cells: Integers, places: Codes) -> None:
    """Add one to the cell at every place.

    Wraps around like the integers of its type: see `hold`.
    """
    if len(cells) * _SMALL <= len(places):
        counts = np.bincount(places, minlength=len(cells))
        np.add(cells, counts, out=cells, casting="unsafe")
    else:
        np.add.at(cells, places, cells.dtype.type(1))


def hold(cells: Integers) -> None:
    """Stop cells of 32 bits at `TOP_32`.

    Counts only rise, so stopping on the way is the same as stopping their sum.
    """
    if cells.dtype == np.int32:
        np.minimum(cells, TOP_32, out=cells)


def add_saturated(cells: Integers, others: Integers) -> None:
    """``cells += others``, held within their range, without a copy of the whole."""
    limit = LIMIT if cells.dtype == np.int64 else TOP_32
    for at in range(0, len(cells), PIECE):
        part = cells[at : at + PIECE]
        # Each is at most 2**60, so the sum fits.
        both = np.clip(part.astype(np.int64), -LIMIT, LIMIT) + np.clip(
            others[at : at + PIECE].astype(np.int64), -LIMIT, LIMIT
        )
        part[:] = np.clip(both, -limit, limit)
