"""Drives a policy over tasks and blocks in the order of time.

A policy acts when something happens: blocks or tasks come, or tasks are about to leave. At equal
times blocks come before tasks and tasks before those that leave, so a task without patience is
still seen. After the last event, who may wait for ever is asked for once more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from allocator.scheduling.windows.problem import Windows
from allocator.scheduling.windows.stage import WindowStage

__all__ = ["WindowPolicy", "replay"]

_BLOCK, _TASK, _LEAVES = 0, 1, 2


class WindowPolicy(Protocol):
    """Grants tasks that wait, by `WindowStage.grant`."""

    name: str

    def act(self, stage: WindowStage, came: int | None, leaving: int | None) -> None:
        """Something happened at ``stage.now``: task ``came`` waits from now on, task ``leaving``
        goes away after this, or (both None) a block came.
        """

    def end(self, stage: WindowStage) -> None:
        """Nothing will come any more, and nobody leaves."""


def replay(
    problem: Windows, policy: WindowPolicy, *, clock: Callable[[], float] | None = None
) -> tuple[tuple[int, ...], tuple[float, ...]]:
    """The tasks granted, in that order, and the seconds that each act took (0 without a clock)."""
    stage = WindowStage(problem)
    events = [(time, _BLOCK, i) for i, time in enumerate(problem.arrives.tolist())]
    events += [(time, _TASK, j) for j, time in enumerate(problem.time.tolist())]
    if math.isfinite(problem.timeout):
        events += [(time, _LEAVES, j) for j, time in enumerate(problem.deadline.tolist())]
    seconds: list[float] = []
    for time, kind, index in sorted(events):
        stage.now = time
        if kind == _BLOCK:
            stage.here[index] = True
        elif kind == _TASK:
            stage.waiting[index] = None
            stage.seen.append(index)
        elif index not in stage.waiting:
            continue
        begun = clock() if clock else 0.0
        policy.act(stage, index if kind == _TASK else None, index if kind == _LEAVES else None)
        seconds.append(clock() - begun if clock else 0.0)
        if kind == _LEAVES:
            stage.waiting.pop(index, None)
    policy.end(stage)
    return tuple(stage.granted), tuple(seconds)
