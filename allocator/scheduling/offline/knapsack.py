"""One block with prices on queries: which of them are worth most within its budget, exactly.

Items are put in the order of profit per weight. The linear relaxation bounds what any choice can
reach; items that no better choice than the greedy one can contain, or do without, are settled by it
(Dembo and Hammer). What is left is a list of undominated sums, with every sum dropped whose bound
is below the best that is known. Profits are integers: nothing is lost in rounding. Where a list
becomes too long, the linear bound is returned instead: an upper bound either way.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

__all__ = ["BestPacking", "packed"]

_Ints = NDArray[np.int64]
_SUMS = 20_000
_CORE = 40
_SLACK = 1e-9
_SAFE = float(1 << 61)


class BestPacking:
    """The best choice known, and a bound that no choice exceeds (equal where it is optimal)."""

    __slots__ = ("bound", "chosen", "value")

    def __init__(self, value: int, chosen: _Ints, bound: int) -> None:
        """``chosen``: positions of items."""
        self.value = value
        self.chosen = chosen
        self.bound = bound


def packed(profit: _Ints, weight: _Ints, room: int) -> BestPacking:
    """Choose items of positive profit within ``room``."""
    (at,) = np.nonzero((profit > 0) & (weight <= room))
    if not len(at):
        return BestPacking(0, at, 0)
    profit, weight = profit[at], weight[at]
    if max(float(weight.sum(dtype=np.float64)), float(profit.sum(dtype=np.float64))) >= _SAFE:
        return _beyond(profit.tolist(), weight.tolist(), room, at)
    total = int(weight.sum())
    if total <= room:
        value = int(profit.sum())
        return BestPacking(value, at, value)
    order = np.argsort(-(profit / np.maximum(weight, 1e-9)), kind="stable")
    at, profit, weight = at[order], profit[order], weight[order]
    value, chosen, linear, ratio = _greedy(profit, weight, room)
    # What it costs an item to be on the other side of the break.
    loss = np.abs(profit - ratio * weight)
    inside = np.cumsum(weight) <= room
    open_items = linear - loss >= value + 1 - _SLACK * linear
    settled = True
    if int(open_items.sum()) > _CORE:
        # Too many that are nearly worth their price: those nearest to it decide, and the linear
        # bound stands for the rest.
        settled = False
        near = np.argsort(np.where(open_items, loss, np.inf), kind="stable")[:_CORE]
        open_items = np.zeros(len(loss), dtype=np.bool_)
        open_items[near] = True
    fixed = inside & ~open_items
    left = room - int(weight[fixed].sum())
    if left < 0:
        return BestPacking(value, at[chosen], max(value, int(linear * (1 + _SLACK))))
    (free,) = np.nonzero(open_items)
    base = int(profit[fixed].sum())
    better = _sums(profit[free], weight[free], left, value - base, linear - base)
    if better is None:
        return BestPacking(value, at[chosen], max(value, int(linear * (1 + _SLACK))))
    if better[0] + base > value:
        picked = np.concatenate([np.nonzero(fixed)[0], free[better[1]]])
        value, chosen = better[0] + base, picked
    bound = value if settled else max(value, int(linear * (1 + _SLACK)))
    return BestPacking(value, at[chosen], bound)


def _beyond(profit: list[int], weight: list[int], room: int, at: _Ints) -> BestPacking:
    """Sums that 64 bits might not hold: greedily, with the linear bound, in Python's integers."""
    left, value, chosen = room, 0, []
    bound: Fraction | None = None
    for k in sorted(range(len(profit)), key=lambda k: -Fraction(profit[k], max(weight[k], 1))):
        if weight[k] <= left:
            left -= weight[k]
            value += profit[k]
            chosen.append(k)
        elif bound is None:
            bound = value + Fraction(profit[k] * left, weight[k])
    return BestPacking(value, at[chosen], value if bound is None else max(value, int(bound)))


def _greedy(profit: _Ints, weight: _Ints, room: int) -> tuple[int, _Ints, float, float]:
    """The value and items of two greedy choices' better, the linear bound, the break's ratio."""
    filled = np.cumsum(weight)
    first = int(np.argmax(filled > room))
    used = int(filled[first - 1]) if first else 0
    gained = int(profit[:first].sum())
    ratio = float(profit[first]) / max(float(weight[first]), 1e-9)
    linear = gained + ratio * (room - used)
    chosen = list(range(first))
    value = gained
    for k in range(first + 1, len(weight)):
        if used == room:
            break
        if used + int(weight[k]) <= room:
            chosen.append(k)
            used += int(weight[k])
            value += int(profit[k])
    top = int(np.argmax(profit))
    if int(profit[top]) > value:
        return int(profit[top]), np.array([top]), linear, ratio
    return value, np.array(chosen, dtype=np.int64), linear, ratio


def _sums(
    profit: _Ints, weight: _Ints, room: int, known: int, linear: float
) -> tuple[int, _Ints] | None:
    """The best sum above ``known`` and its items; None where there are too many."""
    count = len(profit)
    if count > 63:
        return None
    used, gain = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    masks = np.zeros(1, dtype=np.uint64)
    ratios = np.append(profit / np.maximum(weight, 1e-9), 0.0)
    for k in range(count):
        fits = used + weight[k] <= room
        used = np.concatenate([used, used[fits] + weight[k]])
        gain = np.concatenate([gain, gain[fits] + profit[k]])
        masks = np.concatenate([masks, masks[fits] | np.uint64(1 << k)])
        # Later items yield at most the next ratio for what is left.
        reach = gain + ratios[k + 1] * (room - used)
        keep = reach >= max(known + 1, int(gain.max())) - _SLACK * abs(linear)
        if not keep.any():
            return known, np.zeros(0, dtype=np.int64)
        used, gain, masks = used[keep], gain[keep], masks[keep]
        order = np.lexsort((-gain, used))
        used, gain, masks = used[order], gain[order], masks[order]
        rising = np.ones(len(gain), dtype=np.bool_)
        rising[1:] = gain[1:] > np.maximum.accumulate(gain)[:-1]
        used, gain, masks = used[rising], gain[rising], masks[rising]
        if len(gain) > _SUMS:
            return None
    best = int(np.argmax(gain))
    mask = int(masks[best])
    return int(gain[best]), np.array([k for k in range(count) if mask >> k & 1], dtype=np.int64)
