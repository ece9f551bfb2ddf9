"""A forest of 10 trees of depth 6 on 12 inputs, against scikit-learn's ExtraTreesClassifier of the
same size.

The baseline has the same inputs as one float32 matrix, which it reads without a copy, and whole
numbers as labels. Both run on one core (``n_jobs=None``; ours starts no threads of its own). Our
time includes reading Arrow columns and binning them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.ensemble import ExtraTreesClassifier

from benchmarks.bars import Say
from ptklib.columns.keys import IntegerRange
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.forest import Forest

WHAT = (
    "10 trees of depth 6 on 12 inputs, 300,000 rows / sklearn ExtraTreesClassifier of the same size"
)
LIMIT = 2.0

_ROWS = 300_000
_ROUNDS = 5
_NUMBERS = 8
_SIZES = (4, 12, 24, 60)
_TREES, _DEPTH = 10, 6


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {
        f"number-{place}": rng.normal(0, 1, _ROWS) for place in range(_NUMBERS)
    }
    columns |= {f"code-{size}": rng.integers(0, size, _ROWS) for size in _SIZES}
    signal = (
        columns["number-0"] * columns["number-1"]
        + np.sin(columns["code-24"])
        + rng.normal(0, 1, _ROWS)
    )
    label = np.digitize(signal, (-1.0, 1.0))
    numbers = [Number(column=f"number-{place}", lower=-4, upper=4) for place in range(_NUMBERS)]
    codes = [IntegerRange(column=f"code-{size}", first=0, last=size - 1) for size in _SIZES]
    ptk = Forest(
        inputs=(*numbers, *codes), label="label", classes=(0, 1, 2), trees=_TREES, depth=_DEPTH
    )
    table = pa.table({**columns, "label": label})
    matrix = np.column_stack(list(columns.values())).astype(np.float32)
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=1)
        middle = time.perf_counter()
        ExtraTreesClassifier(n_estimators=_TREES, max_depth=_DEPTH, random_state=number).fit(
            matrix, label
        )
        end = time.perf_counter()
        say(f"forest, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle
