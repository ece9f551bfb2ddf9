"""A whole window cycle, one million rows and twenty statistics PTKs, against pyarrow's group_by for
the same exact aggregates.

The cycle opens and decrypts the window, charges, trains in warm worker processes, puts states into
the lake, publishes, and destroys the raw data. The baseline holds the same table in memory and
aggregates it exactly, without privacy, on all cores. The first window warms the workers (their
imports and their memory) and is shown, not counted.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.bars import Report, Say, at_least, at_most
from ptklib import registry
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec

ROWS = 1_000_000
ROUNDS = 9
# The privacy level that twenty PTKs can have side by side. What the block counts leave is just
# enough for it, so the best plan has one partition, and every PTK trains on most of the window.
_LEVEL = "0.046"
_COUNTS = "0.08"
DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000
KEYS = {"hour": 24, "zone": 250, "weekday": 7, "kind": 12}
VALUES = {"speed": 60.0, "fare": 200.0, "distance": 50.0, "duration": 7200.0, "tip": 50.0}


def run(say: Say) -> Report:
    with tempfile.TemporaryDirectory() as folder, Store(folder) as store:
        store.create_stream(_spec())
        for key, size in KEYS.items():
            for value, upper in VALUES.items():
                config = {
                    "keys": [{"kind": "integers", "column": key, "first": 0, "last": size - 1}],
                    "statistics": ["count", "mean"],
                    "value": value,
                    "lower": 0.0,
                    "upper": upper,
                }
                target = _target(config)
                answer = store.register(
                    f"{key}-{value}",
                    stream="rides",
                    kind="statistics",
                    config=config,
                    target=target,
                )
                assert answer.status == "ACTIVE", answer
        store._parts.workers.warm()
        cycle_seconds, group_seconds, trained, least = [], [], 0, ROWS
        for number in range(1 + ROUNDS):
            say(f"window {number + 1} of {1 + ROUNDS}")
            table = _day(number)
            store.push("rides", table)
            begin = time.perf_counter()
            (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
            cycle_seconds.append(time.perf_counter() - begin)
            trained += sum(line.outcome == "PUBLISHED" for line in cycle.trained)
            least = min(least, *(line.samples or 0 for line in cycle.trained))
            begin = time.perf_counter()
            _group_by(table)
            group_seconds.append(time.perf_counter() - begin)
    ratios = [ours / theirs for ours, theirs in zip(cycle_seconds, group_seconds, strict=True)][1:]
    return Report(
        bars=[
            at_most(
                "seconds of a window cycle / seconds of pyarrow group_by (median)",
                statistics.median(ratios),
                2.0,
            ),
            at_least("PTKs trained and published", trained, len(KEYS) * len(VALUES) * (1 + ROUNDS)),
        ],
        figures={
            "samples each PTK trains on, at least": least,
            "windows": [
                {"cycle_s": round(ours, 3), "group_by_s": round(theirs, 3)}
                for ours, theirs in zip(cycle_seconds, group_seconds, strict=True)
            ],
        },
    )


def _target(config: dict[str, Any]) -> float:
    """The target for which a PTK with a twentieth of the budget needs most of the window."""
    ptk = registry.make("statistics", config)
    low, high = 1e-5, 0.9
    for _ in range(40):
        middle = (low * high) ** 0.5
        (samples,) = ptk.analytic_profile(middle, [_LEVEL]) or (None,)
        low, high = (middle, high) if samples is None or samples > 0.75 * ROWS else (low, middle)
    return high


def _spec() -> StreamSpec:
    columns = [Column(name="at", type="timestamp[ms]", lower="2026-01-01")]
    columns += [
        Column(name=key, type="int32", lower=0, upper=size - 1) for key, size in KEYS.items()
    ]
    columns += [
        Column(name=value, type="float64", lower=0, upper=upper) for value, upper in VALUES.items()
    ]
    return StreamSpec(
        name="rides",
        columns=tuple(columns),
        time_column="at",
        policy=Policy(epsilon=1, delta=0),
        count_epsilon=_COUNTS,
        window_seconds=86_400,
        block_seconds=21_600,
        use="minimum",
    )


def _day(number: int) -> pa.Table:
    rng = np.random.default_rng(number)
    body: dict[str, Any] = {
        "at": pa.array(
            np.sort(rng.integers(0, DAY_MS, ROWS)) + FIRST_MS + number * DAY_MS, pa.timestamp("ms")
        )
    }
    body |= {key: rng.integers(0, size, ROWS).astype(np.int32) for key, size in KEYS.items()}
    body |= {value: rng.random(ROWS) * upper for value, upper in VALUES.items()}
    return pa.table(body)


def _group_by(table: pa.Table) -> None:
    for key in KEYS:
        for value in VALUES:
            table.group_by(key).aggregate([(value, "count"), (value, "sum"), (value, "mean")])
