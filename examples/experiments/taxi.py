"""How long does a taxi ride take? Statistics of another year, or of other months, for a team with
few rides.

*Zones* (``taxi-zones``): PTKs on the yellow rides of 2018: the mean pace by pickup zone, by
drop-off zone and by hour of the week, and the mean duration by distance. The target's rides are of
January to September 2019, tested on October to December. Ridge regression on the logarithm of the
seconds.

*Places* (``taxi-places``): PTKs on the rides of January to April 2016 by squares of the map, target
May, test June; boosted trees.

Rides are cleaned by public rules: between one minute and two hours, at most 100 km/h, inside the
city's box.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingRegressor  # type: ignore[import-untyped,unused-ignore]
from sklearn.linear_model import Ridge, RidgeCV  # type: ignore[import-untyped,unused-ignore]

from examples.experiments.arms import ptk_arms
from examples.experiments.harness import Experiment, Outcome, Say, Scene, compare
from ptklib.columns.keys import Bins, IntegerRange
from ptklib.ptk import Ptk
from ptklib.ptks.statistics import Statistics

__all__ = ["places", "zones"]

Floats = NDArray[np.float64]

_ZONES = 265
_BOX = {"longitude": (-74.03, -73.75), "latitude": (40.60, 40.90)}
_KM_PER_DEGREE = (84.3, 111.2)
_PENALTIES = np.geomspace(1e-2, 1e4, 13)
_FEW_ROWS = 1_000
_DISTANCE = Statistics(
    keys=(Bins(column="km", edges=tuple(np.geomspace(0.25, 32, 29).tolist())),),
    statistics=("mean",),
    value="log_seconds",
    lower=4.0,
    upper=9.0,
    prefix="distance_duration",
)


def zones(data: Path, fast: bool, say: Say) -> Outcome:
    """Statistics of 2018 for the rides of 2019."""
    frame = _cleaned(
        pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet"), "trip_duration_s"
    )
    frame = frame.rename(
        columns={"pickup_location_id": "pickup_zone", "dropoff_location_id": "dropoff_zone"}
    )
    at = frame["pickup_datetime"]
    source = _table(frame[at.dt.year == 2018])
    target, test = (
        frame[(at.dt.year == 2019) & (at.dt.month <= 9)],
        frame[(at.dt.year == 2019) & (at.dt.month >= 10)],
    )
    target = target.sample(min(len(target), 20_000), random_state=0)
    pickup = IntegerRange(column="pickup_zone", first=1, last=_ZONES)
    dropoff = IntegerRange(column="dropoff_zone", first=1, last=_ZONES)
    week = IntegerRange(column="hour_of_week", first=0, last=167)
    ptks = (
        _mean("pickup_pace", pickup),
        _mean("dropoff_pace", dropoff),
        _mean("week_pace", week),
        _DISTANCE,
    )
    experiment = Experiment(
        name="taxi-zones",
        title="Taxi duration: statistics of 2018 for rides of 2019",
        error="RMSLE of the duration",
        learn=_ridge,
        loss=_rmse,
        fractions=(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    )
    return _run(experiment, ptks, source, target, test, seeds=3 if fast else 10, fast=fast, say=say)


def places(data: Path, fast: bool, say: Say) -> Outcome:
    """Statistics of January to April for the rides of May and June."""
    frame = _cleaned(
        pd.read_parquet(data / "taxi" / "yellow_2016H1_lonlat.parquet"), "trip_duration"
    )
    month = frame["pickup_datetime"].dt.month
    source, target, test = _table(frame[month <= 4]), frame[month == 5], frame[month == 6]
    squares = {
        end: tuple(
            Bins(column=f"{end}_{axis}", edges=tuple(np.linspace(*_BOX[axis], count + 1).tolist()))
            for axis, count in (("longitude", 24), ("latitude", 24))
        )
        for end in ("pickup", "dropoff")
    }
    week = IntegerRange(column="hour_of_week", first=0, last=167)
    ptks = (
        _mean("pickup_pace", *squares["pickup"]),
        _mean("dropoff_pace", *squares["dropoff"]),
        _mean("week_pace", week),
        _DISTANCE,
    )
    experiment = Experiment(
        name="taxi-places",
        title="Taxi duration: statistics of January to April 2016 for rides of May",
        error="RMSLE of the duration",
        learn=_boosted,
        loss=_rmse,
        fractions=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
    )
    return _run(experiment, ptks, source, target, test, seeds=2 if fast else 10, fast=fast, say=say)


def _run(
    experiment: Experiment,
    ptks: tuple[Ptk, ...],
    source: pa.Table,
    target: pd.DataFrame,
    test: pd.DataFrame,
    *,
    seeds: int,
    fast: bool,
    say: Say,
) -> Outcome:
    if fast:
        target, test = target.head(500), test.head(500)
    own = (_context(target), _context(test))
    kept = ptk_arms(ptks, source, train=_table(target), test=_table(test), own=own, epsilons=())

    def scene(_: int) -> Scene:
        return Scene(
            arms=ptk_arms(
                ptks, source, train=_table(target), test=_table(test), own=own, prepared=kept
            ),
            train_answers=target["log_seconds"].to_numpy(np.float64),
            test_answers=test["log_seconds"].to_numpy(np.float64),
        )

    return compare(experiment, scene, seeds=seeds, say=say, fast=fast)


def _mean(prefix: str, *keys: Bins | IntegerRange) -> Statistics:
    """The mean pace (log seconds for a kilometre as the crow flies) by the keys."""
    return Statistics(
        keys=keys, statistics=("mean",), value="pace", lower=3.5, upper=7.5, prefix=prefix
    )


def _cleaned(frame: pd.DataFrame, seconds: str) -> pd.DataFrame:
    """Only rides that keep the public rules, with the columns that PTKs and models use."""
    ends = [f"{end}_{axis}" for end in ("pickup", "dropoff") for axis in _BOX]
    frame = frame[frame[seconds].between(60, 7200)].dropna(subset=ends)
    for name in ends:
        frame = frame[frame[name].between(*_BOX[name.split("_")[1]])]
    east = (frame["dropoff_longitude"] - frame["pickup_longitude"]) * _KM_PER_DEGREE[0]
    north = (frame["dropoff_latitude"] - frame["pickup_latitude"]) * _KM_PER_DEGREE[1]
    # Rides within a zone have the same centre on both ends: a quarter of a kilometre is the least.
    km = np.maximum(np.hypot(east, north), 0.25)
    frame = frame.assign(
        km=km,
        east=east,
        north=north,
        hour=frame["pickup_datetime"].dt.hour,
        weekday=frame["pickup_datetime"].dt.day_of_week,
        log_seconds=np.log(frame[seconds]),
    )
    frame = frame.assign(
        hour_of_week=(24 * frame["weekday"] + frame["hour"]).astype(np.int32),
        pace=frame["log_seconds"] - np.log(km),
    )
    return frame[frame["km"] / frame[seconds] * 3600 <= 100]


def _table(frame: pd.DataFrame) -> pa.Table:
    names = ["pickup_zone", "dropoff_zone", "hour_of_week", "km", "pace", "log_seconds"]
    names += [f"{end}_{axis}" for end in ("pickup", "dropoff") for axis in _BOX]
    return pa.Table.from_pandas(frame[[one for one in names if one in frame]], preserve_index=False)


def _context(frame: pd.DataFrame) -> Floats:
    """The team's own columns: distance, direction, both places, the hours, days and zones as
    indicators.
    """
    columns = [np.log(frame["km"]), frame["km"], np.abs(frame["east"]), np.abs(frame["north"])]
    columns += [frame[f"{end}_{axis}"] for end in ("pickup", "dropoff") for axis in _BOX]
    hours = np.eye(24)[frame["hour"].to_numpy()]
    days = np.eye(7)[frame["weekday"].to_numpy()]
    zones = [
        np.eye(_ZONES + 1, dtype=np.float32)[frame[name].to_numpy()]
        for name in ("pickup_zone", "dropoff_zone")
        if name in frame
    ]
    return np.hstack([np.column_stack(columns), hours, days, *zones])


def _ridge(train: Floats, answers: Floats, test: Floats) -> Floats:
    # Indicators keep their scale: a zone that is seen once must not weigh as much as the distance.
    numbers = ((train != 0) & (train != 1)).any(axis=0)
    spread = train.std(axis=0)
    scale = np.where(numbers & (spread > 0), spread, 1.0)
    middle = train.mean(axis=0)
    rows, asked = (train - middle) / scale, (test - middle) / scale
    if len(rows) <= _FEW_ROWS:
        found: Floats = RidgeCV(_PENALTIES).fit(rows, answers).predict(asked)
        return found
    # With many rows a quarter of them is enough to choose by, and far cheaper than leaving out one
    # after the other.
    hold = len(rows) // 4
    models = [
        Ridge(one, solver="cholesky").fit(rows[hold:], answers[hold:]) for one in _PENALTIES[::2]
    ]
    errors = [_rmse(one.predict(rows[:hold]), answers[:hold]) for one in models]
    best = Ridge(_PENALTIES[::2][int(np.argmin(errors))], solver="cholesky").fit(rows, answers)
    predicted: Floats = best.predict(asked)
    return predicted


def _boosted(train: Floats, answers: Floats, test: Floats) -> Floats:
    model = HistGradientBoostingRegressor(
        max_iter=150, learning_rate=0.08, min_samples_leaf=10, random_state=0
    )
    found: Floats = model.fit(train, answers).predict(test)
    return found


def _rmse(predicted: Floats, answers: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(predicted - answers))))
