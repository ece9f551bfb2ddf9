"""Data sets with two classes, and their public inputs, for `benchmarks.additive`.

``tuned`` says that defaults of our kinds were chosen with this data set in sight. What the columns
of real data may hold is written down here, not read from them. Rows come in a random order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories, IntegerRange
from ptklib.ptks.binned.codes import Feature, Number

__all__ = ["BinaryTask", "binary_tasks"]

Floats = NDArray[np.float64]

_ROWS, _REAL_ROWS = 20_000, 40_000


@dataclass(frozen=True, kw_only=True)
class BinaryTask:
    """The label is the column ``y``, 0 or 1."""

    name: str
    inputs: tuple[Feature, ...]
    train: pa.Table
    test: pa.Table
    tuned: bool

    @cached_property
    def truth(self) -> NDArray[np.bool_]:
        """Labels of the test rows."""
        return np.asarray(self.test["y"].to_numpy() == 1)

    @property
    def constant(self) -> float:
        """The log loss of the best constant of the training rows, without noise."""
        share = float(self.train["y"].to_numpy().mean())
        mean = float(self.truth.mean())
        return float(-mean * np.log(share) - (1 - mean) * np.log(1 - share))

    def plain(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays of numbers, and what interpret must be told of their columns."""
        values, test, types, bounds = [], [], [], {}
        for place, one in enumerate(self.inputs):
            if isinstance(one, Categories):
                # As codes, which are names to interpret.
                columns = [one.codes(table[one.column].combine_chunks()) for table in self._tables]
                types.append("nominal")
            else:
                columns = [table[one.column].to_numpy() for table in self._tables]
                types.append("continuous")
                bounds[place] = _bounds(one)
                columns = [np.clip(column, *bounds[place]) for column in columns]
            values.append(columns[0].astype(np.float64))
            test.append(columns[1].astype(np.float64))
        arrays = {"values": np.column_stack(values), "test_values": np.column_stack(test)}
        arrays["labels"] = self.train["y"].to_numpy()
        return arrays, {"types": types, "bounds": bounds}

    @property
    def _tables(self) -> tuple[pa.Table, pa.Table]:
        return self.train, self.test


def binary_tasks(data: Path | None) -> list[BinaryTask]:
    """All tasks; with those on real data when there is a folder of it."""
    found = [_bends(), _likes()]
    if data is not None:
        found += [*_census(data), _taxi(data), _bikes(data)]
    return found


def _bounds(one: Any) -> tuple[float, float]:
    if isinstance(one, Number):
        return one.lower, one.upper
    if isinstance(one, Bins):
        return one.edges[0], one.edges[-1]
    assert isinstance(one, IntegerRange)
    return one.first, one.last


def _bends() -> BinaryTask:
    """Three shapes, a step, one interaction and three columns that say nothing."""
    rng = np.random.default_rng(0)
    x = rng.random((8, 2 * _ROWS))
    score = 2 * np.sin(3 * x[0]) + 12 * (x[1] - 0.5) ** 2 - 1.5 * (x[2] > 0.6) + x[3]
    score += 0.8 * (x[4] > 0.5) * (x[0] > 0.5)
    return _made("bends", x, 1.5 * (score - np.quantile(score, 0.7)), 0.0, 1.0, rng)


def _likes() -> BinaryTask:
    """Fifteen columns that say three things between them; one class is rare."""
    rng = np.random.default_rng(3)
    hidden = rng.normal(0, 1, (3, _ROWS))
    x = hidden[np.arange(15) % 3] + 0.6 * rng.normal(0, 1, (15, _ROWS))
    score = 1.5 * hidden[0] - hidden[1] + 0.5 * hidden[2] ** 2 - 3.2
    return _made("likes", x, score, -4.0, 4.0, rng)


