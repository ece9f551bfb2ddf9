"""Small changes to a shelf plan, as long as one saves samples: move a PTK, swap two, merge two
shelves, split one.

The cost of a shelf is the smallest level where its members fit, so levels need no moves of their
own: every change relevels the shelves it touches. Sums of needs are kept by shelf and level; a
change is tried against all shelves at once. Deterministic: shelves and PTKs are tried in order, the
best of the changes of one PTK is made.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.shelf.levels import Levels
from allocator.table import Ints

__all__ = ["Shelves", "improved", "inserted"]

# Who is on which shelf, by row of the table.
Shelves = list[Ints]


class _State:
    def __init__(self, levels: Levels, shelves: Shelves) -> None:
        self.levels = levels
        self.sizes = np.append(levels.sizes, np.iinfo(np.int64).max // 4)
        self.members = [[int(i) for i in shelf] for shelf in shelves]
        self.loads = np.array(
            [levels.needs[member].sum(axis=0) for member in self.members], dtype=np.int64
        )
        self.loads = self.loads.reshape(len(self.members), len(levels.sizes))
        self.costs = self.sizes[levels.cost_of(self.loads)]

    def cost(self, loads: Ints) -> Ints:
        return np.asarray(self.sizes[self.levels.cost_of(loads)])

    def change(self, shelf: int, members: list[int]) -> None:
        self.members[shelf] = members
        self.loads[shelf] = self.levels.needs[members].sum(axis=0) if members else 0
        self.costs[shelf] = self.cost(self.loads[shelf]) if members else 0

    def tidy(self) -> None:
        kept = [k for k, members in enumerate(self.members) if members]
        self.members = [self.members[k] for k in kept]
        self.loads, self.costs = self.loads[kept], self.costs[kept]


def improved(levels: Levels, shelves: Shelves, effort: Effort, *, swaps: bool = True) -> Shelves:
    """No change of the kinds above helps any more, or effort is over."""
    state = _State(levels, shelves)
    while not effort.over:
        before = int(state.costs.sum())
        _move_all(state, effort)
        _merge_all(state, effort)
        if swaps and int(state.costs.sum()) == before:
            _swap_all(state, effort)
        if int(state.costs.sum()) == before:
            break
    return [np.array(sorted(member), dtype=np.int64) for member in state.members]


def inserted(levels: Levels, shelves: Shelves, waiting: Ints, effort: Effort) -> Shelves:
    """The PTKs that wait, the neediest first, each where it costs least: on a shelf or on one of
    its own.
    """
    state = _State(levels, shelves)
    alone = state.cost(levels.needs[waiting])
    for i in waiting[np.lexsort((waiting, -alone))]:
        effort.spend(2.0 * state.loads.size + 20_000)
        own = int(state.cost(levels.needs[i]))
        more = (
            state.cost(state.loads + levels.needs[i]) - state.costs
            if len(state.costs)
            else np.zeros(0)
        )
        if len(more) and int(more.min()) <= own:
            shelf = int(more.argmin())
            state.change(shelf, [*state.members[shelf], int(i)])
        else:
            state.members.append([int(i)])
            state.loads = np.concatenate([state.loads, levels.needs[[i]]])
            state.costs = np.append(state.costs, own)
    return [np.array(sorted(member), dtype=np.int64) for member in state.members]


def _move_all(state: _State, effort: Effort) -> None:
    needs = state.levels.needs
    for shelf in np.argsort(-state.costs, kind="stable").tolist():
        for i in list(state.members[shelf]):
            if effort.over:
                break
            rest = [member for member in state.members[shelf] if member != i]
            without = int(state.cost(state.loads[shelf] - needs[i])) if rest else 0
            saved = int(state.costs[shelf]) - without
            effort.spend(5.0 * needs.shape[1] + 15_000)
            if saved <= 0:
                continue
            effort.spend(2.0 * state.loads.size)
            more = state.cost(state.loads + needs[i]) - state.costs
            more[shelf] = np.iinfo(np.int64).max
            more[[not member for member in state.members]] = np.iinfo(np.int64).max
            best = int(more.argmin())
            own = int(state.cost(needs[i])) if rest else np.iinfo(np.int64).max
            if min(int(more[best]), own) >= saved:
                continue
            if own < int(more[best]):
                # A split: it is better off alone.
                state.members.append([])
                state.loads = np.concatenate(
                    [state.loads, np.zeros((1, needs.shape[1]), dtype=np.int64)]
                )
                state.costs = np.append(state.costs, 0)
                best = len(state.members) - 1
            state.change(shelf, rest)
            state.change(best, [*state.members[best], i])
    state.tidy()


def _merge_all(state: _State, effort: Effort) -> None:
    for shelf in range(len(state.members)):
        if effort.over or not state.members[shelf]:
            continue
        effort.spend(2.0 * state.loads.size + 10_000)
        joint = state.cost(state.loads + state.loads[shelf]) - state.costs - state.costs[shelf]
        joint[shelf] = 0
        joint[[not member for member in state.members]] = 0
        best = int(joint.argmin())
        if joint[best] < 0:
            state.change(best, [*state.members[best], *state.members[shelf]])
            state.change(shelf, [])
    state.tidy()


def _swap_all(state: _State, effort: Effort) -> None:
    needs = state.levels.needs
    for shelf in np.argsort(-state.costs, kind="stable").tolist():
        for i in list(state.members[shelf]):
            if effort.over:
                return
            without = state.loads[shelf] - needs[i]
            if int(state.cost(without)) == int(state.costs[shelf]):
                continue
            swap: tuple[int, int, int] | None = None
            for other in range(len(state.members)):
                if other == shelf:
                    continue
                theirs = state.members[other]
                effort.spend(4.0 * len(theirs) * needs.shape[1] + 20_000)
                here = state.cost(without + needs[theirs])
                there = state.cost(state.loads[other] + needs[i] - needs[theirs])
                change = here + there - state.costs[shelf] - state.costs[other]
                best = int(change.argmin())
                if change[best] < 0 and (swap is None or int(change[best]) < swap[0]):
                    swap = int(change[best]), other, theirs[best]
            if swap is not None:
                _, other, j = swap
                state.change(
                    shelf, [*(member for member in state.members[shelf] if member != i), j]
                )
                state.change(
                    other, [*(member for member in state.members[other] if member != j), i]
                )
                break
