"""What a model predicts: a number between public bounds, or one of the classes that are declared.

Rules
-----
* A number beyond the bounds is clipped. A label that is null, NaN or not one of the classes is
  missing: the record is not used in training and has loss 0.
* Losses of a record, by metric, each between 0 and its bound: of numbers ``squared_error`` (of the
  clipped label, at most the squared width) and ``absolute_error``; of classes ``log_loss`` (in
  nats, clipped at `LOG_LOSS_BOUND`), ``error`` (1 where another class is more likely) and ``brier``
  (half the squared distance to the class). The first one is that of `Model.loss`.

**Proof note.** *Unit:* one record. All of it is of that record alone. *Cost:* none here.

Reasons: CONFIG_INVALID, COLUMN_TYPE, METRIC_UNKNOWN, and those of `ptk.column_of`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.columns.numbers import Bounded, number_column
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.models.inputs import STEPS
from ptklib.ptk import column_of

__all__ = ["LOG_LOSS_BOUND", "ClassLabel", "Label", "NumberLabel"]

# A probability of 0.0025 of what happened: worse is as bad.
LOG_LOSS_BOUND = 6.0
_MAX_CLASSES = 1 << 12

Floats = NDArray[np.float64]
Missing = NDArray[np.bool_] | None


@dataclass(frozen=True)
class NumberLabel:
    """A number between public bounds."""

    column: str
    lower: float
    upper: float

    def check(self) -> None:
        """Bounds as of `Bounded`."""
        Bounded(column=self.column, lower=self.lower, upper=self.upper)

    @property
    def middle(self) -> float:
        """What 0 stands for."""
        return self.lower / 2 + self.upper / 2

    @property
    def half(self) -> float:
        """What 1 is more than 0."""
        return self.upper / 2 - self.lower / 2

    @property
    def channels(self) -> int:
        """Numbers of a prediction."""
        return 1

    @property
    def metrics(self) -> Mapping[str, float]:
        """The bound of each."""
        width = self.upper - self.lower
        return {"squared_error": width**2, "absolute_error": width}

    def bound_of(self, metric: str) -> float:
        """The most that a record can lose."""
        return _bound(self.metrics, metric)

    def values(self, frame: pa.RecordBatch | pa.Table) -> tuple[Floats, Missing]:
        """The labels, clipped; 0 steps from the middle where they are missing, and where that
        is."""
        raw, absent = number_column(frame, self.column)
        values = np.clip(np.asarray(raw, dtype=np.float64), self.lower, self.upper)
        bad = np.isnan(values)
        if absent is not None:
            bad |= absent
        values[bad] = self.middle
        return values, bad if bad.any() else None

    def steps(self, frame: pa.RecordBatch | pa.Table) -> tuple[Floats, Missing]:
        """The labels as whole steps, -`STEPS` to `STEPS`, from the middle of the bounds; 0 where
        they are missing, and where that is.
        """
        values, bad = self.values(frame)
        values -= self.middle
        values *= STEPS / self.half
        np.rint(values, out=values)
        return np.clip(values, -STEPS, STEPS, out=values), bad

    def predictions(self, scaled: Floats) -> Floats:
        """Predictions in the unit of the label, between its bounds, of such from -1 to 1."""
        made = self.middle + self.half * np.clip(scaled, -1.0, 1.0)
        return np.asarray(np.clip(made, self.lower, self.upper), dtype=np.float64)

    def losses(self, metric: str, predicted: Floats, frame: pa.RecordBatch | pa.Table) -> Floats:
        """Of each record, between 0 and the bound of the metric."""
        bound = self.bound_of(metric)
        values, bad = self.values(frame)
        apart = np.abs(predicted - values)
        made = np.minimum(np.square(apart) if metric == "squared_error" else apart, bound)
        return made if bad is None else np.where(bad, 0.0, made)

    def names(self) -> tuple[str, ...]:
        """What a prediction is called after the prefix."""
        return ("prediction",)

    def example(self, place: Floats) -> pa.Array:
        """Labels at these shares of the width."""
        return pa.array(np.clip(self.lower + 2 * self.half * place, self.lower, self.upper))


@dataclass(frozen=True)
class ClassLabel:
    """One of two classes or more."""

    column: str
    classes: tuple[str, ...] | tuple[int, ...]

    def check(self) -> None:
        """Two classes or more, none twice."""
        demand(
            2 <= len(self.classes) <= _MAX_CLASSES,
            f"classes must be 2 to {_MAX_CLASSES}, got {len(self.classes)}",
            field="classes",
        )
        Categories(column=self.column, values=self.classes)

    @property
    def channels(self) -> int:
        """Numbers of a prediction."""
        return len(self.classes)

    @property
    def metrics(self) -> Mapping[str, float]:
        """The bound of each."""
        return {"log_loss": LOG_LOSS_BOUND, "error": 1.0, "brier": 1.0}

    def bound_of(self, metric: str) -> float:
        """The most that a record can lose."""
        return _bound(self.metrics, metric)

    def codes(self, frame: pa.RecordBatch | pa.Table) -> tuple[NDArray[np.intp], Missing]:
        """The place of each record's class; 0 where it is missing, and where that is."""
        codes = self._domain.codes(column_of(frame, self.column))
        bad = codes == self.channels
        return np.where(bad, 0, codes), bad if bad.any() else None

    def losses(self, metric: str, predicted: Floats, frame: pa.RecordBatch | pa.Table) -> Floats:
        """Of each record, between 0 and the bound of the metric."""
        bound = self.bound_of(metric)
        codes, bad = self.codes(frame)
        mine = predicted[np.arange(len(codes)), codes]
        if metric == "log_loss":
            made = -np.log(np.maximum(mine, np.exp(-bound)))
        elif metric == "error":
            made = (predicted.argmax(axis=1) != codes).astype(np.float64)
        else:
            # Column by column: a sum may round by how many rows there are.
            squares = np.zeros(len(codes))
            for column in predicted.T:
                squares += np.square(column)
            made = (squares + 1 - 2 * mine) / 2
        made = np.clip(made, 0.0, bound)
        return made if bad is None else np.where(bad, 0.0, made)

    def chosen(self, predicted: Floats) -> pa.Array:
        """The most likely class of each record; of equals the one that is listed first."""
        whole = isinstance(self.classes[0], int)
        values = pa.array(self.classes, pa.int64() if whole else pa.string())
        return values.take(pa.array(predicted.argmax(axis=1)))

    def names(self) -> tuple[str, ...]:
        """What a prediction is called after the prefix."""
        return tuple(f"probability_{value}" for value in self.classes)

    def example(self, place: Floats) -> pa.Array:
        """The class at these shares of the list."""
        places = np.minimum((place * self.channels).astype(np.intp), self.channels - 1)
        return pa.array([self.classes[place] for place in places])

    @cached_property
    def _domain(self) -> Categories | IntegerRange:
        first = self.classes[0]
        if isinstance(first, int) and self.classes == tuple(range(first, first + self.channels)):
            return IntegerRange(column=self.column, first=first, last=first + self.channels - 1)
        return Categories(column=self.column, values=self.classes)


Label = NumberLabel | ClassLabel


def _bound(metrics: Mapping[str, float], metric: str) -> float:
    if metric not in metrics:
        raise InvalidInput(
            "METRIC_UNKNOWN",
            f"metric must be one of {', '.join(metrics)}, got {metric!r:.40}",
            field="metric",
        )
    return metrics[metric]
