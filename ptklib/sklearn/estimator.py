"""What estimators of models share: public bounds, records from arrays and frames, one training.

`DPEstimator` is a base for estimators over a `Model`. A subclass lists its parameters in
``__init__``, as scikit-learn wants it, among them ``epsilon``, ``delta``, ``bounds`` and ``norm``;
says by `_model` which model they make; and calls `_learn` in ``fit``.

* ``bounds`` are public: a pair for all features, a list of pairs, or a mapping of the names of
  features to pairs. Without them nothing is fitted: they are never read from the data.
* Values beyond the bounds are clipped, NaN in ``X`` is the middle of the bounds. Sparse input is
  refused.
* What `fit` refuses (no records, labels that are NaN or infinite, other numbers of features) it
  refuses before anything is trained, and tells it to whoever calls it, who holds the data: such an
  error is not private, so do not pass it on.
* Fitted attributes are differentially private, ``n_features_in_`` and ``feature_names_in_`` are
  public: ``state_`` (a `State`: model, arrays and certificate; `featurize` takes it) and ``cost_``.
  Nothing of the data is kept. Two fits differ: noise is drawn anew and cannot be seeded.
* Each `fit` spends ``cost_``; what several fits on the same data spend together is for the caller
  to add up, or for a store to keep.

Reasons: BOUNDS_MISSING, FRAME_UNSUPPORTED, those of the model, of `amounts` and of
`columns.numbers`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.numbers import Bounded
from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.models.inputs import Input, Vector
from ptklib.models.model import Model
from ptklib.privacy.noise.source import BitSource
from ptklib.sklearn.installed import base, validate_data, validation
from ptklib.state import State

__all__ = ["DPEstimator", "Pair", "pair_of"]

Pair = tuple[float, float]
Floats = NDArray[np.float64]

# As a reader of files gives them.
_BATCH_RECORDS = 1 << 16


class DPEstimator(base.BaseEstimator):  # type: ignore[misc]
    """An estimator over a model.

    See the module.
    """

    epsilon: float
    delta: float
    bounds: Any

    @abstractmethod
    def _model(self, inputs: tuple[Input, ...], label: str, records: int) -> Model:
        """The model that the parameters make, of these inputs and a label in a column of this name.

        ``records`` is how many are given, for rules that need a number.
        """

    def _learn(self, matrix: Floats, label: pa.Array) -> None:
        """Train the model on records that were checked; sets the fitted attributes."""
        names = self._names()
        column = "label"
        while column in names:
            column += "_"
        inputs = self._inputs(names)
        model = self._model(inputs, column, len(matrix))
        batch = _records(inputs, matrix)
        whole = pa.RecordBatch.from_arrays(
            [*batch.columns, label], names=[*batch.schema.names, column]
        )
        batches = [
            whole.slice(start, _BATCH_RECORDS) for start in range(0, len(matrix), _BATCH_RECORDS)
        ]
        arrays = model.train_dp(
            batches, epsilon=self.epsilon, delta=self.delta, noise=self._noise()
        )
        self.state_ = State.make(
            model, arrays, name=type(self).__name__, epsilon=self.epsilon, delta=self.delta
        )
        self.cost_ = model.cost(self.epsilon, self.delta)

    def _read(self, X: Any, *, reset: bool) -> Floats:  # noqa: N803
        """The features as numbers; NaN and infinities are left to the model."""
        made = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=False)
        return np.asarray(made, dtype=np.float64)

    def _read_both(self, X: Any, y: Any, *, numeric: bool) -> tuple[Floats, Any]:  # noqa: N803
        """The same with labels, one for each record."""
        made, labels = validate_data(
            self,
            X,
            y,
            reset=True,
            dtype=np.float64,
            ensure_all_finite=False,
            y_numeric=numeric,
        )
        return np.asarray(made, dtype=np.float64), labels

    def _answers(self, X: Any) -> Floats:  # noqa: N803
        """What the model predicts."""
        validation.check_is_fitted(self, "state_")
        matrix = self._read(X, reset=False)
        model = self.state_.ptk
        assert isinstance(model, Model)
        table = pa.Table.from_batches([_records(model.inputs, matrix)])
        return model.predict(self.state_.arrays, table)

    def _noise(self) -> BitSource | None:
        """The system's source; tests plant theirs."""
        return None

    def __sklearn_tags__(self) -> Any:
        """Missing values are taken, and no two fits are alike."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = True
        return tags

    def _names(self) -> tuple[str, ...]:
        """Of the features; ``x0``, ``x1`` and so on where they have none."""
        given = getattr(self, "feature_names_in_", None)
        if given is not None:
            return tuple(map(str, given))
        return tuple(f"x{place}" for place in range(self.n_features_in_))

    def _inputs(self, names: tuple[str, ...]) -> tuple[Input, ...]:
        """A column for each feature, or one of lists where nothing tells them apart."""
        pairs = self._pairs(names)
        if len(set(pairs)) == 1 and not hasattr(self, "feature_names_in_"):
            lower, upper = pairs[0]
            return (Vector(column="x", size=len(names), lower=lower, upper=upper),)
        return tuple(
            Bounded(column=name, lower=lower, upper=upper)
            for name, (lower, upper) in zip(names, pairs, strict=True)
        )

    def _pairs(self, names: tuple[str, ...]) -> list[Pair]:
        """The bounds of each feature."""
        bounds = self.bounds
        if bounds is None:
            raise InvalidInput(
                "BOUNDS_MISSING",
                "bounds must be given, a (lower, upper) pair for all features, one for each, or a "
                "mapping of names to pairs: what is public is never read from the data",
                field="bounds",
            )
        if isinstance(bounds, Mapping):
            missing = sorted(set(names) - set(bounds))
            if missing:
                raise InvalidInput(
                    "BOUNDS_MISSING",
                    f"bounds must have a pair for each feature, missing {missing}",
                    field="bounds",
                )
            return [pair_of(bounds[name], "bounds") for name in names]
        if np.shape(bounds) == (2,) and np.ndim(bounds[0]) == 0:
            return [pair_of(bounds, "bounds")] * len(names)
        listed = list(bounds) if isinstance(bounds, Sequence | np.ndarray) else []
        demand(
            len(listed) == len(names),
            f"bounds must be a pair, {len(names)} pairs or a mapping, got {len(listed)} pairs",
            field="bounds",
        )
        return [pair_of(pair, "bounds") for pair in listed]


def pair_of(value: Any, field: str) -> Pair:
    """Two finite numbers, the lower one first."""
    if value is None:
        raise InvalidInput(
            "BOUNDS_MISSING",
            f"{field} must be given, a (lower, upper) pair: what is public is never read from the "
            "data",
            field=field,
        )
    shaped = np.shape(value) == (2,)
    demand(shaped, f"{field} must be a (lower, upper) pair, got {value!r:.60}", field=field)
    lower, upper = (float(bound) for bound in value)
    demand(lower < upper, f"lower must be below upper in {field}, got {value!r:.60}", field=field)
    return lower, upper


def _records(inputs: tuple[Input, ...], matrix: Floats) -> pa.RecordBatch:
    """The features as the columns that the inputs read."""
    first = inputs[0]
    if isinstance(first, Vector):
        flat = pa.array(np.ascontiguousarray(matrix).reshape(-1))
        return pa.RecordBatch.from_arrays(
            [pa.FixedSizeListArray.from_arrays(flat, first.size)], names=[first.column]
        )
    columns = [pa.array(np.ascontiguousarray(column)) for column in matrix.T]
    names = [source.column for source in inputs if isinstance(source, Bounded)]
    return pa.RecordBatch.from_arrays(columns, names=names)
