"""`DPLinearRegression`: linear regression with differential privacy as a scikit-learn estimator.

::

    model = DPLinearRegression(epsilon=1, delta=1e-6, bounds=(0, 10), label_bounds=(0, 100))
    model.fit(X, y).predict(X)

Rules are those of `estimator` and `ptklib.models.linear`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.models.inputs import Input, Vector
from ptklib.models.linear import LinearRegression
from ptklib.sklearn.estimator import DPEstimator, pair_of
from ptklib.sklearn.installed import base, validation

__all__ = ["DPLinearRegression", "DPRegressor"]

Floats = NDArray[np.float64]


class DPRegressor(base.RegressorMixin, DPEstimator):  # type: ignore[misc]
    """A base for estimators of numbers: its parameters have ``label_bounds`` among them."""

    label_bounds: Any

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train on all rows; spends ``cost_``."""
        matrix, label = self._read_both(X, y, numeric=True)
        self._learn(matrix, pa.array(np.asarray(label, dtype=np.float64)))
        return self

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Numbers between the bounds of the label."""
        return self._answers(X)

    def __sklearn_tags__(self) -> Any:
        """A score is as good as the budget and the number of rows."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags


class DPLinearRegression(DPRegressor):
    """Linear regression that is (epsilon, delta)-DP for adding or removing one row.

    Parameters
    ----------
    epsilon, delta : number
        What one `fit` may spend. ``delta=0`` needs ``mechanism="laplace"``.
    bounds : pair, list of pairs, or mapping of names to pairs
        Public bounds of the features.
    label_bounds : pair
        Public bounds of the label. Predictions stay within them.
    norm : number or None
        Rows, scaled to -1 to 1, are shortened to this length: less noise where there are many
        features and few of them are far from the middle of their bounds.
    fit_intercept : bool
    mechanism : "boosted", "moments", "laplace" or "adassp"
    rounds : int or None
        Of boosting; 8 when None.

    Attributes
    ----------
    coef_, intercept_ : as of scikit-learn, in the units of features and label (of rows that are
        not shortened)
    state_, cost_, n_features_in_, feature_names_in_ : see `estimator`
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        bounds: Any = None,
        label_bounds: Any = None,
        norm: float | None = None,
        fit_intercept: bool = True,
        mechanism: str = "boosted",
        rounds: int | None = None,
    ) -> None:
        """Keep the parameters as they are; `fit` checks them."""
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.label_bounds = label_bounds
        self.norm = norm
        self.fit_intercept = fit_intercept
        self.mechanism = mechanism
        self.rounds = rounds

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train on all rows; spends ``cost_``."""
        super().fit(X, y)
        self._set_coefficients()
        return self

    def intervals(self, level: float = 0.95) -> pa.Table:
        """`LinearRegression.coefficients`: scaled entries, with intervals from the known noise."""
        validation.check_is_fitted(self, "state_")
        model = self.state_.ptk
        assert isinstance(model, LinearRegression)
        return model.coefficients(self.state_.arrays, level=level)

    def _model(self, inputs: tuple[Input, ...], label: str, records: int) -> LinearRegression:  # noqa: ARG002
        lower, upper = pair_of(self.label_bounds, "label_bounds")
        mechanism: Any = self.mechanism
        return LinearRegression(
            inputs=inputs,
            label=label,
            lower=lower,
            upper=upper,
            norm=None if self.norm is None else float(self.norm),
            intercept=self.fit_intercept,
            mechanism=mechanism,
            rounds=self.rounds,
        )

    def _set_coefficients(self) -> None:
        model = self.state_.ptk
        assert isinstance(model, LinearRegression)
        target, slopes = model.target, self.state_.arrays["coefficients"]
        first = model.inputs[0]
        sources: Any = [first] * first.size if isinstance(first, Vector) else model.inputs
        middles = np.array([source.lower / 2 + source.upper / 2 for source in sources])
        halves = np.array([source.upper / 2 - source.lower / 2 for source in sources])
        self.coef_ = target.half * slopes[: len(halves)] / halves
        constant = float(slopes[-1]) if model.intercept else 0.0
        self.intercept_ = float(
            target.middle + target.half * constant - (self.coef_ * middles).sum()
        )
