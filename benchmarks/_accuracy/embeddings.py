"""Embeddings beside plain DP biases: a level, an offset of each item and one of each user, each a
noisy sum over a noisy count, added up.

Both sides get the same records, bounds, epsilon and delta, and predict records that they have not
seen. Biases leave a choice: how many records at the level an offset is shrunk by. They follow one
rule that a careful person can state beforehand: by `_RULE` records and the standard deviation of
the noise of a count. Beside it, as a figure, are biases *tuned in hindsight*: every number in
`_SHRUNK_BY` is tried, and the one that is best on the test records of each data set and epsilon
counts, better than anybody could choose. Ours has its defaults. Errors are roots of mean squares
over the standard deviation of the test values: 1 is the mean of all.

**More epsilon is no worse.** From one epsilon to the next the mean error of the seeds rises by no
more than 0.3% beyond 3 standard errors of that difference.

**Below biases.** At every epsilon the mean error is at most that of biases with the rule, beyond 3
standard errors of the difference; and the mean over epsilons is at most that of biases tuned in
hindsight.

Noise of the biases is numpy's: nothing is released here.
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
from ptklib.columns.keys import IntegerRange
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.ptks.embeddings import Embeddings

__all__ = ["Pairs", "bars_of", "report"]

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, 100.0, 1000.0)
_DELTA, _SEEDS = 1e-6, 10
_ENDS = ("pickup_location_id", "dropoff_location_id")
_SHRUNK_BY = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_RULE = 5.0
_RISE, _STANDARD_ERRORS = 0.003, 3.0
_BIASES = 1.0

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Records of users and items with a value between public bounds; every seventh is a test."""

    name: str
    users: Codes
    items: Codes
    values: Floats
    lower: float
    upper: float

    @property
    def sizes(self) -> tuple[int, int]:
        """The domains, from the data here: what they hold is public to both sides."""
        return int(self.users.max()) + 1, int(self.items.max()) + 1

    def parts(self) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """To train on and to test on."""
        test = np.arange(len(self.users)) % 7 == 0
        columns = {"user": self.users, "item": self.items, "value": self.values}
        train, tested = (
            pa.RecordBatch.from_pydict({name: column[rows] for name, column in columns.items()})
            for rows in (~test, test)
        )
        return train, tested


def report(say: Say, data: Path | None = None) -> Report:
    """All data sets; with real ones when there is a folder of them."""
    made = Report()
    rows = []
    for pairs in [*_invented(), *([] if data is None else _real(data))]:
        ours, plain, tuned = _errors(pairs)
        made.bars += bars_of(pairs.name, ours, plain, tuned)
        rows += [
            {
                "data": pairs.name,
                "epsilon": epsilon,
                "embeddings": f"{mine.mean():.3f}±{mine.std(ddof=1) / math.sqrt(len(mine)):.1g}",
                "biases": f"{theirs.mean():.3f}",
                "biases in hindsight": f"{best.mean():.3f}",
            }
            for epsilon, mine, theirs, best in zip(EPSILONS, ours, plain, tuned, strict=True)
        ]
        say(f"embeddings: {pairs.name}")
    made.figures["embeddings and biases"] = rows
    return made


def bars_of(name: str, ours: list[Floats], plain: list[Floats], tuned: list[Floats]) -> list[Bar]:
    """From the errors of all seeds, by epsilon."""
    means, spread = _by_epsilon(ours)
    theirs, their_spread = _by_epsilon(plain)
    best, best_spread = _by_epsilon(tuned)
    beyond = np.diff(means) - _STANDARD_ERRORS * np.hypot(spread[1:], spread[:-1])
    by_chance = _STANDARD_ERRORS * np.hypot(spread, their_spread)
    in_hindsight = _STANDARD_ERRORS * np.hypot(spread, best_spread) / best
    about = f"embeddings, {name}"
    return [
        at_most(
            f"{about}: rise of the error with epsilon beyond chance",
            float((beyond / means[1:]).max()),
            _RISE,
        ),
        at_most(
            f"{about}: error over that of biases beyond chance, worst epsilon",
            float(((means - by_chance) / theirs).max()),
            _BIASES,
        ),
        at_most(
            f"{about}: error over that of biases in hindsight, mean of epsilons",
            float((means / best).mean() - np.sqrt(np.square(in_hindsight).sum()) / len(means)),
            _BIASES,
        ),
    ]


def _by_epsilon(errors: list[Floats]) -> tuple[Floats, Floats]:
    """Means and their standard errors."""
    means = np.array([some.mean() for some in errors])
    return means, np.array([some.std(ddof=1) / math.sqrt(len(some)) for some in errors])


def _errors(pairs: Pairs) -> tuple[list[Floats], list[Floats], list[Floats]]:
    """Ours, those of biases with the rule, and of biases in hindsight, by epsilon and seed."""
    train, test = pairs.parts()
    spread = float(np.std(test["value"].to_numpy()))
    users, items = pairs.sizes
    ptk = Embeddings(
        users=IntegerRange(column="user", first=0, last=users - 1),
        items=IntegerRange(column="item", first=0, last=items - 1),
        value="value",
        lower=pairs.lower,
        upper=pairs.upper,
    )
    width = pairs.upper - pairs.lower

    def ours(epsilon: float) -> float:
        arrays = ptk.train_dp([train], epsilon=epsilon, delta=_DELTA)
        return math.sqrt(ptk.eval(arrays, [test])) * width / spread

    plain = _biases(pairs, train, test)
    rng = np.random.default_rng(1)
    found: tuple[list[Floats], list[Floats], list[Floats]] = ([], [], [])
    for epsilon in EPSILONS:
        found[0].append(np.array([ours(epsilon) for _ in range(_SEEDS)]))
        errors = np.array([plain(epsilon, rng) for _ in range(_SEEDS)]) * width / spread
        found[1].append(errors[:, 0])
        found[2].append(errors[:, errors.mean(axis=0).argmin()])
    return found


def _biases(
    pairs: Pairs, train: pa.RecordBatch, test: pa.RecordBatch
) -> Callable[[float, Any], Floats]:
    """Errors, in ranges: with the rule, then for each number to shrink by."""
    user, item, value = (_column(train, name) for name in train.schema.names)
    tested = [_column(test, name) for name in test.schema.names]
    shares, wanted = (
        (one - pairs.lower) / (pairs.upper - pairs.lower) for one in (value, tested[2])
    )
    sizes = pairs.sizes

    def noisy(rows: Any, sums: Floats, size: int, sigma: float, rng: Any) -> tuple[Floats, Floats]:
        # A record counts as half of the largest value, as in ours: a quarter of a range.
        counts = np.bincount(rows, minlength=size) + rng.normal(0, 4 * sigma, size)
        found = np.bincount(rows, weights=sums, minlength=size) + rng.normal(0, sigma, size)
        return np.maximum(counts, 0.0), found

    def errors(epsilon: float, rng: Any) -> Floats:
        # Half of the budget for each side; values and residuals are within half a range.
        sigma = gaussian_sigma(epsilon=epsilon, delta=_DELTA) * math.sqrt(2 * 1.25) * 0.5
        counts, sums = noisy(item, shares - 0.5, sizes[1], sigma, rng)
        level = min(max(sums.sum() / max(counts.sum(), 1.0), -0.5), 0.5)
        found = []
        for shrunk in (_RULE + 4 * sigma, *_SHRUNK_BY):
            of_items = (sums - level * counts) / (counts + shrunk)
            left = np.clip(shares - 0.5 - level - of_items[item], -0.5, 0.5)
            seen, above = noisy(user, left, sizes[0], sigma, rng)
            of_users = above / (seen + shrunk)
            guess = 0.5 + level + of_items[tested[1]] + of_users[tested[0]]
            found.append(np.sqrt(np.square(np.clip(guess, 0, 1) - wanted).mean()))
        return np.array(found)

    return errors


def _column(batch: pa.RecordBatch, name: str) -> Any:
    return batch.column(name).to_numpy()


def _invented() -> Iterator[Pairs]:
    rng = np.random.default_rng(7)
    yield _made("three tastes", rng, 60_000, (200, 150), tastes=0.6)
    yield _made("no tastes", rng, 60_000, (200, 150), tastes=0.0)
    yield _made("sparse", rng, 60_000, (1_000, 800), tastes=0.6)
    # Each user meets the items next to her own place.
    yield _made("few partners", rng, 60_000, (200, 150), tastes=0.6, near=12)


def _made(
    name: str, rng: Any, rows: int, sizes: tuple[int, int], *, tastes: float, near: int = 0
) -> Pairs:
    factors = [rng.normal(0, 1, (size, 3)) for size in sizes]
    offsets = [rng.normal(0, 0.4, size) for size in sizes]
    users, items = rng.integers(0, sizes[0], rows), rng.integers(0, sizes[1], rows)
    if near:
        items = (users * sizes[1] // sizes[0] + rng.integers(0, near, rows)) % sizes[1]
    liked = np.einsum("nk,nk->n", factors[0][users], factors[1][items]) * tastes / math.sqrt(3)
    values = 3 + offsets[0][users] + offsets[1][items] + liked + rng.normal(0, 0.6, rows)
    return Pairs(
        name=name, users=users, items=items, values=np.clip(values, 1, 5), lower=1.0, upper=5.0
    )


def _real(data: Path) -> Iterator[Pairs]:
    yield from _zones(data)
    frame = pd.read_parquet(data / "ratings" / "ml100k_ratings.parquet").sample(
        frac=1, random_state=8
    )
    users, items = (frame.iloc[:, place].astype("category").cat.codes for place in (0, 1))
    yield Pairs(
        name="MovieLens 100k",
        users=users.to_numpy(np.int64),
        items=items.to_numpy(np.int64),
        values=frame.iloc[:, 2].to_numpy(np.float64),
        lower=1.0,
        upper=5.0,
    )


def _zones(data: Path) -> Iterator[Pairs]:
    """Minutes and miles of taxi rides from zone to zone."""
    frame = pd.read_parquet(data / "taxi" / "yellow_2018_2019_zones.parquet")
    ends = [frame[name] for name in _ENDS]
    known = ends[0].between(1, 263) & ends[1].between(1, 263)
    frame = frame[known].sample(100_000, random_state=9)
    users, items = (frame[name].to_numpy(np.int64) - 1 for name in _ENDS)
    for name, column, unit, upper in (
        ("taxi minutes", "trip_duration_s", 60, 60.0),
        ("taxi miles", "trip_distance", 1, 20.0),
    ):
        values = np.clip(frame[column].to_numpy(np.float64) / unit, 0, upper)
        yield Pairs(
            name=name,
            users=users,
            items=items,
            values=values,
            lower=0.0,
            upper=upper,
        )
