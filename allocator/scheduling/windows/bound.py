"""An upper bound on every set of tasks that fits, also where each block may fit in another order.

A task's value is divided over the blocks of its window; each block then packs as if it were alone,
in the order that suits it best, and in parts. Any division gives a bound: the blocks of a set that
fits hold all of its value. Good divisions follow prices: what a block's price asks for the task,
and what is left over in equal parts. Rounding is paid for with a margin a thousand times what the
sums can lose.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.windows.problem import Windows

__all__ = ["bound"]

_Floats = NDArray[np.float64]
_MARGIN = 1e-9


def bound(
    problem: Windows, may: NDArray[np.bool_], prices: _Floats, orders: NDArray[np.int64]
) -> int:
    """``may``: tasks that can be granted at all; ``prices`` per share of a block's capacity."""
    tasks = np.nonzero(may)[0]
    lengths = problem.last[tasks] - problem.first[tasks] + 1
    cells = np.repeat(np.arange(len(tasks)), lengths)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    places = np.arange(len(cells)) - begins + np.repeat(problem.first[tasks], lengths)
    value = problem.value[tasks].astype(np.float64)
    demand = problem.demand[tasks]
    size = problem.capacity[np.arange(len(orders)), orders].astype(np.float64)
    asked = prices[places] * demand[cells, orders[places]] / np.maximum(size[places], 1.0)
    total = np.bincount(cells, weights=asked, minlength=len(tasks))
    rest = np.maximum(value - total, 0.0) / np.maximum(lengths, 1)
    shrink = np.where(total > value, value / np.maximum(total, 1e-300), 1.0)
    part = asked * shrink[cells] + rest[cells]
    # Nothing may be lost: what rounding took from a task goes to its first block.
    given = np.bincount(cells, weights=part, minlength=len(tasks))
    firsts = np.cumsum(lengths) - lengths
    part[firsts] += np.maximum(value - given, 0.0)
    order = np.argsort(places, kind="stable")
    edges = np.searchsorted(places[order], np.arange(len(problem.block_ids) + 1))
    sums = 0.0
    for i in range(len(problem.block_ids)):
        here = order[edges[i] : edges[i + 1]]
        if len(here):
            sums += _alone(part[here], demand[cells[here]], problem.capacity[i])
    most = int(problem.value[tasks].astype(object).sum()) if len(tasks) else 0
    return min(most, math.floor(sums * (1 + _MARGIN) + 1e-6))


def _alone(part: _Floats, demand: NDArray[np.int64], capacity: NDArray[np.int64]) -> float:
    """The most that a block holds, in parts, in its best order."""
    best = 0.0
    for k in range(len(capacity)):
        need, room = demand[:, k].astype(np.float64), float(capacity[k])
        fits = need <= room
        gain, need = part[fits], need[fits]
        ratio = gain / np.maximum(need, 1e-12)
        order = np.argsort(-ratio, kind="stable")
        filled = np.cumsum(need[order])
        inside = filled <= room
        held = float(gain[order][inside].sum())
        (over,) = np.nonzero(~inside)
        if len(over):
            cut = order[over[0]]
            used = float(filled[over[0]] - need[cut])
            held += float(gain[cut]) * (room - used) / max(float(need[cut]), 1e-12)
        best = max(best, held)
    return best
