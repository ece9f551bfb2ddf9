"""`check_model`: does a model keep the contract of `ptklib.models.model`? For authors of models.

::

    def test_my_model() -> None:
        check_model(MyModel(inputs=..., label="y", lower=0, upper=1))

All of `check_ptk`, and what a model adds: predictions of the right shape and range, the same for a
row wherever it stands; losses that are of these predictions and within their bounds; features that
are the prediction, unless the model says otherwise; no failure for NaN, infinities, nulls and
labels that nobody declared, in training as in prediction; and loss 0 for records without a label.

Reasons: those of `ptk_checks`; CHECK_NO_MODEL (a PTK that is no model).
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from ptklib.errors import InvalidInput
from ptklib.models.labels import ClassLabel, NumberLabel
from ptklib.models.model import Model
from ptklib.ptk import Batches, Ptk
from ptklib.testing.ptk_cases import Case, Check, CheckSkipped, demand
from ptklib.testing.ptk_checks import CheckReport, run_checks

__all__ = ["MODEL_CHECKS", "check_model"]

# A row of probabilities sums to 1 but for its last bits.
_CLOSE = 1e-9


def check_model(
    model: Model, *, data: Batches | pa.Table | None = None, leave_out: Collection[str] = ()
) -> CheckReport:
    """Run all checks of a PTK and of a model that apply but those of ``leave_out``;
    `PtkCheckFailed` if any does not hold.
    """
    if not isinstance(model, Model):
        raise InvalidInput(
            "CHECK_NO_MODEL",
            f"check_model must be given a Model, got {type(model).__name__}: check_ptk takes any PTK",
        )
    return run_checks(model, MODEL_CHECKS, data=data, leave_out=leave_out)


def _model(case: Case) -> Model:
    assert isinstance(case.ptk, Model)
    return case.ptk


def _predictions(case: Case) -> None:
    """Numbers within the bounds, or probabilities; free, from the columns of inputs alone."""
    model, arrays = _model(case), case.train()
    for words, table in (("the data", case.data), ("unseen values", case.unseen())):
        made = model.predict(arrays, table.select(list(model.feature_columns())))
        target, rows = model.target, table.num_rows
        shape = (rows, target.channels) if isinstance(target, ClassLabel) else (rows,)
        demand(
            made.shape == shape and made.dtype == np.float64,
            f"predictions of {words} must be float64{list(shape)}, got {made.dtype}"
            f"{list(made.shape)}",
        )
        if isinstance(target, NumberLabel):
            inside = np.all((made >= target.lower) & (made <= target.upper))
            words = f"predictions of {words} must be from {target.lower} to {target.upper}"
        else:
            sums = np.abs(made.sum(axis=1) - 1)
            inside = np.all((made >= 0) & (made <= 1)) and np.all(sums < _CLOSE)
            words = f"probabilities of {words} must be from 0 to 1 and sum to 1"
        demand(bool(inside), f"{words}, got {made.min(initial=0):g} to {made.max(initial=0):g}")


def _predictions_alone(case: Case) -> None:
    """A row has the same prediction, to the last bit, alone and among any others."""
    model, arrays = _model(case), case.train()
    whole = model.predict(arrays, case.data)
    for count in (1, 2, 3, 5, 17):
        for start in (0, case.data.num_rows - count):
            part = model.predict(arrays, case.data.slice(start, count))
            demand(
                np.array_equal(part, whole[start : start + count]),
                f"a row must have the same prediction among {count} rows as among all: take "
                "products.exact_product",
            )


def _losses_of_predictions(case: Case) -> None:
    """Each metric is of the predictions, within its bound; the first one is the loss."""
    model, arrays = _model(case), case.train()
    predicted = model.predict(arrays, case.data)
    for place, (metric, bound) in enumerate(model.metrics.items()):
        losses = model.losses(arrays, case.data.to_batches(), metric=metric)
        wanted = model.target.losses(metric, predicted, case.data.combine_chunks().to_batches()[0])
        demand(
            np.array_equal(losses, wanted),
            f"{metric} must be that of the predictions, they differ",
        )
        demand(
            bool(np.all((losses >= 0) & (losses <= bound))) and bound == model.loss_bound(metric),
            f"{metric} must be from 0 to its bound {bound:g}, got up to {losses.max():g}",
        )
        if place == 0:
            demand(
                np.allclose(model.loss(arrays, case.data.to_batches()), losses / bound),
                f"loss must be {metric} over its bound",
            )


def _features_are_predictions(case: Case) -> None:
    """The features of a model that has no others."""
    model, arrays = _model(case), case.train()
    made = model.features(arrays, case.data)
    wanted = model.predict(arrays, case.data).reshape(case.data.num_rows, -1)
    own = type(model)._feature_rows is not Model._feature_rows
    if own and made.num_columns != wanted.shape[1]:
        raise CheckSkipped("the model has features of its own")
    rows = np.column_stack([column.to_numpy() for column in made.columns])
    demand(np.array_equal(rows, wanted), "features must be the prediction")


def _broken(case: Case) -> pa.Table:
    """The data with nulls, NaN and infinities in every column that can hold them."""
    table = case.data
    for name in case.ptk.columns():
        place = table.schema.get_field_index(name)
        column = table.column(place).combine_chunks()
        values = column.to_pylist()
        values[::5] = [None] * len(values[::5])
        if pa.types.is_floating(column.type):
            for start, value in ((1, np.nan), (2, np.inf), (3, -np.inf)):
                values[start::7] = [value] * len(values[start::7])
        table = table.set_column(place, name, pa.array(values, column.type))
    return table


def _never_fails(case: Case) -> None:
    """Whatever records hold, a model is trained, predicts and has losses: a failure is an
    answer."""
    model, broken = _model(case), _broken(case)
    for words, table in (("broken values", broken), ("unseen values", case.unseen())):
        arrays = case.train(table)
        model.validate(arrays)
        made = model.predict(arrays, table)
        demand(bool(np.all(np.isfinite(made))), f"predictions of {words} must be finite")
        losses = model.losses(arrays, table.to_batches())
        demand(bool(np.all(np.isfinite(losses))), f"losses of {words} must be finite")


def _missing_labels(case: Case) -> None:
    """A record without a label has loss 0; the others lose what they lose without it."""
    model, arrays = _model(case), case.train()
    place = case.data.schema.get_field_index(model.label)
    gone = np.arange(case.data.num_rows) % 3 == 0
    values = case.data.column(place).to_pylist()
    kept = [None if missing else value for value, missing in zip(values, gone, strict=True)]
    column = pa.array(kept, case.data.schema.field(place).type)
    table = case.data.set_column(place, model.label, column)
    losses = model.losses(arrays, table.to_batches())
    demand(bool(np.all(losses[gone] == 0)), "a record without a label must have loss 0")
    whole = model.losses(arrays, case.data.to_batches())
    demand(
        np.array_equal(losses[~gone], whole[~gone]),
        "a record must lose the same beside records without a label",
    )


def _is_model(ptk: Ptk) -> bool:
    return isinstance(ptk, Model)


MODEL_CHECKS = (
    Check("predictions", _predictions, _is_model),
    Check("predictions_alone", _predictions_alone, _is_model),
    Check("losses_of_predictions", _losses_of_predictions, _is_model),
    Check("features_are_predictions", _features_are_predictions, _is_model),
    Check("never_fails", _never_fails, _is_model),
    Check("missing_labels", _missing_labels, _is_model),
)
