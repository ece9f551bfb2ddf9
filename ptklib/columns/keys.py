"""Public key domains: which cells a table of statistics has, and the cell of each record.

Which keys exist is part of the configuration, never learned from the data. `codes` gives each
record a whole number from 0 to ``size``, where ``size`` itself means *unknown*: a null, or a value
outside the domain.

**Proof note.** *Unit:* one record. The code of a record depends on that record alone, so a record
is in at most one cell of a domain, and in at most one cell of a product of domains. *Cost:* none;
what is counted by cell is noised later.

Fast paths: whole numbers and times by wrapping integer arithmetic (no comparison with a null or an
outlier can branch), dictionaries by their entries, few bins by counting the edges passed.

Reasons: CONFIG_INVALID, COLUMN_TYPE.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib import config
from ptklib.columns.numbers import numbers_of
from ptklib.errors import InvalidInput

__all__ = [
    "MAX_CELLS",
    "Bins",
    "Categories",
    "Codes",
    "IntegerRange",
    "Key",
    "TimePart",
]

# A state of this many cells is 32 MB for counts; more is a mistake.
MAX_CELLS = 2**22

Codes = NDArray[np.intp]

# Counting edges passed is faster than a binary search up to about here.
_FEW_EDGES = 33
_TICKS_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_HOUR, _DAY = 3600, 86400
# 1970-01-01 was a Thursday; Monday is 0.
_FIRST_WEEKDAY = 3


@dataclass(frozen=True, kw_only=True)
class Categories:
    """Texts, or whole numbers, that are listed; equal means the same text, byte by byte."""

    kind: ClassVar[str] = "categories"
    column: str
    values: tuple[str, ...] | tuple[int, ...]

    def __post_init__(self) -> None:
        """At least one value, none twice, none outside 64 bits."""
        config.checked(self)
        config.demand(
            1 <= len(self.values) <= MAX_CELLS and len(set(self.values)) == len(self.values),
            f"values of {self.column!r} must be 1 to {MAX_CELLS}, none twice",
            field="values",
        )
        config.demand(
            not isinstance(self.values[0], int)
            or all(-(2**63) <= int(value) < 2**63 for value in self.values),
            f"values of {self.column!r} must fit in 64 bits",
            field="values",
        )

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.values)

    def codes(self, column: pa.Array) -> Codes:
        """The place of each value in the list."""
        whole = isinstance(self.values[0], int)
        values = pa.array(self.values, pa.int64() if whole else pa.string())
        if pa.types.is_dictionary(column.type):
            entries = self._places(column.dictionary, values, whole)
            # One more entry, for nulls.
            indices = pc.fill_null(column.indices.cast(pa.int64()), len(entries)).to_numpy()
            codes: Codes = np.append(entries, self.size)[indices]
            return codes
        return self._places(column, values, whole)

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented keys, uniform."""
        return pa.array(
            [self.values[integer] for integer in generator.integers(0, self.size, rows)]
        )

    def _places(self, column: pa.Array, values: pa.Array, whole: bool) -> Codes:
        kind = column.type
        fits = (
            pa.types.is_integer(kind)
            if whole
            else pa.types.is_string(kind) or pa.types.is_large_string(kind)
        )
        if not fits and str(kind) == "string_view" and not whole:
            column, fits = column.cast(pa.string()), True
        if not fits:
            raise _wrong_type(self.column, "whole numbers" if whole else "text", kind)
        if whole:
            # A uint64 beyond int64 is in no list: as a null it is unknown.
            column = column.cast(pa.int64(), safe=False) if kind != pa.uint64() else _signed(column)
        elif pa.types.is_large_string(kind):
            values = values.cast(kind)
        places = pc.index_in(column, value_set=values)
        return _intp(pc.fill_null(places, self.size).to_numpy())


