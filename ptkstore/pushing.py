"""Frames as the numbered batches that a stream takes, the same for a store here and a store elsewhere.

Batch ``k`` of push ``seq`` has the number ``seq * 2**20 + k``, so that pushing again under the same (producer, seq) changes
nothing. Reasons: SEQ_INVALID, COLUMN_TYPE, and those of frames.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ptklib.errors import InvalidInput
from ptklib.frames import read_columns
from ptkstore.streams import Column, StreamSpec
from ptkstore.streams.reach import MAX_BLOCKS
from ptkstore.streams.tag_map import Numbers

__all__ = ["BATCH_ROWS", "conformed", "numbered_batches", "rows_of"]

BATCH_ROWS = 1 << 16
_LEAST_ROWS = 1 << 10


def numbered_batches(
    frame: Any, spec: StreamSpec, seq: int | None, *, rows: int = BATCH_ROWS
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of a frame with their numbers; without ``seq`` every push is new.

    Where they are cut depends on the rows alone (`_places`), never on how the frame lies in memory: pushing again must give
    the same batches. All columns are converted before the first batch is made.
    """
    if seq is not None and (type(seq) is not int or not 0 <= seq < 2**42):
        raise InvalidInput("SEQ_INVALID", "seq must be a whole number from 0, counting upwards per producer")
    table = conformed(read_columns(frame, [column.name for column in spec.columns]), spec)
    first = time.time_ns() if seq is None else seq << 20
    places = _places(table, spec, rows)
    return ((first + number, _cut(table, *place)) for number, place in enumerate(places))


def rows_of(spec: StreamSpec, batch_bytes: int) -> int:
    """About how many rows of a stream make so many bytes, from its public columns: a power of two."""
    width = sum(_width(column) for column in spec.columns)
    rows = max(_LEAST_ROWS, min(BATCH_ROWS, batch_bytes // width))
    return 1 << round(math.log2(rows))


def conformed(table: pa.Table, spec: StreamSpec) -> pa.Table:
    """The table with the stream's types. What Arrow says of a value it cannot convert quotes the value: it stays here.

    Dictionaries keep the integers that index them: a stream takes any.
    """
    columns = []
    for column, field in zip(table.columns, spec.schema, strict=True):
        if column.type == field.type or _same_dictionary(column.type, field.type):
            columns.append(column)
            continue
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InvalidInput(
                "COLUMN_TYPE", f"column {field.name!r} must be {field.type} or convert to it, got {column.type}"
            ) from None
    return pa.table(columns, names=spec.schema.names)


def _places(table: pa.Table, spec: StreamSpec, rows: int) -> list[tuple[int, int]]:
    """Where batches begin and how many rows they have: ``rows``, and fewer where those lie in more blocks than a batch may."""
    whole = [(place, min(rows, table.num_rows - place)) for place in range(0, table.num_rows, rows)]
    ticks = spec.column(spec.time_column).ticks_per_second * spec.span_ms // 1000
    times = table.column(spec.time_column).cast(pa.int64())
    known = pc.min_max(times).as_py()
    if known["min"] is None or known["max"] // ticks - known["min"] // ticks < MAX_BLOCKS:
        return whole
    spans = times.fill_null(known["min"]).to_numpy() // ticks
    return [piece for one in whole for piece in _narrow(spans, *one)]


def _narrow(spans: Numbers, place: int, rows: int) -> list[tuple[int, int]]:
    if rows <= MAX_BLOCKS or len(np.unique(spans[place : place + rows])) <= MAX_BLOCKS:
        return [(place, rows)]
    half = rows // 2
    return _narrow(spans, place, half) + _narrow(spans, place + half, rows - half)


def _cut(table: pa.Table, place: int, rows: int) -> pa.RecordBatch:
    """Rows of a table as one batch, without copying where they lie together."""
    piece = table.slice(place, rows)
    if any(column.num_chunks > 1 for column in piece.columns):
        piece = piece.unify_dictionaries().combine_chunks()
    found: pa.RecordBatch = piece.to_batches()[0]
    return found


def _same_dictionary(found: pa.DataType, wanted: pa.DataType) -> bool:
    both = pa.types.is_dictionary(found) and pa.types.is_dictionary(wanted)
    return bool(both and found.value_type == wanted.value_type)


def _width(column: Column) -> int:
    """Bytes of a value, about."""
    if column.type == "string" and column.domain is None:
        return 4 + min(column.upper, 64) if isinstance(column.upper, int) else 36
    return 4 if column.type == "dictionary" else 1 if column.type == "bool" else 8
