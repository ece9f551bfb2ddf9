"""Wait as long as may be, then do what would be best for everybody who is there: the default.

Nothing is lost by deciding late: who comes meanwhile is known when the decision falls. So a task is
decided when it is about to leave (or a little before, with others of its time): the best mix of all
who wait is found (`program.best_mix`), with what is probably still to come for the same blocks
among them, and those who are about to leave are granted as far as they are in it. Nothing has to be
tuned: no speed of unlocking, no number of tasks.

*What is to come.* While tasks have less patience than blocks are in demand, decisions fall before
all rivals are known. Then the tasks of the recent past are expected again, moved on by as many
blocks as have arrived in the meantime.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.windows.program import Crowd, Mix, best_mix
from allocator.scheduling.windows.stage import WindowStage

__all__ = ["RollingWindows"]

# Batches within the patience of a task; fewer where so many wait that each takes long.
_BATCHES = 50
_FEWEST = 12
_CROWDED = 2000
_WHOLE = 400
_SECONDS = 10.0


class RollingWindows:
    """The best mix of those who wait, again and again."""

    name = "rolling"

    def __init__(self) -> None:
        """Nothing to tune."""
        self._mix: Mix | None = None
        self._decided = -math.inf
        self._at = 0

    def act(self, stage: WindowStage, came: int | None, leaving: int | None) -> None:  # noqa: ARG002
        """Decide who is about to leave."""
        if leaving is None or not stage.present(leaving):
            return
        deadline = stage.problem.time[leaving] + stage.problem.timeout
        if deadline <= self._decided:
            return
        patience = stage.problem.timeout
        if (
            patience <= 0
            and self._mix is not None
            and len(stage.seen) - self._at < len(stage.seen) // 300
        ):
            self._single(stage, leaving)
            return
        self._at = len(stage.seen)
        batches = max(_FEWEST, min(_BATCHES, _BATCHES * _CROWDED // max(1, len(stage.waiting))))
        self._decided = stage.now + patience / batches
        self._batch(stage, self._decided)

    def end(self, stage: WindowStage) -> None:
        """Whoever still waits: all at once."""
        self._batch(stage, math.inf)

    def _single(self, stage: WindowStage, task: int) -> None:
        """By the prices of the last mix."""
        problem, mix = stage.problem, self._mix
        if mix is None:
            stage.grant(task)
            return
        window = np.arange(int(problem.first[task]), int(problem.last[task]) + 1)
        known = window[window < len(mix.prices)]
        share = problem.demand[task][mix.orders[known]] / np.maximum(
            problem.capacity[known, mix.orders[known]], 1
        )
        if problem.value[task] >= float(mix.prices[known] @ share):
            stage.grant(task)

    def _batch(self, stage: WindowStage, until: float) -> None:
        problem = stage.problem
        tasks = [task for task in stage.waiting if stage.present(task)]
        if not tasks:
            return
        crowd, kinds = _crowd(stage, np.array(tasks))
        room = np.maximum(problem.capacity - stage.used, 0)
        mix = best_mix(crowd, room, whole=len(crowd.many) <= _WHOLE, seconds=_SECONDS)
        if mix is None:
            return
        self._mix = mix
        left = mix.count.copy()
        order = sorted(range(len(tasks)), key=lambda k: (problem.time[tasks[k]], tasks[k]))
        for k in order:
            task, kind = tasks[k], kinds[k]
            if problem.time[task] + problem.timeout > until:
                break
            if left[kind] >= 1 - 1e-6:
                left[kind] -= 1
                stage.grant(task)


def _crowd(stage: WindowStage, tasks: NDArray[np.int64]) -> tuple[Crowd, NDArray[np.int64]]:
    """Tasks that are alike become one kind."""
    problem = stage.problem
    table = np.column_stack(
        [problem.first[tasks], problem.last[tasks], problem.value[tasks], problem.demand[tasks]]
    )
    kinds, index, many = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    crowd = Crowd(
        kinds[:, 0],
        kinds[:, 1],
        kinds[:, 3:],
        kinds[:, 2].astype(np.float64),
        many.astype(np.float64),
    )
    return crowd, index.reshape(-1)
