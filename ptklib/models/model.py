"""The contract of a model: a PTK whose knowledge is a prediction.

All of the treaty of `ptklib.ptk` holds: a model is a frozen configuration of public values, its
price is known before the data (`cost`), `train_dp` spends exactly that, states are arrays. So a
model is registered, trained by windows, certified, profiled and served like any PTK. What it adds:

* **A prediction**: `predict` gives, for each row of a table, a number between the bounds of the
  label (shape ``(n,)``), or a probability for each class (shape ``(n, classes)``, each row sums to
  1). `chosen` gives the most likely class. Both read the columns of inputs alone, touch no noise
  and are free: post-processing of a state.
* **Losses with a bound**: `losses` in natural units by metric, each between 0 and
  ``loss_bound(metric)``, which follows from the configuration; `loss` is the first metric over its
  bound, in [0, 1]. Raw, like every loss of a PTK: never published without noise.
* **Features**: the columns of the prediction, ``<prefix>_prediction`` or
  ``<prefix>_probability_<class>``. A kind may state others, such as its last hidden layer, by
  `_feature_rows` and `feature_names`; then a field of the configuration says which.
* **Rows**: records become rows by `InputRows` (inputs, scaling, norm, intercept), which fixes the
  length of a row before any data. No value of a record is refused: see the rules there and in
  `labels`.

A kind states ``target``, ``_predicted``, its mechanisms (with `PriceFirst`, before `Model` among
its bases) and ``validate``. ``_predicted`` must treat each row by itself, to the last bit: take
`products.exact_product`, not ``@``. Where a public rule needs a number of records, the field is
called ``records``, and is what the user expects: how many there are is private.

Reasons: CONFIG_INVALID, those of `inputs`, `labels` and `ptk`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.working import LOSS_BYTES
from ptklib.errors import InvalidInput
from ptklib.models.inputs import Input, Scaling
from ptklib.models.labels import ClassLabel, Label
from ptklib.models.rows import InputRows
from ptklib.ptk import Arrays, Batches, Ptk

__all__ = ["Model"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Model(Ptk):
    """A predictor that can be trained with differential privacy.

    See the module.
    """

    inputs: tuple[Input, ...]
    label: str
    scaling: Scaling = "centred"  # numbers of inputs fill -1 to 1, or 0 to 1 ("unit")
    norm: float | None = None  # rows are shortened to this length; that of the domains when None
    intercept: bool = True
    prefix: str | None = None  # of feature names; the label and the kind when None

    def check(self) -> None:
        """Inputs that make rows, and a label. Kinds check what is theirs, and call this."""
        self.rows.check(self.label)
        self.target.check()

    @property
    @abstractmethod
    def target(self) -> Label:
        """What is predicted; from the configuration alone."""

    @abstractmethod
    def _predicted(self, arrays: Arrays, rows: Floats) -> Floats:
        """The prediction for each of these rows (of `InputRows.matrix`), as `predict` gives it. Row
        by row, to the last bit.
        """

    def _feature_rows(self, arrays: Arrays, rows: Floats) -> Floats:
        """The features of each row, a column for each of `feature_names`; the prediction unless a
        kind says otherwise.
        """
        return self._predicted(arrays, rows).reshape(len(rows), -1)

    @cached_property
    def rows(self) -> InputRows:
        """How records become rows."""
        return InputRows(self.inputs, self.scaling, self.norm, self.intercept)

    def columns(self) -> tuple[str, ...]:
        """The columns of inputs, then the label."""
        return (*self.rows.columns(), self.label)

    def feature_columns(self) -> tuple[str, ...]:
        """The columns of inputs."""
        return self.rows.columns()

    def predict(self, arrays: Arrays, table: pa.Table | pa.RecordBatch) -> Floats:
        """Numbers ``(n,)`` or probabilities ``(n, classes)``, one for each row of the table, in its
        order.
        """
        self.validate(arrays)
        channels = self.target.channels
        shape = (0,) if not isinstance(self.target, ClassLabel) else (0, channels)
        made = (
            self._predicted(arrays, self.rows.matrix(piece)) for piece in self.rows.pieces(table)
        )
        return np.concatenate([np.zeros(shape), *made])

    def chosen(self, arrays: Arrays, table: pa.Table | pa.RecordBatch) -> pa.Array:
        """The most likely class of each row; a model of numbers has none (CONFIG_INVALID)."""
        if not isinstance(self.target, ClassLabel):
            raise InvalidInput(
                "CONFIG_INVALID", f"a {self.kind} model predicts numbers: call predict"
            )
        return self.target.chosen(self.predict(arrays, table))

    @property
    def metrics(self) -> Mapping[str, float]:
        """The bound of each metric, the one of `loss` first."""
        return self.target.metrics

    def loss_bound(self, metric: str | None = None) -> float:
        """The most that a record can lose, in natural units."""
        return self.target.bound_of(self._metric(metric))

    def losses(self, arrays: Arrays, batches: Batches, *, metric: str | None = None) -> Floats:
        """The loss of each record in natural units, from 0 to `loss_bound`. Raw: not to be
        published without noise.
        """
        self.validate(arrays)
        named = self._metric(metric)
        made = [np.zeros(0)]
        for piece in self.rows.pieces(batches):
            predicted = self._predicted(arrays, self.rows.matrix(piece))
            made.append(self.target.losses(named, predicted, piece))
        return np.concatenate(made)

    def metric(self, arrays: Arrays, batches: Batches, *, metric: str | None = None) -> float:
        """The mean of `losses`; 0 of no records. Raw."""
        losses = self.losses(arrays, batches, metric=metric)
        return float(losses.mean()) if len(losses) else 0.0

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        """The first metric over its bound. Raw."""
        return np.clip(self.losses(arrays, batches) / self.loss_bound(), 0.0, 1.0)

    def feature_names(self) -> tuple[str, ...]:
        """``<prefix>_prediction``, or ``<prefix>_probability_<class>``."""
        return self._prefixed(self.target.names())

    def features(self, arrays: Arrays, table: pa.Table) -> pa.Table:
        """All of them float64."""
        self.validate(arrays)
        names = self.feature_names()
        made = (
            self._feature_rows(arrays, self.rows.matrix(piece)) for piece in self.rows.pieces(table)
        )
        columns = np.concatenate([np.zeros((0, len(names))), *made]).T
        return pa.table([pa.array(column) for column in columns], names=list(names))

    def working_bytes(self, records: int) -> int:
        """What reading holds, and a loss for each record: enough for a kind that trains in one
        pass. Others add theirs.
        """
        return self.rows.reading_bytes() + LOSS_BYTES * records

    def example(self, rows: int, *, seed: int = 0) -> pa.RecordBatch:
        """Uniform inputs; the label follows the first entry of the row, half of the time."""
        generator = np.random.default_rng(seed)
        columns = self.rows.example(rows, generator)
        entry = self.rows.matrix(pa.RecordBatch.from_pydict(columns))[:, 0]
        follows = (entry + 1) / 2 if self.scaling == "centred" else entry
        place = np.where(
            generator.uniform(0, 1, rows) < 1 / 2, follows, generator.uniform(0, 1, rows)
        )
        return pa.RecordBatch.from_pydict({**columns, self.label: self.target.example(place)})

    def _metric(self, metric: str | None) -> str:
        return next(iter(self.metrics)) if metric is None else metric

    def _prefixed(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Names of features; an empty prefix leaves them as they are."""
        begin = f"{self.label}_{self.kind}" if self.prefix is None else self.prefix
        return tuple(f"{begin}_{name}" if begin else name for name in names)
