"""Target encoding with interactions beside tables of one key, of all keys at once, and forests.

Everybody predicts a number between public bounds, or the chance of the second of two classes, of
records that they have not seen, from the same two or three keys with the same domains, bounds and
epsilon (Laplace noise). `Interactions` predicts by its table of all keys. Beside it are

* *one key*: `Statistics` of each key alone, each with the whole budget, and of those the one that
  is best on the test records: better than anybody could choose;
* *all at once*: `Statistics` of the product of the keys, with the whole budget;
* *forest*: `Forest` with its defaults and the keys as inputs.

Errors are root mean squares over the standard deviation of the test records: 1 is the best
constant.

**No worse than tables.** On each data set and at every epsilon the mean error of interactions is at
most 1.02 times that of the best of one key, all at once and the best constant (told without noise),
beyond 3 standard errors of the difference. Forests are shown, not judged: keys are categories to
them too, but they may cut where they like, and have all of the budget for one answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.bars import Bar, Report, Say, at_most
from ptklib.columns.keys import Categories, IntegerRange, Key
from ptklib.ptk import Ptk
from ptklib.ptks.forest import Forest
from ptklib.ptks.interactions import Interactions
from ptklib.ptks.statistics import Statistics

__all__ = ["Encoded", "bars_of", "encoded", "report"]

EPSILONS = (0.1, 0.3, 1.0, 3.0)
_SEEDS = 6
_WORSE, _STANDARD_ERRORS = 1.02, 3.0
_OURS, _FOREST = "interactions", "forest"

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """Keys and a number ``y`` between public bounds; every seventh record is a test."""

    name: str
    keys: tuple[Key, ...]
    records: pa.Table
    lower: float
    upper: float

    @property
    def parts(self) -> tuple[pa.Table, pa.Table]:
        """To train on and to test on."""
        test = np.arange(self.records.num_rows) % 7 == 0
        return self.records.filter(pa.array(~test)), self.records.filter(pa.array(test))


def report(say: Say, data: Path | None = None) -> Report:
    """All data sets; with real ones when there is a folder of them."""
    made, rows = Report(), []
    for task in encoded(data):
        errors = _errors(task)
        made.bars += bars_of(task.name, errors)
        for place, epsilon in enumerate(EPSILONS):
            means = {name: f"{one[place].mean():.3f}" for name, one in errors.items()}
            rows.append({"data": task.name, "epsilon": epsilon, **means})
        say(f"interactions: {task.name}")
    made.figures["interactions"] = rows
    return made


def bars_of(name: str, errors: dict[str, list[Floats]]) -> list[Bar]:
    """From the errors of all seeds, by method and epsilon."""
    bars = []
    for place, epsilon in enumerate(EPSILONS):
        mine = errors[_OURS][place]
        others = [one[place] for other, one in errors.items() if other not in (_OURS, _FOREST)]
        best = min(others, key=lambda one: float(one.mean()))
        chance = _STANDARD_ERRORS * math.hypot(*(_error(one) for one in (mine, best)))
        ratio = (float(mine.mean()) - chance) / min(float(best.mean()), 1.0)
        words = f"interactions, {name}, epsilon {epsilon}: error over that of the best table"
        bars.append(at_most(f"{words}, beyond chance", ratio, _WORSE))
    return bars


def _error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _errors(task: Encoded) -> dict[str, list[Floats]]:
    train, test = task.parts
    truth = test["y"].to_numpy().astype(np.float64)
    batches, spread = train.to_batches(), float(np.std(truth))
    bounds: dict[str, Any] = {"lower": task.lower, "upper": task.upper}

    def of(ptk: Ptk, place: int) -> Callable[[float], float]:
        def once(epsilon: float) -> float:
            state = ptk.train_dp(batches, epsilon=epsilon)
            guess = ptk.features(state, test).column(place).to_numpy()
            return math.sqrt(float(np.square(guess - truth).mean())) / spread

        return once

    def means(keys: tuple[Key, ...]) -> Callable[[float], float]:
        return of(Statistics(keys=keys, statistics=("mean",), value="y", **bounds), 0)

    count: Any = len(task.keys)
    ours = Interactions(keys=task.keys, label="y", interactions=count, **bounds)
    methods = {
        _OURS: of(ours, len(ours.feature_names()) - 1),
        **{f"key {place + 1}": means((key,)) for place, key in enumerate(task.keys)},
        "all at once": means(task.keys),
        _FOREST: of(Forest(inputs=task.keys, label="y", **bounds), 0),
    }
    found = {
        name: [np.array([once(epsilon) for _ in range(_SEEDS)]) for epsilon in EPSILONS]
        for name, once in methods.items()
    }
    alone = [found.pop(f"key {place + 1}") for place in range(count)]
    best = [min((one[at] for one in alone), key=np.mean) for at in range(len(EPSILONS))]
    return {_OURS: found[_OURS], "one key": best, **{k: v for k, v in found.items() if k != _OURS}}


def encoded(data: Path | None) -> Iterator[Encoded]:
    """Made-up ones, and real ones when there is a folder of them."""
    rng = np.random.default_rng(11)
    for words, alone, together in (
        ("keys add up", 0.15, 0.0),
        ("keys work together", 0.05, 0.15),
        ("keys say nothing", 0.0, 0.0),
    ):
        yield _made(words, rng, alone, together)
    if data is not None:
        yield from _taxi(data)
        yield from _census(data)


def _made(words: str, rng: np.random.Generator, alone: float, together: float) -> Encoded:
    sizes, rows = (40, 24, 5), 30_000
    shares = 1 / np.arange(1.0, sizes[0] + 1)
    codes = [rng.choice(sizes[0], rows, p=shares / shares.sum())]
    codes += [rng.integers(0, size, rows) for size in sizes[1:]]
    means = 0.5 + sum(
        rng.normal(0, alone, size)[code] for size, code in zip(sizes, codes, strict=True)
    )
    means = means + rng.normal(0, together, sizes[:2])[codes[0], codes[1]]
    values = np.clip(means + rng.normal(0, 0.2, rows), 0, 1)
    keys = tuple(
        IntegerRange(column=f"k{place}", first=0, last=size - 1) for place, size in enumerate(sizes)
    )
    columns = {f"k{place}": code for place, code in enumerate(codes)}
    table = pa.table({**columns, "y": values})
    return Encoded(name=words, keys=keys, records=table, lower=0.0, upper=1.0)


def _taxi(data: Path) -> Iterator[Encoded]:
    """Seconds of a ride by zones and time, and whether it tips well."""
    frame = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet")
    frame = frame.sample(60_000, random_state=12)
    at = frame["pickup_datetime"].dt
    columns = {
        "zone": frame["pickup_location_id"].to_numpy(np.int64),
        "to": frame["dropoff_location_id"].to_numpy(np.int64),
        "hour": at.hour.to_numpy(np.int64),
        "weekday": at.day_of_week.to_numpy(np.int64),
    }
    ends = {"zone": (1, 265), "to": (1, 265), "hour": (0, 23), "weekday": (0, 6)}
    keys = {
        name: IntegerRange(column=name, first=first, last=last)
        for name, (first, last) in ends.items()
    }
    seconds = np.clip(frame["trip_duration_s"].to_numpy(np.float64), 0, 3600)
    tip = frame["tip_amount"] > 0.18 * frame["fare_amount"]
    for name, used, value, upper in (
        ("taxi seconds by zone, hour, weekday", ("zone", "hour", "weekday"), seconds, 3600.0),
        ("taxi seconds by zones", ("zone", "to"), seconds, 3600.0),
        ("taxi tips by zone and hour", ("zone", "hour"), tip.to_numpy(np.float64), 1.0),
    ):
        table = pa.table({**{one: columns[one] for one in used}, "y": value})
        yield Encoded(
            name=name, keys=tuple(keys[one] for one in used), records=table, lower=0.0, upper=upper
        )


def _census(data: Path) -> Iterator[Encoded]:
    """Whether somebody earns much, and hours of work."""
    frame = pd.read_parquet(data / "tabular" / "adult.parquet").sample(frac=1, random_state=13)
    earns = frame["income"].astype(str).str.contains(">50K").to_numpy(np.float64)
    hours = frame["hours_per_week"].to_numpy(np.float64)
    for name, used, value, lower, upper in (
        ("census income by three", ("education", "occupation", "relationship"), earns, 0.0, 1.0),
        ("census income by two", ("occupation", "marital_status"), earns, 0.0, 1.0),
        ("census hours by three", ("workclass", "occupation", "sex"), hours, 0.0, 100.0),
    ):
        texts = {one: frame[one].astype(str).to_numpy() for one in used}
        keys = tuple(Categories(column=one, values=tuple(sorted(set(texts[one])))) for one in used)
        table = pa.table({**texts, "y": value})
        yield Encoded(name=name, keys=keys, records=table, lower=lower, upper=upper)
