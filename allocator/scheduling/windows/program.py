"""Which of some tasks to grant when all are known, by HiGHS: tasks that are alike are one number.

For every block one order is chosen, in which what is granted is to fit: at first the one in which
small tasks weigh least, then the one that the answer fills least. Demands are scaled by capacities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array

__all__ = ["Crowd", "Mix", "best_mix"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Crowd:
    """Kinds of tasks: window, demand, value, and how many there are of each kind."""

    first: _Ints
    last: _Ints
    demand: _Ints
    value: _Floats
    many: _Floats


@dataclass(frozen=True)
class Mix:
    """How many of each kind, the price of each block per share of its room, and its order."""

    count: _Floats
    prices: _Floats
    orders: _Ints
    value: float


def best_mix(
    crowd: Crowd, room: _Ints, *, whole: bool = False, seconds: float = 60.0, rounds: int = 3
) -> Mix | None:
    """The best mix within ``room[i, k]``; None where HiGHS gave none in time."""
    blocks, orders = room.shape
    kinds, places = _cells(crowd)
    chosen = _lightest(crowd, room, kinds, places)
    best: Mix | None = None
    for _ in range(rounds if orders > 1 else 1):
        answer = _solved(crowd, room, kinds, places, chosen, whole, seconds)
        if answer is None:
            break
        if best is None or answer.value > best.value + 1e-9:
            best = answer
        load = np.zeros((blocks, orders))
        np.add.at(load, places, answer.count[kinds][:, None] * crowd.demand[kinds])
        fill = np.where(room > 0, load / np.maximum(room, 1), np.where(load > 0, np.inf, 0.0))
        other = np.where(load.any(axis=1), fill.argmin(axis=1), chosen)
        if (other == chosen).all():
            break
        chosen = other
    return best


def _cells(crowd: Crowd) -> tuple[_Ints, _Ints]:
    lengths = crowd.last - crowd.first + 1
    kinds = np.repeat(np.arange(len(lengths)), lengths)
    begins = np.repeat(np.cumsum(lengths) - lengths, lengths)
    return kinds, np.arange(len(kinds)) - begins + np.repeat(crowd.first, lengths)


def _lightest(crowd: Crowd, room: _Ints, kinds: _Ints, places: _Ints) -> _Ints:
    """Per block the order in which the small half of what is wanted weighs least."""
    blocks, orders = room.shape
    if orders == 1:
        return np.zeros(blocks, dtype=np.int64)
    share = crowd.demand[kinds] / np.maximum(room[places], 1)
    share = np.where((room[places] <= 0) & (crowd.demand[kinds] > 0), 1e9, share)
    least = share.min(axis=1)
    # How much worse than its best each order is for each task, small tasks counting more.
    lack = np.minimum(share / np.maximum(least, 1e-12)[:, None], 1e6)
    weight = crowd.many[kinds] / np.maximum(least, 1e-6)
    total = np.zeros((blocks, orders))
    np.add.at(total, places, lack * weight[:, None])
    lightest: _Ints = total.argmin(axis=1)
    return lightest


def _solved(
    crowd: Crowd,
    room: _Ints,
    kinds: _Ints,
    places: _Ints,
    chosen: _Ints,
    whole: bool,
    seconds: float,
) -> Mix | None:
    blocks = len(room)
    size = room[np.arange(blocks), chosen].astype(np.float64)
    need = crowd.demand[kinds, chosen[places]].astype(np.float64)
    share = np.where(
        size[places] > 0, need / np.maximum(size[places], 1), np.where(need > 0, 2.0, 0.0)
    )
    matrix = csc_array((share, (places, kinds)), shape=(blocks, len(crowd.many)))
    scale = max(float(crowd.value.max(initial=0.0)), 1e-300)
    # What does not fit alone fits never.
    most = np.zeros(len(crowd.many))
    np.maximum.at(most, kinds, share)
    upper = np.where(most > 1 + 1e-12, 0.0, crowd.many)
    if whole:
        answer = milp(
            -crowd.value / scale,
            constraints=LinearConstraint(matrix, -np.inf, np.ones(blocks)),
            integrality=np.ones(len(upper)),
            bounds=Bounds(0, upper),
            options={"time_limit": seconds, "mip_rel_gap": 1e-4},
        )
        if answer.x is None:
            return None
        count = np.rint(np.asarray(answer.x))
        return Mix(count, np.zeros(blocks), chosen, float(count @ crowd.value))
    answer = linprog(
        -crowd.value / scale,
        A_ub=matrix,
        b_ub=np.ones(blocks),
        bounds=np.stack([np.zeros_like(upper), upper], axis=1),
        method="highs",
        options={"time_limit": seconds},
    )
    if answer.status != 0:
        return None
    prices = np.maximum(-np.asarray(answer.ineqlin.marginals) * scale, 0.0)
    count = np.asarray(answer.x)
    return Mix(count, prices, chosen, float(count @ crowd.value))
