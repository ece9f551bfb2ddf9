"""Clicks on advertisements: high-cardinality columns become counts and click rates, with
differential privacy.

Ten days of made-up impressions train one state, a day at a time, at epsilon 1 for each day's
records. Its features are shown for a frequent site, a rare one and one that was never seen, beside
the truth.

Run it with ``python -m examples.ptks.counts``.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from ptklib.columns.keys import Bins, IntegerRange
from ptklib.features import featurize
from ptklib.ptks.counts import Counts
from ptklib.ptks.tables.hashing import Hashed
from ptklib.state import State

SITES, ROWS, DAYS = 20_000, 50_000, 10
RATES = np.random.default_rng(0).beta(1, 9, SITES)


def impressions(day: int) -> pa.Table:
    """Few sites have most of the impressions; every site has its own click rate."""
    generator = np.random.default_rng(1 + day)
    site = (generator.random(ROWS) ** 6 * SITES).astype(np.int64)
    click = (generator.random(ROWS) < RATES[site]).astype(np.int64)
    price = generator.gamma(2, 1 + click)
    return pa.table({"site": [f"site-{one}" for one in site], "price": price, "click": click})


def main() -> None:
    """Train day by day, then featurize."""
    ptk = Counts(
        keys=(
            Hashed(column="site", width=1 << 16),
            Bins(column="price", edges=(0, 1, 2, 4, 8, 100)),
        ),
        label=IntegerRange(column="click", first=0, last=1),
        min_share=0.001,
    )
    print(f"{ptk.cells} cells; price of each day, known before the data: {ptk.cost(1)}")
    (needed,) = ptk.analytic_profile(target=0.05, levels=[1])
    print(
        "for a site with a thousandth of the records to have its click rate within 0.05 of the "
        f"truth: {needed}"
    )
    arrays = None
    for day in range(DAYS):
        arrays = ptk.train_dp(impressions(day).to_batches(), epsilon=1, previous=arrays)
    assert arrays is not None
    state = State.make(ptk, arrays, name="click-counts", epsilon=1)

    places = (0, 5, 3000, 19_000)
    new = pa.table(
        {
            "site": [*(f"site-{one}" for one in places), "never-seen"],
            "price": [0.5, 3.0, 3.0, 9.0, 3.0],
        }
    )
    found = featurize(new, state).to_pylist()
    for one, truth in zip(
        found, [*(f"{RATES[place]:.3f}" for place in places), "  -  "], strict=True
    ):
        seen = one["site_count_0"] + one["site_count_1"]
        rate = one["site_probability_1"]
        print(
            f"{one['site']:>10}: about {seen:7.0f} impressions, click rate {rate:.3f} (truth "
            f"{truth})"
        )


if __name__ == "__main__":
    main()
