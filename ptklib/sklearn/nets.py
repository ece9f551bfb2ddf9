"""`DPLogisticRegression`, `DPMLPClassifier` and `DPMLPRegressor`: models that are trained by noisy
gradients, as scikit-learn estimators.

::

    model = DPLogisticRegression(epsilon=1, bounds=(0, 10), classes=[0, 1], records=10_000)
    model.fit(X, y).predict_proba(X)

Rules are those of `estimator` and `classification`, and:

* ``records`` is how many rows are expected, at least about: gradients are divided by it, and what
  is left open follows from it. It is public: a number, or ``"as_given"`` by which the caller states
  that the number of rows is public. Without it nothing is fitted.
* Batches, steps, clipping, learning rate and momentum are chosen by a public rule from ``records``,
  the size of the model and the budget where they are None; see `ptklib.models.sgd.settings`.
* Fewer rows than a batch is expected to have, or hardly any, are no fault: the noise is the same.

Reasons: RECORDS_MISSING, and those of `estimator`, `classification` and the models.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptklib.models.inputs import Input, Vector
from ptklib.models.logistic import LogisticRegression
from ptklib.models.mlp import MlpClassifier, MlpRegressor
from ptklib.models.model import Model
from ptklib.models.sgd.settings import NoisySteps
from ptklib.models.softmax import SoftmaxRegression
from ptklib.sklearn.classification import DPClassifier
from ptklib.sklearn.estimator import pair_of
from ptklib.sklearn.regression import DPRegressor

__all__ = ["DPLogisticRegression", "DPMLPClassifier", "DPMLPRegressor"]

Floats = NDArray[np.float64]


class DPLogisticRegression(DPClassifier):
    """Logistic regression that is (epsilon, delta)-DP for adding or removing one row.

    Parameters
    ----------
    epsilon, delta : number
        What one `fit` may spend; delta is above 0.
    bounds : pair, list of pairs, or mapping of names to pairs
        Public bounds of the features.
    classes : list, or "as_given"
        Two or more; for more than two it is softmax regression.
    records : int, or "as_given"
    norm : number or None
        Rows, scaled to -1 to 1, are shortened to this length.
    fit_intercept : bool
    penalty : number
        On the squared length of weights.
    batching : "poisson" or "tags"
    rate, steps, clip, learning_rate, momentum : numbers, or None

    Attributes
    ----------
    coef_, intercept_ : as of scikit-learn, in the units of the features (of rows that are not
        shortened)
    classes_, state_, cost_, n_features_in_, feature_names_in_ : see `estimator`
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        classes: Any = None,
        records: Any = None,
        norm: float | None = None,
        fit_intercept: bool = True,
        penalty: float = 0.0,
        batching: str = "poisson",
        rate: float | None = None,
        steps: int | None = None,
        clip: float | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.records = records
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.penalty = penalty
        self.batching = batching
        self.rate = rate
        self.steps = steps
        self.clip = clip
        self.learning_rate = learning_rate
        self.momentum = momentum

    @property
    def coef_(self) -> Floats:
        """One row for two classes, one for each of more."""
        return self._coefficients()[0]

    @property
    def intercept_(self) -> Floats:
        """One number for each row of ``coef_``."""
        return self._coefficients()[1]

    def _model(self, inputs: tuple[Input, ...], label: str, records: int) -> Model:
        kind = LogisticRegression if len(self.classes_) == 2 else SoftmaxRegression
        return kind(
            inputs=inputs,
            label=label,
            classes=tuple(range(len(self.classes_))),
            records=_records_of(self.records, records),
            norm=None if self.norm is None else float(self.norm),
            intercept=self.fit_intercept,
            penalty=float(self.penalty),
            training=_training_of(self),
        )

    def _coefficients(self) -> tuple[Floats, Floats]:
        if not hasattr(self, "state_"):
            raise AttributeError("coef_ and intercept_ are there after fit")
        model, weights = self.state_.ptk, self.state_.arrays["layer_0"].T
        assert isinstance(model, Model)
        first = model.inputs[0]
        sources: Any = [first] * first.size if isinstance(first, Vector) else model.inputs
        middles = np.array([source.lower / 2 + source.upper / 2 for source in sources])
        halves = np.array([source.upper / 2 - source.lower / 2 for source in sources])
        slopes = weights[:, : len(halves)] / halves
        constants = weights[:, -1] if model.intercept else np.zeros(len(weights))
        return slopes, constants - slopes @ middles


