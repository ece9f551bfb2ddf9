"""Capacity that is unlocked with time, and grants in rounds: DPF and DPack.

A block unlocks its capacity evenly over ``lifetime`` seconds (the patience of tasks where nothing
else is said; where they wait for ever, the time that has passed). In each round the tasks that wait
are tried in the order of the policy, within what is unlocked.

*DPF*: the smallest dominant share first, the largest share of a capacity that the task needs in any
of its blocks, each in its best order. *DPack*: the largest value for what it takes of what is left,
summed over its blocks, each in the order that has most left for those who wait.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.windows.stage import WindowStage

__all__ = ["FairShareWindows", "PackingWindows"]

_Floats = NDArray[np.float64]
_ROUNDS = 100


class _Unlocking:
    """What both have in common: rounds within what is unlocked."""

    name = ""

    def __init__(self, lifetime: float | None = None) -> None:
        """``lifetime``: seconds until a block is unlocked."""
        self._lifetime = lifetime
        self._last = -math.inf

    def act(self, stage: WindowStage, came: int | None, leaving: int | None) -> None:  # noqa: ARG002
        """A round, if the last one is long enough ago or somebody is leaving."""
        life = self._life(stage)
        if leaving is None and stage.now - self._last < life / _ROUNDS:
            return
        if leaving is not None and stage.now - self._last < life / _ROUNDS / 4:
            return
        self._last = stage.now
        age = stage.now - stage.problem.arrives
        self._round(stage, np.clip(age / life if life > 0 else np.ones_like(age), 0.0, 1.0))

    def end(self, stage: WindowStage) -> None:
        """All is unlocked."""
        self._round(stage, np.ones(len(stage.problem.block_ids)))

    def _life(self, stage: WindowStage) -> float:
        if self._lifetime is not None:
            return self._lifetime
        patience = stage.problem.timeout
        return patience if math.isfinite(patience) else max(stage.now, 1e-9)

    def _round(self, stage: WindowStage, share: _Floats) -> None:
        problem = stage.problem
        tasks = [task for task in stage.waiting if stage.present(task)]
        unlocked = problem.capacity * np.where(stage.here, share, 0.0)[:, None] * (1 + 1e-12)
        for task in self._order(stage, tasks):
            window = slice(int(problem.first[task]), int(problem.last[task]) + 1)
            after = stage.used[window] + problem.demand[task]
            if (after <= unlocked[window]).any(axis=1).all():
                stage.grant(task)

    def _order(self, stage: WindowStage, tasks: list[int]) -> list[int]:
        raise NotImplementedError


class FairShareWindows(_Unlocking):
    """DPF."""

    name = "dpf"

    def _order(self, stage: WindowStage, tasks: list[int]) -> list[int]:
        problem = stage.problem

        def share(task: int) -> float:
            room = problem.capacity[int(problem.first[task]) : int(problem.last[task]) + 1]
            shares = np.where(room > 0, problem.demand[task] / np.maximum(room, 1), np.inf)
            return float(shares.min(axis=1).max())

        return sorted(tasks, key=lambda task: (share(task), problem.time[task], task))


class PackingWindows(_Unlocking):
    """DPack."""

    name = "dpack"

    def _order(self, stage: WindowStage, tasks: list[int]) -> list[int]:
        problem = stage.problem
        left = np.maximum(problem.capacity - stage.used, 0).astype(np.float64)
        wanted = np.zeros_like(left)
        for task in tasks:
            wanted[int(problem.first[task]) : int(problem.last[task]) + 1] += problem.demand[task]
        orders = (wanted / np.maximum(left, 1e-9)).argmin(axis=1)
        size = np.maximum(left[np.arange(len(left)), orders], 1e-9)

        def efficiency(task: int) -> float:
            window = slice(int(problem.first[task]), int(problem.last[task]) + 1)
            take = float((problem.demand[task][orders[window]] / size[window]).sum())
            return float(problem.value[task]) / max(take, 1e-300)

        return sorted(tasks, key=lambda task: (-efficiency(task), problem.time[task], task))
