"""From shelves in parts to whole ones: by a search of HiGHS within a number of nodes, or by fixing
the largest parts.

Both know that a PTK may take the place of another (`allocator.shelf.exchange`), so a shelf stands
for many.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.shelf.columns import Columns
from allocator.shelf.exchange import placed
from allocator.shelf.local_search import Shelves, inserted
from allocator.table import Floats

__all__ = ["by_parts", "refilled", "whole"]

_NODES = 10
_MOST_COLUMNS = 250
_STEPS = 3e4
# Shelves with such parts are fixed together.
_SURE = 0.8


def whole(columns: Columns, effort: Effort, *, below: float, nodes: int = _NODES) -> Shelves | None:
    """The best cover by known shelves that costs less than ``below``, as disjoint shelves; None
    when there is none.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    count = len(columns.own)
    worth = columns.members @ columns.prices
    reduced = columns.costs - worth
    # A shelf whose cost exceeds its members' prices by more than the gap is in no cover that is
    # good enough.
    good = np.flatnonzero(reduced < below - columns.bound)
    # A program that is too large for what is left to spend is made smaller.
    # Where a clock counts, steps have no end.
    most = int(min(_MOST_COLUMNS, (effort.limit - effort.spent - 1e7) / (_STEPS * count)))
    if most < 2 * count:
        return None
    good = np.sort(good[np.argsort(reduced[good], kind="stable")[:most]])
    alone = np.flatnonzero(columns.own - columns.prices < below - columns.bound)
    single = np.zeros((len(alone), count), dtype=bool)
    single[np.arange(len(alone)), alone] = True
    members = np.concatenate([columns.members[good], single])
    costs = np.concatenate([columns.costs[good], columns.own[alone]])
    if not members.any(axis=0).all():
        return None
    effort.spend(1e7 + _STEPS * members.size)
    answer = milp(
        costs,
        constraints=[
            LinearConstraint(csr_array(members.T, dtype=np.float64), 1, np.inf),
            LinearConstraint(csr_array(costs[None, :]), -np.inf, below - 0.5),
        ],
        integrality=np.ones(len(costs)),
        bounds=Bounds(0, 1),
        options={"node_limit": nodes, "mip_rel_gap": 0.0, **effort.time_limit},
    )
    if answer.x is None:
        return None
    chosen = np.flatnonzero(np.asarray(answer.x) > 0.5)
    chosen = chosen[np.argsort(costs[chosen], kind="stable")]
    return placed(columns.exchanges.fits, [np.flatnonzero(members[c]) for c in chosen])


def by_parts(columns: Columns, effort: Effort, *, exchanges: bool = True) -> Shelves:
    """Whole shelves without a search: those with the largest parts are fixed, the rest is solved
    again, and so on.

    What is left of a shelf when some of its members are gone costs what it still needs; the PTKs
    that no shelf at hand is good for come last, where they cost least.
    """
    levels = columns.levels
    free = np.ones(len(columns.own), dtype=bool)
    members, costs = columns.members.copy(), columns.costs.copy()
    shelves: Shelves = []
    while free.any() and len(members) and not effort.over:
        parts = _parts(columns, members, costs, free, exchanges, effort)
        order = np.argsort(-parts, kind="stable")
        taken = 0
        for c in order:
            if parts[c] <= 1e-6 or (taken and parts[c] < _SURE):
                break
            mine = members[c] & free
            if mine.any() and (not taken or (mine == members[c]).all()):
                shelves.append(np.flatnonzero(mine))
                free &= ~mine
                taken += 1
        if not taken:
            break
        touched = (members & ~free).any(axis=1)
        effort.spend(60.0 * levels.needs.shape[1] * float(touched.sum()))
        members = refilled(columns, members, free) if exchanges else members & free
        for c in np.flatnonzero(touched & members.any(axis=1)):
            costs[c] = float(levels.cost(np.flatnonzero(members[c])))
        kept = members.any(axis=1)
        members, costs = members[kept], costs[kept]
    return inserted(levels, shelves, np.flatnonzero(free), effort)


def refilled(
    columns: Columns, members: NDArray[np.bool_], free: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Shelves without those who are not free; their places go to the dearest who are and can take
    them.
    """
    fits, prices = columns.exchanges.fits, columns.prices
    filled = members & free
    for c in np.flatnonzero((members & ~free).any(axis=1)):
        gone = np.flatnonzero(members[c] & ~free)
        for b in gone[np.argsort(-prices[gone], kind="stable")]:
            able = np.flatnonzero(fits[:, b] & free & ~filled[c])
            if len(able):
                filled[c, able[int(prices[able].argmax())]] = True
    return filled


def _parts(
    columns: Columns,
    members: NDArray[np.bool_],
    costs: Floats,
    free: NDArray[np.bool_],
    exchanges: bool,
    effort: Effort,
) -> Floats:
    """The parts of these shelves in the best cover by parts of those who are free; single PTKs are
    there always.
    """
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, vstack

    effort.spend(4e6 + 1500.0 * float(members.sum()))
    own = columns.own[free]
    scale = float(own.max())
    places = np.cumsum(free) - 1
    pairs = columns.exchanges.pairs
    pairs = places[pairs[free[pairs].all(axis=1) & exchanges]]
    rows = np.arange(len(pairs))
    more = csr_array(
        (np.repeat([1.0, -1.0], len(rows)), (np.tile(rows, 2), pairs.T.reshape(-1))),
        shape=(len(rows), len(own)),
    )
    answer = linprog(
        np.full(len(own), -1.0),
        A_ub=vstack([csr_array(members[:, free], dtype=np.float64), more]).tocsr(),
        b_ub=np.concatenate([costs / scale, np.zeros(len(rows))]),
        bounds=np.column_stack([np.zeros(len(own)), own / scale]),
        method="highs-ds",
        options={"presolve": False},
    )
    return (
        np.asarray(-answer.ineqlin.marginals[: len(costs)])
        if answer.status == 0
        else np.zeros(len(costs))
    )
