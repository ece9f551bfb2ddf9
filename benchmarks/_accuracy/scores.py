"""Errors, lower for better, computed alike for both sides and for the exact method without
privacy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans  # type: ignore[import-untyped,unused-ignore]
from sklearn.ensemble import RandomForestClassifier  # type: ignore[import-untyped,unused-ignore]

from benchmarks._accuracy.tasks import Task

__all__ = ["WORDS", "Scale"]

WORDS = {
    "forest": "share of wrong classes",
    "k-means": "mean squared distance / exact",
    "PCA": "share of variance left over",
    "histogram": "mean error of a bin, in records",
}


class Scale:
    """What the errors of one task are measured against: made once, on the data itself."""

    def __init__(self, task: Task) -> None:
        """Compute what does not depend on the output."""
        self.task = task
        if task.method == "k-means":
            self._distance = 1.0
            exact = KMeans(task.size, n_init=10, random_state=0).fit(task.values)
            self._distance = self.error(exact.cluster_centers_)
        elif task.method == "PCA":
            centred = task.values - task.values.mean(axis=0)
            self._covariance = centred.T @ centred / len(centred)
        elif task.method == "histogram":
            self._counts = np.histogram(
                task.values[:, 0], task.size, (task.lower[0], task.upper[0])
            )[0]

    def error(self, output: NDArray[Any]) -> float:
        """Of predicted classes, centres, components or counts."""
        if self.task.method == "forest":
            return float(np.mean(output != self.task.test_labels))
        if self.task.method == "k-means":
            squares = np.square(self.task.values).sum(axis=1)[:, None] + np.square(output).sum(
                axis=1
            )
            squares -= 2 * self.task.values @ output.T
            return float(np.maximum(squares, 0).min(axis=1).mean()) / self._distance
        if self.task.method == "PCA":
            # Any basis of the same space is as good.
            basis = np.linalg.qr(output.T)[0]
            return 1 - float(
                np.trace(basis.T @ self._covariance @ basis) / np.trace(self._covariance)
            )
        return float(np.abs(output - self._counts).mean())

    def exact(self) -> float:
        """The error of the exact method: a forest of scikit-learn, k-means from ten starts, PCA,
        the counts themselves.
        """
        task = self.task
        if task.method == "forest":
            model = RandomForestClassifier(100, min_samples_leaf=5, random_state=0)
            return self.error(model.fit(task.values, task.labels).predict(task.test_values))
        if task.method == "PCA":
            return self.error(np.linalg.eigh(self._covariance)[1][:, ::-1][:, : task.size].T)
        return {"k-means": 1.0, "histogram": 0.0}[task.method]
