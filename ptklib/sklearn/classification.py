"""A base for estimators of classes: which classes there are is declared, never learned.

* ``classes`` lists them, or is ``"as_given"``: then they are those of the labels that `fit` is
  given, and the caller states by that word that the set of labels is public. Without either nothing
  is fitted.
* A record whose label is not declared is not used.
* Fitted: ``classes_``, in the order of `numpy.unique`.

Reasons: CLASSES_MISSING, CONFIG_INVALID, and those of `estimator`.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.sklearn.estimator import DPEstimator
from ptklib.sklearn.installed import base, multiclass

__all__ = ["DPClassifier"]

Floats = NDArray[np.float64]


class DPClassifier(base.ClassifierMixin, DPEstimator):  # type: ignore[misc]
    """A base for estimators of classes: its parameters have ``classes`` among them.

    The model of `_model` has the classes 0, 1 and so on, one for each of ``classes_``, which is set
    before it is asked for.
    """

    classes: Any

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803
        """Train on all rows whose class is declared; spends ``cost_``."""
        matrix, label = self._read_both(X, y, numeric=False)
        multiclass.check_classification_targets(label)
        self.classes_ = self._declared(label)
        places = np.searchsorted(self.classes_, label)
        known = self.classes_[np.minimum(places, len(self.classes_) - 1)] == label
        codes = np.where(known, places, len(self.classes_))
        self._learn(matrix, pa.array(codes.astype(np.int64)))
        return self

    def predict_proba(self, X: Any) -> Floats:  # noqa: N803
        """A probability for each of ``classes_``."""
        return self._answers(X)

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The most likely class; of equals the first."""
        places = self._answers(X).argmax(axis=1)
        chosen: NDArray[Any] = self.classes_[places]
        return chosen

    def __sklearn_tags__(self) -> Any:
        """A score is as good as the budget and the number of rows."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _declared(self, label: NDArray[Any]) -> NDArray[Any]:
        if self.classes is None:
            raise InvalidInput(
                "CLASSES_MISSING",
                "classes must be listed, or 'as_given' to declare that the set of labels is "
                "public: what is public is never read from the data",
                field="classes",
            )
        as_given = isinstance(self.classes, str) and self.classes == "as_given"
        made: NDArray[Any] = np.unique(label if as_given else np.asarray(self.classes))
        demand(
            len(made) >= 2,
            f"classes must be two or more, got {len(made)} class: there is nothing to tell apart",
            field="classes",
        )
        return made
