"""Where does a bike ride end? A forest taught by taxi rides, and one taught by bike rides of the
years before.

Jersey City's Citi Bike. The task is that of the paper: the destination, here one of the fifteen
busiest stations of the years 2015 and 2016, or another. The target's rides are of January to April
2017, tested on November and December. A multinomial logistic regression sees the start station, the
hour, the weekday and the user type as indicators, and the classes' log probabilities of the forest,
where there is one. The forest's features are its class probabilities.

*From taxis* (``bikes-from-taxis``): the forest learns from yellow cabs across the river in which
direction and how far people ride at which hour and weekday. The two services share no street, so it
can pass on habits of the day and no places.

*Retained* (``bikes-retained``): the forest learns the destination from all bike rides of 2015 and
2016. The rides are gone, it stays.

*Non-private* is the same training at epsilon 1,000.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped,unused-ignore]

from examples.experiments.arms import ptk_arms
from examples.experiments.harness import Experiment, Outcome, Say, Scene, compare
from ptklib.columns.keys import Categories, IntegerRange
from ptklib.ptk import Arrays, Ptk
from ptklib.ptks.forest import Forest

__all__ = ["from_taxis", "retained"]

Floats = NDArray[np.float64]

_CLASSES = 16
# Inputs are few, so every node looks at all of them.
_TREES, _DEPTH = 4, 8
_PENALTIES = (0.003, 0.03, 0.3, 3.0, 30.0)
# A looser one would stop before the optimum.
_TOLERANCE = 1e-4
_WHEN = (
    IntegerRange(column="hour", first=0, last=23),
    IntegerRange(column="weekday", first=0, last=6),
)


def from_taxis(data: Path, fast: bool, say: Say) -> Outcome:
    """Direction and distance of taxi rides by hour and weekday."""
    rides = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet").dropna(
        subset=["pickup_longitude", "dropoff_longitude"]
    )
    east = (rides["dropoff_longitude"] - rides["pickup_longitude"]) * 84.3
    north = (rides["dropoff_latitude"] - rides["pickup_latitude"]) * 111.2
    octant = (np.floor(np.arctan2(north, east) / (np.pi / 4)).astype(int) + 8) % 8
    source = _timed(rides["pickup_datetime"], way=2 * octant + (np.hypot(east, north) > 2))
    ptk = Forest(
        inputs=_WHEN,
        label="way",
        classes=tuple(range(16)),
        trees=_TREES,
        depth=_DEPTH,
        features_per_split=2,
        prefix="ride",
    )
    title = "Destination of a bike ride: a forest taught by taxis"
    return _run("bikes-from-taxis", title, data, ptk, source, fast, say)


def retained(data: Path, fast: bool, say: Say) -> Outcome:
    """The destination of earlier bike rides."""
    ptk = Forest(
        inputs=(
            *_WHEN,
            Categories(column="start", values=_stations(data)),
            IntegerRange(column="subscriber", first=0, last=1),
        ),
        label="end",
        classes=tuple(range(_CLASSES)),
        trees=_TREES,
        depth=_DEPTH,
        features_per_split=4,
        prefix="ride",
    )
    title = "Destination of a bike ride: a forest taught by earlier rides"
    return _run("bikes-retained", title, data, ptk, None, fast, say)


def _run(
    name: str, title: str, data: Path, ptk: Forest, source: pa.Table | None, fast: bool, say: Say
) -> Outcome:
    rides = pd.read_parquet(data / "citibike" / "jersey_city_2015_2017.parquet")
    at = rides["starttime"]
    old, new, last = (
        at.dt.year <= 2016,
        (at.dt.year == 2017) & (at.dt.month <= 4),
        (at.dt.year == 2017) & (at.dt.month >= 11),
    )
    busiest = rides.loc[old, "end_station_id"].value_counts().index[: _CLASSES - 1]
    ends = np.asarray(busiest.get_indexer(rides["end_station_id"]))
    ends = np.where(ends < 0, _CLASSES - 1, ends)
    subscriber = (rides["usertype"] == "Subscriber").astype(np.int64)
    table = _timed(
        at, start=rides["start_station_id"].astype(np.int64), subscriber=subscriber, end=ends
    )
    places = {one: place for place, one in enumerate(_stations(data))}
    start = rides["start_station_id"].map(places).to_numpy()
    own = np.hstack(
        [
            np.eye(len(places), dtype=np.float32)[start],
            np.eye(24, dtype=np.float32)[at.dt.hour.to_numpy()],
            np.eye(7, dtype=np.float32)[at.dt.day_of_week.to_numpy()],
            subscriber.to_numpy(np.float32)[:, None],
        ]
    )
    if source is None:
        source = table.filter(pa.array(old))
    rng = np.random.default_rng(0)
    train = rng.permutation(np.flatnonzero(new))[: 1_500 if fast else 10_000]
    test = rng.permutation(np.flatnonzero(last))[: 1_000 if fast else 10_000]
    experiment = Experiment(
        name=name,
        title=title,
        error="log loss of the destination",
        learn=_logistic,
        loss=_log_loss,
        fractions=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    )

    def scene(_: int) -> Scene:
        arms = ptk_arms(
            [ptk],
            source,
            train=table.take(train),
            test=table.take(test),
            own=(own[train], own[test]),
            exact=_without_noise,
        )
        width = own.shape[1]
        logs = {
            arm: (_with_logs(first, width), _with_logs(second, width))
            for arm, (first, second) in arms.items()
        }
        return Scene(arms=logs, train_answers=ends[train], test_answers=ends[test])

    return compare(experiment, scene, seeds=2 if fast else 10, say=say, fast=fast)


def _stations(data: Path) -> tuple[int, ...]:
    """Where rides can start: the operator publishes it."""
    ids = pd.read_parquet(
        data / "citibike" / "jersey_city_2015_2017.parquet", columns=["start_station_id"]
    )
    return tuple(int(one) for one in sorted(ids["start_station_id"].unique()))


def _timed(at: pd.Series, **more: NDArray[np.int64]) -> pa.Table:
    when = {"hour": at.dt.hour, "weekday": at.dt.day_of_week}
    columns = {name: np.asarray(one, dtype=np.int64) for name, one in {**when, **more}.items()}
    return pa.table(columns)


def _without_noise(ptk: Ptk, source: pa.Table) -> Arrays:
    return ptk.train_dp(source.to_batches(), epsilon=1_000)


def _with_logs(values: Floats, width: int) -> NDArray[np.float32]:
    chances = np.clip(values[:, width:], 0.01, 1)
    return np.hstack([values[:, :width], np.log(chances)]).astype(np.float32)


def _logistic(train: Floats, labels: NDArray[np.int64], test: Floats) -> Floats:
    """Probabilities of all classes: the model's, with a little of the classes' smoothed shares."""
    shares: Floats = (np.bincount(labels, minlength=_CLASSES) + 0.5) / np.float64(
        len(labels) + 0.5 * _CLASSES
    )
    if labels.min() == labels.max():
        return np.tile(shares, (len(test), 1))
    # Indicators keep their zeros. The intercept is free, so shifting the other columns changes
    # nothing but the speed.
    middle = np.where((train == 0).any(axis=0), 0.0, train.mean(axis=0))
    rows, asked = (csr_matrix(one - middle) for one in (train, test))
    hold = len(labels) // 4
    found = []
    for penalty in _PENALTIES if len(set(labels[hold:].tolist())) > 1 else ():
        chances = _chances(_fit(rows[hold:], labels[hold:], penalty), rows[:hold], shares)
        found.append((_log_loss(chances, labels[:hold]), penalty))
    return _chances(_fit(rows, labels, min(found)[1] if found else _PENALTIES[0]), asked, shares)


def _fit(train: csr_matrix, labels: NDArray[np.int64], penalty: float) -> LogisticRegression:
    return LogisticRegression(C=penalty, max_iter=5_000, tol=_TOLERANCE).fit(train, labels)


def _chances(model: LogisticRegression, rows: csr_matrix, shares: Floats) -> Floats:
    whole = np.zeros((rows.shape[0], _CLASSES))
    whole[:, model.classes_] = model.predict_proba(rows)
    mixed: Floats = 0.98 * whole + 0.02 * shares
    return mixed


def _log_loss(chances: Floats, labels: NDArray[np.int64]) -> float:
    return float(-np.log(chances[np.arange(len(labels)), labels]).mean())
