"""Frames in files: Parquet, CSV, JSON lines and Arrow IPC, by the ending of the name.

Messages never quote a file's values: a conversion error names the column and no more.
Reasons: FILE_UNREADABLE, FILE_UNWRITABLE, FILE_KIND_UNKNOWN, COLUMN_MISSING, COLUMN_TYPE.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptkstore.api.columns import place_of_column

__all__ = ["ENDINGS", "conform", "read_table", "write_table"]

_ARROW = (".arrow", ".feather", ".ipc")
_JSON = (".jsonl", ".ndjson")
ENDINGS = (".parquet", ".csv", *_JSON, *_ARROW)


def read_table(path: str | Path, schema: pa.Schema | None = None) -> pa.Table:
    """The frame in a file.

    CSV has no types: its columns are read as ``schema`` has them, others by their looks.
    """
    path = Path(path)
    ending = _ending(path)
    if not path.is_file():
        raise InvalidInput(
            "FILE_UNREADABLE", f"{path} must be a file, there is none", file=str(path)
        )
    try:
        if ending == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        if ending in _JSON:
            return _read_json(path, schema)
        return _read_csv(path, schema) if ending == ".csv" else _read_arrow(path)
    except pa.ArrowException:
        # The text may quote a value; a column's number is public.
        number = _column_at_fault(path, schema) if ending == ".csv" else None
        where = f", column {number} does not hold what the stream says" if number else ""
        raise InvalidInput(
            "FILE_UNREADABLE", f"{path} cannot be read as {ending[1:]}{where}", file=str(path)
        ) from None


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema that the table has, in its types. What cannot be converted is
    refused by its column's name.

    Nulls stay where they are, whatever the schema says: the stream judges records one by one.
    """
    columns = {}
    for field in schema:
        place = place_of_column(table.schema, field.name, f"; the file has {table.column_names}")
        column = table.column(place)
        try:
            columns[field.name] = column.cast(field.type)
        except pa.ArrowException:
            # The text may quote a value.
            raise InvalidInput(
                "COLUMN_TYPE",
                f"column {field.name!r} must hold {field.type}, and a {column.type} of the file is none",
                column=field.name,
            ) from None
    return pa.table(columns, schema=schema)


def write_table(table: pa.Table, path: str | Path) -> None:
    """Write a frame; the file is there whole or not at all."""
    path = Path(path)
    ending = _ending(path)
    if not path.parent.is_dir():
        raise InvalidInput(
            "FILE_UNWRITABLE", f"{path.parent} must be a directory, there is none", file=str(path)
        )
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        if ending == ".parquet":
            import pyarrow.parquet as pq

            pq.write_table(table, partial)
        elif ending == ".csv":
            import pyarrow.csv as pc

            pc.write_csv(table, partial)
        elif ending in _JSON:
            partial.write_text(
                "".join(
                    json.dumps(row, ensure_ascii=False, default=str) + "\n"
                    for row in table.to_pylist()
                ),
                encoding="utf-8",
            )
        else:
            with pa.ipc.new_file(partial, table.schema) as writer:
                writer.write_table(table)
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _read_csv(path: Path, schema: pa.Schema | None) -> pa.Table:
    import pyarrow.csv as pc

    types = {} if schema is None else {field.name: field.type for field in schema}
    return pc.read_csv(
        path, convert_options=pc.ConvertOptions(column_types=types, strings_can_be_null=True)
    )


def _read_json(path: Path, schema: pa.Schema | None) -> pa.Table:
    """Columns by their looks first: one that the file does not have is missing, and not null."""
    import pyarrow.json as pj

    table = pj.read_json(path)
    if schema is None:
        return table
    known = pa.schema([entry for entry in schema if entry.name in table.column_names])
    return pj.read_json(path, parse_options=pj.ParseOptions(explicit_schema=known))


def _column_at_fault(path: Path, schema: pa.Schema | None) -> int | None:
    """The number of the first column that cannot be read in its type, from 1; None where no column
    is at fault, but the file.

    Read column by column: an error of the reader has no place as data.
    """
    try:
        names = _read_csv(path, None).column_names
    except pa.ArrowException:
        return None
    for number, name in enumerate(names, start=1):
        if schema is None or name not in schema.names:
            continue
        try:
            _read_csv(path, pa.schema([schema.field(name)]))
        except pa.ArrowException:
            return number
    return None


def _read_arrow(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as source:
        try:
            return pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:
            # Not the file format: then the stream format, which is what producers write as they go.
            source.seek(0)
            return pa.ipc.open_stream(source).read_all()


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise InvalidInput(
            "FILE_KIND_UNKNOWN",
            f"{path} must end in one of {', '.join(ENDINGS)}, got {ending or 'nothing'!r}",
        )
    return ending
