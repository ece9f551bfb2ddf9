"""Frames as the numbered batches that a stream takes, the same for a store here and a store
elsewhere.

Batch ``k`` of push ``seq`` has the number ``seq * 2**20 + k``, so that pushing again under the same
(producer, seq) changes nothing. A push without ``seq`` is new, whatever was pushed before: its
batches go into a session of the store that pushes, which the stream gave out, and take the next
numbers in it (`Numbering`). No clock has a part in it. Reasons: SEQ_INVALID, COLUMN_TYPE, and those
of frames.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.frames import read_columns
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import MAX_BLOCKS, StreamSpec

__all__ = ["BATCH_ROWS", "Numbering", "conformed", "first_number", "numbered_batches", "rows_of"]

BATCH_ROWS = 1 << 16
_LEAST_ROWS = 1 << 10


def numbered_batches(
    frame: Any, spec: StreamSpec, seq: int | None, *, rows: int = BATCH_ROWS
) -> tuple[int, Callable[[], Iterator[pa.RecordBatch]]]:
    """How many batches a frame makes, and what gives them in order, each time it is called.

    Where they are cut depends on the rows alone (`_places`), never on how the frame lies in memory:
    pushing again must give the same batches. All columns are converted before the first batch is
    made.
    """
    if seq is not None and (type(seq) is not int or not 0 <= seq < 2**42):
        raise InvalidInput(
            "SEQ_INVALID", "seq must be a whole number from 0, counting upwards per producer"
        )
    table = conformed(read_columns(frame, [column.name for column in spec.columns]), spec)
    places = _places(table, spec, rows)
    return len(places), lambda: (_cut(table, *place) for place in places)


def first_number(seq: int) -> int:
    """The number of the first batch of a push with a number of its own."""
    return seq << 20


class Numbering:
    """The sessions of a store that pushes, one for each stream, with the next number in each.

    Thread-safe.
    """

    def __init__(self, begin: Callable[[str], str]) -> None:
        """``begin`` asks a stream for a new session."""
        self._begin = begin
        self._lock = threading.Lock()
        self._sessions: dict[str, tuple[str, int]] = {}
        self._process = os.getpid()

    def take(self, stream: str, count: int) -> tuple[str, int]:
        """The session of a stream, and the first of so many numbers in it that nobody else has."""
        with self._lock:
            # A process that was forked goes on with the same counts as its parent: it needs
            # sessions of its own.
            if self._process != os.getpid():
                self._process, self._sessions = os.getpid(), {}
            if stream not in self._sessions:
                self._sessions[stream] = (self._begin(stream), 0)
            session, first = self._sessions[stream]
            self._sessions[stream] = (session, first + count)
            return session, first

    def forget(self, stream: str, session: str) -> None:
        """The session is over: the next push begins another."""
        with self._lock:
            if self._sessions.get(stream, ("", 0))[0] == session:
                del self._sessions[stream]


def rows_of(spec: StreamSpec, batch_bytes: int) -> int:
    """About how many rows of a stream make so many bytes, from its public columns: a power of
    two.
    """
    width = sum(_width(column) for column in spec.columns)
    rows = max(_LEAST_ROWS, min(BATCH_ROWS, batch_bytes // width))
    return 1 << round(math.log2(rows))


def conformed(table: pa.Table, spec: StreamSpec) -> pa.Table:
    """The table with the stream's types. What Arrow says of a value it cannot convert quotes the
    value: it stays here.

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
                "COLUMN_TYPE",
                f"column {field.name!r} must be {field.type} or convert to it, got {column.type}",
            ) from None
    return pa.table(columns, names=spec.schema.names)


def _places(table: pa.Table, spec: StreamSpec, rows: int) -> list[tuple[int, int]]:
    """Where batches begin and how many rows they have:

    ``rows``, and fewer where those lie in more blocks than a batch may.
    """
    whole = [(place, min(rows, table.num_rows - place)) for place in range(0, table.num_rows, rows)]
    ticks = spec.column(spec.time_column).ticks_per_second * spec.span_ms // 1000
    times = table.column(spec.time_column).cast(pa.int64())
    known = pc.min_max(times).as_py()
    if known["min"] is None or known["max"] // ticks - known["min"] // ticks < MAX_BLOCKS:
        return whole
    spans = times.fill_null(known["min"]).to_numpy() // ticks
    return [piece for batch in whole for piece in _narrow(spans, *batch)]


def _narrow(spans: NDArray[np.int64], place: int, rows: int) -> list[tuple[int, int]]:
    if rows <= MAX_BLOCKS or len(np.unique(spans[place : place + rows])) <= MAX_BLOCKS:
        return [(place, rows)]
    half = rows // 2
    return _narrow(spans, place, half) + _narrow(spans, place + half, rows - half)


def _cut(table: pa.Table, place: int, rows: int) -> pa.RecordBatch:
    """Rows of a table as one batch, without copying where they lie together."""
    piece = table.slice(place, rows)
    if any(column.num_chunks > 1 for column in piece.columns):
        piece = piece.unify_dictionaries().combine_chunks()
    cut: pa.RecordBatch = piece.to_batches()[0]
    return cut


def _same_dictionary(column_type: pa.DataType, wanted: pa.DataType) -> bool:
    both = pa.types.is_dictionary(column_type) and pa.types.is_dictionary(wanted)
    return bool(both and column_type.value_type == wanted.value_type)


def _width(column: Column) -> int:
    """Bytes of a value, about."""
    if column.type == "string" and column.domain is None:
        return 4 + min(column.upper, 64) if isinstance(column.upper, int) else 36
    return 4 if column.type == "dictionary" else 1 if column.type == "bool" else 8