@dataclass(frozen=True, kw_only=True)
class IntegerRange:
    """Whole numbers from ``first`` to ``last``, both included."""

    kind: ClassVar[str] = "integers"
    column: str
    first: int
    last: int

    def __post_init__(self) -> None:
        """Not empty, not too long, inside 64 bits."""
        config.checked(self)
        config.demand(
            self.first <= self.last < self.first + MAX_CELLS and -(2**62) <= self.first <= 2**62,
            f"{self.column!r} must run from first to last with at most {MAX_CELLS} numbers, "
            f"got {self.first} to {self.last}",
            field="first",
        )

    @property
    def size(self) -> int:
        """How many cells."""
        return self.last - self.first + 1

    def codes(self, column: pa.Array) -> Codes:
        """The distance from ``first``; what wraps below zero or lies beyond ``last`` is unknown."""
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if column.type == pa.uint64():
            column = _signed(column)
        if not (pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)):
            raise _wrong_type(self.column, "whole numbers", column.type)
        values, unknown = numbers_of(column)
        return _distance(np.subtract(values, self.first, dtype=np.int64), self.size, unknown)

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented keys, uniform."""
        return pa.array(generator.integers(self.first, self.last + 1, rows))


@dataclass(frozen=True, kw_only=True)
class Bins:
    """Numbers between rising edges: each bin holds its lower edge, the last one its upper edge
    too.
    """

    kind: ClassVar[str] = "bins"
    column: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        """At least two edges, rising."""
        config.checked(self)
        config.demand(
            2 <= len(self.edges) <= MAX_CELLS and all(a < b for a, b in pairwise(self.edges)),
            f"edges of {self.column!r} must be two or more, rising",
            field="edges",
        )

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.edges) - 1

    def codes(self, column: pa.Array) -> Codes:
        """The bin of each number; NaN and numbers outside the edges are unknown."""
        if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
            raise _wrong_type(self.column, "numbers", column.type)
        values, unknown = numbers_of(column)
        values = values.astype(np.float64, copy=False)
        if len(self.edges) <= _FEW_EDGES:
            passed: NDArray[Any] = np.zeros(len(values), dtype=np.uint8)
            for edge in self.edges[:-1]:
                passed += values >= edge
            passed += values > self.edges[-1]
            # Zero edges passed wraps around to 255, which is unknown like everything beyond the
            # last edge.
            passed -= 1
            codes = _intp(np.minimum(passed, self.size, out=passed))
        else:
            codes = self._searched(values)
        if unknown is not None:
            codes[unknown] = self.size
        return codes

    def _searched(self, values: NDArray[np.float64]) -> Codes:
        """A binary search, or a guess from even bins that is put right by one comparison with the
        edges on each side.
        """
        edges = np.array(self.edges)
        inside = (values >= edges[0]) & (values <= edges[-1])
        even = np.linspace(edges[0], edges[-1], len(edges))
        with np.errstate(over="ignore"):
            rate = self.size / (edges[-1] - edges[0])
        # The guess is off by one bin at most where no edge is further than a third of a bin from
        # its even place.
        if np.isfinite(rate) and np.all(3 * np.abs(edges - even) < even[1] - even[0]):
            guess = np.where(inside, values, edges[0])
            guess -= edges[0]
            guess *= rate
            bins = np.minimum(guess.astype(np.intp), self.size - 1)
            bins -= values < edges[bins]
            bins += (values >= edges[bins + 1]) & (bins < self.size - 1)
        else:
            bins = np.searchsorted(edges[:-1], values, side="right") - 1
        return _intp(np.where(inside, bins, self.size))

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented keys, in uniform bins."""
        bins = generator.integers(0, self.size, rows)
        edges = np.array(self.edges)
        return pa.array(generator.uniform(edges[bins], edges[bins + 1]))


@dataclass(frozen=True, kw_only=True)
class TimePart:
    """The hour (0 to 23) or the weekday (Monday is 0) of a time in UTC."""

    kind: ClassVar[str] = "time_part"
    column: str
    part: Literal["hour", "weekday"]

    def __post_init__(self) -> None:
        """Check the types."""
        config.checked(self)

    @property
    def size(self) -> int:
        """How many cells."""
        return 24 if self.part == "hour" else 7

    def codes(self, column: pa.Array) -> Codes:
        """By integer division of the ticks since 1970; only nulls are unknown."""
        if pa.types.is_date32(column.type):
            column = column.cast(pa.date64())
        kind = column.type
        if pa.types.is_timestamp(kind):
            ticks = _TICKS_PER_SECOND[kind.unit]
        elif pa.types.is_date64(kind):
            ticks = 1000
        else:
            raise _wrong_type(self.column, "times", kind)
        values, unknown = numbers_of(column.cast(pa.int64()))
        if self.part == "hour":
            steps = values // (_HOUR * ticks)
        else:
            steps = values // (_DAY * ticks)
            steps += _FIRST_WEEKDAY
        # Division by a constant is vectorised, the remainder is not.
        whole = steps // self.size
        whole *= self.size
        steps -= whole
        if unknown is not None:
            steps[unknown] = self.size
        return _intp(steps)

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented times of 1970, uniform over four weeks."""
        return pa.array(generator.integers(0, 28 * _DAY, rows), pa.timestamp("s"))


Key = Categories | IntegerRange | Bins | TimePart


def _distance(steps: NDArray[np.int64], size: int, unknown: NDArray[np.bool_] | None) -> Codes:
    """Steps as codes: as unsigned numbers, those below zero are beyond every size.

    Overwrites ``steps``.
    """
    unsigned = steps.view(np.uint64)
    np.minimum(unsigned, np.uint64(size), out=unsigned)
    if unknown is not None:
        steps[unknown] = size
    return _intp(steps)


def _signed(column: pa.Array) -> pa.Array:
    """A uint64 column as int64, with null for what does not fit."""
    limit = pa.scalar(2**63 - 1, pa.uint64())
    return pc.if_else(pc.less_equal(column, limit), column, None).cast(pa.int64())


def _intp(values: NDArray[Any]) -> Codes:
    return values.astype(np.intp, copy=False)


def _wrong_type(column: str, wanted: str, given: pa.DataType) -> InvalidInput:
    return InvalidInput(
        "COLUMN_TYPE", f"column {column!r} must hold {wanted}, got {given}", column=column
    )
