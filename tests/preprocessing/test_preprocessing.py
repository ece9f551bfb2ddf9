"""Preparation with a price: what is told, what it costs, and audits that catch half of the
noise."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from ptklib.columns.keys import Bins, Categories, IntegerRange, Key, TimePart
from ptklib.errors import InvalidInput
from ptklib.preprocessing import dp_bounds, dp_group_by_mean, dp_histogram
from ptklib.preprocessing.each_key import each_key
from ptklib.privacy.costs import ExponentialCost
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.ptks.tables.cells import Cells
from ptklib.testing.audit import AuditResult, audit_epsilon

HOUR = IntegerRange(column="hour", first=0, last=2)
SIZE = Categories(column="size", values=("s", "m"))
MANY = 1000


def rides() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "hour": [0, 0, 1, 1, 9, 2],
            "size": ["s", "m", "s", "x", "s", None],
            "speed": [10.0, 20.0, 30.0, 99.0, 50.0, np.nan],
        }
    )


@pytest.mark.parametrize("kind", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas])
def test_means_are_those_of_known_keys_between_the_bounds(kind: Callable[..., Any]) -> None:
    frame = kind(rides())
    means = dp_group_by_mean(frame, HOUR, "speed", epsilon=MANY, lower=0, upper=40)
    told = means.table.to_pandas()
    assert told["hour"].tolist() == [0, 1, 2]
    assert np.allclose(told["mean"][:2], [15, 35], atol=0.6)  # 99 is clipped to 40
    assert np.allclose(told["count"], [2, 2, 0], atol=0.05)  # 9 is no key, NaN no value
    assert np.allclose(means.of(frame)[:4], [15, 15, 35, 35], atol=0.6)
    assert abs(means.of(frame)[4] - 25) < 0.6  # of an unknown key: the mean of all


def test_several_keys_make_a_table_of_all_pairs() -> None:
    means = dp_group_by_mean(rides(), (HOUR, SIZE), "speed", epsilon=MANY, lower=0, upper=40)
    told = means.table.to_pandas()
    assert told[["hour", "size"]].values.tolist() == [
        [hour, size] for hour in range(3) for size in ("s", "m")
    ]
    assert np.allclose(told["count"], [1, 1, 1, 0, 0, 0], atol=0.05)


def test_counts_are_told_as_they_are_and_as_shares() -> None:
    histogram = dp_histogram(rides(), (HOUR, SIZE), epsilon=MANY)
    assert histogram.counts.tolist() == [[1, 1], [1, 0], [0, 0]]
    assert np.allclose(histogram.shares.sum(), 1)
    assert histogram.table.column_names == ["hour", "size", "count", "share"]
    assert histogram.table.column("count").to_pylist() == [1, 1, 1, 0, 0, 0]


def test_a_histogram_of_nothing_has_equal_shares_where_no_count_is_above_zero() -> None:
    nothing = rides()[:0].astype({"hour": int})
    shares = dp_histogram(nothing, HOUR, epsilon=MANY).shares
    assert shares.tolist() == [1 / 3] * 3


@pytest.mark.parametrize(
    "key",
    [
        HOUR,
        SIZE,
        Bins(column="fare", edges=(-1.5, 0, 2, 7)),
        TimePart(column="at", part="hour"),
        TimePart(column="at", part="weekday"),
    ],
)
def test_there_is_a_record_for_each_key_in_the_order_of_codes(key: Key) -> None:
    assert Cells((key,)).codes(each_key((key,))).tolist() == list(range(key.size))


def test_keys_that_read_one_column_are_refused() -> None:
    hour, day = TimePart(column="at", part="hour"), TimePart(column="at", part="weekday")
    with pytest.raises(InvalidInput, match="copy the column"):
        each_key((hour, day))


@pytest.mark.parametrize("records", [1, 7])
def test_the_price_is_that_of_one_release_at_all_of_epsilon(records: int) -> None:
    frame, level = rides(), Fraction("0.3")
    asked: dict[str, Any] = {"epsilon": level, "records_per_unit": records}
    means = dp_group_by_mean(frame, HOUR, "speed", lower=0, upper=1, **asked)
    steps = means.ptk.steps
    assert means.cost == LaplaceRelease(epsilon=level, sensitivity=records * steps).cost
    counts = dp_histogram(frame, HOUR, **asked)
    assert counts.cost == LaplaceRelease(epsilon=level, sensitivity=records).cost
    assert counts.cost.basic() == means.cost.basic() == (level, Fraction(0))
    noisy = dp_histogram(frame, HOUR, mechanism="gaussian", delta="1e-6", **asked)
    assert isinstance(noisy.cost, type(GaussianRelease(sigma=1, sensitivity=1).cost))
    assert float(noisy.cost.epsilon(1e-6)) == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("kind", ["means", "counts", "bounds"])
def test_all_records_of_a_user_count(kind: str) -> None:
    """A thousand records of a user: noise of the size of a thousand, not of one."""
    frame = pd.DataFrame({"hour": [0] * 1000, "speed": [1.0] * 1000})
    asked: dict[str, Any] = {"epsilon": 1, "records_per_unit": 1000}
    if kind == "means":
        drawn = [
            float(
                dp_group_by_mean(frame, HOUR, "speed", lower=0, upper=1, **asked).arrays["totals"][
                    1, 1
                ]
            )
            / 4096
            for _ in range(40)
        ]
        assert np.abs(drawn).mean() > 300
    elif kind == "counts":
        drawn = [float(dp_histogram(frame, HOUR, **asked).counts[1]) for _ in range(40)]
        assert np.abs(drawn).mean() > 300
    else:
        # With the noise of one record every draw is the bin of all records.
        found = {dp_bounds(frame, ["speed"], tail=0.45, **asked).bounds["speed"] for _ in range(20)}
        assert len(found) > 5


def test_columns_share_the_price_of_their_bounds() -> None:
    frame = pd.DataFrame({"a": [1.0], "b": [2.0], "c": [3.0]})
    bounds = dp_bounds(frame, ["a", "b", "c"], epsilon="0.3")
    assert bounds.cost.parts_of_sum() == (ExponentialCost(epsilon="0.1"),) * 3
    assert bounds.cost.basic() == (Fraction("0.3"), Fraction(0))


def test_bounds_hold_all_but_the_tails_and_are_not_much_wider() -> None:
    generator = np.random.default_rng(1)
    columns = {
        "small": generator.uniform(-0.003, 0.001, 20_000),
        "large": generator.lognormal(20, 2, 20_000),
        "whole": generator.integers(5, 90, 20_000),
    }
    bounds = dp_bounds(pd.DataFrame(columns), list(columns), epsilon=1, tail=0.01)
    beyond = 0.01 + bounds.records_beyond(1 - 1e-9) / 20_000
    assert beyond < 0.05
    for name, values in columns.items():
        lower, upper = bounds.bounds[name]
        assert np.mean(values < lower) <= beyond
        assert np.mean(values > upper) <= beyond
        low, high = np.quantile(values, 0.001), np.quantile(values, 0.999)
        factor = 2.0**0.25 * (1 + 1e-9)
        assert lower >= min(low * factor, low / factor)
        assert upper <= max(high * factor, high / factor)


def test_a_scaled_frame_fills_the_bounds_and_has_nothing_missing() -> None:
    frame = pd.DataFrame({"a": [*np.linspace(1, 3, 5_000), np.nan, np.inf, -np.inf]})
    bounds = dp_bounds(frame, ["a"], epsilon=100)
    scaled = bounds.scaled(frame).column("a").to_numpy()
    assert scaled.min() == -1
    assert scaled.max() == 1
    assert scaled[-3:].tolist() == [0, 1, -1]
    assert (np.diff(scaled[:5_000]) >= 0).all()
    assert [(source.column, source.lower) for source in bounds.inputs] == [
        ("a", bounds.bounds["a"][0])
    ]


@pytest.mark.parametrize(
    "values", [[], [None, None], [0.0] * 50, [1e300, -1e300], [float("nan")] * 9]
)
def test_no_values_of_a_column_make_bounds_fail(values: list[float | None]) -> None:
    frame = pa.table({"a": pa.array(values, pa.float64())})
    ((lower, upper),) = dp_bounds(frame, ["a"], epsilon=1).bounds.values()
    assert lower < upper
    assert np.isfinite([lower, upper]).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"columns": []}, "one or more"),
        ({"columns": ["a", "a"]}, "none of them twice"),
        ({"tail": 0.5}, "tail must be between"),
        ({"smallest": 2, "largest": 1}, "below largest"),
        ({"columns": ["b"]}, "must be there once"),
        ({"epsilon": 0}, "epsilon"),
    ],
)
def test_what_cannot_be_asked_is_refused(options: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"columns": ["a"], "epsilon": 1, **options}
    with pytest.raises(InvalidInput, match=words):
        dp_bounds(pd.DataFrame({"a": [1.0]}), asked.pop("columns"), **asked)


def _means(frame: pd.DataFrame, epsilon: float) -> float:
    arrays = dp_group_by_mean(frame, HOUR, "speed", epsilon=epsilon, lower=0, upper=1).arrays
    # The largest weight of the record in question is on the second corner of the first key.
    return float(arrays["totals"][0, 1]) / 4096


def _counts(frame: pd.DataFrame, epsilon: float) -> float:
    return float(dp_histogram(frame, HOUR, epsilon=epsilon).counts[0])


def _bounds(frame: pd.DataFrame, epsilon: float) -> float:
    made = dp_bounds(frame, ["speed"], epsilon=epsilon, tail=0.45, smallest=1, largest=4)
    lower, upper = made.bounds["speed"]
    return 100 * lower + upper


@pytest.mark.parametrize("told", [_means, _counts])
def test_an_audit_stays_below_the_claim_and_catches_less_noise(
    told: Callable[[pd.DataFrame, float], float],
) -> None:
    without = pd.DataFrame({"hour": [0, 0, 1], "speed": [0.0, 0.5, 1.0]})
    more = pd.DataFrame({"hour": [0, 0, 1, 0], "speed": [0.0, 0.5, 1.0, 2.0]})
    right = _audited(told, more, without, epsilon=1, runs=2_000)
    assert not right.contradicts(1)
    assert right.lower_bound >= 1 / 4
    assert _audited(told, more, without, epsilon=2.5, runs=2_000).contradicts(1)


def test_an_audit_of_bounds_stays_below_the_claim_and_catches_too_eager_draws() -> None:
    # Where there is nothing, any bin is as likely; one record draws both ranks.
    nothing, single = pd.DataFrame({"speed": []}, dtype=float), pd.DataFrame({"speed": [3.0]})
    assert not _audited(_bounds, single, nothing, epsilon=1, runs=1_500).contradicts(1)
    assert _audited(_bounds, single, nothing, epsilon=16, runs=1_500).contradicts(1)


def _audited(
    told: Callable[[pd.DataFrame, float], float],
    data: pd.DataFrame,
    neighbour: pd.DataFrame,
    *,
    epsilon: float,
    runs: int,
) -> AuditResult:
    def run(frame: pd.DataFrame, count: int) -> NDArray[np.float64]:
        return np.array([told(frame, epsilon) for _ in range(count)])

    return audit_epsilon(run, data, neighbour, count=runs)
