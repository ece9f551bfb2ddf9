"""Tables of groups: a public key and a value between public bounds, made up and real.

Constants of the estimators were chosen on made-up tables alone. After a first look at real ones,
families with a few far groups and with rates near 0 were added to those, and no constant was chosen
by a real table. The tables of `_held_out` were read for the first time when the estimators were
done, and nothing was changed afterwards. Domains of keys are those of the data sets' descriptions or, for ids, numbered as
they come: which values there are is public to all sides alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = ["Groups", "groups"]

Floats = NDArray[np.float64]

# A whole table, and what a small window would hold.
_FEW = 4_000


@dataclass(frozen=True, kw_only=True)
class Groups:
    """Records with the number of their group and a value, as a part of the range."""

    name: str
    codes: NDArray[np.int64]
    values: Floats
    size: int


def groups(data: Path | None) -> list[Groups]:
    """All tables; real ones when there is a folder of them, whole and a few records of each."""
    found = list(_made_up())
    if data is not None:
        for table in (*_real(data), *_held_out(data)):
            chosen = np.random.default_rng(7).permutation(len(table.codes))[:_FEW]
            found.append(table)
            found.append(
                Groups(
                    name=f"{table.name}, {_FEW:,} records",
                    codes=table.codes[chosen],
                    values=table.values[chosen],
                    size=table.size,
                )
            )
    return found


def _made_up() -> Iterator[Groups]:
    """Groups of even and of very different sizes, which differ a lot and hardly."""
    rng = np.random.default_rng(8)
    for size, records in ((24, 6_000), (300, 30_000)):
        for sizes, shares in (("even", np.ones(size)), ("Zipf", 1 / np.arange(1.0, size + 1))):
            for words, spread in (("alike", 0.01), ("different", 0.15)):
                codes = rng.choice(size, records, p=shares / shares.sum())
                means = np.clip(rng.normal(0.4, spread, size), 0.01, 0.99)
                values = rng.beta(4 * means[codes], 4 * (1 - means[codes]))
                yield Groups(
                    name=f"{size} {sizes} groups, {words}", codes=codes, values=values, size=size
                )


def _real(data: Path) -> Iterator[Groups]:
    frame = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet")
    at = frame["pickup_datetime"].dt
    zones = frame["pickup_location_id"].to_numpy(np.int64)
    yield _table("fare by hour", at.hour, 24, frame["fare_amount"], 0, 100)
    yield _table("miles by weekday", at.day_of_week, 7, frame["trip_distance"], 0, 30)
    yield _table("fare by zone", zones - 1, 265, frame["fare_amount"], 0, 100)
    yield _table("tip by zone", zones - 1, 265, frame["tip_amount"], 0, 20)
    seconds = frame["trip_duration_s"]
    yield _table("seconds by zone and hour", (zones - 1) * 24 + at.hour, 265 * 24, seconds, 0, 3600)
    frame = pd.read_parquet(data / "tabular" / "adult.parquet")
    for key, value, lower, upper in (
        ("education", "hours_per_week", 1, 99),
        ("occupation", "age", 17, 90),
        ("native_country", "education_num", 1, 16),
        ("workclass", "capital_gain", 0, 99_999),
    ):
        yield _listed(frame, key, value, lower, upper)
    frame = pd.read_parquet(data / "citibike" / "jersey_city_2015_2017.parquet")
    yield _listed(frame, "start_station_id", "tripduration", 0, 3600)
    frame = pd.read_parquet(data / "ratings" / "ml100k_ratings.parquet")
    yield _listed(frame, "user_id", "rating", 1, 5)
    yield _listed(frame, "item_id", "rating", 1, 5)
    frame = pd.read_parquet(data / "ads" / "talkingdata_100k.parquet")
    yield _listed(frame, "app", "is_attributed", 0, 1)
    yield _listed(frame, "channel", "is_attributed", 0, 1)


def _held_out(data: Path) -> Iterator[Groups]:
    frame = pd.read_parquet(data / "ratings" / "douban_book.parquet")
    yield _listed(frame, "user_id", "rating", 1, 5, of="book ")
    yield _listed(frame, "item_id", "rating", 1, 5, of="book ")
    frame = pd.read_parquet(data / "ads" / "criteo_8k.parquet")
    for key in ("C1", "C2", "C3", "C4"):
        yield _listed(frame, key, "label", 0, 1)
    frame = pd.read_parquet(data / "taxi" / "yellow_2016H1_lonlat.parquet")
    at = pd.to_datetime(frame["pickup_datetime"]).dt
    seconds = frame["trip_duration"]
    yield _table("seconds by hour, 2016", at.hour, 24, seconds, 0, 3600)
    yield _table("seconds by weekday, 2016", at.day_of_week, 7, seconds, 0, 3600)
    frame["cell"] = [
        f"{longitude:.2f} {latitude:.2f}"
        for longitude, latitude in zip(
            frame["pickup_longitude"], frame["pickup_latitude"], strict=True
        )
    ]
    yield _listed(frame, "cell", "trip_duration", 0, 3600)
    frame = pd.read_parquet(data / "tabular" / "adult.parquet")
    yield _listed(frame, "marital_status", "age", 17, 90)
    yield _listed(frame, "race", "hours_per_week", 1, 99)
    yield _listed(frame, "relationship", "capital_loss", 0, 4356)
    frame = pd.read_parquet(data / "ads" / "talkingdata_100k.parquet")
    yield _listed(frame, "os", "is_attributed", 0, 1)
    yield _listed(frame, "device", "is_attributed", 0, 1)
    frame = pd.read_parquet(data / "citibike" / "jersey_city_2015_2017.parquet")
    yield _listed(frame, "end_station_id", "birth_year", 1930, 2005)


def _listed(
    frame: pd.DataFrame, key: str, value: str, lower: float, upper: float, *, of: str = ""
) -> Groups:
    codes, names = pd.factorize(frame[key], sort=True)
    return _table(f"{of}{value} by {key}", codes, len(names), frame[value], lower, upper)


def _table(
    name: str, codes: object, size: int, values: pd.Series, lower: float, upper: float
) -> Groups:
    numbers = values.to_numpy(np.float64)
    places = np.asarray(codes, dtype=np.int64)
    known = (places >= 0) & (places < size) & ~np.isnan(numbers)
    scaled = (np.clip(numbers[known], lower, upper) - lower) / (upper - lower)
    return Groups(name=name, codes=places[known], values=scaled, size=size)
