"""What the checks of a PTK share: its data, neighbours of it, canaries in it, and many runs of
training.

Data is invented by the PTK itself (`Ptk.example`) or given by its author. It is public: reports may
quote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib.privacy.amounts import Number
from ptklib.ptk import Arrays, Ptk

__all__ = [
    "AUDIT_DELTA",
    "Case",
    "Check",
    "CheckFailed",
    "CheckSkipped",
    "demand",
    "same_arrays",
    "varied",
]

# Large, so that few runs tell the right Gaussian noise from half of it.
AUDIT_DELTA = Fraction(1, 20)
_CANARY_TEXT = "canary-7f3a9c"
_CANARY_NUMBER = 88172645463325252
_OUTLIER = 1e6
_SMALL_ROWS = 40
_MANY_CANDIDATES = 24


class CheckFailed(Exception):
    """A check that did not hold; the message says what was expected and what was found."""


class CheckSkipped(Exception):
    """A check that could not run here; the message says why."""


def demand(holds: bool, words: str) -> None:
    """Fail the check with these words unless the condition holds."""
    if not holds:
        raise CheckFailed(words)


@dataclass(frozen=True)
class Check:
    """A named check, the PTKs it is for, and whether it takes seconds."""

    name: str
    run: Callable[[Case], None]
    applies: Callable[[Ptk], bool] = field(default=lambda _: True)
    slow: bool = False


@dataclass(frozen=True)
class Case:
    """A PTK with data to check it on."""

    ptk: Ptk
    data: pa.Table

    @property
    def delta(self) -> Fraction:
        """Zero unless the PTK needs one."""
        return AUDIT_DELTA if self.ptk.tags.needs_delta else Fraction(0)

    @cached_property
    def batches(self) -> list[pa.RecordBatch]:
        """All the data, in two batches or more."""
        return list(self.data.to_batches(max_chunksize=max(1, (self.data.num_rows + 1) // 2)))

    @cached_property
    def small(self) -> pa.Table:
        """A few records, for checks that train many times."""
        return self.data.slice(0, _SMALL_ROWS)

    @property
    def empty(self) -> pa.RecordBatch:
        """A batch of the same columns and no records."""
        return pa.RecordBatch.from_arrays(
            [pa.array([], column.type) for column in self.data.schema], schema=self.data.schema
        )

    def train(
        self, batches: Any = None, *, epsilon: Number = 1, **options: Any
    ) -> dict[str, NDArray[Any]]:
        """One state, as a plain dict."""
        given = self.batches if batches is None else _batches(batches)
        return dict(self.ptk.train_dp(given, epsilon=epsilon, delta=self.delta, **options))

    def unseen(self) -> pa.Table:
        """The data with every key and value replaced by one that no domain lists, where the type
        has such values.
        """
        table = self.data
        for name in self.ptk.columns():
            table = with_value(table, name, canary(table.schema.field(name).type, None), every=1)
        return table

    def canaries(self) -> Iterator[tuple[str, object, pa.Table]]:
        """(column, value, data with that value planted in a third of the records) for each column
        that can take one.
        """
        for name in self.ptk.columns():
            column = self.data.column(name)
            value = canary(column.type, column)
            if value is not None:
                yield name, value, with_value(self.data, name, value, every=3)

    def candidates(self) -> list[pa.Table]:
        """Single records to add: spread over the data, with the least and the largest value of each
        column, and outliers.
        """
        rows = set(
            np.linspace(0, self.data.num_rows - 1, _MANY_CANDIDATES // 2).astype(int).tolist()
        )
        outliers = []
        for name in self.ptk.columns():
            column = self.data.column(name)
            if _is_number(column.type):
                values = column.to_numpy()
                rows |= {int(np.nanargmin(values)), int(np.nanargmax(values))}
                record = self.data.slice(0, 1)
                for sign in (-1, 1):
                    far = (
                        _OUTLIER * sign
                        if pa.types.is_floating(column.type)
                        else int(_OUTLIER) * sign
                    )
                    outliers.append(with_value(record, name, far, every=1))
        return [*(self.data.slice(row, 1) for row in sorted(rows)), *outliers]

    def coordinates(self, batches: Any, count: int, **options: Any) -> NDArray[np.float64]:
        """``count`` runs: one row each, all arrays flattened in the order of their names."""
        given = _batches(batches)
        runs = []
        for _ in range(count):
            arrays = self.train(given, **options)
            runs.append(
                np.concatenate(
                    [np.asarray(arrays[name], np.float64).ravel() for name in sorted(arrays)]
                )
            )
        return np.array(runs)


def with_value(table: pa.Table, name: str, value: object, *, every: int) -> pa.Table:
    """The table with ``value`` in every so many records of a column; as it is when the type cannot
    hold the value.
    """
    place = table.schema.get_field_index(name)
    column = table.column(place).combine_chunks()
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if value is None:
        return table
    try:
        scalar = pa.scalar(value, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return table
    mask = pa.array(np.arange(table.num_rows) % every == 0)
    plain = column.cast(kind)
    return table.set_column(place, name, pc.if_else(mask, scalar, plain).cast(column.type))


def canary(kind: pa.DataType, column: pa.ChunkedArray | None) -> object:
    """An unusual value of the type, inside the range of the column if one is given; None for types
    without room.
    """
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _CANARY_TEXT
    if pa.types.is_floating(kind):
        if column is None:
            return -1.2345678901e17
        low, high = pc.min(column).as_py(), pc.max(column).as_py()
        return low + (high - low) * 0.72348915623
    if kind == pa.int64() or kind == pa.uint64():
        return _CANARY_NUMBER
    return None


def same_arrays(arrays: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Equal names, dtypes and values."""
    return set(arrays) == set(other) and all(
        arrays[name].dtype == other[name].dtype and np.array_equal(arrays[name], other[name])
        for name in arrays
    )


def varied(arrays: Arrays, generator: np.random.Generator) -> Iterator[dict[str, NDArray[Any]]]:
    """The arrays with one of them changed a little, or much, at random."""
    for name in sorted(arrays):
        for size in (0.01, 0.1, 1.0):
            old = arrays[name]
            step = size * max(1.0, float(np.abs(old).max(initial=0)))
            noise = generator.normal(0, step, old.shape)
            yield {**arrays, name: (old + noise).astype(old.dtype)}


def _batches(given: Any) -> Any:
    return given.to_batches() if isinstance(given, pa.Table) else given


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
