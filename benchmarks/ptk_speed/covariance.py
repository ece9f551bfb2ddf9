"""Moments and components of 16 columns, against scikit-learn's PCA on the same numbers as one
matrix, one million rows.

The matrix is of float64 in the order that PCA is fastest with (by rows), and the solver is the one
that it takes for many rows (``covariance_eigh``). Training reads the same numbers as Arrow columns.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from sklearn.decomposition import PCA  # type: ignore[import-untyped,unused-ignore]

from benchmarks.bars import Say
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.vectors import Bounded

WHAT = "16 columns, 5 components, 1 million rows / scikit-learn PCA on the matrix"
LIMIT = 1.5

_ROWS = 1_000_000
_COLUMNS = 16
_COMPONENTS = 5
_ROUNDS = 9


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(_ROWS, 4)) @ rng.normal(size=(4, _COLUMNS)) + rng.normal(
        size=(_ROWS, _COLUMNS)
    )
    names = [f"x{place}" for place in range(_COLUMNS)]
    table = pa.table(
        {name: np.ascontiguousarray(matrix[:, place]) for place, name in enumerate(names)}
    )
    ptk = Covariance(
        values=tuple(Bounded(column=name, lower=-10, upper=10) for name in names),
        components=_COMPONENTS,
    )
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=1)
        middle = time.perf_counter()
        PCA(_COMPONENTS, svd_solver="covariance_eigh").fit(matrix)
        end = time.perf_counter()
        say(f"covariance, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle
