"""From shelves in parts to whole ones: by a search of HiGHS within a number of nodes, or by fixing the largest parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.local_search import Shelves, inserted
from allocator.shelf_columns import Columns
from allocator.table import Floats

__all__ = ["by_parts", "disjoint", "whole"]

_NODES = 60
_MOST_COLUMNS = 800
_STEPS = 3e4
# Shelves with such parts are fixed together.
_SURE = 0.8


def whole(columns: Columns, effort: Effort, *, below: float, nodes: int = _NODES) -> Shelves | None:
    """The best cover by known shelves that costs less than ``below``, as disjoint shelves; None when there is none."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    count = len(columns.own)
    worth = columns.members @ columns.prices
    reduced = columns.costs - worth
    # A shelf whose cost exceeds its members' prices by more than the gap is in no cover that is good enough.
    good = np.flatnonzero(reduced < below - columns.bound)
    # A program that is too large for what is left to spend is made smaller.
    most = min(_MOST_COLUMNS, int((effort.limit - effort.spent - 1e7) / (_STEPS * count)))
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
    if not members[chosen].any(axis=0).all():
        return None
    return disjoint([np.flatnonzero(members[c]) for c in chosen[np.argsort(costs[chosen], kind="stable")]])


def disjoint(shelves: Shelves) -> Shelves:
    """Each PTK on the first shelf that has it."""
    seen: set[int] = set()
    found = []
    for one in shelves:
        rest = [int(i) for i in one if int(i) not in seen]
        seen.update(rest)
        if rest:
            found.append(np.array(rest, dtype=np.int64))
    return found


def by_parts(columns: Columns, effort: Effort) -> Shelves:
    """Whole shelves without a search: those with the largest parts are fixed, the rest is solved again, and so on.

    What is left of a shelf when some of its members are gone costs what it still needs; the PTKs that no shelf at hand is
    good for come last, where they cost least.
    """
    levels = columns.levels
    free = np.ones(len(columns.own), dtype=bool)
    members, costs = columns.members.copy(), columns.costs.copy()
    shelves: Shelves = []
    while free.any() and len(members) and not effort.over:
        parts = _parts(members[:, free], costs, columns.own[free], effort)
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
        members &= free
        effort.spend(60.0 * levels.needs.shape[1] * float(touched.sum()))
        for c in np.flatnonzero(touched & members.any(axis=1)):
            costs[c] = float(levels.cost(np.flatnonzero(members[c])))
        kept = members.any(axis=1)
        members, costs = members[kept], costs[kept]
    return inserted(levels, shelves, np.flatnonzero(free), effort)


def _parts(members: NDArray[np.bool_], costs: Floats, own: Floats, effort: Effort) -> Floats:
    """The parts of these shelves in the best cover by parts; single PTKs are there always."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    effort.spend(4e6 + 1500.0 * float(members.sum()))
    scale = float(own.max())
    answer = linprog(
        np.full(len(own), -1.0),
        A_ub=csr_array(members, dtype=np.float64),
        b_ub=costs / scale,
        bounds=np.column_stack([np.zeros(len(own)), own / scale]),
        method="highs-ds",
    )
    return np.asarray(-answer.ineqlin.marginals) if answer.status == 0 else np.zeros(len(costs))
