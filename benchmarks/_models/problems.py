"""What models are compared on: records with public domains, for training and for testing.

Domains are written down here, from descriptions of the data sets, and never read from them. Without
a folder of real data there is a synthetic stand-in of the same form for each tabular problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories, IntegerRange
from ptklib.columns.numbers import Bounded
from ptklib.models.inputs import Input
from ptklib.models.rows import InputRows

__all__ = ["CANCER", "Problem", "adult", "cancer", "digits", "taxi"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Problem:
    """A label to be predicted from inputs: ``classes`` of it, or bounds."""

    name: str
    inputs: tuple[Input, ...]
    label: str
    train: pa.Table
    test: pa.Table
    classes: tuple[str, ...] | tuple[int, ...] = ()
    lower: float = 0.0
    upper: float = 1.0

    @cached_property
    def rows(self) -> InputRows:
        """Records as rows without an intercept: what others get, so that all read the same."""
        return InputRows(self.inputs, "unit", None, False)

    def matrix(self, table: pa.Table) -> Floats:
        """The rows of a table."""
        return np.concatenate([self.rows.matrix(piece) for piece in self.rows.pieces(table)])

    def labels(self, table: pa.Table) -> NDArray[Any]:
        """Labels: numbers between the bounds, or places among the classes."""
        values = table.column(self.label).to_numpy()
        if not self.classes:
            return np.asarray(np.clip(values.astype(np.float64), self.lower, self.upper))
        places = {value: place for place, value in enumerate(self.classes)}
        return np.array([places[value] for value in values.tolist()], dtype=np.int64)

    def sampled(self, records: int, seed: int) -> Problem:
        """The same with so many records for training, drawn without replacement."""
        chosen = np.random.default_rng(seed).permutation(self.train.num_rows)[:records]
        return Problem(
            self.name,
            self.inputs,
            self.label,
            self.train.take(pa.array(np.sort(chosen))),
            self.test,
            self.classes,
            self.lower,
            self.upper,
        )


# Ten things that are known of a ride at its start, as 61 yes-or-no features: hour, day of the week,
# distance, and both ends on a map.
_BOX = {"lon": (-74.02, -73.77), "lat": (40.64, 40.86)}
_KM = (0.0, 0.8, 1.3, 1.8, 2.4, 3.2, 4.5, 6.5, 10.0, 16.0, 1000.0)
_SECONDS = 9_000.0
_KM_PER_DEGREE = (84.3, 111.2)


def _taxi_inputs() -> tuple[Input, ...]:
    places = tuple(
        Bins(column=f"{end}_{axis}", edges=(-200.0, *np.linspace(*_BOX[axis], 6)[1:-1], 200.0))
        for end in ("pickup", "dropoff")
        for axis in _BOX
    )
    return (
        IntegerRange(column="hour", first=0, last=23),
        IntegerRange(column="weekday", first=0, last=6),
        Bins(column="km", edges=_KM),
        *places,
    )


def taxi(data: Path | None, *, train: int, test: int, seed: int = 0) -> Problem:
    """The duration of a taxi ride as a part of two and a half hours; rides cleaned as in the
    text."""
    frame = _invented_rides(train + test, seed) if data is None else _rides(data)
    frame = frame.sample(frac=1, random_state=seed)
    inputs = _taxi_inputs()
    assert InputRows(inputs, "unit", None, False).width == 61
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return Problem(
        "taxi" if data else "invented rides",
        inputs,
        "duration",
        table.slice(test, train),
        table.slice(0, test),
    )


def _rides(data: Path) -> pd.DataFrame:
    parts = []
    for file, seconds in (
        ("yellow_2016H1_lonlat", "trip_duration"),
        ("yellow_2018_2019_zones", "trip_duration_s"),
    ):
        read = pd.read_parquet(data / "taxi" / f"{file}.parquet")
        if "fare_amount" in read:
            read = read[read["fare_amount"].between(0, 1000)]
        ends = {
            f"{end}_{axis[:3]}": read[f"{end}_{axis}"].astype(np.float64)
            for end in ("pickup", "dropoff")
            for axis in ("longitude", "latitude")
        }
        at = read["pickup_datetime"].dt
        parts.append(
            pd.DataFrame(
                {**ends, "hour": at.hour, "weekday": at.weekday, "seconds": read[seconds]}
            ).dropna()
        )
    frame = pd.concat(parts, ignore_index=True)
    inside = frame["seconds"].between(1, _SECONDS)
    for end in ("pickup", "dropoff"):
        inside &= frame[f"{end}_lon"].between(-74.27, -73.65)
        inside &= frame[f"{end}_lat"].between(40.4, 40.923)
    return _derived(frame[inside])


def _invented_rides(count: int, seed: int) -> pd.DataFrame:
    """Rides of an invented city with streets that are slower by day and near its middle."""
    rng = np.random.default_rng(seed)
    ends = {
        f"{end}_{axis}": np.clip(rng.normal(np.mean(box), np.ptp(box) / 4, count), *box)
        for end in ("pickup", "dropoff")
        for axis, box in _BOX.items()
    }
    frame = pd.DataFrame(
        {**ends, "hour": rng.integers(0, 24, count), "weekday": rng.integers(0, 7, count)}
    )
    frame = _derived(frame.assign(seconds=0.0))
    busy = np.where(frame["hour"].between(8, 19), 1.4, 1.0) * np.where(frame["weekday"] < 5, 1.1, 1)
    seconds = (150 + 160 * frame["km"] * busy) * rng.lognormal(0, 0.35, count)
    return frame.assign(duration=np.clip(seconds / _SECONDS, 0, 1))


def _derived(frame: pd.DataFrame) -> pd.DataFrame:
    east = _KM_PER_DEGREE[0] * (frame["pickup_lon"] - frame["dropoff_lon"])
    north = _KM_PER_DEGREE[1] * (frame["pickup_lat"] - frame["dropoff_lat"])
    return frame.assign(km=np.hypot(east, north), duration=frame["seconds"] / _SECONDS).drop(
        columns="seconds"
    )


_EDUCATION = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad",
    "Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
_ADULT: dict[str, tuple[str, ...]] = {
    "workclass": (
        "Private", "Self-emp-not-inc", "Self-emp-inc", "Federal-gov", "Local-gov", "State-gov",
        "Without-pay", "Never-worked",
    ),
    "marital_status": (
        "Married-civ-spouse", "Divorced", "Never-married", "Separated", "Widowed",
        "Married-spouse-absent", "Married-AF-spouse",
    ),
    "occupation": (
        "Tech-support", "Craft-repair", "Other-service", "Sales", "Exec-managerial",
        "Prof-specialty", "Handlers-cleaners", "Machine-op-inspct", "Adm-clerical",
        "Farming-fishing", "Transport-moving", "Priv-house-serv", "Protective-serv",
        "Armed-Forces",
    ),
    "relationship": (
        "Wife", "Own-child", "Husband", "Not-in-family", "Other-relative", "Unmarried",
    ),
    "race": ("White", "Asian-Pac-Islander", "Amer-Indian-Eskimo", "Other", "Black"),
    "sex": ("Female", "Male"),
}  # fmt: skip
_ADULT_BINS = {
    "age": (17.0, 21.0, 25.0, 29.0, 33.0, 37.0, 41.0, 46.0, 51.0, 56.0, 61.0, 66.0, 90.0),
    "education_num": tuple(float(place) for place in range(1, 18)),
    "hours_per_week": (0.0, 20.0, 30.0, 39.0, 41.0, 46.0, 51.0, 61.0, 100.0),
    # Gains and losses: none, and what doubles.
    "capital_gain": (0.0, 1.0, 1500.0, 3000.0, 5000.0, 7000.0, 10000.0, 100000.0),
    "capital_loss": (0.0, 1.0, 1500.0, 1800.0, 2000.0, 2300.0, 5000.0),
}
_RICH = ("<=50K", ">50K")


def _adult_inputs() -> tuple[Input, ...]:
    return (
        *(Bins(column=column, edges=edges) for column, edges in _ADULT_BINS.items()),
        *(Categories(column=column, values=values) for column, values in _ADULT.items()),
    )


def adult(data: Path | None, *, seed: int = 0) -> Problem:
    """Who earns more than 50,000: the split of the data set, or invented people."""
    if data is None:
        people = _invented_people(48_842, seed)
        test = np.arange(len(people)) >= 32_561
    else:
        people = pd.read_parquet(data / "tabular" / "adult.parquet")
        test = (people["split"] == "test").to_numpy()
    kept = [*_ADULT_BINS, *_ADULT, "income"]
    table = pa.Table.from_pandas(people[kept], preserve_index=False)
    return Problem(
        "Adult" if data else "invented people",
        _adult_inputs(),
        "income",
        table.filter(pa.array(~test)),
        table.filter(pa.array(test)),
        classes=_RICH,
    )


def _invented_people(count: int, seed: int) -> pd.DataFrame:
    """People of the same columns; income follows age, education, hours, marriage and gains."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {
        column: rng.choice(
            np.array(values, dtype=object), count, p=_falling(len(values), column == "sex")
        )
        for column, values in _ADULT.items()
    }
    columns["age"] = np.clip(rng.gamma(9, 4.3, count), 17, 90).astype(int)
    columns["education_num"] = np.clip(np.rint(rng.normal(10, 2.6, count)), 1, 16).astype(int)
    columns["hours_per_week"] = np.clip(np.rint(rng.normal(40, 12, count)), 1, 99).astype(int)
    for name, share, top in (("capital_gain", 0.08, 15_000), ("capital_loss", 0.05, 2_600)):
        has = rng.random(count) < share
        columns[name] = np.where(has, rng.uniform(200, top, count), 0).astype(int)
    married = np.isin(columns["marital_status"], ["Married-civ-spouse", "Married-AF-spouse"])
    score = (
        -3.6
        + 0.35 * (columns["education_num"] - 10)
        + 0.03 * (columns["hours_per_week"] - 40)
        + 2.2 * married
        + np.where(columns["capital_gain"] > 5000, 2.5, 0)
        + 0.9 * np.isin(columns["occupation"], ["Exec-managerial", "Prof-specialty"])
        + 0.04 * np.minimum(columns["age"] - 38, 15)
    )
    rich = rng.random(count) < 1 / (1 + np.exp(-1.6 * score))
    return pd.DataFrame(columns).assign(income=np.where(rich, _RICH[1], _RICH[0]))


