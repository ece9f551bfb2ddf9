"""What pulling estimates together gains, from the noise that a PTK really draws: means of groups
beside those before they are pulled, and beside the mean of all records; probabilities of a label
by key beside simpler ways to read the same noisy counts.

An error is the root of the mean squared distance to the mean of the records, as a part of the
range, over the groups that have any: each counts once, or as often as it has records. Means are
judged by the first, as tables of means are read; probabilities by the second, as the loss of their
PTK.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._accuracy.groups import Groups
from benchmarks.bars import Bar, at_most
from ptklib.ptks.counts import Counts, estimate
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.keys import IntegerRange

__all__ = ["EPSILONS", "Pulled", "bars", "figures", "means", "shares"]

EPSILONS = (0.1, 0.3, 1.0, 3.0)
LIMIT = 1.02
# Trainings of each table at each epsilon.
_SEEDS = 40

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """Errors of one table at one epsilon, by way of estimating: what is served comes first."""

    name: str
    epsilon: float
    by_group: dict[str, float]
    by_record: dict[str, float]
    judged: Literal["group", "record"] = "group"

    @property
    def ratio(self) -> float:
        """What is served, over the best of the others."""
        errors = self.by_group if self.judged == "group" else self.by_record
        return errors["served"] / min(error for way, error in errors.items() if way != "served")


def means(table: Groups, seeds: int = _SEEDS) -> list[Pulled]:
    """Means by group at every epsilon."""
    ptk = Statistics(
        keys=(IntegerRange(column="group", first=0, last=table.size - 1),),
        statistics=("mean",),
        value="value",
        lower=0,
        upper=1,
    )
    rows = pa.RecordBatch.from_pydict({"group": table.codes, "value": table.values})
    totals = ptk.exact([rows])["totals"]
    # The last row has an unknown key: it is served the mean of all.
    asked = pa.table({"group": np.arange(table.size + 1)})
    records = np.bincount(table.codes, minlength=table.size)
    truth = np.bincount(table.codes, table.values, table.size) / np.maximum(records, 1)
    found = []
    for epsilon in EPSILONS:
        squares: dict[str, list[Floats]] = {"served": [], "plain": [], "all": []}
        for _ in range(seeds):
            arrays = dict(ptk.train_dp([], epsilon=epsilon))
            arrays["totals"] = arrays["totals"] + totals
            served = ptk.features(arrays, asked).column(0).to_numpy()
            arrays.pop("variance")
            plain = ptk.features(arrays, asked).column(0).to_numpy()
            for way, means in (("served", served[:-1]), ("plain", plain[:-1]), ("all", plain[-1])):
                squares[way].append(np.square(means - truth))
        found.append(_judged(table.name, epsilon, squares, records))
    return found


def shares(table: Groups, seeds: int = _SEEDS) -> list[Pulled]:
    """P(label | key) at every epsilon; the label is whether a value is above the median of all."""
    ptk = Counts(
        keys=(IntegerRange(column="group", first=0, last=table.size - 1),),
        label=IntegerRange(column="label", first=0, last=1),
        statistics=("probability",),
    )
    labels = (table.values > np.median(table.values)).astype(np.int64)
    rows = pa.RecordBatch.from_pydict({"group": table.codes, "label": labels})
    exact = ptk.exact([rows])["cells"]
    asked = pa.table({"group": np.arange(table.size)})
    records = np.bincount(table.codes, minlength=table.size)
    truth = np.bincount(table.codes, labels, table.size) / np.maximum(records, 1)
    found = []
    for epsilon in EPSILONS:
        squares: dict[str, list[Floats]] = {
            way: [] for way in ("served", "cut at zero", "fixed", "fitted")
        }
        for _ in range(seeds):
            arrays = dict(ptk.train_dp([], epsilon=epsilon))
            arrays["cells"] = arrays["cells"] + exact
            counts = arrays["cells"].reshape(-1, 2).astype(np.float64)
            variance = float(arrays["variances"][0])
            ways = _others(counts, variance)
            ways["served"] = ptk.features(arrays, asked).column(1).to_numpy()
            for way in squares:
                squares[way].append(np.square(ways[way][: table.size] - truth))
        found.append(replace(_judged(table.name, epsilon, squares, records), judged="record"))
    return found


def _others(counts: Floats, variance: float) -> dict[str, Floats]:
    """P(1 | key) by simpler ways: counts cut at zero; pulled with a spread that is a tenth of the
    most there could be; with one fitted by moments.
    """
    prior = estimate.prior_of(counts.sum(axis=0))
    even = float(np.square(prior).sum())
    sums = np.maximum(counts.sum(axis=1), 0.0)
    away = counts[:, 1] - sums * prior[1]
    noise = variance * even
    above = float(np.square(away).sum()) - noise * len(sums)
    room = float(prior.prod())
    cut = np.maximum(counts, 0.0)
    whole = cut.sum(axis=1)
    spreads = {
        "fixed": 0.1,
        "fitted": float(np.clip(above / max(np.square(sums).sum() * room, 1e-9), 1e-6, 1.0)),
    }
    pulled = {
        way: np.clip(
            prior[1] + away * sums * spread * room / (np.square(sums) * spread * room + noise), 0, 1
        )
        for way, spread in spreads.items()
    }
    return {
        "cut at zero": np.where(whole > 0, cut[:, 1] / np.where(whole > 0, whole, 1), prior[1]),
        **pulled,
    }


def bars(pulled: list[Pulled], what: str) -> list[Bar]:
    """For each table the worst epsilon."""
    worst: dict[str, float] = {}
    for one in pulled:
        worst[one.name] = max(worst.get(one.name, 0.0), one.ratio)
    return [at_most(f"{what}, {name}: error / best other", worst[name], LIMIT) for name in worst]


def figures(pulled: list[Pulled]) -> list[dict[str, object]]:
    """A line for each table and epsilon."""
    return [
        {
            "table": one.name,
            "epsilon": one.epsilon,
            "ratio": round(one.ratio, 3),
            **{way: float(f"{error:.3g}") for way, error in one.by_group.items()},
            **{f"{way}, by record": float(f"{error:.3g}") for way, error in one.by_record.items()},
        }
        for one in pulled
    ]


def _judged(
    name: str, epsilon: float, squares: dict[str, list[Floats]], records: NDArray[np.int64]
) -> Pulled:
    there = records > 0
    return Pulled(
        name=name,
        epsilon=epsilon,
        by_group={
            way: float(np.sqrt(np.mean([one[there].mean() for one in found])))
            for way, found in squares.items()
        },
        by_record={
            way: float(np.sqrt(np.mean([np.average(one, weights=records) for one in found])))
            for way, found in squares.items()
        },
    )