class DPMLPClassifier(DPClassifier):
    """A multilayer perceptron for classes that is (epsilon, delta)-DP for adding or removing one
    row.

    Parameters ---------- epsilon, delta, bounds, classes, records, norm, batching, rate, steps,
    clip, learning_rate, momentum As of `DPLogisticRegression`.
    hidden_layer_sizes : tuple of int
    activation : "relu" or "tanh"
    seed : int
        Of the first weights: public.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        classes: Any = None,
        records: Any = None,
        hidden_layer_sizes: Any = (64,),
        activation: str = "relu",
        norm: float | None = None,
        batching: str = "poisson",
        rate: float | None = None,
        steps: int | None = None,
        clip: float | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
        seed: int = 0,
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.classes = classes
        self.records = records
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.norm = norm
        self.batching = batching
        self.rate = rate
        self.steps = steps
        self.clip = clip
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.seed = seed

    def _model(self, inputs: tuple[Input, ...], label: str, records: int) -> Model:
        activation: Any = self.activation
        return MlpClassifier(
            inputs=inputs,
            label=label,
            classes=tuple(range(len(self.classes_))),
            records=_records_of(self.records, records),
            norm=None if self.norm is None else float(self.norm),
            hidden=_widths_of(self.hidden_layer_sizes),
            activation=activation,
            training=_training_of(self, self.seed),
        )


class DPMLPRegressor(DPRegressor):
    """A multilayer perceptron for numbers that is (epsilon, delta)-DP for adding or removing one
    row.

    Parameters
    ----------
    label_bounds : pair
        Public bounds of the label. Predictions stay within them.
    epsilon, delta, bounds, records, norm, batching, rate, steps, clip, learning_rate, momentum,
    hidden_layer_sizes, activation, seed
        As of `DPMLPClassifier`.
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        label_bounds: Any = None,
        records: Any = None,
        hidden_layer_sizes: Any = (64,),
        activation: str = "relu",
        norm: float | None = None,
        batching: str = "poisson",
        rate: float | None = None,
        steps: int | None = None,
        clip: float | None = None,
        learning_rate: float | None = None,
        momentum: float | None = None,
        seed: int = 0,
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.records = records
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.norm = norm
        self.batching = batching
        self.rate = rate
        self.steps = steps
        self.clip = clip
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.seed = seed

    def _model(self, inputs: tuple[Input, ...], label: str, records: int) -> Model:
        lower, upper = pair_of(self.label_bounds, "label_bounds")
        activation: Any = self.activation
        return MlpRegressor(
            inputs=inputs,
            label=label,
            lower=lower,
            upper=upper,
            records=_records_of(self.records, records),
            norm=None if self.norm is None else float(self.norm),
            hidden=_widths_of(self.hidden_layer_sizes),
            activation=activation,
            training=_training_of(self, self.seed),
        )


def _training_of(estimator: Any, seed: int = 0) -> NoisySteps:
    return NoisySteps(
        batching=estimator.batching,
        rate=_float(estimator.rate),
        steps=None if estimator.steps is None else int(estimator.steps),
        clip=_float(estimator.clip),
        learning_rate=_float(estimator.learning_rate),
        momentum=_float(estimator.momentum),
        seed=seed,
    )


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _records_of(stated: Any, given: int) -> int:
    if stated is None:
        raise InvalidInput(
            "RECORDS_MISSING",
            "records must be given, how many rows are expected at least about, or 'as_given' to "
            "declare that the number of rows is public: what is public is never read from the data",
            field="records",
        )
    if isinstance(stated, str) and stated == "as_given":
        return given
    return int(stated)


def _widths_of(sizes: Any) -> tuple[int, ...]:
    return (int(sizes),) if np.ndim(sizes) == 0 else tuple(int(size) for size in sizes)
