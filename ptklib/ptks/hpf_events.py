"""The records of one training in compact arrays, and exact sums over them.

Values and residuals are whole numbers of steps and feature vectors whole numbers of units: products of them, and sums of up to
2**32 products, stay below 2**53, where float64 is exact whatever the order of the records.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.hpf_plan import COUNT_UNITS, SQUARE_UNITS, STEPS

__all__ = ["Columns", "Events", "whole_residuals"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# The user, the item and the value in steps of some records.
Columns = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Events:
    """Records with a known user, item and value, sorted by user."""

    items: NDArray[np.int32]
    values: Floats  # as a share of the range
    starts: NDArray[np.int32]  # of the records of each user, and the end
    item_count: int

    @classmethod
    def of(cls, columns: Iterable[Columns], user_count: int, item_count: int) -> Events:
        """Every record for itself."""
        from scipy import sparse

        users, items, steps = _joined(columns)
        # One entry for each record in a matrix of users by records: turning it around is a count sort.
        one_each = np.arange(len(users) + 1, dtype=np.int32)
        marks = np.empty(len(users), dtype=np.int8)
        rows = sparse.csc_matrix((marks, users, one_each), shape=(user_count, len(users))).tocsr()
        return cls(items[rows.indices], steps[rows.indices] * (1 / STEPS), rows.indptr, item_count)

    @classmethod
    def pairs(cls, columns: Iterable[Columns], user_count: int, item_count: int) -> Events:
        """One record for each user and item that have any, with the mean of their values."""
        from scipy import sparse

        users, items, steps = _joined(columns)
        shape = (user_count, item_count)
        sums = sparse.csr_matrix((steps.astype(np.float64), (users, items)), shape=shape)
        counts = sparse.csr_matrix((np.ones(len(users)), (users, items)), shape=shape)
        return cls(sums.indices, sums.data / counts.data * (1 / STEPS), sums.indptr, item_count)

    def by_user(self, column: Floats) -> Floats:
        """A number of each user, for each of her records."""
        return np.repeat(column, np.diff(self.starts))

    def item_totals(self) -> Integers:
        """(count, sum of 2 value - 1) of each item, in units: one row per item."""
        centred = np.rint(self.values * (2 * STEPS) - STEPS)
        return _totals(
            np.bincount(self.items, minlength=self.item_count),
            np.bincount(self.items, weights=centred, minlength=self.item_count),
        )

    def user_totals(self, residuals: Floats) -> Integers:
        """(count, sum of residuals) of each user, in units, and in a last row the sum of squares. Residuals are whole."""
        # Sums of whole numbers: differences of the running sum are exact.
        running = np.concatenate([[0.0], np.cumsum(residuals)])
        squares = np.rint(np.square(residuals) * (SQUARE_UNITS / STEPS**2)).sum()
        return np.vstack([_totals(np.diff(self.starts), np.diff(running[self.starts])), [[0, int(squares)]]])

    def matrix(self, residuals: Floats) -> Any:
        """Users by items; times whole feature vectors it gives exact sums."""
        from scipy import sparse

        shape = (len(self.starts) - 1, self.item_count)
        return sparse.csr_matrix((residuals, self.items, self.starts), shape=shape)


def whole_residuals(values: Floats, expected: Floats, clip: float) -> Floats:
    """Residuals clipped to ``clip``, as whole numbers up to `STEPS`. Overwrites ``expected``."""
    np.subtract(values, expected, out=expected)
    expected *= STEPS / clip
    np.rint(expected, out=expected)
    np.clip(expected, -STEPS, STEPS, out=expected)
    return expected


def _totals(counts: NDArray[Any], sums: Floats) -> Integers:
    return np.stack([counts.astype(np.int64) * COUNT_UNITS, sums.astype(np.int64)], axis=1)


def _joined(columns: Iterable[Columns]) -> Columns:
    """All pieces in one; small types, for all records are in memory at once."""
    parts = list(columns)
    kinds = (np.int32, np.int32, np.uint16)
    if not parts:
        return tuple(np.zeros(0, kind) for kind in kinds)  # type: ignore[return-value]
    return tuple(np.concatenate([part[place] for part in parts]) for place in range(3))  # type: ignore[return-value]
