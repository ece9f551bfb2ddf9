"""The data sets of the comparison, with their public bounds. Rows come in a random order.

Everything here is public to both sides: bounds, classes, the number of clusters and components,
bins. Real data sets join when a data folder is given; what their columns may hold is written down
here, not read from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["METHODS", "Task", "tasks"]

METHODS = ("forest", "k-means", "PCA", "histogram")

Floats = NDArray[np.float64]

_ROWS = 20_000
_TEST_ROWS = 10_000


@dataclass(frozen=True, kw_only=True)
class Task:
    """One data set for one method.

    ``size`` is the number of classes, clusters, components or bins.
    """

    method: str
    data: str
    values: Floats
    lower: Floats
    upper: Floats
    size: int
    labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    test_values: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    test_labels: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    @property
    def name(self) -> str:
        """The method and the data set."""
        return f"{self.method}, {self.data}"


def tasks(data: Path | None) -> list[Task]:
    """All tasks; with those on real data when there is a folder of it."""
    found = [*_forests(), *_clusters(), *_components(), *_histograms()]
    if data is not None:
        found += [*_adult(data), *_taxi(data)]
    return sorted(found, key=lambda one: METHODS.index(one.method))


def _forests() -> Iterator[Task]:
    rng = np.random.default_rng(1)
    # Rules on three of eight columns, one label in ten wrong.
    values = rng.random((_ROWS + _TEST_ROWS, 8))
    labels = ((values[:, 0] > 0.6) | ((values[:, 1] > 0.5) & (values[:, 2] < 0.4))).astype(np.int64)
    wrong = rng.random(len(labels)) < 0.1
    yield _forest("rules", values, np.where(wrong, 1 - labels, labels), np.zeros(8), np.ones(8), 2)
    # Five classes as clouds that overlap.
    middles = rng.uniform(-2, 2, (5, 6))
    labels = rng.integers(0, 5, _ROWS + _TEST_ROWS)
    values = middles[labels] + rng.normal(0, 1, (len(labels), 6))
    yield _forest("clouds", values, labels, np.full(6, -5.0), np.full(6, 5.0), 5)
    # A line across ten columns, which trees can only follow in steps; one class is rare.
    values = rng.normal(0, 1, (_ROWS + _TEST_ROWS, 10))
    score = values @ np.linspace(1, 0.1, 10) + rng.logistic(0, 0.5, len(values))
    yield _forest(
        "slope", values, (score > 2).astype(np.int64), np.full(10, -4.0), np.full(10, 4.0), 2
    )


def _forest(
    data: str, values: Floats, labels: NDArray[Any], lower: Floats, upper: Floats, size: int
) -> Task:
    train = len(labels) - min(_TEST_ROWS, len(labels) // 3)
    values = np.clip(values, lower, upper)
    labels = labels.astype(np.int64)
    return Task(
        method="forest",
        data=data,
        values=values[:train],
        labels=labels[:train],
        test_values=values[train:],
        test_labels=labels[train:],
        lower=lower,
        upper=upper,
        size=size,
    )


def _clusters() -> Iterator[Task]:
    rng = np.random.default_rng(2)
    for data, size, width, spread in (
        ("8 spots", 8, 2, 0.04),
        ("5 in 5 columns", 5, 5, 0.08),
        ("16 spots", 16, 2, 0.03),
    ):
        middles = rng.uniform(0.1, 0.9, (size, width))
        # Clusters differ in size, the largest is about five times the smallest.
        shares = np.linspace(1, 5, size) / np.linspace(1, 5, size).sum()
        values = middles[rng.choice(size, _ROWS, p=shares)] + rng.normal(0, spread, (_ROWS, width))
        yield _plain("k-means", data, values, np.zeros(width), np.ones(width), size)


def _components() -> Iterator[Task]:
    rng = np.random.default_rng(3)
    # Few columns and not many rows: the sampler of diffprivlib does not come back from ten columns
    # and 20,000 rows.
    for data, width, rank, rows in (("2 of 6", 6, 2, 20_000), ("3 of 8, few rows", 8, 3, 3_000)):
        directions = np.linalg.qr(rng.normal(0, 1, (width, rank)))[0].T
        values = rng.normal(0, 1, (rows, rank)) * np.linspace(0.5, 0.25, rank) @ directions
        values += rng.normal(0, 0.08, values.shape) + rng.uniform(-0.2, 0.2, width)
        yield _plain("PCA", data, values, np.full(width, -1.0), np.ones(width), rank)


def _histograms() -> Iterator[Task]:
    rng = np.random.default_rng(4)
    yield _plain(
        "histogram",
        "lognormal",
        rng.lognormal(0, 0.8, (_ROWS, 1)),
        np.zeros(1),
        np.full(1, 10.0),
        50,
    )
    yield _plain(
        "histogram", "few rows", rng.normal(0, 1, (500, 1)), np.full(1, -4.0), np.full(1, 4.0), 64
    )


def _plain(method: str, data: str, values: Floats, lower: Floats, upper: Floats, size: int) -> Task:
    return Task(
        method=method,
        data=data,
        values=np.clip(values, lower, upper),
        lower=lower,
        upper=upper,
        size=size,
    )


# What the columns of Adult may hold, as its description says: lower and upper bounds.
_ADULT = {
    "age": (17, 90),
    "education_num": (1, 16),
    "hours_per_week": (1, 99),
    "capital_gain": (0, 99_999),
    "capital_loss": (0, 4_356),
}
_MARRIED = ("Married-civ-spouse", "Married-AF-spouse")
_BOX = {"longitude": (-74.03, -73.75), "latitude": (40.6, 40.9)}


def _adult(data: Path) -> Iterator[Task]:
    frame = pd.read_parquet(data / "tabular" / "adult.parquet").sample(frac=1, random_state=5)
    values = frame[list(_ADULT)].to_numpy(np.float64)
    lower, upper = (
        np.array([one[end] for one in _ADULT.values()], dtype=np.float64) for end in (0, 1)
    )
    labels = (frame["income"] == ">50K").to_numpy(np.int64)
    flags = np.column_stack(
        [
            frame["marital_status"].isin(_MARRIED),
            frame["sex"] == "Male",
            frame["relationship"] == "Own-child",
        ]
    ).astype(np.float64)
    more = np.zeros(flags.shape[1])
    yield _forest(
        "Adult",
        np.column_stack([values, flags]),
        labels,
        np.append(lower, more),
        np.append(upper, more + 1),
        2,
    )
    scaled = (values - lower) / (upper - lower)
    yield _plain("k-means", "Adult", scaled[:_ROWS, :3], np.zeros(3), np.ones(3), 6)
    yield _plain("PCA", "Adult", 2 * scaled[:_ROWS] - 1, np.full(5, -1.0), np.ones(5), 2)
    yield _plain("histogram", "Adult age", values[:, :1], lower[:1], upper[:1] + 1, 74)


def _taxi(data: Path) -> Iterator[Task]:
    frame = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet").dropna(
        subset=["pickup_longitude", "dropoff_longitude"]
    )
    frame = frame[frame["trip_duration_s"].between(60, 7200)].sample(60_000, random_state=6)
    ends = [f"{end}_{axis}" for end in ("pickup", "dropoff") for axis in _BOX]
    box = np.array([_BOX[name.split("_")[1]] for name in ends])
    places = np.clip(frame[ends].to_numpy(np.float64), box[:, 0], box[:, 1])
    at = frame["pickup_datetime"].dt
    miles = np.clip(frame["trip_distance"].to_numpy(np.float64), 0, 30)
    values = np.column_stack([places, miles, at.hour, at.day_of_week]).astype(np.float64)
    lower, upper = np.append(box[:, 0], [0, 0, 0]), np.append(box[:, 1], [30, 23, 6])
    seconds = frame["trip_duration_s"].to_numpy(np.float64)
    # Short, medium, long.
    labels = np.digitize(seconds, [480, 960])
    yield _forest("taxi", values[:30_000], labels[:30_000], lower, upper, 3)
    yield _plain("k-means", "taxi pickups", places[:_ROWS, :2], box[:2, 0], box[:2, 1], 10)
    scaled = 2 * (values - lower) / (upper - lower) - 1
    yield _plain("PCA", "taxi", scaled[:5_000], np.full(7, -1.0), np.ones(7), 3)
    yield _plain(
        "histogram", "taxi minutes", seconds[:, None] / 60, np.zeros(1), np.full(1, 60.0), 120
    )
