"""What pulling estimates together gains, from the noise that a PTK really draws: means of groups
beside those before they are pulled, and beside the mean of all records.

An error is the root of the mean squared distance to the mean of the records, as a part of the
range, over the groups that have any: each counts once, or as often as it has records.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._accuracy.groups import Groups
from benchmarks.bars import Bar, at_most
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.keys import IntegerRange

__all__ = ["EPSILONS", "Pulled", "bars", "figures", "means"]

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

    @property
    def ratio(self) -> float:
        """What is served, over the best of the others."""
        served, *others = self.by_group.values()
        return served / min(others)


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
            **{way: float(f"{error:.3g}") for way, error in one.by_group.items()},
            "ratio": round(one.ratio, 3),
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