def _made(
    name: str, x: Floats, score: Floats, lower: float, upper: float, rng: np.random.Generator
) -> BinaryTask:
    labels = (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(np.int64)
    columns = {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(x)}
    inputs = tuple(Number(column=column, lower=lower, upper=upper) for column in columns)
    table = pa.table({**columns, "y": labels})
    half = len(score) // 2
    return BinaryTask(
        name=name, inputs=inputs, train=table.slice(0, half), test=table.slice(half), tuned=True
    )


_GAINS = (0, 1, 2_000, 3_000, 4_000, 5_000, 7_000, 10_000, 15_000, 100_000)
_LOSSES = (0, 1, 1_000, 1_500, 1_700, 1_900, 2_100, 2_400, 5_000)
# Categories of the census as its description lists them: so many that are written down once.
_NOMINAL = (
    *("workclass", "marital_status", "occupation", "relationship"),
    *("race", "sex", "native_country"),
)


def _census(data: Path) -> Iterator[BinaryTask]:
    frame = pd.read_parquet(data / "tabular" / "adult.parquet")
    frame["y"] = (frame["income"] == ">50K").astype(np.int64)
    listed = {name: tuple(sorted(frame[name].dropna().unique())) for name in _NOMINAL}
    inputs: tuple[Feature, ...] = (
        Number(column="age", lower=17, upper=90),
        IntegerRange(column="education_num", first=1, last=16),
        Bins(column="capital_gain", edges=_GAINS),
        Bins(column="capital_loss", edges=_LOSSES),
        Number(column="hours_per_week", lower=1, upper=99),
        *(Categories(column=name, values=values) for name, values in listed.items()),
    )
    parts = [_table(frame[frame["split"] == split], inputs) for split in ("train", "test")]
    yield BinaryTask(name="census", inputs=inputs, train=parts[0], test=parts[1], tuned=True)


def _taxi(data: Path) -> BinaryTask:
    """Does a ride take longer than a quarter of an hour?"""
    frame = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet").dropna(
        subset=["pickup_longitude", "dropoff_longitude", "passenger_count"]
    )
    frame = frame[frame["trip_duration_s"].between(60, 7200)].copy()
    frame["y"] = (frame["trip_duration_s"] > 900).astype(np.int64)
    frame["hour"], frame["day"] = (
        getattr(frame["pickup_datetime"].dt, part).astype(np.int64)
        for part in ("hour", "day_of_week")
    )
    places = [
        f"{end}_{axis}" for end in ("pickup", "dropoff") for axis in ("longitude", "latitude")
    ]
    box = {"longitude": (-74.03, -73.75), "latitude": (40.6, 40.9)}
    inputs: tuple[Feature, ...] = (
        *(
            Number(column=name, lower=low, upper=high)
            for name in places
            for low, high in [box[name.split("_")[1]]]
        ),
        Number(column="trip_distance", lower=0, upper=16),
        Number(column="passenger_count", lower=0, upper=8, bins=8),
        IntegerRange(column="hour", first=0, last=23),
        IntegerRange(column="day", first=0, last=6),
    )
    return _halved("taxi", frame, inputs)


def _bikes(data: Path) -> BinaryTask:
    """Is the rider of a shared bicycle a casual customer? Few are."""
    frame = pd.read_parquet(data / "citibike" / "jersey_city_2015_2017.parquet")
    frame["y"] = (frame["usertype"] == "Customer").astype(np.int64)
    start = frame["starttime"].dt
    for name, part in (("hour", "hour"), ("day", "day_of_week"), ("month", "month")):
        frame[name] = getattr(start, part).astype(np.int64)
    inputs: tuple[Feature, ...] = (
        Number(column="tripduration", lower=0, upper=3_600),
        *(
            Number(column=f"{end}_station_{axis}", lower=low, upper=high)
            for end in ("start", "end")
            for axis, low, high in (("latitude", 40.69, 40.76), ("longitude", -74.1, -74.03))
        ),
        IntegerRange(column="hour", first=0, last=23),
        IntegerRange(column="day", first=0, last=6),
        IntegerRange(column="month", first=1, last=12),
    )
    return _halved("bikes", frame, inputs)


def _halved(name: str, frame: pd.DataFrame, inputs: tuple[Feature, ...]) -> BinaryTask:
    rows = frame.sample(2 * _REAL_ROWS, random_state=7)
    table = _table(rows, inputs)
    return BinaryTask(
        name=name,
        inputs=inputs,
        train=table.slice(0, _REAL_ROWS),
        test=table.slice(_REAL_ROWS),
        tuned=False,
    )


def _table(frame: pd.DataFrame, inputs: tuple[Feature, ...]) -> pa.Table:
    columns = [*(one.column for one in inputs), "y"]
    shuffled = frame[columns].sample(frac=1, random_state=8)
    return pa.Table.from_pandas(shuffled, preserve_index=False).combine_chunks()
