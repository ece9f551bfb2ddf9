"""A stream of flights under Renyi accounting, and the PTKs that fill it: six that fit and one that
does not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.ledger.policy import Policy
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec

__all__ = ["CARRIERS", "ORIGINS", "PTKS", "flights", "of_carriers", "of_hours", "spec"]

DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000  # 2026-01-01
CARRIERS = tuple(f"carrier-{k:02d}" for k in range(14))
ORIGINS = tuple(f"origin-{k:02d}" for k in range(40))
_DELAY = (-60.0, 180.0)


def spec(**changes: Any) -> StreamSpec:
    """Flights by day; a window holds at most so many of them."""
    fields: dict[str, Any] = {
        "name": "flights",
        "columns": (
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="carrier", type="string", domain=CARRIERS),
            Column(name="origin", type="string", domain=ORIGINS),
            Column(name="hour", type="int32", lower=0, upper=23),
            Column(name="delay", type="float64", lower=_DELAY[0], upper=_DELAY[1]),
            Column(name="distance", type="float64", lower=0, upper=5000),
        ),
        "time_column": "at",
        "policy": Policy(epsilon=1, delta="1e-6", composition="renyi"),
    }
    return StreamSpec(**(fields | changes))


def of_carriers() -> dict[str, Any]:
    return {"kind": "categories", "column": "carrier", "values": list(CARRIERS)}


def of_origins() -> dict[str, Any]:
    return {"kind": "categories", "column": "origin", "values": list(ORIGINS)}


def of_hours() -> dict[str, Any]:
    return {"kind": "integers", "column": "hour", "first": 0, "last": 23}


def mean(*keys: dict[str, Any]) -> dict[str, Any]:
    return {
        "keys": list(keys),
        "statistics": ["mean"],
        "value": "delay",
        "lower": _DELAY[0],
        "upper": _DELAY[1],
    }


def flights(day: int, rows: int) -> pa.Table:
    """One day, drawn by its number."""
    rng = np.random.default_rng(day)
    at = np.sort(rng.integers(0, DAY_MS, rows)) + FIRST_MS + day * DAY_MS
    hour = (at // 3_600_000 % 24).astype(np.int32)
    delay = np.clip(10 + hour + rng.normal(0, 20, rows), *_DELAY)
    return pa.table(
        {
            "at": pa.array(at, pa.timestamp("ms")),
            "carrier": np.array(CARRIERS)[rng.integers(0, len(CARRIERS), rows)],
            "origin": np.array(ORIGINS)[rng.integers(0, len(ORIGINS), rows)],
            "hour": hour,
            "delay": delay,
            "distance": rng.random(rows) * 5000,
        }
    )


# Name, kind, configuration, target. The last does not fit beside the others.
PTKS: tuple[tuple[str, str, dict[str, Any], float], ...] = (
    ("delay-by-carrier", "statistics", mean(of_carriers()), 0.05),
    ("delay-by-hour", "statistics", mean(of_hours()), 0.05),
    ("flights-by-hour", "statistics", {"keys": [of_hours()], "statistics": ["count"]}, 0.02),
    (
        "delay-quantiles",
        "quantiles",
        {
            "keys": [of_carriers()],
            "value": "delay",
            "quantiles": [0.5, 0.9],
            "lower": -60.0,
            "upper": 180.0,
            "bins": 64,
        },
        0.05,
    ),
    (
        "groups",
        "clusters",
        {
            "values": [{"kind": "bounded", "column": "delay", "lower": -60.0, "upper": 180.0}],
            "clusters": 3,
        },
        0.05,
    ),
    ("delay-by-origin-and-hour", "statistics", mean(of_origins(), of_hours()), 0.1),
    ("delay-by-carrier-and-hour", "statistics", mean(of_carriers(), of_hours()), 0.01),
)
