"""The blocks that have arrived, in the order of arrival: what each had, has left and has earned.

Positions in the arrays are ranks of arrival and never change. Whoever drives a policy (a replay, a
service behind its ledger) opens blocks and charges grants; a policy only looks.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pool"]


class Pool:
    """Blocks that are there now. The arrays are views: valid until the next block arrives."""

    def __init__(self, room: int = 16) -> None:
        """Empty; ``room`` is how many blocks fit before the arrays grow."""
        self.count = 0
        self._budget = np.zeros(max(1, room), dtype=np.int64)
        self._left = np.zeros_like(self._budget)
        self._opened = np.zeros_like(self._budget)
        self._earned = np.zeros(len(self._budget))

    @property
    def budget(self) -> NDArray[np.int64]:
        """What each block had."""
        return self._budget[: self.count]

    @property
    def left(self) -> NDArray[np.int64]:
        """What each block has left."""
        return self._left[: self.count]

    @property
    def opened(self) -> NDArray[np.int64]:
        """The number of requests that had come before each block."""
        return self._opened[: self.count]

    @property
    def earned(self) -> NDArray[np.float64]:
        """The significance that each block has been granted for."""
        return self._earned[: self.count]

    def open(self, budget: int, *, before: int) -> int:
        """A block arrives before request ``before``; its position."""
        if self.count == len(self._budget):
            for name in ("_budget", "_left", "_opened", "_earned"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros_like(old)]))
        at = self.count
        self._budget[at] = self._left[at] = budget
        self._opened[at] = before
        self._earned[at] = 0.0
        self.count += 1
        return at

    def charge(
        self, blocks: NDArray[np.intp], amounts: NDArray[np.int64], worth: NDArray[np.int64]
    ) -> None:
        """Take a grant from its blocks. A policy that grants what is not there is a bug."""
        left = self._left[blocks] - amounts
        if (left < 0).any() or (amounts < 0).any():
            raise AssertionError("a policy granted more than a block has left")
        self._left[blocks] = left
        self._earned[blocks] += worth
