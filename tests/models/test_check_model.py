"""`check_model` over linear regression, and over models that break what it checks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ptklib
from ptklib.columns.keys import Categories, IntegerRange
from ptklib.columns.numbers import Bounded
from ptklib.errors import InvalidInput
from ptklib.models.inputs import NumberedColumns, Vector
from ptklib.models.labels import NumberLabel
from ptklib.models.linear import LinearRegression
from ptklib.ptk import Arrays
from ptklib.ptks.statistics import Statistics
from ptklib.testing.model_checks import MODEL_CHECKS, check_model
from ptklib.testing.ptk_checks import PtkCheckFailed, list_checks

Floats = NDArray[np.float64]

INPUTS = (
    Bounded(column="far", lower=0, upper=10),
    Categories(column="zone", values=("north", "south", "west")),
)
WIDE = (
    Vector(column="taste", size=2, lower=-1, upper=1),
    NumberedColumns(prefix="pixel_", first=3, last=4, lower=0, upper=255),
)
LABEL: dict[str, Any] = {"label": "fare", "lower": 0, "upper": 50}


@pytest.mark.parametrize(
    "model",
    [
        LinearRegression(inputs=INPUTS, **LABEL),
        LinearRegression(inputs=INPUTS, mechanism="moments", **LABEL),
        LinearRegression(inputs=INPUTS, mechanism="laplace", **LABEL),
        LinearRegression(inputs=WIDE, norm=0.5, scaling="unit", rounds=2, **LABEL),
        LinearRegression(inputs=INPUTS, intercept=False, norm=1.0, **LABEL),
    ],
    ids=["boosted", "moments", "laplace", "short", "through the middle"],
)
def test_linear_regression_keeps_the_contract(model: LinearRegression) -> None:
    check_model(model)


def test_adassp_keeps_it_but_spends_less_than_it_may() -> None:
    model = LinearRegression(inputs=INPUTS, mechanism="adassp", **LABEL)
    # At a delta of 1/20 the noise of the paper is worth an epsilon of 0.
    check_model(model, leave_out=["cost_before_data"])
    assert 0 < model.cost(1, 1e-6).epsilon(1e-6) < 0.7


AUDITS = ("audit", "audit_user", "audit_residues", "working_bytes", "no_raw_values")


def problems_of(model: LinearRegression) -> set[str]:
    """The checks that a model fails."""
    slow = [name for name in list_checks(model) if name in AUDITS]
    with pytest.raises(PtkCheckFailed) as failure:
        check_model(model, leave_out=slow)
    return {outcome.name for outcome in failure.value.report.failed}


@dataclass(frozen=True, kw_only=True)
class Beyond(LinearRegression):
    """Predicts beyond the bounds of the label."""

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        return super()._predicted(arrays, rows) + self.upper


@dataclass(frozen=True, kw_only=True)
class Crowded(LinearRegression):
    """A prediction depends on the rows beside it."""

    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        made = super()._predicted(arrays, rows)
        return np.clip(made - made.mean(), self.lower, self.upper) if len(made) else made


@dataclass(frozen=True, kw_only=True)
class Elsewhere(LinearRegression):
    """Features that are not the prediction, under its name."""

    def _feature_rows(self, arrays: Arrays, rows: Floats) -> Floats:
        return super()._feature_rows(arrays, rows) / 2


@dataclass(frozen=True)
class Refusing(NumberLabel):
    """Fails for a label that is missing."""

    def steps(self, frame: Any) -> Any:
        steps, bad = super().steps(frame)
        if bad is not None:
            raise ValueError("a label is missing")
        return steps, bad


@dataclass(frozen=True, kw_only=True)
class Failing(LinearRegression):
    """Trains on no record without a label."""

    @property
    def target(self) -> Refusing:
        return Refusing(self.label, self.lower, self.upper)


@dataclass(frozen=True)
class Counting(NumberLabel):
    """Counts a missing label as the worst."""

    def losses(self, metric: str, predicted: Floats, frame: Any) -> Floats:
        made = super().losses(metric, predicted, frame)
        _, bad = self.values(frame)
        return made if bad is None else np.where(bad, self.bound_of(metric), made)


@dataclass(frozen=True, kw_only=True)
class Harsh(LinearRegression):
    """Loses most where there is no label."""

    @property
    def target(self) -> Counting:
        return Counting(self.label, self.lower, self.upper)


@dataclass(frozen=True, kw_only=True)
class Other(LinearRegression):
    """Losses of something else than the prediction."""

    def losses(self, arrays: Arrays, batches: Any, *, metric: str | None = None) -> Floats:
        return super().losses(arrays, batches, metric=metric) / 2


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (Beyond, "predictions"),
        (Crowded, "predictions_alone"),
        (Elsewhere, "features_are_predictions"),
        (Failing, "never_fails"),
        (Harsh, "missing_labels"),
        (Other, "losses_of_predictions"),
    ],
)
def test_each_check_notices_what_it_is_for(broken: type[LinearRegression], check: str) -> None:
    assert check in problems_of(broken(inputs=INPUTS, **LABEL))


def test_every_check_of_models_has_a_model_that_fails_it() -> None:
    noticed = {
        "predictions",
        "predictions_alone",
        "features_are_predictions",
        "never_fails",
        "missing_labels",
        "losses_of_predictions",
    }
    assert {check.name for check in MODEL_CHECKS} == noticed


def test_a_ptk_that_is_no_model_is_told_where_to_go() -> None:
    ptk = Statistics(keys=(IntegerRange(column="zone", first=0, last=3),), statistics=("count",))
    with pytest.raises(InvalidInput) as refusal:
        check_model(ptk)  # type: ignore[arg-type]
    assert refusal.value.reason == "CHECK_NO_MODEL"
    assert ptklib.check_model is check_model
