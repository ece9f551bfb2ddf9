"""A small stream of rides with a canary in every record, and PTKs for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec

__all__ = ["CANARY", "DAY_MS", "FIRST_MS", "ROWS", "config", "day", "open_store", "spec"]

DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000  # 2026-01-01
ROWS = 4000
CANARY = "canary-8f3a-driver"


def spec(**changes: Any) -> StreamSpec:
    columns = (
        Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
        Column(name="hour", type="int32", lower=0, upper=23),
        Column(name="speed", type="float64", lower=0, upper=60),
        Column(name="driver", type="string", upper=40),
    )
    fields: dict[str, Any] = {
        "name": "rides",
        "columns": columns,
        "time_column": "at",
        "policy": Policy(epsilon=1, delta="1e-6"),
        "window_seconds": 86_400,
        "block_seconds": 43_200,
        "count_epsilon": "0.2",
    }
    return StreamSpec(**(fields | changes))


def day(number: int, rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(number)
    at = np.sort(rng.integers(0, DAY_MS, rows)) + FIRST_MS + number * DAY_MS
    hour = (at // 3_600_000 % 24).astype(np.int32)
    speed = np.clip(20 + 10 * np.sin(hour / 4) + rng.normal(0, 4, rows), 0, 60)
    drivers = [f"{CANARY}-{k}" for k in range(rows)]
    return pa.table(
        {"at": pa.array(at, pa.timestamp("ms")), "hour": hour, "speed": speed, "driver": drivers}
    )


def config(statistic: str = "mean") -> dict[str, Any]:
    keys = [{"kind": "integers", "column": "hour", "first": 0, "last": 23}]
    if statistic == "count":
        return {"keys": keys, "statistics": ["count"]}
    return {"keys": keys, "statistics": [statistic], "value": "speed", "lower": 0.0, "upper": 60.0}


def open_store(path: Any, **changes: Any) -> Store:
    store = Store(path, workers=0)
    if not store.streams():
        store.create_stream(spec(**changes))
    return store
