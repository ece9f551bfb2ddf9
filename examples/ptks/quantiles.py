"""The usual fare of each hour: quantiles of made-up rides with differential privacy, five for the
price of one.

Run it with ``python -m examples.ptks.quantiles``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import TimePart
from ptklib.ptks.quantiles import Quantiles

EPSILON = 0.5


def rides(count: int, seed: int) -> pa.Table:
    """Fares are higher at night."""
    generator = np.random.default_rng(seed)
    seconds = generator.integers(0, 7 * 86400, count)
    night = np.isin(seconds // 3600 % 24, (0, 1, 2, 3, 23))
    return pa.table(
        {"time": pa.array(seconds, pa.timestamp("s")), "fare": generator.gamma(2, 8 + 6 * night)}
    )


def main() -> None:
    """Train on three windows, and compare with the exact quantiles."""
    ptk = Quantiles(
        keys=(TimePart(column="time", part="hour"),),
        value="fare",
        quantiles=(0.1, 0.25, 0.5, 0.75, 0.9),
        lower=0,
        upper=150,
        prefix="hour_fare",
    )
    (needed,) = ptk.analytic_profile(target=0.05, levels=[EPSILON])
    print(f"price of each window: {ptk.cost(EPSILON)}")
    print(
        f"{needed} rides are enough for every quantile to be within 5% of the ranks, in all hours "
        "alike"
    )
    table = rides(240_000, seed=1)
    state = None
    for window in range(3):
        batches = table.slice(window * 80_000, 80_000).to_batches()
        state = ptk.train_dp(batches, epsilon=EPSILON, previous=state)
        found = ptk.features(state, table.slice(0, 5))
        print(
            f"after window {window + 1}, the median fares at the hours of five rides: "
            f"{found['hour_fare_q50'].to_numpy()}"
        )
    hours = table["time"].cast(pa.int64()).to_numpy() // 3600 % 24
    fares = table["fare"].to_numpy()
    exact = [float(np.median(fares[hours == hour])) for hour in hours[:5]]
    print(f"exact, of all three windows: {np.round(exact, 2)}")


if __name__ == "__main__":
    main()
