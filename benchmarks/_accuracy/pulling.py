"""What pulling estimates together gains, from the noise that a PTK really draws: means of groups
beside those before they are pulled, beside the mean of all records and beside OpenDP's; and
probabilities of a label by key beside simpler ways to read the same noisy counts.

An error is the root of the mean squared distance to the mean of the records, as a part of the
range, over the groups that have any: each counts once, or as often as it has records. Means are
judged by the first, as tables of means are read; probabilities by the second, as the loss of their
PTK.

**What is compared.** All ways but OpenDP's read the same noise, so ratios of their errors are
paired. An error is the root of the mean over trainings, and the best of the other ways is the one
with the least such error on this table at this epsilon: not the luckiest of each training.
Trainings go on until the ratio is two standard errors from the limit on one side, or for
`_MOST` of them; figures have the standard error, and cases beyond the limit are listed by name, as
*above* it where the limit is more than two standard errors below and as *unclear* elsewhere.

**Promises.** `Statistics` keeps pulls within what `analytic_profile` promises of keys with
``min_share`` of the records, by default the share of an even table. So means are judged twice: as
served by default, and where no promise was wanted of single keys (``min_share`` 1).

**OpenDP**: `make_laplace` on the vector of the sums by group and on that of their counts, half of
epsilon each, with the same public bounds, steps and keys; the quotient, cut at the bounds, and the
mean of all where a count is not positive.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._accuracy.groups import Groups
from benchmarks.bars import Bar, at_most
from ptklib.columns.keys import IntegerRange
from ptklib.ptks.counts import Counts, estimate
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.statistics.ptk import STEPS

__all__ = ["EPSILONS", "Pulled", "bars", "figures", "means", "shares", "summary"]

EPSILONS = (0.1, 0.3, 1.0, 3.0)
LIMIT = 1.02
# Trainings of each table at each epsilon: at a time, and at most.
_SEEDS, _MOST = 40, 400
# Of tables with very many cells.
_CELLS_AT_MOST = 400_000

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# What each way estimates, from one training.
Run = Callable[[], dict[str, Floats]]
_SERVED = ("served", "no promise")


@dataclass(frozen=True, kw_only=True)
class Pulled:
    """Squared errors of one table at one epsilon by training, of each way of estimating, over
    groups and over records.
    """

    name: str
    epsilon: float
    by_group: dict[str, Floats]
    by_record: dict[str, Floats]
    served: str = "served"
    judged: Literal["group", "record"] = "group"

    @cached_property
    def _errors(self) -> dict[str, Floats]:
        return self.by_group if self.judged == "group" else self.by_record

    @cached_property
    def best(self) -> str:
        """The way with the least error, of those that are compared with."""
        others = {way: one.mean() for way, one in self._errors.items() if way not in _SERVED}
        return min(others, key=lambda way: float(others[way]))

    @cached_property
    def ratio(self) -> float:
        """What is served, over the best of the others."""
        ours, theirs = self._errors[self.served], self._errors[self.best]
        return float(np.sqrt(ours.mean() / theirs.mean()))

    @cached_property
    def ratio_error(self) -> float:
        """The standard error of the ratio, to first order; paired."""
        ours, theirs = self._errors[self.served], self._errors[self.best]
        apart = ours - self.ratio**2 * theirs
        spread = apart.std(ddof=1) / np.sqrt(len(apart)) / theirs.mean()
        return float(spread / (2 * self.ratio))

    @property
    def verdict(self) -> Literal["within", "unclear", "above"]:
        """Of the ratio beside the limit."""
        if self.ratio <= LIMIT:
            return "within"
        return "above" if self.ratio - 2 * self.ratio_error > LIMIT else "unclear"

    @property
    def is_settled(self) -> bool:
        """True where more trainings would hardly change the verdict."""
        return abs(self.ratio - LIMIT) > 2 * self.ratio_error


def means(table: Groups) -> list[Pulled]:
    """Means by group at every epsilon, as served by default and without promises."""
    ptk = Statistics(
        keys=(IntegerRange(column="group", first=0, last=table.size - 1),),
        statistics=("mean",),
        value="value",
        lower=0,
        upper=1,
    )
    free = replace(ptk, min_share=1.0)
    rows = pa.RecordBatch.from_pydict({"group": table.codes, "value": table.values})
    totals = ptk.exact([rows])["totals"]
    # The last row has an unknown key: it is served the mean of all.
    asked = pa.table({"group": np.arange(table.size + 1)})
    records = np.bincount(table.codes, minlength=table.size)
    truth = np.bincount(table.codes, table.values, table.size) / np.maximum(records, 1)
    found = []
    for epsilon in EPSILONS:
        opendp = _opendp(epsilon)

        def run(
            epsilon: float = epsilon, opendp: Callable[[Integers], Floats] = opendp
        ) -> dict[str, Floats]:
            arrays = dict(ptk.train_dp([], epsilon=epsilon))
            arrays["totals"] = arrays["totals"] + totals
            told = {
                "served": ptk.features(arrays, asked),
                "no promise": free.features(arrays, asked),
            }
            arrays.pop("variance")
            told["plain"] = ptk.features(arrays, asked)
            ways = {way: one.column(0).to_numpy() for way, one in told.items()}
            whole = np.full(table.size, ways["plain"][-1])
            ways = {way: one[:-1] for way, one in ways.items()}
            return {**ways, "all": whole, "OpenDP": opendp(totals)}

        one = _measured(table.name, epsilon, run, truth, records)
        found += [one, replace(one, served="no promise")]
    return found


def _opendp(epsilon: float) -> Callable[[Integers], Floats]:
    """Means from the exact totals at both ends of the range, by OpenDP."""
    dp: Any = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    # A record moves one sum by the steps of the range at most, and one count by 1.
    of_sums = dp.m.make_laplace(*space, scale=2 * STEPS / epsilon)
    of_counts = dp.m.make_laplace(*space, scale=2 / epsilon)

    def means(totals: Integers) -> Floats:
        sums = np.array(of_sums(totals[:, 1].tolist())) / STEPS
        counts = np.array(of_counts((totals.sum(axis=1) // STEPS).tolist()))
        whole = np.clip(sums.sum() / max(counts.sum(), 1), 0.0, 1.0)
        divided = np.clip(sums / np.maximum(counts, 1), 0.0, 1.0)
        return np.asarray(np.where(counts > 0, divided, whole))

    return means


def shares(table: Groups) -> list[Pulled]:
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

        def run(epsilon: float = epsilon) -> dict[str, Floats]:
            arrays = dict(ptk.train_dp([], epsilon=epsilon))
            arrays["cells"] = arrays["cells"] + exact
            counts = arrays["cells"].reshape(-1, 2).astype(np.float64)
            ways = _others(counts, float(arrays["variances"][0]))
            ways["served"] = ptk.features(arrays, asked).column(1).to_numpy()
            return {way: one[: table.size] for way, one in ways.items()}

        one = _measured(table.name, epsilon, run, truth, records, judged="record")
        found.append(one)
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
    """For each table the worst epsilon, by name."""
    worst: dict[str, Pulled] = {}
    for one in pulled:
        if one.name not in worst or one.ratio > worst[one.name].ratio:
            worst[one.name] = one
    return [
        at_most(
            f"{what}, {name}: error / best other, at epsilon {one.epsilon} "
            f"(standard error {one.ratio_error:.3f}, {one.verdict})",
            one.ratio,
            LIMIT,
        )
        for name, one in worst.items()
    ]


def figures(pulled: list[Pulled]) -> list[dict[str, object]]:
    """A line for each table and epsilon."""
    return [
        {
            "table": one.name,
            "epsilon": one.epsilon,
            "ratio": f"{one.ratio:.3f}±{one.ratio_error:.3f}",
            "verdict": one.verdict,
            "best other": one.best,
            "trainings": len(one.by_group["served"]),
            **{way: float(f"{np.sqrt(some.mean()):.3g}") for way, some in one.by_group.items()},
            **{
                f"{way}, by record": float(f"{np.sqrt(some.mean()):.3g}")
                for way, some in one.by_record.items()
            },
        }
        for one in pulled
    ]


def summary(pulled: list[Pulled], what: str) -> list[dict[str, object]]:
    """How many cases are within the limit, and which are not."""
    if not pulled:
        return []
    verdicts = [one.verdict for one in pulled]
    return [
        {
            "what": what,
            "cases": len(pulled),
            **{verdict: verdicts.count(verdict) for verdict in ("within", "unclear", "above")},
            "mean ratio": round(float(np.exp(np.mean([np.log(one.ratio) for one in pulled]))), 3),
            "not within": "; ".join(
                f"{one.name} at {one.epsilon}: {one.ratio:.3f}±{one.ratio_error:.3f}"
                for one in pulled
                if one.verdict != "within"
            ),
        }
    ]


def _measured(
    name: str,
    epsilon: float,
    run: Run,
    truth: Floats,
    records: NDArray[np.int64],
    judged: Literal["group", "record"] = "group",
) -> Pulled:
    """As many trainings as the verdict takes."""
    there = records > 0
    by_group: dict[str, list[float]] = {}
    by_record: dict[str, list[float]] = {}
    most = min(_MOST, max(_SEEDS, _CELLS_AT_MOST // len(records)))
    while True:
        for _ in range(_SEEDS):
            for way, found in run().items():
                squares = np.square(found - truth)
                by_group.setdefault(way, []).append(float(squares[there].mean()))
                by_record.setdefault(way, []).append(float(np.average(squares, weights=records)))
        one = Pulled(
            name=name,
            epsilon=epsilon,
            by_group={way: np.array(some) for way, some in by_group.items()},
            by_record={way: np.array(some) for way, some in by_record.items()},
            judged=judged,
        )
        ways = [one] if "no promise" not in by_group else [one, replace(one, served="no promise")]
        if len(by_group["served"]) >= most or all(way.is_settled for way in ways):
            return one
