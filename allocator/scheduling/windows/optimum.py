"""The best set of tasks that fits, all known, and a bound."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.scheduling.windows.bound import bound
from allocator.scheduling.windows.problem import Windows
from allocator.scheduling.windows.program import Crowd, Mix, best_mix
from allocator.scheduling.windows.stage import WindowStage

__all__ = ["bounded", "eligible", "optimum"]

_MILP_KINDS = 5_000


def eligible(problem: Windows) -> NDArray[np.bool_]:
    """Tasks whose blocks are there in time and that fit alone."""
    empty = WindowStage(problem)
    fits = np.array([empty.fits(task) for task in range(len(problem.task_ids))], dtype=np.bool_)
    return fits & (problem.ready <= problem.deadline)


def bounded(problem: Windows, effort: Effort) -> int:
    """An upper bound on every set of tasks that fits."""
    return _bound(problem, effort)[0]


def optimum(problem: Windows, effort: Effort) -> tuple[tuple[int, ...], int]:
    """The best set found, in the order of the list, and the bound."""
    most, may, crowd, kinds, mix = _bound(problem, effort)
    if mix is None or crowd is None:
        return (), most
    whole = mix
    if len(crowd.many) <= _MILP_KINDS:
        seconds = effort.time_limit.get("time_limit", 60.0) * 0.8
        whole = best_mix(crowd, problem.capacity, whole=True, seconds=seconds) or mix
    stage = WindowStage(problem)
    stage.here[:] = True
    stage.waiting = dict.fromkeys(may.tolist())
    left = np.floor(whole.count + 1e-6)
    for task, kind in zip(may.tolist(), kinds.tolist(), strict=True):
        if left[kind] >= 1 and stage.grant(task):
            left[kind] -= 1
    # What the rounding left over: those who ask least of what prices say, first.
    for task in sorted(stage.waiting, key=lambda j: _asked(problem, mix, j)):
        stage.grant(task)
    return tuple(sorted(stage.granted)), max(most, int(sum(problem.value[stage.granted].tolist())))


def _asked(problem: Windows, mix: Mix, task: int) -> float:
    window = np.arange(int(problem.first[task]), int(problem.last[task]) + 1)
    orders = mix.orders[window]
    share = problem.demand[task][orders] / np.maximum(problem.capacity[window, orders], 1)
    return float(mix.prices[window] @ share) / max(float(problem.value[task]), 1e-9)


def _bound(
    problem: Windows, effort: Effort
) -> tuple[int, NDArray[np.int64], Crowd | None, NDArray[np.int64], Mix | None]:
    can = eligible(problem) & (problem.value > 0)
    (may,) = np.nonzero(can)
    if not len(may):
        return 0, may, None, may, None
    table = np.column_stack(
        [problem.first[may], problem.last[may], problem.value[may], problem.demand[may]]
    )
    rows, kinds, many = np.unique(table, axis=0, return_inverse=True, return_counts=True)
    crowd = Crowd(
        rows[:, 0], rows[:, 1], rows[:, 3:], rows[:, 2].astype(np.float64), many.astype(np.float64)
    )
    seconds = effort.time_limit.get("time_limit", 60.0) * 0.4
    mix = best_mix(crowd, problem.capacity, seconds=seconds)
    if mix is None:
        prices = np.zeros(len(problem.block_ids))
        return (
            bound(problem, can, prices, np.zeros(len(prices), dtype=np.int64)),
            may,
            None,
            may,
            None,
        )
    return bound(problem, can, mix.prices, mix.orders), may, crowd, kinds.reshape(-1), mix
