"""Linear regression: how well it predicts, what its intervals cover, and the rules of windows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib import registry
from ptklib.columns.keys import IntegerRange
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.linear import LinearRegression
from ptklib.models.registry import model_kinds

SIZES = (24, 7, 10)
LISTED = tuple(
    IntegerRange(column=f"c{place}", first=0, last=size - 1) for place, size in enumerate(SIZES)
)
DELTA = "1e-6"


def rides(rows: int, seed: int) -> pa.RecordBatch:
    """Three listed inputs, of which each value adds its own to a label that is seldom large."""
    generator = np.random.default_rng(seed)
    effects = np.random.default_rng(0)
    label = np.full(rows, 0.1)
    columns: dict[str, Any] = {}
    for place, size in enumerate(SIZES):
        shares = effects.dirichlet(np.full(size, 3.0))
        codes = generator.choice(size, rows, p=shares)
        columns[f"c{place}"] = codes
        label += effects.normal(0, 0.03, size)[codes]
    label += generator.exponential(0.05, rows) - 0.05
    return pa.RecordBatch.from_pydict({**columns, "y": label})


def listed(**options: Any) -> LinearRegression:
    return LinearRegression(inputs=LISTED, label="y", lower=0, upper=1, **options)


def excess(model: LinearRegression, rows: int, epsilon: str, *, seeds: int) -> float:
    """The mean squared error on other records, above that of least squares."""
    test = rides(20_000, seed=999)
    matrix, label = model.rows.matrix(test), test["y"].to_numpy()
    found = []
    for seed in range(seeds):
        train = rides(rows, seed)
        best, *_ = np.linalg.lstsq(model.rows.matrix(train), train["y"].to_numpy(), rcond=None)
        arrays = model.train_dp([train], epsilon=epsilon, delta=DELTA)
        found.append(model.metric(arrays, [test]) - np.square(label - matrix @ best).mean())
    return float(np.mean(found))


@pytest.mark.parametrize(("rows", "epsilon"), [(10_000, "1"), (40_000, "0.25")])
def test_the_default_is_far_better_than_the_reference(rows: int, epsilon: str) -> None:
    ours = excess(listed(), rows, epsilon, seeds=4)
    theirs = excess(listed(mechanism="adassp"), rows, epsilon, seeds=4)
    once = excess(listed(mechanism="moments"), rows, epsilon, seeds=4)
    assert ours < theirs / 3
    assert ours < once < theirs


@pytest.mark.parametrize("mechanism", ["boosted", "moments", "laplace", "adassp"])
def test_with_much_budget_it_is_least_squares(mechanism: str) -> None:
    model = listed(mechanism=mechanism)
    train = rides(50_000, seed=1)
    best, *_ = np.linalg.lstsq(model.rows.matrix(train), train["y"].to_numpy(), rcond=None)
    arrays = model.train_dp([train], epsilon=1000, delta=0 if mechanism == "laplace" else DELTA)
    wanted = model.rows.matrix(train) @ best
    assert np.sqrt(np.square(model.predict(arrays, train) - wanted).mean()) < 0.004


@pytest.mark.parametrize("mechanism", ["boosted", "moments"])
def test_intervals_cover_the_coefficients_of_the_population(mechanism: str) -> None:
    inputs = tuple(Bounded(column=f"x{place}", lower=-1, upper=1) for place in range(4))
    slopes = np.array([0.3, -0.2, 0.1, 0.0])
    model = LinearRegression(
        inputs=inputs,
        label="y",
        lower=-1,
        upper=1,
        mechanism=mechanism,  # type: ignore[arg-type]
    )
    covered, width = [], []
    for seed in range(60):
        generator = np.random.default_rng(seed)
        features = generator.uniform(-1, 1, (2_000, 4))
        label = 0.1 + features @ slopes + generator.normal(0, 0.1, 2_000)
        columns = {f"x{place}": column for place, column in enumerate(features.T)}
        batch = pa.RecordBatch.from_pydict({**columns, "y": label})
        arrays = model.train_dp([batch], epsilon=1, delta=DELTA)
        table = model.coefficients(arrays)
        low, high = (table[name].to_numpy() for name in ("lower", "upper"))
        truth = np.append(slopes, 0.1)
        covered.append((low <= truth) & (truth <= high))
        width.append(high - low)
    # 300 intervals that are not independent: 0.90 is four deviations below 0.95 even so.
    assert np.mean(covered) >= 0.90
    # Not by being useless: far narrower than what the coefficients may be.
    assert np.mean(width) < 0.25


def test_windows_are_averaged_alike() -> None:
    model = listed()
    first = model.train_dp([rides(500, 1)], epsilon=1, delta=DELTA)
    second = model.train_dp([rides(500, 2)], epsilon=1, delta=DELTA, previous=first)
    third = model.train_dp([], epsilon=1, delta=DELTA, previous=second)
    assert [int(state["windows"][0]) for state in (first, second, third)] == [1, 2, 3]
    apart = third["coefficients"] - second["coefficients"] * 2 / 3
    assert np.abs(apart).max() < 1
    model.validate(third)


def test_without_an_intercept_nothing_is_the_middle() -> None:
    inputs = (Bounded(column="x", lower=-1, upper=1),)
    model = LinearRegression(inputs=inputs, label="y", lower=0, upper=10, intercept=False)
    generator = np.random.default_rng(0)
    x = generator.uniform(-1, 1, 20_000)
    batch = pa.RecordBatch.from_pydict({"x": x, "y": 5 + 2 * x})
    arrays = model.train_dp([batch], epsilon=2, delta=DELTA)
    predicted = model.predict(arrays, pa.table({"x": [0.0, 1.0, None]}))
    assert predicted[0] == predicted[2] == 5
    assert predicted[1] == pytest.approx(7, abs=0.1)


def test_it_is_installed_as_a_model_and_as_a_ptk() -> None:
    assert model_kinds()["linear_regression"] is LinearRegression
    made = registry.make("linear_regression", listed().as_json())
    assert made == listed()
    assert listed().feature_names() == ("y_linear_regression_prediction",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"rounds": 65},
        {"rounds": 2, "mechanism": "moments"},
        {"mechanism": "adassp", "intercept": False},
        {"norm": 0.0},
        {"label": "c0"},
        {"upper": 0},
        {"inputs": ()},
        {"inputs": (LISTED[0], LISTED[0])},
        {"inputs": (IntegerRange(column="wide", first=0, last=1_024),)},
    ],
)
def test_configurations_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    body: dict[str, Any] = {"inputs": LISTED, "label": "y", "lower": 0, "upper": 1, **wrong}
    with pytest.raises(InvalidInput) as refusal:
        LinearRegression(**body)
    assert refusal.value.reason == "CONFIG_INVALID"


def test_a_state_of_another_model_is_refused() -> None:
    arrays = listed().train_dp([], epsilon=1, delta=DELTA)
    wrong = {**arrays, "coefficients": arrays["coefficients"] + 2.0**21}
    for other in (wrong, {**arrays, "windows": np.zeros(1, dtype=np.int64)}):
        with pytest.raises(InvalidInput, match="PTK_MISMATCH"):
            listed().predict(other, pa.Table.from_batches([rides(3, 0)]))


def test_an_unknown_metric_is_told_those_there_are() -> None:
    arrays = listed().train_dp([], epsilon=1, delta=DELTA)
    with pytest.raises(InvalidInput, match="squared_error, absolute_error"):
        listed().metric(arrays, [rides(3, 0)], metric="log_loss")
    with pytest.raises(InvalidInput, match="predicts numbers"):
        listed().chosen(arrays, rides(3, 0))
