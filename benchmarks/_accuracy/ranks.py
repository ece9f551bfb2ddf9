"""One quantile of a key with few records: bins that `Quantiles` chooses and its tree of counts,
beside a textbook exponential mechanism.

That mechanism (Smith 2011) draws a value from the whole range: the gap between two neighbours among
the sorted records with probability in proportion to its width times exp(-epsilon / (2 max(q, 1-q))
times the distance of its rank to q n), and a place in the gap evenly. It is drawn here without care
for floating point: a yardstick, no release. Bins are many, so that a bin holds a record at most.
What is measured is how far the rank of the value is from the one asked for, as a part of the key's
records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.bars import Bar, Report, Say, at_most
from ptklib.columns.keys import IntegerRange
from ptklib.ptks.quantiles import Quantiles

__all__ = ["LIMIT", "Ranks", "measured", "report"]

LIMIT = 1.02
_EPSILONS = (0.1, 0.3, 1.0)
_RECORDS = (100, 300, 1_000)
_QUANTILES = (0.5, 0.9)
# More where the textbook is within a record or two of the rank.
_BINS, _FINE_BINS, _SHARP = 1 << 14, 1 << 16, 300
# Keys of one training, all with the same records: few, for all of their bins are counted.
_KEYS, _DRAWS = 8, 8_000
# Of the tree, which is only shown.
_TREE_KEYS = 1_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ranks:
    """Errors of the rank, by draw."""

    data: str
    records: int
    quantile: float
    epsilon: float
    chosen: Floats
    tree: Floats
    textbook: Floats

    @property
    def ratio(self) -> float:
        """Mean errors: chosen bins over the textbook."""
        return float(self.chosen.mean() / self.textbook.mean())

    @property
    def ratio_error(self) -> float:
        """Its standard error, to first order; the two are independent."""
        parts = [
            one.std(ddof=1) / np.sqrt(len(one)) / one.mean() for one in (self.chosen, self.textbook)
        ]
        return self.ratio * float(np.hypot(*parts))


def report(say: Say) -> Report:
    """A bar for each data set and quantile: the worst of all sizes and epsilons."""
    found = []
    for data, values in _data().items():
        for quantile in _QUANTILES:
            for records in _RECORDS:
                found += [
                    measured(data, values[:records], quantile, epsilon) for epsilon in _EPSILONS
                ]
            say(f"one quantile: {data}, {quantile}")
    return Report(bars=_bars(found), figures={"one quantile, error of the rank": _figures(found)})


def measured(data: str, values: Floats, quantile: float, epsilon: float) -> Ranks:
    """Values are in [0, 100)."""
    bins = _FINE_BINS if epsilon * len(values) >= _SHARP else _BINS
    chosen = [
        _served(values, quantile, epsilon, _KEYS, mechanism="exponential", bins=bins)
        for _ in range(_DRAWS // _KEYS)
    ]
    return Ranks(
        data=data,
        records=len(values),
        quantile=quantile,
        epsilon=epsilon,
        chosen=_errors(np.concatenate(chosen), values, quantile),
        tree=_errors(_served(values, quantile, epsilon, _TREE_KEYS), values, quantile),
        textbook=_errors(_textbook(values, quantile, epsilon, _DRAWS), values, quantile),
    )


def _data() -> dict[str, Floats]:
    rng = np.random.default_rng(12)
    most = max(_RECORDS)
    return {
        "gamma": np.minimum(rng.gamma(2, 8, most), 99.999),
        "even": rng.uniform(0, 100, most),
        "two heaps": np.where(
            rng.random(most) < 0.6, rng.normal(20, 2, most), rng.normal(70, 5, most)
        ),
    }


def _served(values: Floats, quantile: float, epsilon: float, keys: int, **options: Any) -> Floats:
    ptk = Quantiles(
        keys=(IntegerRange(column="key", first=0, last=keys - 1),),
        value="value",
        quantiles=(quantile,),
        lower=0,
        upper=100,
        **options,
    )
    rows = pa.RecordBatch.from_pydict(
        {"key": np.arange(keys).repeat(len(values)), "value": np.tile(values, keys)}
    )
    arrays = ptk.train_dp([rows], epsilon=epsilon)
    return np.asarray(ptk.features(arrays, pa.table({"key": np.arange(keys)})).column(0).to_numpy())


def _textbook(values: Floats, quantile: float, epsilon: float, draws: int) -> Floats:
    ends = np.concatenate([[0.0], np.sort(values), [100.0]])
    away = np.abs(np.arange(len(values) + 1) - quantile * len(values))
    weights = np.diff(ends) * np.exp(-epsilon / (2 * max(quantile, 1 - quantile)) * away)
    rng = np.random.default_rng(13)
    gaps = rng.choice(len(weights), draws, p=weights / weights.sum())
    return np.asarray(ends[gaps] + rng.random(draws) * np.diff(ends)[gaps])


def _errors(found: Floats, values: Floats, quantile: float) -> Floats:
    below = np.searchsorted(np.sort(values), found) / len(values)
    return np.asarray(np.abs(below - quantile))


def _bars(found: list[Ranks]) -> list[Bar]:
    bars = []
    for data, quantile in dict.fromkeys((one.data, one.quantile) for one in found):
        worst = max(
            (one for one in found if (one.data, one.quantile) == (data, quantile)),
            key=lambda one: one.ratio,
        )
        what = (
            f"one quantile, {data}, {quantile}: error of the rank / a textbook exponential "
            f"mechanism's, {worst.records:,} records, epsilon {worst.epsilon} "
            f"(standard error {worst.ratio_error:.3f})"
        )
        bars.append(at_most(what, worst.ratio, LIMIT))
    return bars


def _figures(found: list[Ranks]) -> list[dict[str, object]]:
    return [
        {
            "data": one.data,
            "quantile": one.quantile,
            "records": one.records,
            "epsilon": one.epsilon,
            "chosen": float(f"{one.chosen.mean():.3g}"),
            "tree": float(f"{one.tree.mean():.3g}"),
            "textbook": float(f"{one.textbook.mean():.3g}"),
            "chosen / textbook": f"{one.ratio:.3f}±{one.ratio_error:.3f}",
        }
        for one in found
    ]
