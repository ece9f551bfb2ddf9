"""Several columns of numbers as one vector of whole numbers per record: what moments and distances
are made of.

A value v of a column with public bounds becomes u = round((v - middle) * steps / half), clipped to
the bounds, where ``half`` is half the width of the bounds (``scaling="range"``: every column spans
-1 to 1) or that of the widest column (``"common"``: distances keep the proportions of the columns).
*Scaled units* are u / `STEPS`; the middle of the bounds is the origin.

Rows of the matrices are columns of the data, so that each column is written once, in order. The
vector of a missing record is zero.

**Proof note.** *Unit:* one record. *What is bounded:* u_j is whole and |u_j| <= reach_j, by a clip that comes last. With
a norm, sum u_j^2 <= limit holds exactly: squares are sums of whole floats below 2**53, hence exact, and a longer vector
is multiplied by a float f below sqrt(limit / squares) (1 - 2**-41), each rounding being at most 2**-52, and cut toward
zero; so every |u_j| is at most its share of sqrt(limit). *On its own:* subtracting, multiplying, rounding, comparing and
roots are done element by element and rounded alike wherever an element stands, and sums are exact, so the vector of a
record depends on nothing but that record and the configuration. *Cost:* none here.

Rules -----
* A record with a null or NaN in any of the columns is missing. Values outside the bounds,
  infinities too, are clipped.

Reasons: CONFIG_INVALID, COLUMN_TYPE, and those of `ptk.column_of`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib import config
from ptklib.columns.numbers import Bounded, Numbers, number_column
from ptklib.ptk import Batches, batches_of

__all__ = [
    "MAX_COLUMNS",
    "PIECE_RECORDS",
    "STEPS",
    "Floats",
    "RecordVectors",
    "Scaling",
    "Space",
    "example_of",
    "space_of",
]

# Half the width of the widest column. Rounding moves a value by at most 1/4096 of its range: far
# below the noise.
STEPS = 1024
MAX_COLUMNS = 1024
# Rows enough to hide the cost of a numpy call, and a matrix that stays near the processor.
_ROWS_AT_ONCE = (1 << 12, 1 << 14)
_ELEMENTS_AT_ONCE = 1 << 18
# The most records in a piece.
PIECE_RECORDS = _ROWS_AT_ONCE[1]

Floats = NDArray[np.float64]
Scaling = Literal["range", "common"]


@dataclass(frozen=True)
class RecordVectors:
    """Some records:

    ``vectors`` has a row per column, ``missing`` tells which have none (None: all have one); exact
    sums.
    """

    vectors: Floats
    missing: NDArray[np.bool_] | None
    sums: Floats

    @property
    def rows(self) -> int:
        """How many records, missing ones too."""
        return int(self.vectors.shape[1])

    @property
    def present(self) -> int:
        """How many that are not missing."""
        return self.rows - (0 if self.missing is None else int(self.missing.sum()))


@dataclass(frozen=True)
class Space:
    """The vectors of some columns: how they are scaled and how long they may be.

    Made by `space_of`.
    """

    values: tuple[Bounded, ...]
    scaling: Scaling
    norm: float | None

    @property
    def size(self) -> int:
        """How many columns."""
        return len(self.values)

    @cached_property
    def middles(self) -> Floats:
        """The origin, in the units of the columns."""
        return np.array([value.lower / 2 + value.upper / 2 for value in self.values])

    @cached_property
    def halves(self) -> Floats:
        """What one scaled unit is, in the units of each column."""
        halves = np.array([value.upper / 2 - value.lower / 2 for value in self.values])
        return halves if self.scaling == "range" else np.full(self.size, halves.max())

    @cached_property
    def reach(self) -> NDArray[np.int64]:
        """The largest |u| of each column."""
        own = np.array([value.upper / 2 - value.lower / 2 for value in self.values])
        return np.maximum(np.rint(own / self.halves * STEPS), 1).astype(np.int64)

    @cached_property
    def limit(self) -> int:
        """The largest sum of u^2: that of the corners, or of the norm where it is less."""
        corners = sum(int(reach) ** 2 for reach in self.reach)
        if self.norm is None:
            return corners
        return min(corners, math.floor((Fraction(repr(self.norm)) * STEPS) ** 2))

    @cached_property
    def bounded_by_norm(self) -> bool:
        """Whether the norm shortens any vector at all."""
        return self.limit < sum(int(reach) ** 2 for reach in self.reach)

    def pieces(self, batches: Batches) -> Iterator[RecordVectors]:
        """The records, some thousands at a time. The next piece overwrites the last."""
        least, most = _ROWS_AT_ONCE
        rows = min(most, max(least, _ELEMENTS_AT_ONCE // self.size))
        room = np.empty((self.size, 0))
        for batch in batches_of(batches):
            columns = [number_column(batch, value.column) for value in self.values]
            for start in range(0, batch.num_rows, rows):
                # A part that is not full needs a room of its own: rows of a wider one are not next
                # to each other.
                if room.shape[1] != min(rows, batch.num_rows - start):
                    room = np.empty((self.size, min(rows, batch.num_rows - start)))
                yield self._piece(columns, start, room)

    def scaled(self, table: pa.Table, missing: Floats) -> Floats:
        """One row per column in scaled units, clipped but not rounded nor shortened; ``missing``
        where there is no value.
        """
        scaled = np.empty((self.size, table.num_rows))
        for place, bounded in enumerate(self.values):
            row = scaled[place]
            raw, absent = number_column(table, bounded.column)
            with np.errstate(over="ignore", invalid="ignore"):
                np.subtract(raw, self.middles[place], out=row, dtype=np.float64)
                np.divide(row, self.halves[place], out=row)
            nowhere = np.isnan(row) if absent is None else np.isnan(row) | absent
            row[nowhere] = missing[place]
            top = float(self.reach[place]) / STEPS
            np.clip(row, -top, top, out=row)
        return scaled

    def _piece(self, columns: list[Numbers], start: int, room: Floats) -> RecordVectors:
        part = slice(start, start + room.shape[1])
        missing: NDArray[np.bool_] | None = None
        # A value near the end of float64 becomes infinite, and is clipped like one.
        with np.errstate(over="ignore", invalid="ignore"):
            for (raw, nulls), middle, row in zip(columns, self.middles, room, strict=True):
                np.subtract(raw[part], middle, out=row, dtype=np.float64)
                if nulls is not None:
                    missing = nulls[part] if missing is None else missing | nulls[part]
            np.multiply(room, self._factors, out=room)
        np.rint(room, out=room)
        tops = self.reach[:, None].astype(np.float64)
        np.clip(room, -tops, tops, out=room)
        with np.errstate(invalid="ignore"):
            sums = room @ np.ones(room.shape[1])
        # NaN passes through the clip, and through the sum.
        if np.isnan(sums).any():
            absent: NDArray[np.bool_] = np.asarray(np.isnan(room).any(axis=0))
            missing = absent if missing is None else missing | absent
        if missing is not None:
            room[:, missing] = 0.0
        if (self.bounded_by_norm and self._shorten(room)) or missing is not None:
            sums = room.sum(axis=1)
        return RecordVectors(room, missing, sums)

    @cached_property
    def _factors(self) -> Floats:
        """Steps for one unit of each column."""
        return np.asarray(STEPS / self.halves[:, None], dtype=np.float64)

    def _shorten(self, vectors: Floats) -> bool:
        """Cut vectors that are too long to the norm; whether there were any. See the proof note."""
        squares = np.einsum("ij,ij->j", vectors, vectors)
        over = np.flatnonzero(squares > self.limit)
        if len(over):
            factors = np.sqrt(self.limit / squares[over]) * (1 - 2.0**-40)
            vectors[:, over] = np.trunc(vectors[:, over] * factors)
        return len(over) > 0


@lru_cache(maxsize=256)
def space_of(
    values: tuple[Bounded, ...], scaling: Scaling = "range", norm: float | None = None
) -> Space:
    """The space of these columns, remembered; refuses columns or a norm that make none
    (CONFIG_INVALID).
    """
    config.demand(
        1 <= len(values) <= MAX_COLUMNS and len({value.column for value in values}) == len(values),
        f"values must be 1 to {MAX_COLUMNS} columns, none twice, got {len(values)}",
        field="values",
    )
    config.demand(
        norm is None or 1 / STEPS <= norm <= MAX_COLUMNS,
        f"norm must be from 1/{STEPS} to {MAX_COLUMNS} scaled units, got {norm}",
        field="norm",
    )
    return Space(values, scaling, norm)


def example_of(
    values: tuple[Bounded, ...], shares: Floats, generator: np.random.Generator
) -> pa.RecordBatch:
    """Invented records (`Ptk.example`) of these shares of half a width from the middle, a quarter
    of them moved to a bound. Overwrites ``shares``.
    """
    on_bound = generator.uniform(size=shares.shape) < 1 / 4
    shares[on_bound] = generator.choice([-1.0, 1.0], int(on_bound.sum()))
    columns = {}
    for value, share in zip(values, shares.T, strict=True):
        middle, half = value.lower / 2 + value.upper / 2, value.upper / 2 - value.lower / 2
        columns[value.column] = np.clip(middle + share * half, value.lower, value.upper)
    return pa.RecordBatch.from_pydict(columns)
