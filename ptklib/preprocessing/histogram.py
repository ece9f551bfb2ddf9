"""How many records each key has, with noise: ``dp_histogram`` of a preprocessing step.

**Proof note.** *Unit, neighbours, sensitivity:* those of `Statistics` with ``count``: a record adds
1 to one cell at most; all cells of the public domain get noise, empty ones too. *Cost:* that PTK's,
for the same arguments (``Histogram.cost``). What `Histogram` tells is post-processing.

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

__all__ = ["Histogram", "dp_histogram"]


@dataclass(frozen=True, eq=False)
class Histogram:
    """Noisy counts by key, and what they cost. Everything it tells is free."""

    ptk: Statistics
    arrays: Arrays
    cost: Cost

    @property
    def counts(self) -> NDArray[np.int64]:
        """Counts with noise as they came, an axis for each key: unbiased, so some are below 0."""
        sizes = [key.size for key in self.ptk.keys]
        return np.asarray(self.arrays["totals"][:, 0]).reshape(sizes)

    @property
    def shares(self) -> NDArray[np.float64]:
        """Parts of all records: counts below 0 as 0, and the whole as 1; equal parts of nothing."""
        counts = np.maximum(self.counts.astype(np.float64), 0.0)
        whole = counts.sum()
        return counts / whole if whole > 0 else np.full(counts.shape, 1 / counts.size)

    @property
    def table(self) -> pa.Table:
        """A row for each key: a value of its columns (of a bin the lower edge), ``count`` and
        ``share``.
        """
        keys = each_key(self.ptk.keys)
        columns = [pa.array(self.counts.reshape(-1)), pa.array(self.shares.reshape(-1))]
        return pa.table([*keys.columns, *columns], names=[*keys.column_names, "count", "share"])


def dp_histogram(
    frame: Any,
    key: Key | tuple[Key, ...],
    *,
    epsilon: Number,
    delta: Number = 0,
    mechanism: Literal["laplace", "gaussian"] = "laplace",
    records_per_unit: int = 1,
    noise: BitSource | None = None,
) -> Histogram:
    """Counts by the keys of a public domain. Records without a known key are left out.

    Spends exactly ``cost`` of the result.
    """
    ptk = Statistics(
        keys=key if isinstance(key, tuple) else (key,),
        statistics=("count",),
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
    return Histogram(ptk, arrays, cost)
