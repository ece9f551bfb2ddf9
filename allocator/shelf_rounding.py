"""From shelves in parts to whole ones: HiGHS looks for the best cover by the shelves at hand, within a number of nodes."""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.local_search import Shelves
from allocator.shelf_columns import Columns

__all__ = ["disjoint", "whole"]

_NODES = 60
_MOST_COLUMNS = 800
_STEPS = 1.5e4


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
