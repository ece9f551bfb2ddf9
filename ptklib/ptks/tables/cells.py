"""Cells: the product of one or more public key domains, and the numbers of the records in them.

Arrays over cells come in two layouts: *plain*, one place for each cell, and *padded*, with one more
place in every domain, where records with an unknown key are counted and then forgotten. A code is a
place in the padded layout.

**Proof note.** *Unit:* one record. Its code and its number depend on that record alone. *Cost:*
none.

Reasons: CONFIG_INVALID, COLUMN_TYPE, and those of `keys` and `ptk`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.columns.keys import (
    MAX_CELLS,
    Bins,
    Categories,
    Codes,
    IntegerRange,
    Key,
    TimePart,
)
from ptklib.columns.working import LOSS_BYTES, PIECE_BYTES, domain_bytes
from ptklib.config import demand
from ptklib.ptk import Batches, batches_of, column_of

__all__ = [
    "ROWS_AT_ONCE",
    "Cells",
    "example_values",
    "pieces",
    "prefixed",
]

ROWS_AT_ONCE = 1 << 16
_MOST_ROWS_AT_ONCE = 1 << 20
# Many keys of two values each have few cells and very many padded ones.
_MAX_PADDED = 8 * MAX_CELLS
# Of one number in the padded layout: counted, folded, noised and read.
_CELL_BYTES = 128


@dataclass(frozen=True)
class Cells:
    """The product of the domains of ``keys``, the last one running fastest."""

    keys: tuple[Key, ...]

    def check(self, *, arrays: int = 1) -> None:
        """One key or more, and at most `MAX_CELLS` numbers with so many for each cell."""
        demand(len(self.keys) >= 1, "keys must be one or more, got none", field="keys")
        demand(
            len(set(self.keys)) == len(self.keys),
            "keys must differ: one that is there twice adds no cell",
            field="keys",
        )
        made = self.size * arrays
        words = "cells" if arrays == 1 else f"cells of {arrays} numbers each, {MAX_CELLS} in all"
        demand(
            made <= MAX_CELLS,
            f"keys must make at most {MAX_CELLS // arrays} {words}, got {self.size}",
            field="keys",
        )
        wide = math.prod(self.padded) * arrays
        demand(
            wide <= _MAX_PADDED,
            f"keys must make at most {_MAX_PADDED // arrays} cells where each has one more value, "
            "for unknown ones, got "
            f"{wide // arrays}: join keys with few values",
            field="keys",
        )

    @property
    def size(self) -> int:
        """How many keys there are."""
        return math.prod(key.size for key in self.keys)

    @property
    def padded(self) -> tuple[int, ...]:
        """The shape with one more place in each domain."""
        return tuple(key.size + 1 for key in self.keys)

    @property
    def unknown(self) -> int:
        """The code that is unknown in every key: the last one."""
        return math.prod(self.padded) - 1

    def working_bytes(self, records: int, *, arrays: int = 1) -> int:
        """What a PTK with so many numbers for each cell may hold:

        `Ptk.working_bytes` of one that reads in one pass.
        """
        numbers = math.prod(self.padded) * arrays
        return PIECE_BYTES + domain_bytes(self.keys) + _CELL_BYTES * numbers + LOSS_BYTES * records

    def columns(self) -> tuple[str, ...]:
        """The key columns, each once."""
        return tuple(dict.fromkeys(key.column for key in self.keys))

    def codes(self, frame: pa.RecordBatch | pa.Table) -> Codes:
        """The padded cell of each record: unknown in any key is a place that no cell has."""
        codes = self.keys[0].codes(column_of(frame, self.keys[0].column))
        for key in self.keys[1:]:
            codes = codes * (key.size + 1)
            codes += key.codes(column_of(frame, key.column))
        return codes

    def plain(self, padded: NDArray[Any]) -> NDArray[Any]:
        """The plain layout, along the first axis, of an array in the padded one."""
        rest = padded.shape[1:]
        shaped = padded.reshape(*self.padded, *rest)
        return shaped[tuple(slice(key.size) for key in self.keys)].reshape(-1, *rest)

    def pad(self, plain: NDArray[Any], unknown: float) -> NDArray[np.float64]:
        """The padded layout, along the first axis, with a value for unknown keys."""
        rest = plain.shape[1:]
        padded = np.full((*self.padded, *rest), unknown, dtype=np.float64)
        padded[tuple(slice(key.size) for key in self.keys)] = plain.reshape(
            *(key.size for key in self.keys), *rest
        )
        return padded.reshape(-1, *rest)

    def example(self, rows: int, generator: np.random.Generator) -> dict[str, pa.Array]:
        """Invented keys, by column."""
        return {key.column: key.example(rows, generator) for key in self.keys}

    def look_up(self, frame: pa.Table, values: Mapping[str, NDArray[np.float64]]) -> pa.Table:
        """For each row the values of its key, by name; the last entry of each is for unknown
        keys.
        """
        codes = self.codes(frame)
        columns = [
            pa.array(self.pad(column[:-1], float(column[-1]))[codes]) for column in values.values()
        ]
        return pa.Table.from_arrays(columns, names=list(values))

    def labels(self, places: NDArray[np.intp]) -> list[tuple[str, pa.Array]]:
        """The keys of cells (places in the plain layout) as columns: values, or texts such as
        ``[18.0, 65.0)`` for bins.

        A part of a time is named ``<column>_hour`` or ``<column>_weekday``, any other key as its
        column.
        """
        split = np.unravel_index(places, [key.size for key in self.keys])
        names = [
            f"{key.column}_{key.part}" if isinstance(key, TimePart) else key.column
            for key in self.keys
        ]
        return [
            (name, _labels(key, codes))
            for name, key, codes in zip(names, self.keys, split, strict=True)
        ]


def example_values(
    rows: int, lower: float, upper: float, generator: np.random.Generator
) -> NDArray[np.float64]:
    """Invented numbers between the bounds, uniform, a quarter of them on a bound."""
    values = generator.choice([lower, upper], rows)
    inside = generator.uniform(0, 1, rows) < 3 / 4
    values[inside] = generator.uniform(lower, upper, rows)[inside]
    return values


def pieces(batches: Batches, cells: int = 0) -> Iterator[pa.RecordBatch]:
    """The batches cut into pieces that fit a cache, but no shorter than twice the cells to be added
    up for each.
    """
    rows = min(_MOST_ROWS_AT_ONCE, max(ROWS_AT_ONCE, 2 * cells))
    for batch in batches_of(batches):
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def prefixed(prefix: str | None, columns: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Names of features: ``<prefix>_<name>``, the columns where no prefix is given; an empty one
    leaves the names as they are.
    """
    begin = "_".join(columns) if prefix is None else prefix
    return tuple(f"{begin}_{name}" if begin else name for name in names)


def _labels(key: Key, places: NDArray[np.intp]) -> pa.Array:
    if isinstance(key, Categories):
        return pa.array([key.values[place] for place in places])
    if isinstance(key, Bins):
        ends = [*[")"] * (key.size - 1), "]"]
        return pa.array(
            [f"[{key.edges[place]}, {key.edges[place + 1]}{ends[place]}" for place in places],
            pa.string(),
        )
    return pa.array(places + (key.first if isinstance(key, IntegerRange) else 0), pa.int64())
