"""The records of one training in compact arrays, and exact sums over them.

Values and residuals are whole numbers of steps and feature vectors whole numbers of units: products
of them, and sums of up to 2**29 products, stay below 2**53, where float64 is exact whatever the
order of the records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.embeddings.releases import COUNT_UNITS, SQUARE_UNITS, STEPS
from ptklib.ptks.embeddings.trust import held_out

__all__ = ["Columns", "EventTable", "Integers"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# The user, the item and the value in steps of some records.
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

# `STEPS` fits in these.
_STEP_BITS = 13
# So many that an item and a value fit in 31 bits.
_FEW_ITEMS = 2**18
# Residuals are made a piece that fits a cache at a time.
_ROWS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class EventTable:
    """Records with a known user, item and value, sorted by user."""

    items: NDArray[np.int32]
    steps: NDArray[np.uint16]  # the value, from 0 to `STEPS`
    starts: NDArray[np.int32]  # of the records of each user, and the end
    item_count: int

    @classmethod
    def of(cls, columns: Iterable[Columns], user_count: int, item_count: int) -> EventTable:
        """Every record for itself."""
        from scipy import sparse

        kind = np.int32 if item_count <= _FEW_ITEMS else np.int64
        users, both = [np.zeros(0, np.int32)], [np.zeros(0, kind)]
        for user, item, steps in columns:
            users.append(user.astype(np.int32))
            both.append(np.left_shift(item.astype(kind), _STEP_BITS) | steps.astype(kind))
        rows = np.concatenate(users)
        # One entry for each record in a matrix of users by records: turning it around is a count
        # sort. It carries the rest.
        one_each = np.arange(len(rows) + 1, dtype=np.int32)
        table = sparse.csc_matrix(
            (np.concatenate(both), rows, one_each), shape=(user_count, len(rows))
        ).tocsr()
        values = np.bitwise_and(table.data, 2**_STEP_BITS - 1).astype(np.uint16)
        return cls(
            (table.data >> _STEP_BITS).astype(np.int32, copy=False),
            values,
            table.indptr,
            item_count,
        )

    @classmethod
    def pairs(cls, columns: Iterable[Columns], user_count: int, item_count: int) -> EventTable:
        """One record for each user and item that have any, with the mean of their values."""
        from scipy import sparse

        parts = [(np.zeros(0, np.int32), np.zeros(0, np.int32), np.zeros(0)), *columns]
        users, items, steps = (
            np.concatenate([part[place] for part in parts]) for place in range(3)
        )
        shape = (user_count, item_count)
        sums = sparse.csr_matrix((steps.astype(np.float64), (users, items)), shape=shape)
        counts = sparse.csr_matrix((np.ones(len(users)), (users, items)), shape=shape)
        values = np.rint(sums.data / counts.data).astype(np.uint16)
        return cls(sums.indices.astype(np.int32), values, sums.indptr.astype(np.int32), item_count)

    def item_totals(self) -> Integers:
        """(count, sum of 2 value - 1) of each item, in units: one row per item."""
        counts = np.bincount(self.items, minlength=self.item_count)
        sums = np.bincount(self.items, weights=self.steps, minlength=self.item_count)
        return _totals(counts, np.asarray(2 * sums - STEPS * counts, dtype=np.float64))

    def item_residuals(self, residuals: Any) -> Integers:
        """(count, sum of residuals) of each item, in units: one row per item."""
        counts = np.bincount(self.items, minlength=self.item_count)
        sums = np.bincount(self.items, weights=residuals.data, minlength=self.item_count)
        return _totals(counts, np.asarray(sums, dtype=np.float64))

    def level_totals(self) -> Integers:
        """(count, sum of 2 value - 1) of all records, in units, and in a second row the sum of its
        squares.

        That sum is exact and rounded down once: one record moves it by at most `SQUARE_UNITS`.
        """
        count = len(self.steps)
        total = int(self.steps.sum(dtype=np.int64))
        squares = sum(
            int(np.square(2 * self.steps[here].astype(np.int64) - STEPS).sum())
            for here, _ in self._pieces()
        )
        of_all = np.array([2.0 * total - STEPS * count])
        return np.vstack(
            [_totals(np.array([count]), of_all), [[0, squares * SQUARE_UNITS // STEPS**2]]]
        )

    def user_totals(self, residuals: Any) -> Integers:
        """(count, sum of residuals) of each user, in units, and in a last row the sum of squares.

        The squares are summed exactly and rounded down once: one of them moves the result by at
        most `SQUARE_UNITS`.
        """
        sums = residuals @ np.ones(self.item_count)
        squares = int(np.einsum("n,n->", residuals.data, residuals.data)) * SQUARE_UNITS // STEPS**2
        return np.vstack([_totals(np.diff(self.starts), sums), [[0, squares]]])

    def residuals(self, items: Floats, users: Floats, zero: float, clip: float) -> Any:
        """A matrix of users by items: what values are above ``items`` times ``users`` plus
        ``zero``, clipped.

        Values and ``items`` are in ranges. Entries are whole: `STEPS` is a residual of ``clip``
        ranges or more. Times whole feature vectors the matrix gives exact sums.
        """
        from scipy import sparse

        counts = np.diff(self.starts)
        expected = np.repeat(users * (STEPS / clip), counts)
        offset = zero * STEPS / clip
        for start in range(0, len(expected), _ROWS_AT_ONCE):
            here = slice(start, start + _ROWS_AT_ONCE)
            part = expected[here]
            # numpy takes by its own integers much faster than by others.
            part *= items.take(self.items[here].astype(np.intp))
            part += offset
            np.subtract(self.steps[here] * (1 / clip), part, out=part)
            np.rint(part, out=part)
            # What is no number is within the bounds too: `fmin` takes the other one.
            np.fmin(part, STEPS, out=part)
            np.maximum(part, -STEPS, out=part)
        return sparse.csr_matrix(
            (expected, self.items, self.starts), shape=(len(counts), self.item_count)
        )

    def held_out(self) -> NDArray[np.bool_]:
        """Of each record, whether tastes are tested on it: by its pair alone."""
        tested = np.empty(len(self.items), dtype=np.bool_)
        for here, users in self._pieces():
            tested[here] = held_out(users, self.items[here])
        return tested

    def learned_from(self, residuals: Any, held: NDArray[np.bool_]) -> tuple[Any, Any]:
        """The residuals of records that are not held out, and a 1 for each of those."""
        from scipy import sparse

        kept = (~held).astype(np.float64)
        shape = residuals.shape
        return tuple(
            sparse.csr_matrix((values, self.items, self.starts), shape=shape)
            for values in (residuals.data * kept, kept)
        )

    def products(self, users: Floats, items: Floats, of: NDArray[np.bool_]) -> Floats:
        """The product of the vectors of user and item of each record that is chosen, one number
        at a time: other ways of summing may round by where a record stands.
        """
        parts = [np.zeros(0)]
        for here, codes in self._pieces():
            chosen = of[here]
            rows, columns = codes[chosen], self.items[here][chosen]
            products = np.zeros(len(rows))
            for user, item in zip(users.T, items.T, strict=True):
                products += user[rows] * item[columns]
            parts.append(products)
        return np.concatenate(parts)

    def _pieces(self) -> Iterator[tuple[slice, NDArray[np.int64]]]:
        """Some records at a time, and their users."""
        for start in range(0, len(self.items), _ROWS_AT_ONCE):
            here = slice(start, min(start + _ROWS_AT_ONCE, len(self.items)))
            places = np.arange(here.start, here.stop)
            yield here, np.searchsorted(self.starts, places, side="right") - 1


def _totals(counts: NDArray[Any], sums: Floats) -> Integers:
    return np.stack([counts.astype(np.int64) * COUNT_UNITS, sums.astype(np.int64)], axis=1)
