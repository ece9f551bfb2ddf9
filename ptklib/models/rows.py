"""Records as the rows of a matrix, in which every entry is a whole number of steps of 1/`STEPS`.

A row has the entries of each input in turn and, with an intercept, a 1 at its end. No row is longer
than ``bound``: that of the inputs' domains, or ``norm`` where that is less, to which longer rows
are shortened; the intercept comes on top and is never shortened.

**Proof note.** *Unit:* one record. *What is bounded:* entries are whole steps of at most `STEPS`,
by a clip that comes last. The squared length in steps is a sum of whole floats below 2**53, hence
exact, and with a norm it is at most ``limit``: a longer row is multiplied by a float below
sqrt(limit / squares) (1 - 2**-41), each rounding being at most 2**-52, and cut toward zero. *On its
own:* all of this is done element by element or with exact sums, so the row of a record depends on
nothing but that record and the configuration. *Cost:* none here.

Reasons: those of `inputs` and `ptk`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.numbers import Bounded
from ptklib.columns.working import PIECE_BYTES, domain_bytes
from ptklib.config import demand
from ptklib.models.inputs import (
    MAX_WIDTH,
    STEPS,
    Input,
    NumberedColumns,
    Scaling,
    Vector,
    columns_of,
    names_of,
    squares_of,
    width_of,
    write_input,
)
from ptklib.ptk import Batches, batches_of

__all__ = ["InputRows"]

Floats = NDArray[np.float64]

_ROWS_AT_ONCE = (1 << 6, 1 << 14)
_ENTRIES_AT_ONCE = 1 << 19
# Copies of a piece while it is made: in steps, squared, of a list, scaled.
_COPIES = 6
_MAX_NORM = 1 << 10


@dataclass(frozen=True)
class InputRows:
    """How records become rows.

    See the module for the proof note.
    """

    inputs: tuple[Input, ...]
    scaling: Scaling
    norm: float | None
    intercept: bool

    def check(self, label: str) -> None:
        """Inputs that differ, of not too many entries, none of them the label; a norm."""
        demand(len(self.inputs) >= 1, "inputs must be one or more, got none", field="inputs")
        demand(
            len(set(self.inputs)) == len(self.inputs) and len(set(self.names)) == self.width,
            "inputs must differ: a column may be there once for each kind of input",
            field="inputs",
        )
        demand(
            self.width <= MAX_WIDTH,
            f"inputs must have at most {MAX_WIDTH} entries in all, got {self.width}",
            field="inputs",
        )
        demand(
            label not in self.columns(), f"label {label!r} must not be an input too", field="label"
        )
        demand(
            self.norm is None or 1 / 64 <= self.norm <= _MAX_NORM,
            f"norm must be from 1/64 to {_MAX_NORM}, got {self.norm}",
            field="norm",
        )

    @cached_property
    def width(self) -> int:
        """Entries of a row, the intercept counted."""
        return sum(map(width_of, self.inputs)) + self.intercept

    @cached_property
    def names(self) -> tuple[str, ...]:
        """A name for each entry; that of the intercept is ``(intercept)``."""
        named = tuple(name for source in self.inputs for name in names_of(source))
        return (*named, "(intercept)") if self.intercept else named

    @cached_property
    def limit(self) -> int:
        """The largest squared length of a row in steps, the intercept counted."""
        corners = sum(map(squares_of, self.inputs)) * STEPS**2
        bounded = corners if self.norm is None else min(corners, self._norm_limit)
        return bounded + self.intercept * STEPS**2

    @cached_property
    def shortens(self) -> bool:
        """Whether the norm shortens any row at all."""
        corners = sum(map(squares_of, self.inputs)) * STEPS**2
        return self.norm is not None and self._norm_limit < corners

    @property
    def bound(self) -> float:
        """The largest length of a row, the intercept counted."""
        return math.sqrt(self.limit) / STEPS

    @property
    def rows_at_once(self) -> int:
        """Records of a piece."""
        least, most = _ROWS_AT_ONCE
        return min(most, max(least, _ENTRIES_AT_ONCE // self.width))

    def columns(self) -> tuple[str, ...]:
        """The columns that are read, each once."""
        return tuple(dict.fromkeys(name for source in self.inputs for name in columns_of(source)))

    def reading_bytes(self) -> int:
        """What reading may hold at once, whatever the number of records."""
        keys = [
            source
            for source in self.inputs
            if not isinstance(source, Bounded | Vector | NumberedColumns)
        ]
        piece = _COPIES * 8 * self.rows_at_once * self.width
        return PIECE_BYTES + piece + domain_bytes(keys)

    def matrix(self, frame: pa.RecordBatch | pa.Table) -> Floats:
        """The rows of these records: whole multiples of 1/`STEPS`, exactly."""
        made = self.steps(frame)
        # A power of two: exact.
        made /= STEPS
        return made

    def steps(self, frame: pa.RecordBatch | pa.Table) -> Floats:
        """The same in whole steps."""
        made = np.zeros((frame.num_rows, self.width))
        start = 0
        for source in self.inputs:
            stop = start + width_of(source)
            write_input(source, frame, made[:, start:stop], self.scaling)
            start = stop
        self._shorten(made[:, :start])
        if self.intercept:
            made[:, -1] = STEPS
        return made

    def pieces(self, batches: Batches | pa.Table) -> Iterator[pa.RecordBatch]:
        """The batches cut into pieces whose rows fit a cache."""
        rows = self.rows_at_once
        for batch in batches_of(batches):
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)

    def example(self, rows: int, generator: np.random.Generator) -> dict[str, pa.Array]:
        """Invented records by column, uniform, a quarter of all numbers on a bound."""
        made: dict[str, pa.Array] = {}
        for source in self.inputs:
            if isinstance(source, Bounded | NumberedColumns):
                for name in columns_of(source):
                    made[name] = pa.array(_drawn(source, rows, generator))
            elif isinstance(source, Vector):
                values = pa.array(_drawn(source, rows * source.size, generator))
                made[source.column] = pa.FixedSizeListArray.from_arrays(values, source.size)
            else:
                made[source.column] = source.example(rows, generator)
        return made

    @cached_property
    def _norm_limit(self) -> int:
        return math.floor((Fraction(repr(self.norm)) * STEPS) ** 2)

    def _shorten(self, made: Floats) -> None:
        """Cut rows that are too long to the norm. See the proof note."""
        limit = self.limit - self.intercept * STEPS**2
        if not self.shortens:
            return
        squares = np.einsum("ij,ij->i", made, made)
        over = np.flatnonzero(squares > limit)
        if len(over):
            factors = np.sqrt(limit / squares[over]) * (1 - 2.0**-40)
            made[over] = np.trunc(made[over] * factors[:, None])


def _drawn(
    source: Bounded | Vector | NumberedColumns, count: int, generator: np.random.Generator
) -> Floats:
    values = generator.choice([source.lower, source.upper], count)
    inside = generator.uniform(0, 1, count) < 3 / 4
    values[inside] = generator.uniform(source.lower, source.upper, count)[inside]
    return values
