"""Where a ride ends: a forest learns it from many taxi rides with differential privacy, and helps a
task with few records.

A hundred thousand made-up taxi rides train the forest once, at epsilon 1. A bicycle scheme has 300
rides of its own, too few to learn when and where people go; the forest's probabilities as features
make up for it.

Run it with ``python -m examples.ptks.forest``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression

from ptklib.columns.keys import Categories, IntegerRange
from ptklib.features import featurize
from ptklib.ptks.binned.codes import Number
from ptklib.ptks.forest import Forest
from ptklib.state import State

PLACES = ("harbour", "offices", "old town", "station")
INPUTS = ("hour", "x", "y", "weather")


def rides(rows: int, seed: int) -> pa.Table:
    """Mornings lead to the offices, evenings away from them; rain makes the station likely, the
    harbour in the west.
    """
    generator = np.random.default_rng(seed)
    hour, x, y = (
        generator.integers(0, 24, rows),
        generator.normal(0, 2, rows),
        generator.normal(0, 2, rows),
    )
    rain = generator.random(rows) < 0.3
    scores = np.stack(
        [2.0 * (x < -1), 3.0 * (abs(hour - 8) < 3), 1.5 * (y > 0) + (hour > 18), 2.5 * rain], axis=1
    )
    end = (scores + generator.gumbel(0, 0.7, (rows, 4))).argmax(axis=1)
    weather = np.where(rain, "rain", "dry")
    return pa.table(
        {"hour": hour, "x": x, "y": y, "weather": weather, "end": np.array(PLACES)[end]}
    )


def matrix(table: pa.Table, names: list[str]) -> np.ndarray:
    """The columns as numbers."""
    return np.column_stack(
        [np.asarray(table[name]) == "rain" if name == "weather" else table[name] for name in names]
    )


def main() -> None:
    """Train on taxi rides, featurize bicycle rides, compare."""
    area = [Number(column=name, lower=-6, upper=6) for name in ("x", "y")]
    hour, weather = (
        IntegerRange(column="hour", first=0, last=23),
        Categories(column="weather", values=("dry", "rain")),
    )
    ptk = Forest(inputs=(hour, *area, weather), label="end", classes=PLACES, trees=10, depth=6)
    print(f"splits: {ptk.method}; price, known before the data: {ptk.cost(1)}")
    arrays = ptk.train_dp(rides(100_000, seed=1).to_batches(), epsilon=1)
    state = State.make(ptk, arrays, name="ride-ends", epsilon=1)
    few, fresh = rides(300, seed=2), rides(5000, seed=3)
    print(f"Brier score of the forest on fresh rides: {ptk.eval(arrays, fresh.to_batches()):.3f}")
    for words, names in (("without", []), ("with", list(ptk.feature_names()))):
        train, test = (matrix(featurize(one, state), [*INPUTS, *names]) for one in (few, fresh))
        model = LogisticRegression(max_iter=2000).fit(train, few["end"].to_pylist())
        print(
            f"bicycle rides predicted {words} the features: "
            f"{model.score(test, fresh['end'].to_pylist()):.3f}"
        )


if __name__ == "__main__":
    main()
