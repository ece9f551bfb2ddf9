"""Speeds by zone, the busiest zones, and tips over fares: statistics of made-up rides with
differential privacy.

Run it with ``python -m examples.ptks.statistics``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import IntegerRange
from ptklib.ptks.ratios import Ratios
from ptklib.ptks.statistics import Statistics
from ptklib.ptks.tables.ranking import Ranking

ZONES = IntegerRange(column="zone", first=0, last=19)
EPSILON = 0.2


def rides(count: int, seed: int) -> pa.Table:
    """Some zones are busier, faster and more generous."""
    generator = np.random.default_rng(seed)
    zone = np.minimum(generator.geometric(0.15, count) - 1, 19)
    fare = np.minimum(generator.gamma(2, 8, count), 100)
    tip = fare * generator.beta(2 + zone / 10, 10, count)
    speed = np.clip(generator.normal(20 + zone, 6), 0, 80)
    return pa.table({"zone": zone, "speed": speed, "fare": fare, "tip": tip})


def main() -> None:
    """Train on two windows, then read means, ranks and ratios back."""
    asked: dict[str, Any] = {
        "statistics": ("mean", "rank", "in_top"),
        "ranking": Ranking(top=5),
        "prefix": "zone",
    }
    means = Statistics(keys=(ZONES,), value="speed", lower=0, upper=80, **asked)
    tips = Ratios(
        keys=(ZONES,),
        numerator="tip",
        denominator="fare",
        denominator_upper=100,
        ratio_upper=0.5,
        expected=0.2,
    )
    state = ratios = None
    for window in range(2):
        batches = rides(50_000, seed=window).to_batches()
        state = means.train_dp(batches, epsilon=EPSILON, previous=state)
        ratios = tips.train_dp(batches, epsilon=EPSILON, previous=ratios)
    assert state is not None
    assert ratios is not None
    print(f"price of each window: {means.cost(EPSILON)} and {tips.cost(EPSILON)}")
    wanted = pa.table({"zone": [0, 3, 19, 99]})
    for what, table in (
        ("the busiest zones; any number of them costs nothing more", means.top(state)),
        ("mean speed and rank of four zones, the last one unknown", means.features(state, wanted)),
        ("their tips over fares", tips.features(ratios, wanted)),
    ):
        print(what)
        for row in table.to_pylist():
            print("  " + "  ".join(f"{name} {value:.4g}" for name, value in row.items()))


if __name__ == "__main__":
    main()
