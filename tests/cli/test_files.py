"""Frames in files."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptklib.errors import InvalidInput
from ptkstore.cli.files import ENDINGS, conform, read_table, write_table

TABLE = pa.table(
    {
        "at": pa.array([0, 86_400_000], pa.timestamp("ms")),
        "zone": ["north", "south"],
        "speed": [1.5, None],
    }
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_written_is_read(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"frame{ending}"
    write_table(TABLE, path)
    assert read_table(path, TABLE.schema).equals(TABLE)
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_the_stream_format_of_arrow_is_read_too(tmp_path: Path) -> None:
    with pa.ipc.new_stream(tmp_path / "frame.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    assert read_table(tmp_path / "frame.arrow").equals(TABLE)


def test_csv_takes_the_types_of_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "frame.CSV"
    path.write_text("at,zone,more\n2026-03-01 10:00:00,7,x\n2026-03-01T10:00:01,,y\n")
    kinds = pa.schema([("at", pa.timestamp("ms")), ("zone", pa.string()), ("absent", pa.int8())])
    read = read_table(path, kinds)
    assert read.schema.types == [pa.timestamp("ms"), pa.string(), pa.string()]
    assert read["zone"].to_pylist() == ["7", None]


def test_an_error_never_quotes_a_value(tmp_path: Path) -> None:
    path = tmp_path / "frame.csv"
    path.write_text("name,speed\nann,1.5\nbob,secret-4711\n")
    with pytest.raises(InvalidInput, match="FILE_UNREADABLE") as caught:
        read_table(path, pa.schema([("speed", pa.float64())]))
    assert "column 2" in caught.value.message
    assert "4711" not in caught.value.message + str(dict(caught.value.details))
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe\x00garbage\n\n,,,\n1", None], ids=["empty", "garbage", "missing"]
)
def test_files_that_are_none(tmp_path: Path, ending: str, content: bytes | None) -> None:
    path = tmp_path / f"frame{ending}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidInput, match="FILE_UNREADABLE"):
        read_table(path, pa.schema([("speed", pa.float64())]))


@pytest.mark.parametrize("name", ["frame.xlsx", "frame", "frame.pickle"])
def test_endings_that_are_not_known(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="FILE_KIND_UNKNOWN"):
        read_table(tmp_path / name)
    with pytest.raises(InvalidInput, match="FILE_KIND_UNKNOWN"):
        write_table(TABLE, tmp_path / name)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "frame.csv"
    path.write_text("old")
    nested = pa.table({"a": [[1, 2]]})
    with pytest.raises(pa.ArrowException):
        write_table(nested, path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["frame.csv"]
    with pytest.raises(InvalidInput, match="FILE_UNWRITABLE"):
        write_table(TABLE, tmp_path / "nowhere" / "frame.csv")


SCHEMA = pa.schema(
    [pa.field("count", pa.int32(), nullable=False), pa.field("at", pa.timestamp("ms"))]
)
TIMES = pa.array([0, None], pa.timestamp("ms"))


def test_a_frame_is_brought_to_the_types_of_the_stream() -> None:
    table = pa.table(
        {
            "more": ["a", "b"],
            "at": TIMES.cast(pa.timestamp("us")),
            "count": pa.array([1, 2], pa.int64()),
        }
    )
    assert conform(table, SCHEMA).equals(pa.table({"count": [1, 2], "at": TIMES}, schema=SCHEMA))


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        (pa.array(["1", "secret"]), "COLUMN_TYPE"),
        (pa.array([1.0, 4711.5]), "COLUMN_TYPE"),
        (pa.array([1, 2**40]), "COLUMN_TYPE"),
        (pa.array([[1], [4711]]), "COLUMN_TYPE"),
    ],
    ids=["text", "fraction", "large", "list"],
)
def test_what_does_not_fit_is_refused_by_the_name_of_its_column(
    counts: pa.Array, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        conform(pa.table({"count": counts, "at": TIMES}), SCHEMA)
    assert caught.value.details == {"column": "count"}
    assert not re.search(r"secret|4711|1099511627776", caught.value.message)


def test_nulls_are_left_to_the_stream() -> None:
    found = conform(pa.table({"count": pa.array([1, None]), "at": TIMES}), SCHEMA)
    assert found["count"].to_pylist() == [1, None]


def test_columns_must_be_there_once() -> None:
    twice = pa.Table.from_arrays([TIMES, TIMES, pa.array([1, 2])], names=["at", "at", "count"])
    for table in (twice, pa.table({"count": [1, 2]})):
        with pytest.raises(InvalidInput, match="COLUMN_MISSING"):
            conform(table, SCHEMA)


def test_parquet_of_several_row_groups(tmp_path: Path) -> None:
    whole = pa.table({"a": list(range(1000))})
    pq.write_table(whole, tmp_path / "frame.parquet", row_group_size=10)
    assert read_table(tmp_path / "frame.parquet").equals(whole)