def _falling(size: int, even: bool) -> Floats:
    shares = np.ones(size) if even else 1 / np.arange(1, size + 1)
    return np.asarray(shares / shares.sum())


CANCER = (
    "clump_thickness", "cell_size", "cell_shape", "adhesion", "epithelial", "bare_nuclei",
    "bland_chromatin", "normal_nucleoli", "mitoses",
)  # fmt: skip


def cancer(data: Path, *, seed: int) -> Problem:
    """Whether a tumour is malignant: 560 patients for training, 123 for testing, as in the text."""
    frame = pd.read_parquet(data / "tabular" / "bcw_original.parquet").dropna()
    frame = frame.sample(frac=1, random_state=seed).astype(int)
    table = pa.Table.from_pandas(frame[[*CANCER, "class"]], preserve_index=False)
    return Problem(
        "cancer",
        tuple(Bounded(column=column, lower=1, upper=10) for column in CANCER),
        "class",
        table.slice(0, 560),
        table.slice(560),
        classes=(2, 4),
    )


def digits(data: Path) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.bool_]]:
    """MNIST: images (70000, 784), labels, and which are for testing."""
    frame = pd.read_parquet(data / "images" / "mnist.parquet")
    images = np.stack(frame["pixels"].to_list()).astype(np.uint8)
    return images, frame["label"].to_numpy(np.int64), (frame["split"] == "test").to_numpy()
