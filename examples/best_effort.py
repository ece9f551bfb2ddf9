"""Epsilon instead of a target: PTKs that get what a window leaves, and say how good they are.

One day of made-up rides. The mean speed of each hour has a target; a table of fares, a forest and
clusters state an epsilon instead ("best effort"). The plan keeps the target first, then shares out the
rest of the day; each state of best effort comes with its error: of the table from public numbers, of
the others by a test on rides that their training did not touch. The true errors stand beside it, as
nobody but the maker of these rides could know them.

Run it with ``python -m examples.best_effort``.
"""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec

DAY_MS, FIRST_MS = 86_400_000, 1_767_225_600_000  # from 2026-01-01
RIDES, ZONES = 20_000, 4
HOUR = {"kind": "integers", "column": "hour", "first": 0, "last": 23}
ZONE = {"kind": "integers", "column": "zone", "first": 0, "last": ZONES - 1}
FARE = {"value": "fare", "lower": 0.0, "upper": 100.0}
PTKS: dict[str, dict[str, Any]] = {
    "hour-speed": {
        "kind": "statistics",
        "target": 0.05,
        "config": {
            "keys": [HOUR],
            "statistics": ["mean"],
            "value": "speed",
            "lower": 0.0,
            "upper": 80.0,
        },
    },
    "zone-fare": {
        "kind": "statistics",
        "epsilon": "0.2",
        "config": {"keys": [ZONE], "statistics": ["mean"], **FARE},
    },
    "fare-forest": {
        "kind": "forest",
        "epsilon": "0.3",
        "config": {
            "inputs": [HOUR, ZONE],
            "label": "fare",
            "lower": 0.0,
            "upper": 100.0,
            "trees": 6,
            "depth": 3,
        },
    },
    "ride-clusters": {
        "kind": "clusters",
        "epsilon": "0.2",
        "config": {
            "values": [
                {"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 80.0},
                {"kind": "bounded", "column": "fare", "lower": 0.0, "upper": 100.0},
            ],
            "clusters": 3,
        },
    },
}


def rides(number: int) -> pa.Table:
    """One day of them: slow at noon, dear in zone 0."""
    generator = np.random.default_rng(number)
    at = np.sort(generator.integers(0, DAY_MS, RIDES))
    hour, zone = (at // 3_600_000).astype(np.int32), generator.integers(0, ZONES, RIDES)
    speed = np.clip(generator.normal(45 - 20 * np.sin(hour / 24 * np.pi), 6), 0, 80)
    fare = np.clip(generator.normal(np.where(zone == 0, 60, 20), 8), 0, 100)
    times = pa.array(at + FIRST_MS + number * DAY_MS, pa.timestamp("ms"))
    columns = {"at": times, "hour": hour, "zone": zone.astype(np.int32)}
    return pa.table({**columns, "speed": speed, "fare": fare})


def stream() -> StreamSpec:
    """A window is a day; a fifth of it is kept for profiles and tests."""
    return StreamSpec(
        name="rides",
        columns=(
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="hour", type="int32", lower=0, upper=23),
            Column(name="zone", type="int32", lower=0, upper=ZONES - 1),
            Column(name="speed", type="float64", lower=0, upper=80),
            Column(name="fare", type="float64", lower=0, upper=100),
        ),
        time_column="at",
        policy=Policy(epsilon=1, delta="1e-6"),
        window_seconds=86_400,
        block_seconds=86_400,
        profile_share="0.2",
    )


def main() -> None:
    """Register, run one day, print what each state says and what is true."""
    with tempfile.TemporaryDirectory() as place, Store(place, workers=0) as store:
        store.create_stream(stream())
        for name, terms in PTKS.items():
            store.register(name, stream="rides", **terms)
        store.push("rides", rides(0), producer="city", seq=0)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        print(f"{'ptk':<14}{'asked':<26}{'epsilon':>8}{'rides':>8}  error it tells")
        tomorrow = rides(1)
        for ptk in store.ptks():
            (state,) = store.states(ptk.name)
            asked = ptk.asked if ptk.epsilon else f"target {ptk.asked}"
            told = state.error.text if state.error else "(keeps its target)"
            line = f"{ptk.name:<14}{asked:<26}{state.epsilon:>8}{state.samples:>8}  {told}"
            if state.error is not None and state.error.source == "test":
                made = store.get_state(ptk.name)
                line += f"; truth {made.ptk.eval(made.arrays, tomorrow.to_batches()):.4f}"
            print(line)


if __name__ == "__main__":
    main()
