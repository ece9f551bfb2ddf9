"""Who tips well? An additive model learns it from many taxi rides with differential privacy, shows
what it learned, and helps a bicycle scheme with few rides.

A hundred thousand made-up taxi rides train the model once, at epsilon 1. Its shapes are printed:
they are private, and can be read by anybody. A bicycle scheme whose riders tip by the same rules,
though half as often, has 200 rides; the terms as features of a small model of its own make up for
the rides that it lacks.

Run it with ``python -m examples.ptks.additive``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from ptklib import Additive, Categories, IntegerRange, Number, State, featurize

PLACES = ("harbour", "offices", "old town", "station")


def rides(rows: int, seed: int, *, shift: float = 0.0) -> pa.Table:
    """Late rides and those to the harbour are tipped well, very short and very long ones are not."""
    generator = np.random.default_rng(seed)
    hour, minutes = generator.integers(0, 24, rows), generator.gamma(3, 5, rows)
    place = generator.integers(0, 4, rows)
    score = np.cos((hour - 21) / 24 * 2 * np.pi) + np.array([1.2, -0.3, 0.2, -0.8])[place]
    score += 1.5 - np.abs(minutes - 15) / 6 + shift
    tips = generator.random(rows) < 1 / (1 + np.exp(-score))
    return pa.table(
        {
            "hour": hour,
            "minutes": minutes,
            "place": np.array(PLACES)[place],
            "tips": tips.astype(np.int64),
        }
    )


def matrix(table: pa.Table, names: list[str]) -> np.ndarray:
    """The bicycle scheme's own columns, places as indicators, and these features."""
    own = [table["hour"], table["minutes"]]
    own += [np.asarray(table["place"]) == place for place in PLACES]
    return np.column_stack([*own, *(table[name] for name in names)])


def main() -> None:
    """Train on taxi rides, print the shapes, featurize bicycle rides, compare."""
    inputs = (
        IntegerRange(column="hour", first=0, last=23),
        Number(column="minutes", lower=0, upper=40, bins=10),
        Categories(column="place", values=PLACES),
    )
    ptk = Additive(inputs=inputs, label="tips", classes=(0, 1))
    print(f"price, known before the data: epsilon {ptk.cost(1).epsilon(0):g}")
    arrays = ptk.train_dp(rides(100_000, seed=1).to_batches(), epsilon=1)
    state = State.make(ptk, arrays, name="tips", epsilon=1)
    for row in ptk.shapes(arrays).to_pylist():
        if row["input"] != "hour" and row["bin"] != "unknown":
            print(f"{row['input']:>8} {row['bin']:<10} {row['term']:+.2f}")
    few, fresh = rides(200, seed=2, shift=-1), rides(5_000, seed=3, shift=-1)
    terms = [name for name in ptk.feature_names() if "_term_" in name]
    for words, names in (("without", []), ("with", terms)):
        train, test = (matrix(featurize(one, state), names) for one in (few, fresh))
        model = LogisticRegression(max_iter=2000).fit(train, few["tips"].to_numpy())
        area = roc_auc_score(fresh["tips"].to_numpy(), model.predict_proba(test)[:, 1])
        print(f"bicycle rides, {words} the features: area under the curve {area:.3f}")


if __name__ == "__main__":
    main()
