"""Principal components of a stream of measurements, window by window, against those of the data
itself.

Run ``python -m examples.ptks.covariance``. The data is made up: eight columns that follow two
hidden causes.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.features import featurize
from ptklib.ptk import Arrays
from ptklib.ptks.covariance import Covariance
from ptklib.ptks.vectors import Bounded
from ptklib.state import State

COLUMNS = 8
ROWS = 4_000
EPSILON = 0.2


def window(seed: int) -> pa.Table:
    """Measurements between -1 and 1."""
    causes = np.random.default_rng(0).normal(size=(2, COLUMNS))
    rng = np.random.default_rng(seed)
    found = rng.normal(0, 0.25, (ROWS, 2)) @ causes + rng.normal(0, 0.1, (ROWS, COLUMNS)) + 0.1
    return pa.table({f"x{place}": np.clip(found[:, place], -1, 1) for place in range(COLUMNS)})


def main() -> None:
    """Train five windows, and featurize with the last state."""
    ptk = Covariance(
        values=tuple(Bounded(column=f"x{place}", lower=-1, upper=1) for place in range(COLUMNS)),
        components=2,
        norm=2.0,
    )
    test = window(1_000)
    matrix = np.column_stack([test[name].to_numpy() for name in ptk.columns()])
    truth = np.cov(matrix.T)
    best = np.linalg.eigvalsh(truth)[-2:].sum()
    arrays: Arrays | None = None
    print(f"{ptk.cost(EPSILON)} for each window; other windows hold other records.")
    for number in range(1, 6):
        arrays = ptk.train_dp(window(number).to_batches(), epsilon=EPSILON, previous=arrays)
        captured = np.trace(arrays["components"] @ truth @ arrays["components"].T) / best
        print(
            f"window {number}: {captured:.1%} of the variance that the best two components capture"
        )
    assert arrays is not None
    found = ptk.moments(arrays)
    print(
        f"records: {found.count:.0f} (there were {5 * ROWS}); mean of x0: {found.mean[0]:.3f} "
        f"({matrix[:, 0].mean():.3f})"
    )
    state = State.make(ptk, arrays, name="measurements", epsilon=EPSILON)
    print(
        featurize(test.slice(0, 3), state)
        .select(["x0", "x1", "component_1", "component_2"])
        .to_pandas()
        .round(3)
    )


if __name__ == "__main__":
    main()
