"""Files are pushed once, whatever happens in between, and what does not fit is told to who has
them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ptklib.errors import StreamUnavailable
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.cli.store import resuming
from ptkstore.cli.store.quality import quality_of
from ptkstore.local.store import LocalStore
from tests.cli.sage import call

DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000
ROWS = 1000


def spec(**more: Any) -> StreamSpec:
    return StreamSpec(
        name="rides",
        time_column="at",
        count_epsilon="0.5",
        columns=(
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="zone", type="string", domain=("a", "b")),
            Column(name="speed", type="float64", lower=0, upper=80),
            Column(name="note", type="string", upper=8, nullable=True),
        ),
        **more,
    )


def rides(rows: int = ROWS, **columns: list[Any]) -> pa.Table:
    told: dict[str, Any] = {
        "at": pa.array([FIRST_MS + k * (DAY_MS // rows) for k in range(rows)], pa.timestamp("ms")),
        "zone": ["a"] * rows,
        "speed": [30.0] * rows,
        "note": ["x"] * rows,
    }
    return pa.table({**told, **columns})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(resuming, "PIECE_ROWS", 100)
    with Store(tmp_path / "store", workers=0) as store:
        store.create_stream(spec())
    pq.write_table(rides(), tmp_path / "rides.parquet")
    return tmp_path


def records(place: Path) -> int:
    """The records that are held: counted by who may open everything."""
    with Store(place / "store", workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (block,) = store.budget("rides").blocks
        assert block.dp_records is not None
        return block.dp_records


PUSH = ("--store", "store", "stream", "push", "rides", "rides.parquet")


def test_a_file_counts_once(place: Path) -> None:
    assert "pushed rides.parquet to rides" in call(*PUSH, cwd=place).out
    assert "counts once" in call(*PUSH, cwd=place).out
    assert "counts once" in call(*PUSH, cwd=place).out
    assert abs(records(place) - ROWS) < 0.1 * ROWS


def test_again_is_once_more(place: Path) -> None:
    for _ in range(2):
        call(*PUSH, "--again", cwd=place)
    assert abs(records(place) - 2 * ROWS) < 0.1 * ROWS


def test_a_push_that_was_interrupted_goes_on(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real, pushed = LocalStore.push, list[tuple[str, int]]()

    def failing(store: LocalStore, stream: str, frame: Any, *, producer: str, seq: int) -> Any:
        # It is durable, and the acknowledgement is lost.
        answer = real(store, stream, frame, producer=producer, seq=seq)
        pushed.append((producer, seq))
        if len(pushed) == 4:
            raise StreamUnavailable("STREAM_UNAVAILABLE", "gone")
        return answer

    monkeypatch.setattr(LocalStore, "push", failing)
    assert call(*PUSH, cwd=place, code=1).err
    assert "pushed rides.parquet" in call(*PUSH, cwd=place).out
    numbers = [seq for _, seq in pushed]
    # The fourth was not noted: it is sent twice, under the same number.
    assert numbers == [0, 1, 2, 3, 3, 4, 5, 6, 7, 8, 9]
    assert len({producer for producer, _ in pushed}) == 1
    assert abs(records(place) - ROWS) < 0.1 * ROWS


def test_other_contents_are_another_file_with_other_numbers(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, numbers = LocalStore.push, list[int]()

    def noting(store: LocalStore, stream: str, frame: Any, *, producer: str, seq: int) -> Any:
        numbers.append(seq)
        return real(store, stream, frame, producer=producer, seq=seq)

    monkeypatch.setattr(LocalStore, "push", noting)
    call(*PUSH, cwd=place)
    pq.write_table(rides(250), place / "rides.parquet")
    call(*PUSH, cwd=place)
    pq.write_table(rides(50), place / "more.parquet")
    call(*PUSH[:-1], "more.parquet", cwd=place)
    assert numbers == list(range(14))


def test_a_torn_note_uses_no_number_twice(place: Path) -> None:
    call(*PUSH, cwd=place)
    note = place / resuming.NOTE
    token = json.loads(note.read_text())["token"]
    note.write_text(note.read_text()[:40])
    call(*PUSH, cwd=place)
    assert json.loads(note.read_text())["token"] != token


def test_what_is_refused_in_several_pieces_is_told_once_with_rows_of_the_file(place: Path) -> None:
    zones = [None if k in (150, 730) else "a" for k in range(ROWS)]
    pq.write_table(rides(zone=zones), place / "rides.parquet")
    error = call(*PUSH, "--json", cwd=place, code=1).error
    refused = {"column": "zone", "reason": "NULL_VALUE", "records": 2, "first_row": 150}
    assert (error["reason"], error["details"]) == ("RECORDS_REFUSED", {"refused": [refused]})
    assert "counts once" in call(*PUSH, cwd=place).out


def test_an_empty_file_says_so(place: Path) -> None:
    pq.write_table(rides().slice(0, 0), place / "rides.parquet")
    assert "has no rows: nothing was pushed" in call(*PUSH, cwd=place).out
    assert not (place / resuming.NOTE).exists()


ODD: dict[str, list[Any]] = {
    "zone": ["a", "c", None, "b", "c", "a"],
    "speed": [81.0, -1.0, float("nan"), float("inf"), 10.0, 80.0],
    "note": ["a" * 9, None, "b", "c", "d", "e"],
}
FAULTS = {
    ("zone", "missing"): 1,
    ("zone", "outside its domain"): 2,
    ("speed", "not a number"): 1,
    ("speed", "beyond 0 to 80"): 3,
    ("note", "longer than 8 bytes"): 1,
}


@pytest.mark.parametrize("rule", ["clip", "refuse"])
def test_what_does_not_fit_is_counted_here(rule: str) -> None:
    table = rides(6, **ODD).set_column(
        0, "at", pa.array([FIRST_MS - 1, *[FIRST_MS] * 5], pa.timestamp("ms"))
    )
    faults = quality_of(table, spec(out_of_bounds=rule))
    told = {(fault.column, fault.fault): fault.rows for fault in faults}
    assert {name: rows for name, rows in told.items() if name[0] != "at"} == FAULTS
    assert [rows for name, rows in told.items() if name[0] == "at"] == [1]
    becomes = {fault.fault: fault.becomes for fault in faults if fault.column != "at"}
    assert "left out" in becomes["missing"]
    assert ("left out" in becomes["outside its domain"]) == (rule == "refuse")
    assert quality_of(rides(), spec()) == []


def test_a_push_names_columns_and_no_counts(place: Path) -> None:
    pq.write_table(rides(6, **ODD), place / "odd.parquet")
    run = call(*PUSH[:-1], "odd.parquet", cwd=place, code=1)
    notes = [line for line in run.err.splitlines() if line.startswith("note: ")]
    assert len(notes) == len(FAULTS)
    assert (
        "note: zone: some values are outside its domain; they become 'a', its first value" in notes
    )
    told = call("--store", "store", "stream", "check", "rides", "odd.parquet", "--json", cwd=place)
    assert {(one["column"], one["fault"]): one["rows"] for one in told.json["faults"]} == FAULTS
    fits = call("--store", "store", "stream", "check", "rides", "rides.parquet", cwd=place).out
    assert "all 1,000 rows fit" in fits
