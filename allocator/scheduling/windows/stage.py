"""What has been granted so far, who waits, and what still fits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.windows.problem import Windows

__all__ = ["WindowStage"]

_Ints = NDArray[np.int64]

_FULL = 1 << 62


class WindowStage:
    """The state of one stream of tasks, at a moment. A policy looks at ``here`` and ``waiting``
    only: blocks and tasks that have arrived.
    """

    def __init__(self, problem: Windows) -> None:
        """Nothing granted, nobody there."""
        self.problem = problem
        self.now = 0.0
        self.used = np.zeros_like(problem.capacity)
        self.here = np.zeros(len(problem.block_ids), dtype=np.bool_)
        self.seen: list[int] = []
        self.waiting: dict[int, None] = {}
        self.granted: list[int] = []

    def fits(self, task: int) -> bool:
        """Whether every block of the task still has some order with room."""
        problem = self.problem
        window = slice(int(problem.first[task]), int(problem.last[task]) + 1)
        after = self.used[window] + problem.demand[task]
        return bool((after <= problem.capacity[window]).any(axis=1).all())

    def present(self, task: int) -> bool:
        """Whether all blocks of the task have arrived."""
        problem = self.problem
        return bool(self.here[int(problem.first[task]) : int(problem.last[task]) + 1].all())

    def grant(self, task: int) -> bool:
        """Grant the task if it is ready and fits."""
        if task not in self.waiting or not self.present(task) or not self.fits(task):
            return False
        problem = self.problem
        window = slice(int(problem.first[task]), int(problem.last[task]) + 1)
        # An order that overflows is full for ever; others decide.
        self.used[window] = np.minimum(self.used[window] + problem.demand[task], _FULL)
        del self.waiting[task]
        self.granted.append(task)
        return True
