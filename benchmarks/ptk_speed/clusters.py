"""Eight clusters of eight columns, against scikit-learn's KMeans on the same numbers as one matrix,
one million rows.

The baseline has the same number of iterations (five) of Lloyd's algorithm from a start that is
given, and takes no more: ``n_init=1``, ``tol=0``. The matrix is of float64, by rows; training reads
the same numbers as Arrow columns.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from sklearn.cluster import KMeans  # type: ignore[import-untyped,unused-ignore]
from sklearn.exceptions import ConvergenceWarning  # type: ignore[import-untyped,unused-ignore]

from benchmarks.bars import Say
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.vectors import Bounded

WHAT = "8 clusters of 8 columns, 5 iterations, 1 million rows / scikit-learn KMeans, 5 iterations"
LIMIT = 2.0

_ROWS = 1_000_000
_COLUMNS = 8
_CLUSTERS = 8
_ITERATIONS = 5
_ROUNDS = 7


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    rng = np.random.default_rng(1)
    middles = rng.uniform(-0.7, 0.7, (_CLUSTERS, _COLUMNS))
    matrix = middles[rng.integers(0, _CLUSTERS, _ROWS)] + rng.normal(0, 0.2, (_ROWS, _COLUMNS))
    start = rng.uniform(-0.7, 0.7, (_CLUSTERS, _COLUMNS))
    names = [f"x{place}" for place in range(_COLUMNS)]
    table = pa.table(
        {name: np.ascontiguousarray(matrix[:, place]) for place, name in enumerate(names)}
    )
    ptk = Clusters(
        values=tuple(Bounded(column=name, lower=-1, upper=1) for name in names),
        clusters=_CLUSTERS,
        iterations=_ITERATIONS,
    )
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=1)
        middle = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            KMeans(
                _CLUSTERS, init=start, n_init=1, max_iter=_ITERATIONS, tol=0, algorithm="lloyd"
            ).fit(matrix)
        end = time.perf_counter()
        say(f"clusters, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle
