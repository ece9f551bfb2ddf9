"""featurize: any frame in, the same kind out, nothing changed in place, and errors that say what to
do.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange, TimePart
from ptklib.errors import InvalidInput
from ptklib.features import feature_table, featurize
from ptklib.frames import append_columns
from ptklib.ptk import Arrays, column_of
from ptklib.ptks.statistics import Statistics
from ptklib.state import State

ZONES = np.array([3, 0, 9, 1])
CITIES = ["a", "b", "c", "a"]
TIMES = np.array(
    ["2026-01-01T05", "2026-01-02T06", "2026-01-03T07", "2026-01-04T05"], dtype="datetime64[us]"
)


def state_of(*keys: Any, name: str, prefix: str | None = None) -> State:
    ptk = Statistics(
        keys=keys, statistics=("mean", "count"), value="speed", lower=0, upper=10, prefix=prefix
    )
    totals = np.arange(ptk.cells * 2).reshape(ptk.cells, 2) * 4096
    return State.make(
        ptk, {"totals": totals, "windows": np.ones(1, np.int64)}, name=name, epsilon=1
    )


STATES = [
    state_of(IntegerRange(column="zone", first=0, last=3), name="zones"),
    state_of(Categories(column="city", values=("a", "b")), name="cities", prefix="city"),
    state_of(TimePart(column="time", part="hour"), name="hours", prefix="hour"),
]
TABLE = pa.table({"zone": ZONES, "city": CITIES, "time": TIMES, "other": [1.5, 2.5, None, 4.5]})
NEW = ["zone_speed_mean", "zone_speed_count", "city_mean", "city_count", "hour_mean", "hour_count"]


def structured() -> np.ndarray[Any, Any]:
    frame = np.empty(
        4, dtype=[("zone", "i4"), ("city", "U3"), ("time", "M8[us]"), ("other", "f4", (2,))]
    )
    frame["zone"], frame["city"], frame["time"], frame["other"] = ZONES, CITIES, TIMES, 0
    return frame


FRAMES: dict[str, Any] = {
    "table": TABLE,
    "batch": TABLE.to_batches()[0],
    "chunks": pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "pandas": TABLE.to_pandas(),
    "pandas categories": TABLE.to_pandas()
    .astype({"city": "category"})
    .set_index("zone", drop=False),
    "polars": pl.from_arrow(TABLE),
    "polars categories": pl.DataFrame(pl.from_arrow(TABLE)).with_columns(
        pl.col("city").cast(pl.Categorical)
    ),
    "numpy": structured(),
}


def columns(frame: Any) -> list[str]:
    if isinstance(frame, np.ndarray):
        return list(frame.dtype.names or ())
    return list(
        frame.schema.names if isinstance(frame, pa.Table | pa.RecordBatch) else frame.columns
    )


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
    assert values(made, "zone_speed_mean") == pytest.approx(
        [10 * 7 / 13, 10, 10 * 16 / 28, 10 * 3 / 5]
    )


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
    "frame",
    [TABLE.slice(0, 0), TABLE.to_pandas().head(0), pl.DataFrame(pl.from_arrow(TABLE)).head(0)],
)
def test_an_empty_frame_works(frame: Any) -> None:
    assert columns(featurize(frame, STATES))[-6:] == NEW


def test_no_states_no_features() -> None:
    assert featurize(TABLE, []).equals(TABLE)


@pytest.mark.parametrize("name", FRAMES)
def test_a_missing_column_is_named_with_those_that_are_there(name: str) -> None:
    other = state_of(IntegerRange(column="district", first=0, last=3), name="districts")
    with pytest.raises(
        InvalidInput, match=r"'district' must be there once.*'city', 'other', 'time', 'zone'"
    ) as caught:
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


@pytest.mark.parametrize("name", FRAMES)
def test_names_are_those_of_the_configurations_for_every_frame_and_prefixes_are_put_before(
    name: str,
) -> None:
    named = {"a": STATES[1], "b": STATES[1], "": STATES[0]}
    made = featurize(FRAMES[name], named)
    expected = [
        "a_city_mean",
        "a_city_count",
        "b_city_mean",
        "b_city_count",
        "zone_speed_mean",
        "zone_speed_count",
    ]
    assert columns(made)[-6:] == expected
    assert values(made, "a_city_count") == values(made, "b_city_count") == [1, 5, 0, 1]
    with pytest.raises(
        InvalidInput, match=r"'city_mean' of state 'cities' must have a new name.*\{prefix: state\}"
    ):
        featurize(FRAMES[name], [STATES[1], STATES[1]])


def test_the_features_alone_may_have_names_of_columns() -> None:
    table = TABLE.rename_columns(["zone", "city", "time", "city_mean"])
    made = feature_table(table, STATES)
    assert made.column_names == NEW
    assert made.equals(featurize(TABLE, STATES).select(NEW))
    with pytest.raises(InvalidInput, match="COLUMN_EXISTS"):
        feature_table(table, [STATES[1], STATES[1]])


SPEEDS = state_of(Bins(column="speed", edges=(0, 1, 2)), name="speeds")
WHOLE = state_of(Categories(column="zone", values=(0, 1, 3)), name="listed", prefix="zone")


@pytest.mark.parametrize(
    ("frame", "state", "expected"),
    [
        # pandas makes floats of whole numbers with gaps; a fraction and an infinity are in no
        # domain.
        (pd.DataFrame({"zone": [3, None, 1, 1.5, float("inf")]}), STATES[0], [13, 0, 5, 0, 0]),
        (pd.DataFrame({"zone": [3, None, 1, 1e300, -0.0]}), WHOLE, [9, 0, 5, 0, 1]),
        (pd.DataFrame({"zone": [3, None]}, dtype="Int64"), STATES[0], [13, 0]),
        (pl.DataFrame({"zone": [None, None]}), STATES[0], [0, 0]),
        (pd.DataFrame({"city": [None, None]}), STATES[1], [0, 0]),
        (pa.table({"time": pa.nulls(2)}), STATES[2], [0, 0]),
        (pa.table({"speed": pa.array([0.5, None, 1.5]).dictionary_encode()}), SPEEDS, [1, 0, 5]),
        (pd.DataFrame({"speed": pd.Categorical([1, 0, 1])}), SPEEDS, [5, 1, 5]),
        (pa.table({"speed": pa.array(["0.5", "1.5"]).cast(pa.decimal128(3, 1))}), SPEEDS, [1, 5]),
        (pa.table({"speed": [True, False]}), SPEEDS, [5, 1]),
        (
            pl.DataFrame({"city": ["a", None, "b"]}, schema={"city": pl.Enum(["a", "b"])}),
            STATES[1],
            [1, 0, 5],
        ),
        (pa.table({"city": pa.array(["a", None], pa.string_view())}), STATES[1], [1, 0]),
        (np.array([(3,), (1,)], dtype=[("zone", ">i4")]), STATES[0], [13, 5]),
        (np.array([("2026-01-01T05",)], dtype=[("time", "M8[h]")]), STATES[2], [21]),
    ],
)
def test_missing_values_and_other_types_follow_the_stated_rule(
    frame: Any, state: State, expected: list[int]
) -> None:
    made = featurize(frame, state)
    assert values(made, state.ptk.feature_names()[1]) == expected
    assert type(made) is type(frame)


def test_chunks_with_dictionaries_of_their_own_are_read_as_one_column() -> None:
    chunks = [
        pa.array(["a", "b"]).dictionary_encode(),
        pa.array(["c", "b", None]).dictionary_encode(),
    ]
    made = featurize(pa.table({"city": pa.chunked_array(chunks)}), STATES[1])
    assert values(made, "city_count") == [1, 5, 0, 5, 0]


@dataclass(frozen=True, kw_only=True)
class Norm(Statistics):
    """Counts by the bin of the length of a vector: stands for any PTK that reads lists."""

    kind: ClassVar[str] = "norm"

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        column = column_of(table, "vector")
        if column.type != pa.list_(pa.float64()):
            raise InvalidInput("COLUMN_TYPE", f"column 'vector' must hold lists, got {column.type}")
        norms = [float(np.linalg.norm(one)) for one in column.to_pylist()]
        return super().features(arrays, pa.table({"vector": norms}))

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        return pa.RecordBatch.from_pydict(
            {"vector": pa.array([[1.0, 0.0]] * rows, pa.list_(pa.float64()))}
        )


VECTORS = [[0.5, 0.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "frame",
    [
        pa.table({"vector": VECTORS}),
        pa.table({"vector": pa.array(VECTORS, pa.list_(pa.float32(), 2))}),
        pa.table({"vector": pa.array(VECTORS, pa.large_list(pa.float64()))}),
        pl.DataFrame({"vector": VECTORS}),
        pl.DataFrame({"vector": VECTORS}, schema={"vector": pl.Array(pl.Float64, 2)}),
        pd.DataFrame({"vector": VECTORS}),
        pd.DataFrame({"vector": [np.array(one) for one in VECTORS]}),
        np.array([(one,) for one in VECTORS], dtype=[("vector", "f8", (2,))]),
    ],
)
def test_lists_of_every_layout_are_read(frame: Any) -> None:
    ptk = Norm(keys=(Bins(column="vector", edges=(0, 1, 10)),), statistics=("count",))
    arrays = {"totals": np.array([[3], [7]]), "windows": np.ones(1, np.int64)}
    made = featurize(frame, State.make(ptk, arrays, name="norms", epsilon=1))
    assert values(made, "vector_count") == [3, 7]
    assert type(made) is type(frame)


def test_pandas_columns_that_are_no_texts_attributes_and_many_features() -> None:
    frame = pd.DataFrame({7: [1, 2], "zone": [3, 0]})
    frame.attrs["owner"] = "us"
    made = featurize(frame, {f"s{number}": STATES[0] for number in range(120)})
    assert list(made.columns)[:2] == [7, "zone"]
    assert made.shape == (2, 242)
    assert made.attrs == {"owner": "us"}
    made.loc[0, "s7_zone_speed_mean"] = 5.0
    assert made.loc[0, "s7_zone_speed_mean"] == 5.0


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
    with pytest.raises(InvalidInput, match="STATES_INVALID"):
        featurize(TABLE, {1: STATES[0]})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        featurize(pd.DataFrame({"zone": ["x"]}), STATES[0])
    with pytest.raises(InvalidInput, match="COLUMN_TYPE"):
        featurize(pa.table({"city": [1.5]}), STATES[1])
    for secret in ([1, "secret"], [object()], [2**70]):
        for frame in (
            pd.DataFrame({"zone": secret}, dtype=object),
            pl.DataFrame({"zone": secret}, {"zone": pl.Object}),
        ):
            with pytest.raises(InvalidInput, match="COLUMN_TYPE") as caught:
                featurize(frame, STATES[0])
            assert str(secret[-1]) not in str(caught.value)


def test_neither_pandas_nor_polars_is_imported() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "import ptklib.features, ptklib.ptks.statistics\n"
        "sys.exit(' '.join({'pandas', 'polars'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip() == ""
