"""A data scientist's minute: train statistics with differential privacy and use them as features.
No server anywhere.

Rides of a made-up city become the mean speed and the number of rides by zone and hour, at epsilon
1. The state is written to two files, read back, and appended to a frame of new rides; pandas is
used when it is installed, Arrow otherwise.

Run it with ``python -m examples.featurize``.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import IntegerRange, TimePart
from ptklib.features import featurize
from ptklib.ptks.statistics import Statistics
from ptklib.state import State

ZONES = 12
RIDES = 200_000
EPSILON = 1


def rides(count: int, seed: int) -> pa.Table:
    """Made-up rides: some zones are fast, and rush hours are slow."""
    generator = np.random.default_rng(seed)
    zone = generator.integers(0, ZONES, count)
    seconds = generator.integers(0, 7 * 86400, count)
    rush = np.isin(seconds // 3600 % 24, (8, 9, 17, 18))
    speed = np.clip(generator.normal(20 + 2 * zone - 8 * rush, 6), 0, 80)
    return pa.table({"zone": zone, "time": pa.array(seconds, pa.timestamp("s")), "speed": speed})


def main() -> None:
    """Train, keep, read back, featurize."""
    ptk = Statistics(
        keys=(
            IntegerRange(column="zone", first=0, last=ZONES - 1),
            TimePart(column="time", part="hour"),
        ),
        statistics=("mean", "count"),
        value="speed",
        lower=0,
        upper=80,
        prefix="zone_hour",
    )
    (needed,) = ptk.analytic_profile(target=0.02, levels=[EPSILON])
    print(
        f"{ptk.cells} cells; for means within 2% of the range at epsilon {EPSILON}: {needed} rides"
    )
    print(f"price, known before the data: {ptk.cost(EPSILON)}")

    arrays = ptk.train_dp(rides(RIDES, seed=1).to_batches(), epsilon=EPSILON)
    state = State.make(ptk, arrays, name="zone-hour-speed", epsilon=EPSILON)

    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "state.safetensors"), Path(folder, "state.json")
        for file, data in zip(files, state.to_bytes(), strict=True):
            file.write_bytes(data)
        state = State.from_bytes(*(file.read_bytes() for file in files))
    print(f"state {state.digest[:12]}: {', '.join(ptk.feature_names())}")

    new: Any = rides(5, seed=2).drop_columns(["speed"])
    try:
        new = new.to_pandas()
    except ImportError:
        print("(pandas is not installed: an Arrow table it is)")
    print(featurize(new, state))


if __name__ == "__main__":
    main()
