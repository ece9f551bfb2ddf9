"""Arrow IPC from strangers: one record batch out, or INVALID_ARGUMENT, whatever the bytes are.

Nothing is allocated for what the bytes merely claim: compressed bodies are refused (a few bytes may
claim gigabytes), rows are counted before anything is converted, and offsets and indices are
validated before anything follows them. Errors name columns and types, never values. Reasons:
BATCH_INVALID, BATCH_TOO_LARGE, BATCH_COMPRESSED, COLUMN_MISSING, COLUMN_TYPE.
"""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptkstore.api.columns import place_of_column
from ptkstore.api.pushing import conformed
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams.blocks.encoding import MAX_BATCH_BYTES, MAX_BATCH_ROWS

__all__ = ["MAX_PARTS", "read_batch"]

# Record batches in one message.
MAX_PARTS = 256
# Fields of the tables Message, DictionaryBatch and RecordBatch in Arrow's Message.fbs.
_HEADER, _DICTIONARY_DATA, _COMPRESSION = 2, 1, 3


def read_batch(data: bytes | memoryview, spec: StreamSpec, *, convert: bool) -> pa.RecordBatch:
    """The records of an IPC stream as one batch.

    ``convert`` brings columns in any order to the types of the stream.
    """
    try:
        batches, schema = _read(data)
    except InvalidInput:
        raise
    except (
        pa.ArrowException,
        ValueError,
        TypeError,
        OverflowError,
        struct.error,
        IndexError,
        OSError,
        MemoryError,
    ):
        # The texts of Arrow may quote values.
        raise InvalidInput("BATCH_INVALID", "the bytes are not a sound Arrow IPC stream") from None
    if convert:
        batches = [_converted(batch, spec) for batch in batches]
        schema = batches[0].schema if batches else spec.schema
    return batches[0] if len(batches) == 1 else _one(batches, schema)


def _read(data: bytes | memoryview) -> tuple[list[pa.RecordBatch], pa.Schema]:
    buffer = pa.py_buffer(data)
    for message in pa.ipc.MessageReader.open_stream(buffer):
        if _compressed(message):
            raise InvalidInput("BATCH_COMPRESSED", "batches must not be compressed")
    batches: list[pa.RecordBatch] = []
    rows = 0
    with pa.ipc.open_stream(buffer) as reader:
        schema = reader.schema
        # Names may be any bytes: those that are no text are noticed here.
        assert len(schema.names) == len(schema.types)
        for batch in reader:
            rows += batch.num_rows
            if rows > MAX_BATCH_ROWS or len(batches) >= MAX_PARTS or batch.nbytes > MAX_BATCH_BYTES:
                raise InvalidInput(
                    "BATCH_TOO_LARGE",
                    f"a batch may have {MAX_BATCH_ROWS} rows and {MAX_BATCH_BYTES} bytes: send it in pieces",
                )
            batches.append(batch)
    return batches, schema


def _converted(batch: pa.RecordBatch, spec: StreamSpec) -> pa.RecordBatch:
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        raise InvalidInput("BATCH_INVALID", "the batch is not a valid Arrow record batch") from None
    columns = []
    for field in spec.schema:
        column = batch.column(place_of_column(batch.schema, field.name))
        # Unpacking a nested or encoded column may take any amount of memory.
        if pa.types.is_nested(column.type) or (
            column.type != field.type and _is_packed(column.type)
        ):
            raise InvalidInput(
                "COLUMN_TYPE",
                f"column {field.name!r} must be {field.type} or convert to it",
                column=field.name,
            )
        columns.append(column)
    table = conformed(pa.table(columns, names=spec.schema.names), spec)
    return (
        table.to_batches()[0]
        if table.num_rows
        else pa.RecordBatch.from_pylist([], schema=table.schema)
    )


def _is_packed(kind: Any) -> bool:
    encoded = (
        pa.types.is_run_end_encoded(kind) if hasattr(pa.types, "is_run_end_encoded") else False
    )
    return bool(encoded or pa.types.is_null(kind) or _is_wide_dictionary(kind))


def _is_wide_dictionary(kind: Any) -> bool:
    """A dictionary may repeat one long value many times."""
    return bool(pa.types.is_dictionary(kind) and not pa.types.is_primitive(kind.value_type))


def _one(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatch:
    try:
        table = pa.Table.from_batches(batches, schema)
        if not table.num_rows:
            return pa.RecordBatch.from_pylist([], schema=schema)
        pieces = table.unify_dictionaries().combine_chunks().to_batches()
    except pa.ArrowException:
        raise InvalidInput("BATCH_INVALID", "the batches of a message must fit together") from None
    if len(pieces) != 1:
        raise InvalidInput(
            "BATCH_TOO_LARGE", f"a batch may have {MAX_BATCH_BYTES} bytes: send it in pieces"
        )
    return pieces[0]


def _compressed(message: Any) -> bool:
    """True when the body of an IPC message is compressed: read from its flatbuffer, for Arrow does
    not tell.
    """
    data = message.metadata.to_pybytes()
    header = _table(data, struct.unpack_from("<I", data)[0], _HEADER)
    if message.type == "dictionary":
        header = None if header is None else _table(data, header, _DICTIONARY_DATA)
    elif message.type != "record batch":
        return False
    return header is None or _field(data, header, _COMPRESSION) != 0


def _table(data: bytes, at: int, field: int) -> int | None:
    """Where the table in a field of the table at ``at`` begins."""
    offset = _field(data, at, field)
    return at + offset + int(struct.unpack_from("<I", data, at + offset)[0]) if offset else None


def _field(data: bytes, at: int, field: int) -> int:
    """The offset of a field in the table at ``at``; 0 where it is not set."""
    vtable = at - int(struct.unpack_from("<i", data, at)[0])
    size = struct.unpack_from("<H", data, vtable)[0]
    place = 4 + 2 * field
    return int(struct.unpack_from("<H", data, vtable + place)[0]) if place + 2 <= size else 0
