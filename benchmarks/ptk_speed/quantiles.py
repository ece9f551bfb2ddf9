"""Quantiles of a value by zone, against NumPy's counts of the same (zone, bin) pairs on the same
columns in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from benchmarks.bars import Say
from ptklib.columns.keys import IntegerRange
from ptklib.ptks.quantiles import Quantiles

WHAT = "counts on 256 bins for 265 zones, 2 million rows / exact counts by numpy.bincount"
LIMIT = 1.5

_ROWS = 2_000_000
_ROUNDS = 7
_ZONES = 265
_BINS = 256
_UPPER = 100.0


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    rng = np.random.default_rng(0)
    zones = rng.integers(1, _ZONES + 1, _ROWS).astype(np.int32)
    fares = np.minimum(rng.gamma(2, 8, _ROWS), _UPPER)
    table = pa.table({"zone": zones, "fare": fares})
    key = IntegerRange(column="zone", first=1, last=_ZONES)
    ptk = Quantiles(
        keys=(key,), value="fare", quantiles=(0.1, 0.5, 0.9), lower=0.0, upper=_UPPER, bins=_BINS
    )
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=0.25)
        middle = time.perf_counter()
        # No nulls, no unknown keys, nothing beyond the grid but its end: the baseline need not
        # check.
        bins = np.minimum((fares * (_BINS / _UPPER)).astype(np.int32), _BINS - 1)
        np.bincount((zones - 1) * _BINS + bins, minlength=_ZONES * _BINS)
        end = time.perf_counter()
        say(f"quantiles, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle
