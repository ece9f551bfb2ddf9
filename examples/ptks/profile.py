"""``python -m examples.ptks.profile KIND``: how the loss of a PTK falls with the number of records,
at several epsilons.

Made-up data, fresh noise, loss (`Ptk.eval`) on records that training did not see. Draws
``docs/guides/ptks/img/KIND.svg`` and prints the numbers. These losses are raw, on invented data; a
profile of real data is made by the profiler, with noise.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from examples.plots import Axis, Point, Series, line_chart
from ptklib.columns.keys import IntegerRange
from ptklib.ptk import Arrays, Ptk

__all__ = ["CASES", "Case", "draw"]

EPSILONS = (0.1, 0.5, 1.0)
# Where a PTK has no training without noise, this is as good as none.
_NO_PRIVACY = 1_000
_DELTA = "1e-6"
_TEST_ROWS = 5_000


@dataclass(frozen=True, kw_only=True)
class Case:
    """A PTK, records for it, and the numbers of records to try."""

    ptk: Ptk
    rows: Callable[[int, np.random.Generator], pa.Table]
    words: str
    counts: tuple[int, ...] = (1_000, 3_000, 10_000, 30_000, 100_000)
    seeds: int = 10


def draw(kind: str, case: Case, folder: Path, *, seeds: int | None = None) -> str:
    """Train, write the chart, and give the numbers as text."""
    losses: dict[tuple[str, int], list[float]] = {}
    for seed in range(seeds or case.seeds):
        rng = np.random.default_rng(seed)
        test = case.rows(_TEST_ROWS, rng).to_batches()
        for count in case.counts:
            source = case.rows(count, rng).to_batches()
            states = {"without privacy": _exact(case.ptk, source)}
            for epsilon in EPSILONS:
                delta = _DELTA if case.ptk.tags.needs_delta else 0
                states[f"epsilon {epsilon:g}"] = case.ptk.train_dp(
                    source, epsilon=epsilon, delta=delta
                )
            for name, state in states.items():
                losses.setdefault((name, count), []).append(case.ptk.eval(state, test))
    names = list(dict.fromkeys(name for name, _ in losses))
    points = {
        name: tuple(_point(count, losses[name, count]) for count in case.counts) for name in names
    }
    lines = [f"{'records':>10}  " + "  ".join(f"{name:>16}" for name in names)]
    for place, count in enumerate(case.counts):
        lines.append(
            f"{count:>10,}  " + "  ".join(f"{points[name][place].y:>16.5f}" for name in names)
        )
    described = f"Mean loss on unseen records. {case.words}"
    chart = line_chart(
        f"{kind}: loss by number of records",
        described,
        Axis(
            words="records",
            log=True,
            ticks=tuple(float(one) for one in case.counts),
            form="{:,.0f}".format,
        ),
        Axis(words="loss (lower is better)", form="{:.4g}".format),
        [Series(name, points[name]) for name in names],
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{kind}.svg").write_text(chart)
    return "\n".join(lines)


def _exact(ptk: Ptk, source: list[pa.RecordBatch]) -> Arrays:
    found = ptk.exact(source)
    delta = _DELTA if ptk.tags.needs_delta else 0
    return ptk.train_dp(source, epsilon=_NO_PRIVACY, delta=delta) if found is None else found


def _point(count: int, values: list[float]) -> Point:
    half = 1.96 * float(np.std(values, ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return Point(count, float(np.mean(values)), half)


def _statistics() -> Case:
    from ptklib.ptks.statistics import Statistics

    ptk = Statistics(
        keys=(IntegerRange(column="zone", first=0, last=249),),
        statistics=("mean",),
        value="speed",
        lower=0.0,
        upper=60.0,
    )
    means = np.random.default_rng(100).uniform(10, 40, 250)

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        zones = rng.integers(0, 250, count)
        return pa.table({"zone": zones, "speed": rng.normal(means[zones], 6)})

    return Case(ptk=ptk, rows=rows, words="Mean speed by 250 zones.")


def _counts() -> Case:
    from ptklib.ptks.counts import Counts

    ptk = Counts(
        keys=(
            IntegerRange(column="app", first=0, last=499),
            IntegerRange(column="channel", first=0, last=99),
        ),
        label=IntegerRange(column="label", first=0, last=1),
    )
    sizes = {"app": 500, "channel": 100}
    chances = {
        name: np.random.default_rng(101 + size).beta(0.5, 2, size) for name, size in sizes.items()
    }

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        # Few values are common, most are rare.
        codes = {
            name: np.minimum(rng.zipf(1.4, count) - 1, size - 1) for name, size in sizes.items()
        }
        chance = (chances["app"][codes["app"]] + chances["channel"][codes["channel"]]) / 2
        return pa.table({**codes, "label": (rng.random(count) < chance).astype(np.int64)})

    return Case(
        ptk=ptk,
        rows=rows,
        words="A label with two classes by 500 apps and 100 channels of very uneven size.",
    )


def _embeddings() -> Case:
    from ptklib.ptks.embeddings import Embeddings

    users, items = 2_000, 1_000
    ptk = Embeddings(
        users=IntegerRange(column="user", first=0, last=users - 1),
        items=IntegerRange(column="item", first=0, last=items - 1),
        value="stars",
        lower=1.0,
        upper=5.0,
    )
    fixed = np.random.default_rng(102)
    tastes, kinds = fixed.normal(0, 0.5, (users, 3)), fixed.normal(0, 0.6, (items, 3))
    habits, fame = fixed.normal(0, 0.4, users), fixed.normal(0, 0.4, items)

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        user, item = (
            rng.integers(0, users, count),
            np.minimum(rng.exponential(200, count), items - 1).astype(np.int64),
        )
        stars = 3.5 + habits[user] + fame[item] + np.einsum("nk,nk->n", tastes[user], kinds[item])
        return pa.table(
            {"user": user, "item": item, "stars": np.clip(stars + rng.normal(0, 0.7, count), 1, 5)}
        )

    return Case(
        ptk=ptk,
        rows=rows,
        words="Stars by 2,000 users for 1,000 items, at event level.",
        counts=(10_000, 30_000, 100_000, 300_000),
        seeds=5,
    )


def _clusters() -> Case:
    from ptklib.ptks.clusters import Clusters
    from ptklib.ptks.vectors import Bounded

    ptk = Clusters(
        values=(
            Bounded(column="x", lower=0.0, upper=1.0),
            Bounded(column="y", lower=0.0, upper=1.0),
        ),
        clusters=8,
    )
    middles = np.random.default_rng(105).uniform(0.1, 0.9, (8, 2))

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        values = middles[rng.integers(0, 8, count)] + rng.normal(0, 0.04, (count, 2))
        return pa.table(
            {"x": np.ascontiguousarray(values[:, 0]), "y": np.ascontiguousarray(values[:, 1])}
        )

    return Case(ptk=ptk, rows=rows, words="Eight clouds in the plane.")


def _covariance() -> Case:
    from ptklib.ptks.covariance import Covariance
    from ptklib.ptks.vectors import Bounded

    ptk = Covariance(
        values=tuple(Bounded(column=f"x{place}", lower=-1.0, upper=1.0) for place in range(10)),
        components=3,
    )
    directions = np.linalg.qr(np.random.default_rng(104).normal(0, 1, (10, 3)))[0].T

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        values = rng.normal(0, (0.5, 0.4, 0.3), (count, 3)) @ directions + rng.normal(
            0, 0.08, (count, 10)
        )
        return pa.table(
            {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(values.T)}
        )

    return Case(
        ptk=ptk,
        rows=rows,
        words="Three directions in ten columns.",
        counts=(300, 1_000, 3_000, 10_000, 30_000),
    )


def _forest() -> Case:
    from ptklib.ptks.binned.codes import Number
    from ptklib.ptks.forest import Forest

    ptk = Forest(
        inputs=tuple(Number(column=f"x{place}", lower=0.0, upper=1.0) for place in range(6)),
        label="y",
        classes=(0, 1),
    )

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        x = rng.random((6, count))
        rule = (x[0] > 0.6) | ((x[1] > 0.5) & (x[2] < 0.4))
        label = np.where(rng.random(count) < 0.1, ~rule, rule).astype(np.int64)
        return pa.table({**{f"x{place}": column for place, column in enumerate(x)}, "y": label})

    return Case(
        ptk=ptk, rows=rows, words="Rules on three of six columns; one label in ten is wrong."
    )


def _additive() -> Case:
    from ptklib.ptks.additive import Additive
    from ptklib.ptks.binned.codes import Number

    ptk = Additive(
        inputs=tuple(Number(column=f"x{place}", lower=0.0, upper=1.0) for place in range(6)),
        label="y",
        classes=(0, 1),
    )

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        x = rng.random((6, count))
        score = 3 * np.sin(3 * x[0]) + 12 * (x[1] - 0.5) ** 2 - 3 * (x[2] > 0.6) - 3
        label = (rng.random(count) < 1 / (1 + np.exp(-score))).astype(np.int64)
        return pa.table({**{f"x{place}": column for place, column in enumerate(x)}, "y": label})

    return Case(ptk=ptk, rows=rows, words="A bend, a dip and a step in three of six columns.")


def _quantiles() -> Case:
    from ptklib.ptks.quantiles import Quantiles

    ptk = Quantiles(
        keys=(IntegerRange(column="zone", first=0, last=19),),
        value="fare",
        quantiles=(0.1, 0.5, 0.9),
        lower=0.0,
        upper=100.0,
    )
    middles = np.random.default_rng(103).uniform(2, 3.5, 20)

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        zones = rng.integers(0, 20, count)
        return pa.table({"zone": zones, "fare": rng.lognormal(middles[zones], 0.5)})

    return Case(
        ptk=ptk, rows=rows, words="Three quantiles of the fare in 20 zones, on a grid of 256 bins."
    )


def _interactions() -> Case:
    from ptklib.ptks.interactions import Interactions

    keys = tuple(
        IntegerRange(column=name, first=0, last=size - 1)
        for name, size in (("zone", 30), ("hour", 24))
    )
    ptk = Interactions(keys=keys, label="speed", lower=0.0, upper=80.0)
    world = np.random.default_rng(104)
    zones, hours, both = (
        world.normal(0, deviation, size) for deviation, size in ((8, 30), (4, 24), (3, (30, 24)))
    )

    def rows(count: int, rng: np.random.Generator) -> pa.Table:
        zone, hour = np.minimum(rng.geometric(0.1, count) - 1, 29), rng.integers(0, 24, count)
        speed = 35 + zones[zone] + hours[hour] + both[zone, hour] + rng.normal(0, 6, count)
        return pa.table({"zone": zone, "hour": hour, "speed": np.clip(speed, 0, 80)})

    return Case(ptk=ptk, rows=rows, words="The speed by 30 zones, 24 hours, and both together.")


CASES: dict[str, Callable[[], Case]] = {
    "additive": _additive,
    "clusters": _clusters,
    "counts": _counts,
    "covariance": _covariance,
    "embeddings": _embeddings,
    "forest": _forest,
    "interactions": _interactions,
    "quantiles": _quantiles,
    "statistics": _statistics,
}


def main() -> int:
    """Read the options and draw."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.ptks.profile", description="Draw the profile of a PTK."
    )
    parser.add_argument("kind", choices=sorted(CASES))
    parser.add_argument("--out", type=Path, default=Path("docs/guides/ptks/img"), metavar="DIR")
    parser.add_argument(
        "--seeds", type=int, help="trainings of each kind; fewer is faster and less exact"
    )
    given = parser.parse_args()
    print(draw(given.kind, CASES[given.kind](), given.out, seeds=given.seeds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
