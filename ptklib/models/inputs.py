"""What a model reads of a record: columns with public domains, each of them some entries of a row.

* `Bounded`: a number between public bounds, one entry.
* `Vector`: a column of lists of ``size`` numbers between the same public bounds, ``size`` entries.
* `NumberedColumns`: columns ``<prefix><number>`` from ``first`` to ``last``, all between the same
  public bounds, an entry for each.
* `Images` (`ptklib.models.images`): a column of images, as public features that are together no
  longer than 1.
* `Categories`, `IntegerRange`, `Bins`, `TimePart` (`ptklib.columns.keys`): an entry for each value
  of the domain, 1 at the value of the record and 0 elsewhere.

Numbers fill -1 to 1 (``scaling="centred"`` of the model) or 0 to 1 (``"unit"``).

Rules
-----
* Numbers beyond the bounds, infinities too, are clipped.
* A null or NaN is the middle of the bounds. A list that is null or has another number of entries
  than ``size`` is in the middle everywhere.
* A null, or a value that the domain does not list, has 0 at every entry.
* No value of a record is refused. A column that is not there or of another type is, which depends
  on the schema alone.

**Proof note.** *Unit:* one record. An entry depends on the value of that record alone. *Cost:*
none here.

Reasons: CONFIG_INVALID, COLUMN_TYPE, and those of `ptk.column_of`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from ptklib import config
from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.columns.numbers import Bounded, numbers_in
from ptklib.errors import InvalidInput
from ptklib.models.images.input import Images
from ptklib.ptk import column_of

__all__ = [
    "MAX_WIDTH",
    "STEPS",
    "Input",
    "NumberedColumns",
    "Scaling",
    "Vector",
    "columns_of",
    "names_of",
    "squares_of",
    "width_of",
    "write_input",
]

# What 1 is in steps: entries are whole steps, so that sums of their squares and products are exact.
STEPS = 1 << 12
MAX_WIDTH = 1 << 14

Floats = NDArray[np.float64]
Scaling = Literal["centred", "unit"]


@dataclass(frozen=True, kw_only=True)
class Vector:
    """A column of lists of ``size`` numbers, of fixed size or not."""

    kind: ClassVar[str] = "vector"
    column: str
    size: int
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Bounds as of `Bounded`, one entry or more."""
        config.checked(self)
        Bounded(column=self.column, lower=self.lower, upper=self.upper)
        config.demand(
            1 <= self.size <= MAX_WIDTH,
            f"size of {self.column!r} must be 1 to {MAX_WIDTH}, got {self.size}",
            field="size",
        )


@dataclass(frozen=True, kw_only=True)
class NumberedColumns:
    """Columns of numbers that are called ``<prefix><number>``."""

    kind: ClassVar[str] = "numbered"
    prefix: str
    first: int
    last: int
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """Bounds as of `Bounded`, one column or more."""
        config.checked(self)
        Bounded(column=self.prefix, lower=self.lower, upper=self.upper)
        config.demand(
            0 <= self.first <= self.last < self.first + MAX_WIDTH,
            f"numbers after {self.prefix!r} must run from first to last, 0 or more and at most "
            f"{MAX_WIDTH} of them, got {self.first} to {self.last}",
            field="first",
        )


Listed = Categories | IntegerRange | Bins | TimePart
Input = Bounded | Vector | NumberedColumns | Images | Categories | IntegerRange | Bins | TimePart


def columns_of(source: Input) -> tuple[str, ...]:
    """The columns that an input reads."""
    if isinstance(source, NumberedColumns):
        return tuple(f"{source.prefix}{number}" for number in _numbers(source))
    return (source.column,)


def width_of(source: Input) -> int:
    """How many entries it is of a row."""
    if isinstance(source, Bounded):
        return 1
    if isinstance(source, NumberedColumns):
        return source.last - source.first + 1
    return source.size


def squares_of(source: Input) -> int:
    """The most that its entries add to the squared length of a row, whatever the record."""
    return width_of(source) if isinstance(source, Bounded | Vector | NumberedColumns) else 1


