"""featurize: any frame in, the same kind out, nothing changed in place, and errors that say what to do."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput
from ptklib.featurize import featurize
from ptklib.frames import append_columns
from ptklib.ptks.keys import Categories, IntegerRange, TimePart
from ptklib.ptks.statistics import Statistics
from ptklib.state import State

ZONES = np.array([3, 0, 9, 1])
CITIES = ["a", "b", "c", "a"]
TIMES = np.array(["2026-01-01T05", "2026-01-02T06", "2026-01-03T07", "2026-01-04T05"], dtype="datetime64[us]")


def state_of(*keys: Any, name: str, prefix: str | None = None) -> State:
    ptk = Statistics(keys=keys, statistics=("mean", "count"), value="speed", lower=0, upper=10, prefix=prefix)
    totals = np.arange(ptk.cells * 2).reshape(ptk.cells, 2) * 4096
    return State.make(ptk, {"totals": totals, "windows": np.ones(1, np.int64)}, name=name, epsilon=1)


STATES = [
    state_of(IntegerRange(column="zone", first=0, last=3), name="zones"),
    state_of(Categories(column="city", values=("a", "b")), name="cities", prefix="city"),
    state_of(TimePart(column="time", part="hour"), name="hours", prefix="hour"),
]
TABLE = pa.table({"zone": ZONES, "city": CITIES, "time": TIMES, "other": [1.5, 2.5, None, 4.5]})
NEW = ["zone_speed_mean", "zone_speed_count", "city_mean", "city_count", "hour_mean", "hour_count"]


def structured() -> np.ndarray[Any, Any]:
    frame = np.empty(4, dtype=[("zone", "i4"), ("city", "U3"), ("time", "M8[us]"), ("other", "f4", (2,))])
    frame["zone"], frame["city"], frame["time"], frame["other"] = ZONES, CITIES, TIMES, 0
    return frame


FRAMES: dict[str, Any] = {
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "pandas": TABLE.to_pandas(),
    "pandas categories": TABLE.to_pandas().astype({"city": "category"}).set_index("zone", drop=False),
    "polars": pl.from_arrow(TABLE),
    "polars categories": pl.DataFrame(pl.from_arrow(TABLE)).with_columns(pl.col("city").cast(pl.Categorical)),
    "numpy": structured(),
}


def columns(frame: Any) -> list[str]:
    if isinstance(frame, np.ndarray):
        return list(frame.dtype.names or ())
    return list(frame.schema.names if isinstance(frame, pa.Table | pa.RecordBatch) else frame.columns)


def values(frame: Any, name: str) -> list[float]:
    found = frame[name]
    return list(found.to_pylist() if isinstance(found, pa.Array | pa.ChunkedArray) else found)


@pytest.mark.parametrize("name", FRAMES)
def test_the_same_kind_comes_back_with_the_features_appended(name: str) -> None:
    frame = FRAMES[name]
    before = columns(frame)
    made = featurize(frame, STATES)
    assert type(made) is type(frame)
    assert columns(frame) == before
    assert columns(made) == [*before, *NEW]
    assert values(made, "zone_speed_count") == [13, 1, 0, 5]
    assert values(made, "city_count") == [1, 5, 0, 1]
    assert values(made, "hour_count") == [21, 25, 29, 21]
    # The unknown zone and city get the mean of all.
    assert values(made, "zone_speed_mean") == pytest.approx([10 * 7 / 13, 10, 10 * 16 / 28, 10 * 3 / 5])


def test_a_pandas_index_is_kept_and_nothing_is_changed() -> None:
    frame = pd.DataFrame({"zone": ZONES}, index=[9, 9, 1, 0])
    made = featurize(frame, STATES[0])
    assert list(made.index) == [9, 9, 1, 0]
    assert list(frame.columns) == ["zone"]


def test_arrow_metadata_is_kept() -> None:
    table = TABLE.replace_schema_metadata({"owner": "us"})
    assert featurize(table, STATES).schema.metadata == {b"owner": b"us"}
    assert featurize(table.to_batches()[0], STATES).schema.metadata == {b"owner": b"us"}


@pytest.mark.parametrize(
    "frame", [TABLE.slice(0, 0), TABLE.to_pandas().head(0), pl.DataFrame(pl.from_arrow(TABLE)).head(0)]
)
def test_an_empty_frame_works(frame: Any) -> None:
    assert columns(featurize(frame, STATES))[-6:] == NEW


def test_no_states_no_features() -> None:
    assert featurize(TABLE, []).equals(TABLE)


@pytest.mark.parametrize("name", FRAMES)
def test_a_missing_column_is_named_with_those_that_are_there(name: str) -> None:
    other = state_of(IntegerRange(column="district", first=0, last=3), name="districts")
    with pytest.raises(InvalidInput, match=r"'district' must be there once.*'city', 'other', 'time', 'zone'") as caught:
        featurize(FRAMES[name], other)
    assert caught.value.reason == "COLUMN_MISSING"


def test_a_feature_needs_a_new_name() -> None:
    with pytest.raises(InvalidInput, match="it is a column of the frame") as caught:
        featurize(TABLE.rename_columns(["zone", "city", "time", "city_mean"]), STATES)
    assert caught.value.reason == "COLUMN_EXISTS"
    with pytest.raises(InvalidInput, match="it is a feature of state 'cities'"):
        featurize(TABLE, [STATES[1], STATES[1]])
    for frame in (TABLE, TABLE.to_pandas()):
        with pytest.raises(InvalidInput, match="COLUMN_EXISTS"):
            append_columns(frame, pa.table({"zone": ZONES * 1.0}))


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"zone": [1]}, "got builtins.dict"),
        (np.zeros((3, 2)), "must be structured"),
        (np.ma.masked_array(structured()), "must be structured"),
        (pl.DataFrame(pl.from_arrow(TABLE)).lazy(), "collect"),
        (TABLE["zone"], r"pyarrow.table\(frame\)"),
        (None, "NoneType"),
    ],
)
def test_other_frames_are_refused_with_advice(frame: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as caught:
        featurize(frame, STATES)
    assert caught.value.reason == "FRAME_UNSUPPORTED"


def test_wrong_states_and_types_are_refused() -> None:
    with pytest.raises(InvalidInput, match="STATES_INVALID"):
        featurize(TABLE, ["zones"])  # type: ignore[list-item]
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        featurize(pd.DataFrame({"zone": ["x"]}), STATES[0])
    with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
        featurize(pd.DataFrame({"zone": [1, "secret"]}), STATES[0])
    assert "secret" not in str(caught.value)


def test_neither_pandas_nor_polars_is_imported() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "import ptklib.featurize, ptklib.ptks.statistics\n"
        "sys.exit(' '.join({'pandas', 'polars'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == ""
