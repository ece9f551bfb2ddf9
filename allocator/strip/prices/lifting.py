"""Prices of records for options that had none: as high as the others leave room for.

Prices are *feasible* when no set that a record can carry, of every PTK at most one option, costs
more than 1. Where some are feasible (those of the options that a linear program looked at), those
of the other options may rise: one PTK after the other gets for each of its options what the dearest
set beside it leaves of 1. PTKs that were lifted before count with all their options, the others
with the prices they came with, so every step leaves feasible prices behind. Who is lifted first
gets most.

Demands are rounded as in `allocator.strip.prices.sets`: that can only make the dearest set dearer.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.strip.prices.sets import Sets
from allocator.table import Floats, Ints

__all__ = ["lifted"]

# Room for the rounding of sums of floats.
_SAFE = 1e-9


def lifted(sets: Sets, prices: Floats, order: Ints, effort: Effort) -> Floats:
    """Feasible prices, by PTK and option, none lower than in the feasible ``prices``."""
    table, units = sets.table, sets.units
    effort.spend(4.0 * float(table.lengths.sum()) * (units + 2000))
    raised = prices.copy()
    # What those from a place in the order on cost within each number of units.
    behind = np.zeros((len(table) + 1, units + 1))
    for k in range(len(table) - 1, -1, -1):
        behind[k] = _with(behind[k + 1], raised[order[k]], sets.weights[order[k]])
    room = sets.room(np.minimum(table.demands, table.capacity))
    before = np.zeros(units + 1)
    for k, i in enumerate(order):
        for j in range(int(table.lengths[i])):
            left = min(units - int(sets.weights[i, j]), int(room[i, j]))
            beside = float((before[: left + 1] + behind[k + 1, left::-1]).max())
            raised[i, j] = max(raised[i, j], 1 - beside - _SAFE)
        before = _with(before, raised[i, : table.lengths[i]], sets.weights[i])
    return raised


def _with(worth: Floats, prices: Floats, weights: Ints) -> Floats:
    """The most that sets cost within each number of units when this PTK may be in them too."""
    more = worth.copy()
    for price, weight in zip(prices.tolist(), weights.tolist(), strict=False):
        if price > 0:
            np.maximum(more[weight:], worth[: len(worth) - weight] + price, out=more[weight:])
    return more
