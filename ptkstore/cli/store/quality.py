"""What of a producer's own file does not fit a stream, and what the stream does with it.

It is worked out where the file is, from the file and the public specification, and shown to who has
the file; nothing of it is sent, kept or logged. A push names columns without counts, for its output
ends up in logs; `sage stream check` counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import View

__all__ = ["ColumnQuality", "quality_of"]


@dataclass(frozen=True)
class ColumnQuality(View):
    """Rows of a file with a ``fault`` in one column, and what becomes of them."""

    column: str
    fault: str
    rows: int
    becomes: str

    @property
    def told(self) -> str:
        """In words, without the count."""
        return f"{self.column}: some values are {self.fault}; {self.becomes}"


def quality_of(table: pa.Table, spec: StreamSpec) -> list[ColumnQuality]:
    """What does not fit, column by column; the table has the stream's columns and types."""
    return [
        quality
        for column in spec.columns
        for quality in _of_column(table.column(column.name), column, spec)
        if quality.rows
    ]


def _of_column(values: pa.ChunkedArray, column: Column, spec: StreamSpec) -> list[ColumnQuality]:
    refuses = spec.out_of_bounds == "refuse"
    left_out = "those records are left out"
    faults = []
    if not column.nullable:
        faults.append(ColumnQuality(column.name, "missing", values.null_count, left_out))
    if column.is_float:
        becomes = left_out if refuses else "they become the lower bound"
        faults.append(
            ColumnQuality(column.name, "not a number", _count(pc.is_nan(values)), becomes)
        )
    if column.domain is not None:
        plain = values.cast(pa.string()) if pa.types.is_dictionary(values.type) else values
        known = pc.is_in(plain.drop_null(), pa.array(column.domain, plain.type))
        becomes = left_out if refuses else f"they become {column.domain[0]!r}, its first value"
        faults.append(
            ColumnQuality(column.name, "outside its domain", _count(pc.invert(known)), becomes)
        )
    elif column.is_timestamp:
        lower, upper = column.bounds_ms
        whole = values.cast(pa.timestamp("ms", values.type.tz), safe=False).cast(pa.int64())
        faults += _beyond(whole, column, (lower, upper), refuses)
    elif column.type == "string" and column.upper is not None:
        long = _count(pc.greater(pc.binary_length(values), int(str(column.upper))))
        becomes = left_out if refuses else f"they are cut to {column.upper} bytes"
        faults.append(
            ColumnQuality(column.name, f"longer than {column.upper} bytes", long, becomes)
        )
    elif column.is_integer or column.is_float:
        faults += _beyond(values, column, (column.lower, column.upper), refuses)
    return faults


def _beyond(
    values: pa.ChunkedArray, column: Column, bounds: tuple[object, object], refuses: bool
) -> list[ColumnQuality]:
    lower, upper = bounds
    below = 0 if lower is None else _count(pc.less(values, lower))
    above = 0 if upper is None else _count(pc.greater(values, upper))
    becomes = "those records are left out" if refuses else "they become the nearest bound"
    given = [bound for bound in (column.lower, column.upper) if bound is not None]
    words = " to ".join(f"{bound:g}" if isinstance(bound, float) else f"{bound}" for bound in given)
    return [ColumnQuality(column.name, f"beyond {words}", below + above, becomes)]


def _count(mask: pa.ChunkedArray) -> int:
    return int(pc.sum(mask).as_py() or 0)
