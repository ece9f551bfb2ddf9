"""Our PTKs on the same tasks: the configuration follows from the public parts of a task, one
setting for all data sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks._accuracy.tasks import Task
from ptklib.columns.keys import Bins
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.forest import Forest
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.vectors import Bounded

__all__ = ["outputs"]

Output = NDArray[Any]


def outputs(task: Task, epsilon: float, seeds: int) -> Iterator[Output]:
    """Predicted classes, centres, components or counts of as many trainings."""
    train = _MAKERS[task.method](task)
    for _ in range(seeds):
        yield train(epsilon)


def _histogram(task: Task) -> Callable[[float], Output]:
    edges = np.linspace(task.lower[0], task.upper[0], task.size + 1)
    ptk = Statistics(
        keys=(Bins(column="value", edges=tuple(edges.tolist())),), statistics=("count",)
    )
    rows = pa.RecordBatch.from_pydict({"value": task.values[:, 0]})
    middles = pa.table({"value": (edges[:-1] + edges[1:]) / 2})

    def train(epsilon: float) -> Output:
        found = ptk.features(ptk.train_dp([rows], epsilon=epsilon), middles)
        return np.asarray(found.column(0).to_numpy())

    return train


def _forest(task: Task) -> Callable[[float], Output]:
    names = [f"x{place}" for place in range(len(task.lower))]
    ptk = Forest(
        inputs=tuple(
            Number(column=name, lower=float(low), upper=float(high))
            for name, low, high in zip(names, task.lower, task.upper, strict=True)
        ),
        label="label",
        classes=tuple(range(task.size)),
    )
    rows = pa.RecordBatch.from_pydict({**_columns(task.values), "label": task.labels})
    test = pa.table(_columns(task.test_values))

    def train(epsilon: float) -> Output:
        chances = ptk.features(ptk.train_dp([rows], epsilon=epsilon), test)
        return np.asarray(np.stack([one.to_numpy() for one in chances.columns]).argmax(axis=0))

    return train


def _components(task: Task) -> Callable[[float], Output]:
    # Bounds are -1 and 1 in every column, so the scaled units of the PTK are those of the task.
    ptk = Covariance(values=_bounded(task), components=task.size)
    rows = pa.RecordBatch.from_pydict(_columns(task.values))
    return lambda epsilon: ptk.train_dp([rows], epsilon=epsilon)["components"]


def _columns(values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {f"x{place}": np.ascontiguousarray(column) for place, column in enumerate(values.T)}


def _centres(task: Task) -> Callable[[float], Output]:
    # Distances in the units of the task, as those of diffprivlib.
    ptk = Clusters(values=_bounded(task), clusters=task.size, scaling="common")
    rows = pa.RecordBatch.from_pydict(_columns(task.values))
    return lambda epsilon: ptk.centres(ptk.train_dp([rows], epsilon=epsilon))


def _bounded(task: Task) -> tuple[Bounded, ...]:
    return tuple(
        Bounded(column=f"x{place}", lower=float(low), upper=float(high))
        for place, (low, high) in enumerate(zip(task.lower, task.upper, strict=True))
    )


_MAKERS: dict[str, Callable[[Task], Callable[[float], Output]]] = {
    "forest": _forest,
    "k-means": _centres,
    "PCA": _components,
    "histogram": _histogram,
}