def names_of(source: Input) -> tuple[str, ...]:
    """A name for each entry, for people: ``distance``, ``pixel_3``, ``zone=north``."""
    if isinstance(source, Bounded | NumberedColumns):
        return columns_of(source)
    if isinstance(source, Vector | Images):
        return tuple(f"{source.column}_{place}" for place in range(source.size))
    if isinstance(source, Categories):
        return tuple(f"{source.column}={value}" for value in source.values)
    if isinstance(source, IntegerRange):
        return tuple(f"{source.column}={value}" for value in range(source.first, source.last + 1))
    if isinstance(source, TimePart):
        return tuple(f"{source.column}_{source.part}={place}" for place in range(source.size))
    ends = [*[")"] * (source.size - 1), "]"]
    return tuple(
        f"{source.column}=[{lower}, {upper}{end}"
        for lower, upper, end in zip(source.edges, source.edges[1:], ends, strict=False)
    )


def write_input(
    source: Input, frame: pa.RecordBatch | pa.Table, room: Floats, scaling: Scaling
) -> None:
    """Write the entries of each record, in steps, into ``room``: a row for each record, of the
    width of this input, which holds zeros.
    """
    if isinstance(source, Images):
        room[:] = source.steps(column_of(frame, source.column), STEPS)
    elif isinstance(source, Vector):
        _write_vectors(source, column_of(frame, source.column), room, scaling)
    elif isinstance(source, Bounded | NumberedColumns):
        for place, name in enumerate(columns_of(source)):
            values, absent = numbers_in(column_of(frame, name), name)
            _write_numbers(values, absent, (source.lower, source.upper), room[:, place], scaling)
    else:
        codes = source.codes(column_of(frame, source.column))
        known = np.flatnonzero(codes < source.size)
        room[known, codes[known]] = STEPS


def _numbers(source: NumberedColumns) -> range:
    return range(source.first, source.last + 1)


def _write_numbers(
    values: NDArray[Any],
    absent: NDArray[np.bool_] | None,
    bounds: tuple[float, float],
    room: Floats,
    scaling: Scaling,
) -> None:
    """Whole steps of each value, rounded and clipped by itself."""
    lower, upper = bounds
    middle, half = lower / 2 + upper / 2, upper / 2 - lower / 2
    # From the middle on, a value of any size; one near the end of float64 becomes infinite, and is
    # clipped like one.
    with np.errstate(over="ignore", invalid="ignore"):
        np.subtract(values, middle, out=room, dtype=np.float64, casting="unsafe")
        room *= (STEPS if scaling == "centred" else STEPS / 2) / half
    if scaling == "unit":
        room += STEPS / 2
    np.rint(room, out=room)
    np.clip(room, -STEPS if scaling == "centred" else 0, STEPS, out=room)
    bad = np.isnan(room)
    if absent is not None:
        bad |= absent
    room[bad] = 0 if scaling == "centred" else STEPS / 2


def _write_vectors(source: Vector, column: pa.Array, room: Floats, scaling: Scaling) -> None:
    kind = column.type
    listed = pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind)
    sized = not pt.is_fixed_size_list(kind) or kind.list_size == source.size
    if not listed or not sized:
        raise InvalidInput(
            "COLUMN_TYPE",
            f"column {source.column!r} must hold lists of {source.size} numbers, got {kind}",
            column=source.column,
        )
    whole = pc.fill_null(pc.equal(pc.list_value_length(column), source.size), False)
    there = np.flatnonzero(whole.to_numpy(zero_copy_only=False))
    entries = column.filter(whole).flatten()
    values, absent = numbers_in(entries, source.column)
    shape = (len(there), source.size)
    made = np.empty(shape)
    bounds = (source.lower, source.upper)
    gone = None if absent is None else absent.reshape(shape)
    _write_numbers(values.reshape(shape), gone, bounds, made, scaling)
    room[:] = 0 if scaling == "centred" else STEPS / 2
    room[there] = made
