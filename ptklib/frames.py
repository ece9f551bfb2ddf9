"""Frames of other libraries: read some columns as Arrow, append columns, give the same kind back.

A frame of pandas or polars is known by the module of its type, so neither is a dependency, and
neither is imported unless a frame of it was given. Nothing is changed in place.

====================  =======================================================
in                    out
====================  =======================================================
pandas DataFrame      a new DataFrame with the same index, in one new block
polars DataFrame      a new DataFrame
Arrow Table           a new Table; old columns shared, metadata kept
Arrow RecordBatch     a new RecordBatch
NumPy structured      a new structured array of one axis
====================  =======================================================

Reasons: FRAME_UNSUPPORTED, COLUMN_MISSING, COLUMN_EXISTS, COLUMN_TYPE (a column that Arrow cannot
hold).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.errors import InvalidInput

__all__ = ["Frame", "append_columns", "array_columns", "column_names", "read_columns"]

Frame = TypeVar("Frame")

_TIME_UNITS = ("D", "s", "ms", "us", "ns")


def column_names(frame: Any) -> list[str]:
    """The names of the columns, in order; refuses what is no frame of a known kind."""
    kind = _kind(frame)
    if kind == "numpy":
        return list(frame.dtype.names)
    if kind in {"table", "batch"}:
        return list(frame.schema.names)
    return [str(name) for name in frame.columns]


def read_columns(frame: Any, columns: Sequence[str]) -> pa.Table:
    """These columns as an Arrow table. Each must be there exactly once."""
    names, kind = column_names(frame), _kind(frame)
    for column in columns:
        if names.count(column) != 1:
            raise InvalidInput(
                "COLUMN_MISSING",
                f"column {column!r} must be there once, found {names.count(column)} times; the "
                f"frame has {sorted(names)}",
                column=column,
            )
    if kind == "table":
        return frame.select(list(columns))
    if kind == "batch":
        return pa.Table.from_batches([frame]).select(list(columns))
    return pa.table([_arrow(frame, kind, names, column) for column in columns], names=list(columns))


def array_columns(array: NDArray[Any], places: Mapping[str, int]) -> pa.Table:
    """Columns of a plain array of two axes as an Arrow table, each from its place."""
    arrays = []
    for column, place in places.items():
        try:
            arrays.append(_of_numpy(array[:, place]))
        except Exception:
            raise _no_arrow(column, array.dtype) from None
    return pa.table(arrays, names=list(places))


def _arrow(frame: Any, kind: str, names: Sequence[str], column: str) -> pa.Array:
    """One column as Arrow.

    The text of a library's own error may quote a value, so it is not passed on.
    """
    # By place: the name of a pandas column need not be a text.
    values = frame.iloc[:, names.index(column)] if kind == "pandas" else frame[column]
    try:
        if kind == "polars":
            return values.to_arrow()
        return pa.array(values, from_pandas=True) if kind == "pandas" else _of_numpy(values)
    except Exception:
        raise _no_arrow(column, values.dtype) from None


def _no_arrow(column: str, dtype: object) -> InvalidInput:
    return InvalidInput(
        "COLUMN_TYPE",
        f"column {column!r} must be of one type that Arrow knows, got {dtype}",
        column=column,
    )


def _of_numpy(values: NDArray[Any]) -> pa.Array:
    """A field of a structured array: any byte order, times of any unit, a second axis as lists."""
    values = np.ascontiguousarray(values, values.dtype.newbyteorder("="))
    if values.dtype.kind == "M" and np.datetime_data(values.dtype)[0] not in _TIME_UNITS:
        values = values.astype("M8[s]")
    if values.ndim == 1:
        return pa.array(values, from_pandas=True)
    flat = pa.array(values.reshape(-1), from_pandas=True)
    return pa.FixedSizeListArray.from_arrays(flat, math.prod(values.shape[1:]))


def append_columns(frame: Frame, table: pa.Table) -> Frame:
    """The frame with the columns of the table (numbers, no nulls) appended; the rows must be as
    many.
    """
    names = column_names(frame)
    clash = sorted(set(names) & set(table.column_names))
    if clash or len(set(table.column_names)) < table.num_columns:
        again = clash or sorted(
            {
                column_name
                for column_name in table.column_names
                if table.column_names.count(column_name) > 1
            }
        )
        raise InvalidInput(
            "COLUMN_EXISTS",
            f"feature columns must be new, got {again} twice: rename the columns, or give the PTK "
            "another prefix",
            columns=again,
        )
    appended: Any = _append(frame, _kind(frame), table)
    result: Frame = appended
    return result


def _append(frame: Any, kind: str, table: pa.Table) -> Any:
    if kind == "table":
        for name in table.column_names:
            frame = frame.append_column(name, table.column(name))
        return frame
    if kind == "batch":
        new = [table.column(name).combine_chunks() for name in table.column_names]
        fields = [*frame.schema, *table.schema]
        schema = pa.schema(fields, metadata=frame.schema.metadata)
        return pa.RecordBatch.from_arrays([*frame.columns, *new], schema=schema)
    if kind == "polars":
        import polars

        return frame.with_columns(
            [polars.Series(name, table.column(name)) for name in table.column_names]
        )
    columns = {name: table.column(name).to_numpy() for name in table.column_names}
    if kind == "pandas":
        import pandas

        if frame.columns.nlevels > 1:
            return frame.assign(**columns)
        # One block for all features, and writable: a block for each makes every later step of
        # pandas slower.
        made = pandas.concat([frame, pandas.DataFrame(columns, index=frame.index)], axis=1)
        made.attrs.update(frame.attrs)
        return made
    fields = [(name, frame.dtype.fields[name][0]) for name in frame.dtype.names]
    result = np.empty(
        len(frame), dtype=[*fields, *((name, values.dtype) for name, values in columns.items())]
    )
    for name in frame.dtype.names:
        result[name] = frame[name]
    for name, values in columns.items():
        result[name] = values
    return result


def _kind(frame: Any) -> str:
    if isinstance(frame, pa.Table):
        return "table"
    if isinstance(frame, pa.RecordBatch):
        return "batch"
    if type(frame) is np.ndarray and frame.dtype.names and frame.ndim == 1:
        return "numpy"
    home, name = type(frame).__module__.partition(".")[0], type(frame).__name__
    if home in {"pandas", "polars"} and name == "DataFrame":
        return home
    advice = ""
    if home == "polars" and name == "LazyFrame":
        advice = "; call collect() first"
    elif isinstance(frame, np.ndarray):
        advice = "; a NumPy array must be structured, with one axis"
    elif hasattr(frame, "__arrow_c_stream__"):
        advice = "; pyarrow.table(frame) makes one"
    raise InvalidInput(
        "FRAME_UNSUPPORTED",
        "frame must be a pandas or polars DataFrame, an Arrow Table or RecordBatch or a structured "
        "NumPy array, got "
        f"{type(frame).__module__}.{name}{advice}",
    )
