"""A draft of a stream: what is taken from a file, what is marked, and what is asked for."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptklib.errors import InvalidInput
from ptkstore.cli.files import write_table
from ptkstore.cli.project.declaration import Project
from ptkstore.cli.project.drafting import looked_at, project_text
from ptkstore.cli.project.inferring import Told, infer
from tests.cli.sage import call

ROWS = 1000
HOURS = [datetime.datetime(2026, 3, 1) + datetime.timedelta(hours=k % 240) for k in range(ROWS)]
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.uint64()),
        "when": pa.array(HOURS, pa.timestamp("ns")),
        "day": pa.array([hour.date() for hour in HOURS]),
        "place": pa.array(["north", "south"] * (ROWS // 2)).dictionary_encode(),
        "code": [f"c{k}" for k in range(ROWS)],
        "price": pa.array([3.5 + k % 90 for k in range(ROWS - 1)] + [float("nan")]),
        "rank": pa.array([k % 5 - 2 for k in range(ROWS)], pa.int8()),
        "gap": pa.array([None if k % 3 else 1.25 for k in range(ROWS)]),
        "tags": [["a"]] * ROWS,
        "two words": [1] * ROWS,
        "nothing": pa.nulls(ROWS),
    }
)


def test_types_bounds_and_marks() -> None:
    draft = infer(TABLE, "my file", Told(bounds={"price": (0, 100)}))
    assert (draft.name, draft.time_column) == ("my-file", "when")
    columns = {column.name: column for column in draft.columns}
    told = {
        name: (column.type, column.lower, column.upper, column.domain, column.looked)
        for name, column in columns.items()
    }
    assert told == {
        "id": ("int64", 0, 1000, None, ("lower", "upper")),
        "when": ("timestamp[ns]", datetime.date(2026, 3, 1), None, None, ("lower",)),
        "day": (
            "timestamp[s]",
            datetime.date(2026, 1, 1),
            datetime.date(2027, 1, 1),
            None,
            ("lower", "upper"),
        ),
        "place": ("string", None, None, ("north", "south"), ("domain",)),
        "code": ("string", None, 8, None, ("upper",)),
        "price": ("float64", 0, 100, None, ()),
        "rank": ("int8", -2, 2, None, ("lower", "upper")),
        "gap": ("float64", 0, 2, None, ("nullable", "lower", "upper")),
    }
    assert dict(draft.skipped).keys() == {"tags", "two words", "nothing"}
    assert "price: lower, upper" not in looked_at(draft)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_proposed_holds_every_value(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scale = 10.0 ** generator.integers(-6, 9)
    values = generator.normal(generator.normal(0, 10), 1, 50) * scale
    table = pa.table({"when": pa.array(HOURS[:50], pa.timestamp("s")), "x": values})
    (_, column) = infer(table, "t").columns
    assert column.lower <= values.min() <= values.max() <= column.upper
    assert column.upper - column.lower <= 12 * (values.max() - values.min()) + 1e-12
    assert column.upper != values.max()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".jsonl", ".arrow"])
def test_every_kind_of_file_gives_a_project_that_is_read(tmp_path: Path, ending: str) -> None:
    table = TABLE.select(["when", "place", "code", "price", "rank"])
    table = table.set_column(0, "when", table["when"].cast(pa.timestamp("ms")))
    table = table.set_column(1, "place", table["place"].cast(pa.string())).slice(0, ROWS - 1)
    write_table(table, tmp_path / f"rides{ending}")
    text = call("stream", "infer", f"rides{ending}", cwd=tmp_path).out
    (tmp_path / "sage.yaml").write_text(text)
    project = Project.read(tmp_path / "sage.yaml")
    (stream,) = project.streams
    assert (stream.name, stream.time_column) == ("rides", "when")
    assert stream.column("place").domain == ("north", "south")
    assert stream.column("price").upper == 100
    assert [ptk.name for ptk in project.ptks] == ["price-by-place", "price-by-hour"]
    assert "c17" not in text


def test_files_of_a_pattern_are_one(tmp_path: Path) -> None:
    for number in range(2):
        part = TABLE.select(["when", "price"]).slice(500 * number, 500)
        pq.write_table(part, tmp_path / f"part-{number}.parquet")
    body = call("stream", "infer", "part-*.parquet", "--name", "rides", "--json", cwd=tmp_path).json
    assert "name: rides" in body["yaml"]
    assert body["looked_at"] == ["when: lower", "price: lower, upper"]


def test_what_is_told_is_taken_and_not_marked(tmp_path: Path) -> None:
    pq.write_table(TABLE.select(["when", "place", "price"]), tmp_path / "a.parquet")
    bounds = ("--bounds", "price=-5:200", "--bounds", "when=2026-01-01:")
    given = (*bounds, "--domain", "place=north,south,west")
    body = call("stream", "infer", "a.parquet", *given, "--json", cwd=tmp_path).json
    assert body["looked_at"] == []
    assert "# LOOKED AT: " not in body["yaml"].partition("columns:")[2]
    assert 'domain: ["north", "south", "west"]' in body["yaml"]
    assert "lower: -5, upper: 200" in body["yaml"]
    assert "lower: 2026-01-01}" in body["yaml"]


@pytest.mark.parametrize(
    ("table", "told", "reason", "words"),
    [
        (TABLE.select(["price"]), Told(), "STREAM_NOT_INFERRED", "when a record happened"),
        (TABLE.slice(0, 0), Told(), "STREAM_NOT_INFERRED", "no rows"),
        (TABLE, Told(time_column="price"), "STREAM_NOT_INFERRED", "must hold timestamps"),
        (TABLE, Told(bounds={"prize": (0, 1)}), "COLUMN_MISSING", "no column 'prize'"),
    ],
)
def test_what_cannot_be_drafted_is_told(
    table: pa.Table, told: Told, reason: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match=reason) as caught:
        infer(table, "t", told)
    assert words in caught.value.message


@pytest.mark.parametrize("text", ["price", "price=1", "price=a:b", "=1:2"])
def test_bounds_that_are_none(tmp_path: Path, text: str) -> None:
    pq.write_table(TABLE.select(["when", "price"]), tmp_path / "a.parquet")
    error = call("stream", "infer", "a.parquet", "--bounds", text, "--json", cwd=tmp_path, code=2)
    assert error.error["reason"] == "VALUE_INVALID"


def test_a_draft_overwrites_nothing(tmp_path: Path) -> None:
    pq.write_table(TABLE.select(["when", "price"]), tmp_path / "a.parquet")
    (tmp_path / "sage.yaml").write_text("mine")
    for command in (
        ("stream", "infer", "a.parquet", "-o", "sage.yaml"),
        ("init", "--from", "a.parquet"),
    ):
        run = call(*command, "--json", cwd=tmp_path, code=2)
        assert run.error["reason"] == "PROJECT_EXISTS"
    assert (tmp_path / "sage.yaml").read_text() == "mine"
    assert project_text(infer(TABLE, "t"), with_ptks=False).count("ptks:") == 0
