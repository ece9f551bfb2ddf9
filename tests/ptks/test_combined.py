"""States of several windows in one: what adds up does so exactly, and fading has no bias."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.inputs import LIMIT
from ptklib.ptk import Arrays, Ptk
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.counts import Counts
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.forest import Forest
from ptklib.ptks.quantiles import Quantiles
from ptklib.ptks.ratios import Ratios
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.weighted import ROUNDING, added
from ptklib.ptks.vectors import Bounded
from ptklib.testing.ptk_cases import Case
from ptklib.testing.ptk_contract_checks import CONTRACT_CHECKS

ONE, HALF = Fraction(1), Fraction(1, 2)
ZONE, CLICK = (IntegerRange(column=name, first=0, last=last) for name, last in (("z", 9), ("y", 1)))
PLANE = tuple(Bounded(column=name, lower=-1.0, upper=1.0) for name in "ab")
SPEED: dict[str, Any] = {"keys": (ZONE,), "value": "speed", "lower": 0.0, "upper": 60.0}
FOREST: dict[str, Any] = {
    "inputs": (Number(column="a", lower=0.0, upper=1.0, bins=8),),
    "label": "y",
    "classes": (0, 1),
    "trees": 4,
    "depth": 2,
}
RATIOS: dict[str, Any] = {"numerator": "u", "denominator": "v"}
# With the names of their totals and of the variances of these.
COMBINING: dict[str, tuple[Ptk, str, str | None]] = {
    "statistics": (Statistics(statistics=("mean",), **SPEED), "totals", "variance"),
    "quantiles": (Quantiles(quantiles=(0.5,), **SPEED), "totals", None),
    "ratios": (
        Ratios(keys=(ZONE,), denominator_upper=1.0, ratio_upper=1.0, **RATIOS),
        "totals",
        None,
    ),
    "counts": (Counts(keys=(ZONE,), label=CLICK), "cells", "variances"),
    "counts of 32 bits": (
        Counts(keys=(ZONE,), label=CLICK, cell_bits=32),
        "cells",
        "variances",
    ),
    "covariance": (Covariance(values=PLANE, components=1), "totals", None),
    "clusters": (Clusters(values=PLANE, clusters=2), "totals", "variance"),
    "forest": (Forest(**FOREST, splits="random"), "leaves", "variance"),
}


def trained(ptk: Ptk, rows: int, seed: int) -> Arrays:
    batch = ptk.example(rows, seed=seed)
    assert batch is not None
    return ptk.train_dp([batch], epsilon=1)


@pytest.mark.parametrize("name", COMBINING)
def test_states_add_up_exactly_and_fade_without_bias(name: str) -> None:
    ptk, totals, variances = COMBINING[name]
    assert ptk.tags.combines
    first, second = trained(ptk, 500, 1), trained(ptk, 300, 2)
    both = ptk.combined(((ONE, first), (ONE, second)))
    assert np.array_equal(both[totals], first[totals] + second[totals])
    assert both["windows"].tolist() == [2]
    faded = ptk.combined(((HALF, first), (ONE, second)), previous=first)
    ptk.validate(faded)
    off = faded[totals] - (first[totals] / 2 + second[totals])
    assert float(np.abs(off).max()) <= HALF
    if variances is not None:
        assert np.allclose(both[variances], first[variances] + second[variances])
        least = first[variances] / 4 + second[variances]
        assert np.all((faded[variances] > least) & (faded[variances] <= least + ROUNDING))


@pytest.mark.parametrize("name", COMBINING)
def test_kinds_that_combine_pass_their_check(name: str) -> None:
    ptk = COMBINING[name][0]
    batch = ptk.example(3000)
    assert batch is not None
    check = next(one for one in CONTRACT_CHECKS if one.name == "combine")
    check.run(Case(ptk, pa.Table.from_batches([batch])))


@pytest.mark.parametrize(
    "ptk",
    [Clusters(values=PLANE, clusters=2, method="lloyd"), Forest(**FOREST, splits="guided")],
    ids=["lloyd", "guided"],
)
def test_states_that_hang_on_their_first_window_do_not_combine(ptk: Ptk) -> None:
    assert not ptk.tags.combines
    state = trained(ptk, 300, 1)
    with pytest.raises(InvalidInput) as caught:
        ptk.combined(((ONE, state), (ONE, state)))
    assert caught.value.reason == "COMBINE_UNSUPPORTED"


def test_a_total_that_fades_never_gets_stuck() -> None:
    # Rounded to the nearest, 27 x 0.99 is 27 for ever.
    state: dict[str, Any] = {"totals": np.full(100_000, 27), "windows": np.ones(1, np.int64)}
    made = added(lambda _: None, ((Fraction(99, 100), state),), totals="totals")
    # The mean has a standard deviation of 0.0014.
    assert abs(float(made["totals"].mean()) - 26.73) < 0.01
    assert set(np.unique(made["totals"]).tolist()) == {26, 27}


def test_sums_are_held_within_their_limit() -> None:
    state: dict[str, Any] = {"totals": np.full(3, LIMIT), "windows": np.ones(1, np.int64)}
    made = added(lambda _: None, [(ONE, state)] * 20, totals="totals")
    assert made["totals"].tolist() == [LIMIT] * 3
    assert made["windows"].tolist() == [20]


@pytest.mark.parametrize("weights", [[], [Fraction(0)], [Fraction(-1)], [Fraction(3, 2)]])
def test_nothing_and_weights_out_of_range_are_refused(weights: list[Fraction]) -> None:
    state: dict[str, Any] = {"totals": np.zeros(1, np.int64), "windows": np.ones(1, np.int64)}
    with pytest.raises(InvalidInput) as caught:
        added(lambda _: None, [(weight, state) for weight in weights], totals="totals")
    assert caught.value.reason == "COMBINE_INVALID"
