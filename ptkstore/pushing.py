"""Frames as the numbered batches that a stream takes, the same for a store here and a store elsewhere.

Batch ``k`` of push ``seq`` has the number ``seq * 2**20 + k``, so that pushing again under the same (producer, seq) changes
nothing. Reasons: SEQ_INVALID, COLUMN_TYPE, and those of frames.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.frames import read_columns
from ptkstore.streams import StreamSpec

__all__ = ["BATCH_ROWS", "conformed", "numbered_batches"]

BATCH_ROWS = 1 << 16


def numbered_batches(
    frame: Any, spec: StreamSpec, seq: int | None, *, batch_bytes: int | None = None
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The batches of a frame with their numbers; without ``seq`` every push is new. ``batch_bytes`` is about how large."""
    if seq is not None and (type(seq) is not int or not 0 <= seq < 2**42):
        raise InvalidInput("SEQ_INVALID", "seq must be a whole number from 0, counting upwards per producer")
    table = conformed(read_columns(frame, [column.name for column in spec.columns]), spec)
    rows = BATCH_ROWS
    if batch_bytes is not None and table.num_rows:
        rows = max(1, min(BATCH_ROWS, batch_bytes * table.num_rows // max(1, table.nbytes)))
    first = time.time_ns() if seq is None else seq << 20
    return enumerate(table.combine_chunks().to_batches(max_chunksize=rows), first)


def conformed(table: pa.Table, spec: StreamSpec) -> pa.Table:
    """The table with the stream's types. What Arrow says of a value it cannot convert quotes the value: it stays here."""
    columns = []
    for column, field in zip(table.columns, spec.schema, strict=True):
        try:
            columns.append(column.cast(field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            raise InvalidInput(
                "COLUMN_TYPE", f"column {field.name!r} must be {field.type} or convert to it, got {column.type}"
            ) from None
    return pa.table(columns, schema=spec.schema)
