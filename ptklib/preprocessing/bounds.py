"""Bounds of columns of which nobody knows any: estimated from the data, for a price.

Bounds are public arguments everywhere else, and what is known should be said: it costs nothing.
Where nothing is known but that values are of some size, `dp_bounds` asks for two ranks of each
column, just above the lowest values and just below the highest, on a public grid of all sizes: a
bin around zero, and then, on both sides, bins that grow by a fixed factor. Bins of the two ranks
are drawn by the exponential mechanism (`Quantiles`), which pays for the logarithm of the number of
bins, so it hardly matters how wide the grid is. The outer edges of the two bins are the bounds:
rounded outwards to the grid, and most probably beyond all but ``tail`` of the records on each side
and a few more (`EstimatedBounds.records_beyond`).

**Proof note.** *Unit, neighbours:* one record, or a user with at most ``records_per_unit``.
*Sensitivity, cost:* each column is one training of `Quantiles` with chosen bins and an equal share
of epsilon; `ptklib.ptks.quantiles.choosing` has the proof. Columns compose: ``cost`` is the sum of
theirs, epsilon in all. The grid depends on arguments alone. Values outside it count in its first or
last bin, values that are missing nowhere.

Reasons: CONFIG_INVALID, those of `Quantiles`, `amounts` and `frames`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import IntegerRange
from ptklib.columns.numbers import Bounded, number_column
from ptklib.config import demand, demand_distinct
from ptklib.frames import read_columns
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.ptks.quantiles import Quantiles

__all__ = ["EstimatedBounds", "dp_bounds"]

# Bins for each doubling: bounds are wider than the ranks by a fifth at most.
_PER_DOUBLING = 4
# The grid is 2**-20 (a millionth) to 2**50 unless the caller knows better.
_SMALLEST, _LARGEST = 2.0**-20, 2.0**50
_ALL = "all_records"


@dataclass(frozen=True, eq=False)
class EstimatedBounds:
    """Bounds by column, and what they cost. Everything it tells is free."""

    inputs: tuple[Bounded, ...]  # as inputs of a model
    cost: Cost
    tail: float
    bins: int
    _share: Fraction  # of epsilon, for each column
    _records: int

    @property
    def bounds(self) -> dict[str, tuple[float, float]]:
        """(lower, upper) by column."""
        return {source.column: (source.lower, source.upper) for source in self.inputs}

    def records_beyond(self, confidence: float = 0.95) -> int:
        """How many more records than ``tail`` of them may lie beyond a bound, with this confidence
        for all bounds together. From public numbers.

        A bin that holds the rank has score 0 records, so one that is k records off is
        exp(-rate k) times as probable; added up over bins and draws.
        """
        demand(0 < confidence < 1, "confidence must be between 0 and 1", field="confidence")
        rate = float(self._share) / 2 / (2 * self._records * max(self.tail, 1 - self.tail))
        draws = 2 * len(self.inputs)
        return math.ceil(math.log(draws * (self.bins - 1) / (1 - confidence)) / rate)

    def scaled(self, frame: Any) -> pa.Table:
        """The columns, clipped to the bounds and moved to -1..1; what is missing is 0."""
        columns = []
        for source in self.inputs:
            values, absent = number_column(read_columns(frame, [source.column]), source.column)
            middle, half = (source.lower + source.upper) / 2, (source.upper - source.lower) / 2
            moved = np.clip((values.astype(np.float64) - middle) / half, -1.0, 1.0)
            if absent is not None:
                moved[absent] = 0.0
            columns.append(pa.array(np.nan_to_num(moved)))
        return pa.table(columns, names=[source.column for source in self.inputs])


def dp_bounds(
    frame: Any,
    columns: Sequence[str],
    *,
    epsilon: Number,
    tail: float = 0.01,
    smallest: float = _SMALLEST,
    largest: float = _LARGEST,
    records_per_unit: int = 1,
    noise: BitSource | None = None,
) -> EstimatedBounds:
    """Bounds of numeric columns, an equal share of epsilon for each.

    ``tail`` of the records may lie beyond each bound; sizes below ``smallest`` are taken for 0,
    those above ``largest`` for ``largest``. Few records need a larger tail: it should be some times
    `EstimatedBounds.records_beyond` over their number. Spends exactly ``cost`` of the result.
    """
    demand_distinct(columns, field="columns")
    demand(0 < tail < 1 / 2, f"tail must be between 0 and 1/2, got {tail}", field="tail")
    demand(
        0 < smallest < largest < 1e90,
        f"smallest must be above 0 and below largest, got {smallest} and {largest}",
        field="smallest",
    )
    whole, edges = epsilon_exact(epsilon), _grid(smallest, largest)
    share = whole / len(columns)
    table = read_columns(frame, list(columns))
    kinds = [_ptk(column, tail, edges) for column in columns]
    costs = [ptk.cost(share, records_per_unit=records_per_unit) for ptk in kinds]
    inputs = []
    for column, ptk in zip(columns, kinds, strict=True):
        everyone = pa.array(np.zeros(table.num_rows, dtype=np.int64))
        read = pa.table([everyone, table.column(column)], names=[_ALL, column])
        arrays = ptk.train_dp(
            read.to_batches(), epsilon=share, noise=noise, records_per_unit=records_per_unit
        )
        low, high = sorted(arrays["chosen"][0].tolist())
        inputs.append(Bounded(column=column, lower=float(edges[low]), upper=float(edges[high + 1])))
    return EstimatedBounds(
        tuple(inputs),
        reduce(add, costs),
        tail,
        len(edges) - 1,
        share,
        count_of(records_per_unit),
    )


def _ptk(column: str, tail: float, edges: NDArray[np.float64]) -> Quantiles:
    """Two ranks of a column, of all records together."""
    demand(column != _ALL, f"columns must not be called {_ALL!r}", field="columns")
    return Quantiles(
        keys=(IntegerRange(column=_ALL, first=0, last=0),),
        value=column,
        quantiles=(tail, 1 - tail),
        edges=tuple(edges.tolist()),
        mechanism="exponential",
    )


def _grid(smallest: float, largest: float) -> NDArray[np.float64]:
    """Edges on both sides of zero, each larger than the last by the same factor."""
    steps = max(1, math.ceil(_PER_DOUBLING * math.log2(largest / smallest)))
    sizes = smallest * 2.0 ** (np.arange(steps + 1) / _PER_DOUBLING)
    return np.concatenate([-sizes[::-1], sizes])
