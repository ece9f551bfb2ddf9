"""The streams on which the surplus is measured: columns, PTKs and records, with public bounds.

What the columns of real data may hold is written down here, not read from them. Records come in the
order of the data, evenly over the windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ptkstore.api.columns import Column

__all__ = ["DAY_MS", "FIRST_MS", "PtkCase", "StreamCase", "stream_cases"]

DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000  # 2026-01-01
_ROWS = 20_000

_EDUCATION = [
    "Preschool",
    "1st-4th",
    "5th-6th",
    "7th-8th",
    "9th",
    "10th",
    "11th",
    "12th",
    "HS-grad",
    "Some-college",
    "Assoc-voc",
    "Assoc-acdm",
    "Bachelors",
    "Masters",
    "Prof-school",
    "Doctorate",
]
_OCCUPATION = [
    "?",
    "Adm-clerical",
    "Armed-Forces",
    "Craft-repair",
    "Exec-managerial",
    "Farming-fishing",
    "Handlers-cleaners",
    "Machine-op-inspct",
    "Other-service",
    "Priv-house-serv",
    "Prof-specialty",
    "Protective-serv",
    "Sales",
    "Tech-support",
    "Transport-moving",
]
_MARITAL = [
    "Divorced",
    "Married-AF-spouse",
    "Married-civ-spouse",
    "Married-spouse-absent",
    "Never-married",
    "Separated",
    "Widowed",
]
_WORKCLASS = [
    "?",
    "Federal-gov",
    "Local-gov",
    "Never-worked",
    "Private",
    "Self-emp-inc",
    "Self-emp-not-inc",
    "State-gov",
    "Without-pay",
]


@dataclass(frozen=True)
class PtkCase:
    """A PTK, its target, and the width of the range that its features lie in."""

    kind: str
    target: float
    config: Mapping[str, Any]
    width: float


@dataclass(frozen=True)
class StreamCase:
    """A stream with its PTKs, and the records of its windows."""

    name: str
    columns: tuple[Column, ...]
    ptks: Mapping[str, PtkCase]
    windows: tuple[pa.Table, ...]


def stream_cases(data: Path | None) -> Iterator[StreamCase]:
    """The made stream, and the real ones that the data folder has."""
    yield _rides("made", _made(), 4)
    if data is None:
        return
    taxi, adult = data / "taxi/yellow_2018_2019_zones.parquet", data / "tabular/adult.parquet"
    if taxi.is_file():
        yield _rides("taxi", _taxi(taxi), 4)
    if adult.is_file():
        yield _adult(pq.read_table(adult))


def _made() -> pa.Table:
    rng = np.random.default_rng(11)
    rows = 4 * _ROWS
    hour, weekday = rng.integers(0, 24, rows), rng.integers(0, 7, rows)
    minutes = np.clip(rng.gamma(2 + np.sin(hour / 4), 7), 0, 120)
    payment = (rng.uniform(0, 1, rows) < 0.2 + 0.02 * hour).astype(int) + 1
    return pa.table(
        {
            "hour": hour,
            "weekday": weekday,
            "passengers": rng.integers(1, 7, rows),
            "payment": payment,
            "minutes": minutes,
            "fare": np.clip(3 + minutes + weekday, 0, 100),
            "distance": np.clip(minutes / 5, 0, 30),
        }
    )


def _taxi(path: Path) -> pa.Table:
    whole = pq.read_table(path)
    months = sorted(set(whole["file_month"].to_pylist()))[:8]
    rides = whole.filter(pc.is_in(whole["file_month"], pa.array(months, pa.large_string())))
    at = rides["pickup_datetime"]
    return pa.table(
        {
            "hour": pc.hour(at),
            "weekday": pc.day_of_week(at),
            "passengers": rides["passenger_count"],
            "payment": rides["payment_type"],
            "minutes": pc.divide(rides["trip_duration_s"].cast(pa.float64()), 60.0),
            "fare": rides["fare_amount"].cast(pa.float64()),
            "distance": rides["trip_distance"].cast(pa.float64()),
        }
    )


def _rides(name: str, rides: pa.Table, windows: int) -> StreamCase:
    wholes = {"hour": (0, 23), "weekday": (0, 6), "passengers": (0, 9), "payment": (1, 6)}
    reals = {"minutes": (0.0, 120.0), "fare": (0.0, 100.0), "distance": (0.0, 30.0)}
    columns = (
        *(
            Column(name=one, type="int32", lower=low, upper=high)
            for one, (low, high) in wholes.items()
        ),
        *(
            Column(name=one, type="float64", lower=low, upper=high)
            for one, (low, high) in reals.items()
        ),
    )

    def key(column: str, first: int | None = None, last: int | None = None) -> dict[str, Any]:
        low, high = wholes[column]
        return {
            "kind": "integers",
            "column": column,
            "first": low if first is None else first,
            "last": high if last is None else last,
        }

    ptks = {
        "hour-minutes": _mean(key("hour"), "minutes", *reals["minutes"], 0.05),
        "weekday-distance": _mean(key("weekday"), "distance", *reals["distance"], 0.02),
        "passengers-fare": _mean(key("passengers", 1, 6), "fare", *reals["fare"], 0.05),
        "hour-payment": _shares(key("hour"), key("payment", 1, 2), 0.1),
        "weekday-fares": _quantiles(key("weekday"), "fare", *reals["fare"], 0.1),
    }
    cast = {column.name: column.arrow for column in columns}
    whole = pa.table({name: rides[name].cast(kind) for name, kind in cast.items()}).drop_null()
    return StreamCase(name, columns, ptks, _cut(whole, windows))


def _adult(people: pa.Table) -> StreamCase:
    texts = {
        "education": _EDUCATION,
        "occupation": _OCCUPATION,
        "marital_status": _MARITAL,
        "workclass": _WORKCLASS,
        "income": ["<=50K", ">50K"],
    }
    numbers = {"age": (17.0, 90.0), "hours_per_week": (1.0, 99.0)}
    columns = (
        *(Column(name=one, type="string", domain=tuple(values)) for one, values in texts.items()),
        *(
            Column(name=one, type="float64", lower=low, upper=high)
            for one, (low, high) in numbers.items()
        ),
    )

    def key(column: str) -> dict[str, Any]:
        return {"kind": "categories", "column": column, "values": texts[column]}

    ptks = {
        "education-hours": _mean(
            key("education"), "hours_per_week", *numbers["hours_per_week"], 0.1
        ),
        "occupation-age": _mean(key("occupation"), "age", *numbers["age"], 0.1),
        "marital-income": _shares(key("marital_status"), key("income"), 0.1),
        "education-income": _shares(key("education"), key("income"), 0.2),
        "workclass-hours": _quantiles(key("workclass"), "hours_per_week", 1.0, 99.0, 0.2),
    }
    cast = {column.name: column.arrow for column in columns}
    whole = pa.table({name: people[name].cast(kind) for name, kind in cast.items()})
    return StreamCase("adult", columns, ptks, _cut(whole, 2))


def _mean(key: dict[str, Any], value: str, lower: float, upper: float, target: float) -> PtkCase:
    config = {"keys": [key], "statistics": ["mean"], "value": value, "lower": lower, "upper": upper}
    return PtkCase("statistics", target, config, upper - lower)


def _shares(key: dict[str, Any], label: dict[str, Any], target: float) -> PtkCase:
    config = {"keys": [key], "label": label, "statistics": ["probability"]}
    return PtkCase("counts", target, config, 1.0)


def _quantiles(
    key: dict[str, Any], value: str, lower: float, upper: float, target: float
) -> PtkCase:
    edges = [lower + (upper - lower) * k / 32 for k in range(33)]
    config = {"keys": [key], "value": value, "edges": edges, "quantiles": [0.25, 0.5, 0.75]}
    return PtkCase("quantiles", target, config, upper - lower)


def _cut(whole: pa.Table, windows: int) -> tuple[pa.Table, ...]:
    """Equal windows, with a time for each record within the day of its window."""
    size = whole.num_rows // windows
    found = []
    for number in range(windows):
        at = np.linspace(0, DAY_MS - 1, size).astype(np.int64) + FIRST_MS + number * DAY_MS
        rows = whole.slice(number * size, size)
        found.append(rows.add_column(0, "at", pa.array(at, pa.timestamp("ms"))))
    return tuple(found)
