"""The interpreter of serving plans: every form that NumPy holds a column in, the same as featurize;
NumPy alone.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key, TimePart
from ptklib.features import feature_table
from ptklib.ptks.statistics import Statistics
from ptklib.serving import columns as serving_columns
from ptklib.serving import runner as serving
from ptklib.serving import steps as serving_steps
from ptklib.serving.plan import plan_of
from ptklib.state import State

ZONE = IntegerRange(column="x", first=-1, last=3)
LISTED = Categories(column="x", values=(3, -1, 2**63 - 1))
TEXT = Categories(column="x", values=("a", "b"))
BINS = Bins(column="x", edges=(-1, 0, 1, 3))
HOUR, WEEKDAY = TimePart(column="x", part="hour"), TimePart(column="x", part="weekday")


def state_of(key: Key) -> State:
    ptk = Statistics(
        keys=(key,), statistics=("mean", "count"), value="fare", lower=0, upper=10, prefix="f"
    )
    totals = (np.arange(2 * ptk.cells).reshape(ptk.cells, 2) + 1) * 4096
    return State.make(ptk, {"totals": totals, "windows": np.ones(1, np.int64)}, name="s", epsilon=1)


def served(key: Key, column: Any) -> list[list[float]]:
    state = state_of(key)
    plan = plan_of(state.ptk, state.arrays)
    return [
        one.tolist() for one in serving.run(plan.as_json(), plan.arrays, {"x": column}).values()
    ]


def featurized(key: Key, column: Any) -> list[list[float]]:
    frame = np.empty(len(column), dtype=[("x", column.dtype)])
    frame["x"] = column
    return [one.to_pylist() for one in feature_table(frame, state_of(key)).columns]


NUMBERS = [-2, -1, 0, 1, 3, 4, 100]


@pytest.mark.parametrize("key", [ZONE, LISTED, BINS], ids=lambda key: key.kind)
@pytest.mark.parametrize(
    "dtype", ["i1", "i2", "i4", "i8", ">i4", "u1", "u8", "f2", "f4", "f8", ">f8", "?", "O"]
)
def test_numbers_of_every_type(key: Key, dtype: str) -> None:
    column = np.array(NUMBERS).astype(dtype)
    assert served(key, column) == featurized(key, column)


@pytest.mark.parametrize("key", [ZONE, LISTED, BINS], ids=lambda key: key.kind)
@pytest.mark.parametrize(
    "column",
    [
        np.array([3, 0.5, np.nan, np.inf, -np.inf, -0.0, 1e300, 2.0**63]),
        np.array([3, None, 1, float("nan")], dtype=object),
        np.array([3.5, None, 1], dtype=object),
        np.array([None, None], dtype=object),
        np.array([2**63, 2**64 - 1, 2**63 - 1, 3], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        np.array([], dtype=np.int64),
    ],
    ids=["floats", "gaps", "float gaps", "all gaps", "beyond 64 bits", "ends", "no rows"],
)
def test_numbers_that_are_missing_or_outside(key: Key, column: np.ndarray[Any, Any]) -> None:
    assert served(key, column) == featurized(key, column)


@pytest.mark.parametrize(
    "column",
    [
        np.array(["a", "b", "c", "", "a\0"]),
        np.array(["a", None, "ab", "b", float("nan"), "a\0"], dtype=object),
        np.array([None, None], dtype=object),
    ],
)
def test_texts(column: np.ndarray[Any, Any]) -> None:
    assert served(TEXT, column) == featurized(TEXT, column)


@pytest.mark.parametrize("key", [HOUR, WEEKDAY], ids=lambda key: key.part)
@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_times_of_every_unit(key: Key, unit: str) -> None:
    times = [
        "1969-12-31T23:59:59",
        "1970-01-01T00:00:00",
        "2026-01-02T05:06:07",
        "1901-02-03T04:05:06",
        "NaT",
    ]
    column = np.array(times, dtype="M8[s]").astype(f"M8[{unit}]")
    assert served(key, column) == featurized(key, column)


def test_lists_masks_and_frames_are_columns_too() -> None:
    known, unknown = featurized(ZONE, np.array([3, 9]))[0]
    assert served(ZONE, [3, None, 3.0])[0] == [known, unknown, known]
    assert served(ZONE, (3, 9))[0] == [known, unknown]
    assert served(ZONE, np.ma.masked_array([3, 3], mask=[False, True]))[0] == [known, unknown]
    assert served(TEXT, ["a", None])[0] == featurized(TEXT, np.array(["a", None], dtype=object))[0]
    assert served(ZONE, pd.Series([3, 9], index=[5, 5]))[0] == [known, unknown]
    masked = np.ma.masked_array(np.array(["2026-01-01", "2026-01-01"], "M8[s]"), mask=[False, True])
    assert served(HOUR, masked)[0] == featurized(HOUR, np.array(["2026-01-01", "NaT"], "M8[s]"))[0]


@pytest.mark.parametrize(
    ("key", "column", "words"),
    [
        (TEXT, np.array([1, 2]), "column 'x' must hold text, got int64"),
        (TEXT, np.array([b"a"]), "must hold text"),
        (TEXT, np.array(["a", 1], dtype=object), "must hold text"),
        (ZONE, np.array(["secret"]), "must hold whole numbers, got <U6"),
        (ZONE, np.array(["secret"], dtype=object), "must hold whole numbers"),
        (BINS, np.array([1j]), "must hold numbers"),
        (HOUR, np.array([1.0]), "must hold times"),
        (ZONE, np.int64(3), "must have a value for each row"),
    ],
)
def test_other_types_are_refused_without_quoting_values(key: Key, column: Any, words: str) -> None:
    with pytest.raises(serving.ServingError, match=words) as caught:
        served(key, column)
    assert "secret" not in str(caught.value)


def test_missing_columns_and_columns_of_other_lengths_are_refused() -> None:
    ptk = Statistics(keys=(ZONE, IntegerRange(column="y", first=0, last=1)), statistics=("count",))
    arrays = {"totals": np.ones((ptk.cells, 1), np.int64), "windows": np.ones(1, np.int64)}
    plan = plan_of(ptk, arrays)
    with pytest.raises(serving.ServingError, match="column 'y' must be in the input"):
        serving.run(plan.as_json(), plan.arrays, {"x": [1]})
    with pytest.raises(serving.ServingError, match="as many rows"):
        serving.run(plan.as_json(), plan.arrays, {"x": [1], "y": [0, 1]})


@pytest.mark.parametrize(
    "module", [serving, serving_columns, serving_steps], ids=lambda module: str(module.__name__)
)
def test_the_interpreter_imports_numpy_and_the_standard_library_alone(module: ModuleType) -> None:
    found = set()
    for node in ast.walk(ast.parse(Path(str(module.__file__)).read_text())):
        if isinstance(node, ast.Import):
            found |= {one.name.split(".")[0] for one in node.names}
        elif isinstance(node, ast.ImportFrom) and not str(node.module).startswith(
            "ptklib.serving."
        ):
            found.add(str(node.module).split(".")[0])
    assert found - set(sys.stdlib_module_names) == {"numpy"}
