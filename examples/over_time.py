"""Streams change: what states over all windows, the last ones, and fading ones make of it.

Eight days of made-up rides by hour; on the fifth day a bypass opens and everybody drives 12 km/h
faster. Four PTKs learn the mean speed of each hour and differ in one word, ``over``. After each day
the error of their newest states on that day's traffic is printed: states over all windows are the
most precise while nothing changes, and the last to notice when something does.

Run it with ``python -m examples.over_time``.
"""

from __future__ import annotations

import tempfile

import numpy as np
import pyarrow as pa

from ptklib.features import featurize
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec

DAY_MS, FIRST_MS = 86_400_000, 1_767_225_600_000  # from 2026-01-01
RIDES, DAYS, BYPASS = 6_000, 8, 4
OVERS = ("all", "last", "rolling:3", "decay:0.5")
CONFIG = {
    "keys": [{"kind": "integers", "column": "hour", "first": 0, "last": 23}],
    "statistics": ["mean"],
    "value": "speed",
    "lower": 0.0,
    "upper": 80.0,
}


def speeds(number: int) -> np.ndarray:
    """The true mean of each hour on that day."""
    return 25 + 8 * np.cos(np.arange(24) / 24 * 2 * np.pi) + (12 if number >= BYPASS else 0)


def rides(number: int) -> pa.Table:
    """One day of them."""
    generator = np.random.default_rng(number)
    at = np.sort(generator.integers(0, DAY_MS, RIDES))
    hour = (at // 3_600_000).astype(np.int32)
    speed = np.clip(generator.normal(speeds(number)[hour], 6), 0, 80)
    times = pa.array(at + FIRST_MS + number * DAY_MS, pa.timestamp("ms"))
    return pa.table({"at": times, "hour": hour, "speed": speed})


def stream() -> StreamSpec:
    """A window is a day."""
    return StreamSpec(
        name="rides",
        columns=(
            Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
            Column(name="hour", type="int32", lower=0, upper=23),
            Column(name="speed", type="float64", lower=0, upper=80),
        ),
        time_column="at",
        policy=Policy(epsilon=1, delta=0),
        window_seconds=86_400,
        block_seconds=86_400,
        count_epsilon="0.1",
    )


def main() -> None:
    """Register one PTK for each choice, run day after day, print errors."""
    hours = pa.table({"hour": pa.array(range(24), pa.int32())})
    with tempfile.TemporaryDirectory() as place, Store(place, workers=0) as store:
        store.create_stream(stream())
        for place_of, over in enumerate(OVERS):
            name = f"speed-{place_of}"
            store.register(
                name, stream="rides", kind="statistics", config=CONFIG, target=0.2, over=over
            )
        print("mean error, km/h   " + "".join(f"{over:>12}" for over in OVERS))
        for number in range(DAYS):
            store.push("rides", rides(number), producer="city", seq=number)
            store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
            errors = []
            for place_of in range(len(OVERS)):
                state = store.get_state(f"speed-{place_of}")
                found = featurize(hours, [state]).column("hour_speed_mean").to_numpy()
                errors.append(float(np.abs(found - speeds(number)).mean()))
            what = "  bypass" if number == BYPASS else ""
            print(f"day {number + 1}{what:<14}" + "".join(f"{error:12.1f}" for error in errors))


if __name__ == "__main__":
    main()
