"""Counts, means and variances of two values by zone and by hour, against pyarrow's group_by on the
same table in memory.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bars import Say
from ptklib.columns.keys import IntegerRange, Key, TimePart
from ptklib.ptks.statistics import Statistics

WHAT = "four tables of counts, means and variances, 2 million rows / pyarrow group_by on all cores"
LIMIT = 1.5

_ROWS = 2_000_000
_ROUNDS = 7
_ZONES = 265
_UPPER = {"fare": 200.0, "speed": 80.0}


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    table = _rides()
    keys: dict[str, Key] = {
        "zone": IntegerRange(column="zone", first=1, last=_ZONES),
        "hour": TimePart(column="at", part="hour"),
    }
    ptks = [
        Statistics(
            keys=(key,),
            statistics=("count", "mean", "variance"),
            value=value,
            lower=0.0,
            upper=upper,
        )
        for key in keys.values()
        for value, upper in _UPPER.items()
    ]
    # The baseline gets the hour as a column of its own, ready made.
    hours = table.append_column(
        "hour", pa.array((table["at"].to_numpy().astype(np.int64) // 3600 % 24).astype(np.int32))
    )
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        for ptk in ptks:
            ptk.train_dp(table.to_batches(), epsilon=0.25)
        middle = time.perf_counter()
        for key in keys:
            for value in _UPPER:
                hours.group_by(key).aggregate(
                    [(value, one) for one in ("count", "mean", "variance")]
                )
        end = time.perf_counter()
        say(f"statistics, round {number}: {middle - begin:.3f} s against {end - middle:.3f} s")
        # The first round warms both.
        if number:
            yield middle - begin, end - middle


def _rides() -> pa.Table:
    rng = np.random.default_rng(0)
    body: dict[str, Any] = {
        "at": pa.array(np.sort(rng.integers(0, 28 * 86400, _ROWS)), pa.timestamp("s")),
        "zone": rng.integers(1, _ZONES + 1, _ROWS).astype(np.int32),
    }
    body |= {value: rng.random(_ROWS) * upper for value, upper in _UPPER.items()}
    return pa.table(body)
