"""Nets as scikit-learn estimators: its own checks, what must be public, and records that are
few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from ptklib.errors import InvalidInput
from ptklib.privacy.noise.source import BitSource
from ptklib.sklearn import DPLogisticRegression, DPMLPClassifier, DPMLPRegressor
from ptklib.testing.noise import SeededSource, planted_noise

FEW: dict[str, Any] = {"bounds": (-10, 10), "records": "as_given", "steps": 5}


class Planted:
    """The same noise in every fit: checks that fit twice then say that nothing else differs."""

    def _noise(self) -> BitSource:
        return SeededSource(7)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.non_deterministic = False
        return tags


class PlantedLogistic(Planted, DPLogisticRegression):  # type: ignore[misc, unused-ignore]
    pass


class PlantedClassifier(Planted, DPMLPClassifier):  # type: ignore[misc, unused-ignore]
    pass


class PlantedRegressor(Planted, DPMLPRegressor):  # type: ignore[misc, unused-ignore]
    pass


ESTIMATORS = [
    PlantedLogistic(**FEW, classes="as_given"),
    PlantedClassifier(**FEW, classes="as_given", hidden_layer_sizes=(5,)),
    PlantedRegressor(**FEW, label_bounds=(-10, 10), hidden_layer_sizes=(5, 3), activation="tanh"),
]


@pytest.fixture
def planted() -> Iterator[None]:
    with planted_noise():
        yield


@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator, unused-ignore]
def test_scikit_learns_own_checks_hold(planted: None, estimator: Any, check: Any) -> None:
    check(estimator)


def test_fits_differ_by_their_noise() -> None:
    features, label = blobs(300)
    model = DPLogisticRegression(**FEW, classes=[0, 1])
    first, second = (model.fit(features, label).coef_ for _ in range(2))
    assert not np.array_equal(first, second)


def blobs(rows: int, seed: int = 0) -> tuple[Any, Any]:
    """Two classes that a line tells apart nine times in ten."""
    generator = np.random.default_rng(seed)
    features = generator.uniform(-5, 5, (rows, 3))
    scores = features @ [1.0, -0.5, 0.0] + 1
    return features, (generator.uniform(size=rows) < 1 / (1 + np.exp(-scores))).astype(int)


def test_coefficients_are_in_the_units_of_the_columns() -> None:
    features, label = blobs(60_000)
    bounds = [(-5, 5), (-6, 5), (-5, 10)]
    model = DPLogisticRegression(
        epsilon=8, bounds=bounds, classes=[0, 1], records=60_000, steps=400, clip=3.0
    ).fit(features, label)
    scores = features @ model.coef_[0] + model.intercept_[0]
    assert model.predict_proba(features)[:, 1] == pytest.approx(1 / (1 + np.exp(-scores)), abs=0.01)
    assert model.coef_[0] == pytest.approx([1, -0.5, 0], abs=0.2)
    assert model.intercept_[0] == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("kind", [DPLogisticRegression, DPMLPClassifier])
def test_at_an_epsilon_of_one_little_is_lost(kind: Any) -> None:
    features, label = blobs(20_000)
    model = kind(epsilon=1, bounds=(-5, 5), classes=[0, 1], records=20_000).fit(features, label)
    plain = LogisticRegression().fit(features, label)
    unseen = blobs(20_000, seed=1)
    assert model.score(*unseen) > plain.score(*unseen) - 0.015
    assert model.cost_.epsilon(model.delta) <= 1


def test_softmax_tells_several_classes() -> None:
    generator = np.random.default_rng(3)
    features = generator.uniform(-1, 1, (20_000, 2))
    label = np.array(["a", "b", "c"])[np.argmax(features @ [[3, 0, -3], [0, 3, 0]], axis=1)]
    model = DPLogisticRegression(
        epsilon=2, bounds=(-1, 1), classes=["c", "a", "b"], records=20_000
    ).fit(features, label)
    assert model.coef_.shape == (3, 2)
    assert model.score(features, label) > 0.9
    assert model.predict_proba(features).sum(axis=1) == pytest.approx(1)


def test_a_regressor_bends() -> None:
    generator = np.random.default_rng(3)
    features = generator.uniform(-1, 1, (30_000, 2))
    label = 10 * np.abs(features[:, 0])
    model = DPMLPRegressor(
        epsilon=4, bounds=(-1, 1), label_bounds=(0, 10), records=30_000, hidden_layer_sizes=(16,)
    ).fit(features, label)
    assert model.score(features, label) > 0.8


@pytest.mark.parametrize(
    ("kind", "more", "reason"),
    [
        (DPLogisticRegression, {"bounds": (0, 1), "classes": [0, 1]}, "RECORDS_MISSING"),
        (DPLogisticRegression, {"bounds": (0, 1), "records": 9}, "CLASSES_MISSING"),
        (DPMLPClassifier, {"classes": [0, 1], "records": 9}, "BOUNDS_MISSING"),
        (DPMLPClassifier, {"bounds": (0, 1), "classes": [1], "records": 9}, "CONFIG_INVALID"),
        (DPMLPRegressor, {"bounds": (0, 1), "records": 9}, "BOUNDS_MISSING"),
        (
            DPLogisticRegression,
            {"bounds": (0, 1), "classes": [0, 1], "records": 9, "delta": 0},
            "DELTA_NEEDED",
        ),
    ],
)
def test_what_is_public_must_be_given(kind: Any, more: dict[str, Any], reason: str) -> None:
    features, label = blobs(30)
    with pytest.raises(InvalidInput) as refused:
        kind(**more).fit(features, label)
    assert refused.value.reason == reason


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_few_records_make_a_model_like_any_other(rows: int) -> None:
    """Fewer than a batch is expected to have, all of one class, with NaN: no failure, only
    noise."""
    features, _ = blobs(rows)
    features[0, 0] = np.nan
    model = DPLogisticRegression(epsilon=1, bounds=(-5, 5), classes=[0, 1], records=100_000)
    model.fit(features, np.ones(rows, dtype=int))
    assert np.isfinite(model.coef_).all()
    assert list(model.classes_) == [0, 1]
