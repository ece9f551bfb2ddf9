"""Columns of numbers: their public bounds, their values without a copy, and values as whole steps.

**Proof note.** *Unit:* one record. What a value becomes depends on that value alone. *Cost:* none
here.

Reasons: CONFIG_INVALID, COLUMN_TYPE, and those of `ptk.column_of`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib import config
from ptklib.errors import InvalidInput
from ptklib.ptk import column_of

__all__ = ["Bounded", "Numbers", "number_column", "numbers_in", "numbers_of", "steps_between"]

# Values, and which of them are null (None: none).
Numbers = tuple[NDArray[Any], NDArray[np.bool_] | None]


@dataclass(frozen=True, kw_only=True)
class Bounded:
    """A column of numbers with public bounds."""

    kind: ClassVar[str] = "bounded"
    column: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        """The bounds are apart, and not so far or so near that float64 cannot scale between
        them.
        """
        config.checked(self)
        width = self.upper - self.lower
        config.demand(
            self.lower < self.upper and math.isfinite(width) and 1e-300 < width < 1e300,
            f"lower must be below upper of {self.column!r}, got {self.lower} and {self.upper}",
            field="lower",
        )
        config.demand(
            width >= 2**-30 * max(abs(self.lower), abs(self.upper)),
            f"bounds of {self.column!r} must not be nearer to each other than 2**-30 of their size",
            field="lower",
        )


def number_column(frame: pa.RecordBatch | pa.Table, name: str) -> Numbers:
    """The numbers of a column without a copy; a type without numbers is refused."""
    return numbers_in(column_of(frame, name), name)


def numbers_in(column: pa.Array, name: str) -> Numbers:
    """The same of a column at hand, which the refusal calls by its name."""
    if not any(
        test(column.type)
        for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    ):
        raise InvalidInput(
            "COLUMN_TYPE", f"column {name!r} must hold numbers, got {column.type}", column=name
        )
    return numbers_of(column)


def steps_between(
    numbers: Numbers, lower: float, upper: float, steps: int, *, rounding: np.ufunc = np.rint
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Each number as whole steps, 0 to ``steps``, between the bounds, rounded and clipped by itself
    (a fresh array, with 0 for those that are null or NaN); and which are those (None: none).
    """
    raw, absent = numbers
    # A value near the end of float64 becomes infinite, and is clipped like one.
    with np.errstate(over="ignore", invalid="ignore"):
        made = np.subtract(raw, lower, dtype=np.float64)
        made *= steps / (upper - lower)
    rounding(made, out=made)
    np.clip(made, 0.0, float(steps), out=made)
    bad = np.isnan(made)
    if absent is not None:
        bad |= absent
    if not bad.any():
        return made, None
    made[bad] = 0.0
    return made, bad


def numbers_of(column: pa.Array) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The values of a column of numbers without a copy, and which of them are null (None: none).

    Nulls hold garbage.
    """
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if column.null_count == 0:
        return column.to_numpy(zero_copy_only=True), None
    dtype = np.dtype(column.type.to_pandas_dtype())
    values = np.frombuffer(column.buffers()[1], dtype=dtype, count=column.offset + len(column))[
        column.offset :
    ]
    return values, pc.is_null(column).to_numpy(zero_copy_only=False)
