"""Models as scikit-learn estimators: its own checks, public bounds, frames, and what is refused."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

from ptklib.errors import InvalidInput
from ptklib.features import featurize
from ptklib.privacy.noise.source import BitSource
from ptklib.sklearn import DPLinearRegression
from ptklib.testing.noise import SeededSource, planted_noise

WIDE: dict[str, Any] = {"bounds": (-10, 10), "label_bounds": (-10, 10)}
# Checks that fit twice and expect the same: noise is drawn anew.
FIT_TWICE = (
    "check_regressor_data_not_an_array",
    "check_supervised_y_2d",
    "check_regressors_int",
    "check_fit_idempotent",
)


class Planted(DPLinearRegression):  # type: ignore[misc, unused-ignore]
    """The same noise in every fit: those checks then say that nothing else differs."""

    def _noise(self) -> BitSource:
        return SeededSource(7)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = False
        return tags


@pytest.fixture
def planted() -> Iterator[None]:
    with planted_noise():
        yield


@parametrize_with_checks(  # type: ignore[untyped-decorator, unused-ignore]
    [
        DPLinearRegression(epsilon=1, **WIDE),
        DPLinearRegression(delta=0, mechanism="laplace", **WIDE),
    ],
    expected_failed_checks=lambda _: dict.fromkeys(FIT_TWICE, "noise is drawn anew"),
)
def test_scikit_learns_own_checks_hold(estimator: Any, check: Any) -> None:
    check(estimator)


@parametrize_with_checks([Planted(epsilon=1, **WIDE)])  # type: ignore[untyped-decorator, unused-ignore]
def test_all_of_them_hold_where_the_noise_is_planted(
    planted: None, estimator: Any, check: Any
) -> None:
    check(estimator)


def records(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Two features, of which one adds 3 and the other takes away 0.5 for each 1."""
    generator = np.random.default_rng(seed)
    features = generator.uniform([0, -5], [10, 5], (rows, 2))
    label = 5 + 3 * features[:, 0] - 0.5 * features[:, 1] + generator.normal(0, 0.5, rows)
    return features, label


BOUNDS: dict[str, Any] = {"bounds": [(0, 10), (-5, 5)], "label_bounds": (0, 40)}


def test_coefficients_are_in_the_units_of_the_columns() -> None:
    features, label = records(20_000)
    model = DPLinearRegression(epsilon=5, **BOUNDS).fit(features, label)
    assert model.coef_ == pytest.approx([3, -0.5], abs=0.05)
    assert model.intercept_ == pytest.approx(5, abs=0.3)
    assert model.predict(features) == pytest.approx(
        np.clip(features @ model.coef_ + model.intercept_, 0, 40), abs=0.02
    )
    assert model.score(features, label) > 0.99
    entries = model.intervals()
    assert entries["lower"][0].as_py() < 3 * 5 < entries["upper"][0].as_py()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_give_their_names(kind: str) -> None:
    features, label = records(2_000)
    columns = {"far": features[:, 0], "high": features[:, 1]}
    frames: dict[str, Any] = {
        "pandas": pd.DataFrame(columns),
        "polars": pl.DataFrame(columns),
        "arrow": pa.table(columns),
    }
    frame = frames[kind]
    bounds = {"far": (0, 10), "high": (-5, 5)}
    model = DPLinearRegression(epsilon=5, bounds=bounds, label_bounds=(0, 40)).fit(frame, label)
    assert list(model.feature_names_in_) == ["far", "high"]
    assert len(model.predict(frame)) == 2_000
    made = featurize(pa.table(columns), model.state_)
    assert np.array_equal(made.column(2).to_numpy(), model.predict(frame))


def test_a_fitted_estimator_says_what_it_cost_and_travels() -> None:
    features, label = records(500)
    model = DPLinearRegression(epsilon=0.5, delta=1e-6, **BOUNDS).fit(features, label)
    assert 0.49 < model.cost_.epsilon(1e-6) <= 0.5 * (1 + 1e-9)
    assert model.state_.manifest.kind == "linear_regression"
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(features), model.predict(features))
    assert len(cross_val_score(clone(model), features, label, cv=3)) == 3


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"label_bounds": (0, 1)}, "BOUNDS_MISSING"),
        ({"bounds": (0, 1)}, "BOUNDS_MISSING"),
        ({"bounds": {"x0": (0, 1)}, "label_bounds": (0, 1)}, "BOUNDS_MISSING"),
        ({"bounds": [(0, 1)], "label_bounds": (0, 1)}, "CONFIG_INVALID"),
        ({"bounds": (1, 0), "label_bounds": (0, 1)}, "CONFIG_INVALID"),
        ({"bounds": (0, 1), "label_bounds": (0, 1), "delta": 0}, "DELTA_NEEDED"),
        ({"bounds": (0, 1), "label_bounds": (0, 1), "mechanism": "none"}, "CONFIG_INVALID"),
    ],
)
def test_what_is_missing_is_refused_and_never_read_from_the_data(
    given: dict[str, Any], reason: str
) -> None:
    features, label = records(100)
    with pytest.raises(InvalidInput) as refusal:
        DPLinearRegression(**given).fit(features, label)
    assert refusal.value.reason == reason


def test_no_feature_is_refused_for_its_value() -> None:
    features, label = records(400)
    features[::5, 0] = np.nan
    features[::7, 1] = np.inf
    model = DPLinearRegression(epsilon=1, **BOUNDS).fit(features, label)
    assert np.all(np.isfinite(model.predict(features)))
    middle = np.array([[5.0, 5.0]])
    assert model.predict(np.array([[np.nan, np.inf]])) == model.predict(middle)


def test_labels_that_are_no_numbers_are_told_to_who_holds_them() -> None:
    features, label = records(50)
    label[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        DPLinearRegression(**BOUNDS).fit(features, label)
    with pytest.raises(ValueError, match="0 sample"):
        DPLinearRegression(**BOUNDS).fit(features[:0], label[:0])
