"""Where rides begin: centres of pick-ups at several budgets, against k-means on the data itself.

Run ``python -m examples.ptks.clusters``. The data is made up: pick-ups around twelve places of a
city.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.features import featurize
from ptklib.ptks.clusters import Clusters
from ptklib.ptks.vectors import Bounded
from ptklib.state import State

ROWS = 30_000
PLACES = 12


def rides(seed: int) -> pa.Table:
    """Longitude and latitude."""
    middles = np.random.default_rng(0).uniform([-74.02, 40.64], [-73.80, 40.86], (PLACES, 2))
    rng = np.random.default_rng(seed)
    found = middles[rng.integers(0, PLACES, ROWS)] + rng.normal(0, 0.006, (ROWS, 2))
    return pa.table({"longitude": found[:, 0], "latitude": found[:, 1]})


def main() -> None:
    """Train at three budgets, merge two windows, and featurize."""
    ptk = Clusters(
        values=(
            Bounded(column="longitude", lower=-74.05, upper=-73.75),
            Bounded(column="latitude", lower=40.6, upper=40.9),
        ),
        clusters=PLACES,
        prefix="pickup",
    )
    table = rides(1)
    print("mean squared distance to the nearest centre, over the squared diagonal of the box:")
    for epsilon in (0.1, 0.5, 1.0):
        losses = [
            ptk.eval(ptk.train_dp(table.to_batches(), epsilon=epsilon), table.to_batches())
            for _ in range(5)
        ]
        print(f"  epsilon {epsilon}: {np.mean(losses):.5f}")
    first = ptk.train_dp(table.to_batches(), epsilon=0.1)
    both = ptk.train_dp(rides(2).to_batches(), epsilon=0.1, previous=first)
    print(f"two windows at epsilon 0.1 each, merged: {ptk.eval(both, table.to_batches()):.5f}")
    print(f"  the places themselves (0.006 degrees around each): {2 * 0.006**2 / (2 * 0.3**2):.5f}")
    state = State.make(ptk, both, name="pickups", epsilon=0.1)
    made = featurize(table.slice(0, 3), state)
    print(
        made.select(["longitude", "latitude", "pickup_cluster", "pickup_distance_0"])
        .to_pandas()
        .round(3)
    )
    print("the centre with the most rides:", ptk.centres(both)[0].round(3))


if __name__ == "__main__":
    main()
