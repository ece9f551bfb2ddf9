"""How fast is a ride, by zone, hour and weather? Means by each, by pairs and by all three with
differential privacy, where most triples have hardly a record.

Run it with ``python -m examples.ptks.interactions``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib import Categories, IntegerRange, Interactions, Statistics

ZONES, SKIES = 40, ("clear", "rain", "snow")
EPSILON = 1
KEYS = (
    IntegerRange(column="zone", first=0, last=ZONES - 1),
    IntegerRange(column="hour", first=0, last=23),
    Categories(column="sky", values=SKIES),
)


def rides(rows: int, seed: int) -> pa.Table:
    """Zones differ, so do hours, and the centre is slow at rush hours alone."""
    generator, world = np.random.default_rng(seed), np.random.default_rng(0)
    zone = np.minimum(generator.geometric(0.1, rows) - 1, ZONES - 1)
    hour, sky = generator.integers(0, 24, rows), generator.choice(3, rows, p=(0.8, 0.17, 0.03))
    rush = (np.abs(hour - 8) < 2) | (np.abs(hour - 17) < 2)
    speed = 28 + world.normal(0, 5, ZONES)[zone] - np.array([0, 3, 9])[sky]
    speed += 4 * np.cos(hour / 24 * 2 * np.pi) - 9 * (rush & (zone < 8))
    speed += generator.normal(0, 6, rows)
    names = np.array(SKIES)[sky]
    return pa.table({"zone": zone, "hour": hour, "sky": names, "speed": np.clip(speed, 0, 80)})


def error(guess: np.ndarray, table: pa.Table) -> float:
    """The root mean square distance to the speeds."""
    return float(np.sqrt(np.square(guess - table["speed"].to_numpy()).mean()))


def main() -> None:
    """Train, look at three cells, and compare with tables of one and of all keys."""
    train, fresh = rides(40_000, 1), rides(20_000, 2)
    ptk = Interactions(keys=KEYS, label="speed", lower=0, upper=80, interactions=3)
    print(f"price, known before the data: epsilon {float(ptk.cost(EPSILON).epsilon(0)):g}")
    arrays = ptk.train_dp(train.to_batches(), epsilon=EPSILON)
    wanted = pa.table({"zone": [2, 2, 30], "hour": [8, 12, 8], "sky": ["clear", "clear", "snow"]})
    print("a busy zone at the rush and at noon, and one where few go, in snow:")
    print(ptk.features(arrays, wanted).to_pandas().T.round(1).to_string())
    guess = ptk.features(arrays, fresh).column("speed_zone_hour_sky_estimate").to_numpy()
    print(f"error of triples that back off: {error(guess, fresh):.2f}")
    for words, keys in (("zones alone", KEYS[:1]), ("the product of all keys", KEYS)):
        table = Statistics(keys=keys, statistics=("mean",), value="speed", lower=0, upper=80)
        made = table.train_dp(train.to_batches(), epsilon=EPSILON)
        guess = table.features(made, fresh).column(0).to_numpy()
        print(f"error of {words}, with the whole budget: {error(guess, fresh):.2f}")
    print(f"the mean of all: {error(np.full(fresh.num_rows, 26.0), fresh):.2f}; nobody is below 6")


if __name__ == "__main__":
    main()
