"""The mean of a value by key, with noise: ``dp_group_by_mean`` of a preprocessing step.

::

    speeds = dp_group_by_mean(rides, hour, "speed", epsilon=0.5, lower=0, upper=60)
    rides = rides.assign(hour_speed=speeds.of(rides))

**Proof note.** *Unit, neighbours, sensitivity:* those of `Statistics` with ``mean`` and ``count``:
one release of the corners of all cells, so sum and count have all of epsilon together and nothing
is split between them; a record is in one key at most, so keys compose in parallel. *Cost:* that
PTK's, for the same arguments (``GroupMeans.cost``). Keys and bounds are public arguments. What
`GroupMeans` tells is post-processing.

Reasons: those of `Statistics`, `frames` and `each_key`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import Key
from ptklib.frames import read_columns
from ptklib.preprocessing.each_key import each_key
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays
from ptklib.ptks.statistics import Statistics

__all__ = ["GroupMeans", "dp_group_by_mean"]


@dataclass(frozen=True, eq=False)
class GroupMeans:
    """Means and counts by key, and what they cost. Everything it tells is free."""

    ptk: Statistics
    arrays: Arrays
    cost: Cost

    def of(self, frame: Any) -> NDArray[np.float64]:
        """The mean of the key of each row; that of all records where the key is unknown."""
        read = read_columns(frame, self.ptk.feature_columns())
        return np.asarray(self.ptk.features(self.arrays, read).column("mean").to_numpy())

    @property
    def table(self) -> pa.Table:
        """A row for each key: a value of its columns (of a bin the lower edge), ``mean`` and
        ``count``.
        """
        keys = each_key(self.ptk.keys)
        told = self.ptk.features(self.arrays, keys)
        return pa.table([*keys.columns, *told.columns], names=[*keys.column_names, "mean", "count"])


def dp_group_by_mean(
    frame: Any,
    key: Key | tuple[Key, ...],
    value: str,
    *,
    epsilon: Number,
    lower: float,
    upper: float,
    delta: Number = 0,
    mechanism: Literal["laplace", "gaussian"] = "laplace",
    records_per_unit: int = 1,
    noise: BitSource | None = None,
) -> GroupMeans:
    """The mean of a column by the keys of a public domain, between public bounds.

    Values are clipped to the bounds. Records without a known key or a value are left out. Spends
    exactly ``cost`` of the result.
    """
    ptk = Statistics(
        keys=key if isinstance(key, tuple) else (key,),
        statistics=("mean", "count"),
        value=value,
        lower=lower,
        upper=upper,
        mechanism=mechanism,
        prefix="",
    )
    cost = ptk.cost(epsilon, delta, records_per_unit=records_per_unit)
    arrays = ptk.train_dp(
        read_columns(frame, ptk.columns()).to_batches(),
        epsilon=epsilon,
        delta=delta,
        noise=noise,
        records_per_unit=records_per_unit,
    )
    return GroupMeans(ptk, arrays, cost)
