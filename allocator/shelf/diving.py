"""Whole shelves for many PTKs: fix a few, solve the relaxation for the rest, and so on until few
are left.

After each relaxation the shelves with the largest parts are taken as they are, up to a share of
what is left to pay. The relaxation of the rest knows what is gone, so little is lost towards the
end; and the end, when few PTKs make up nearly all of the price, is solved by the method for few.
The others are laid where they cost least.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allocator.effort import Effort
from allocator.shelf.columns import Columns, ShelfRelaxation
from allocator.shelf.levels import Levels, groups_of, levels_of
from allocator.shelf.local_search import Shelves, inserted
from allocator.shelf.pricing import Pricing
from allocator.shelf.rounding import refilled
from allocator.strip.classes import classes_of, least_areas
from allocator.table import Ints, OptionTable, rows_of

__all__ = ["GROUP", "columns_of", "dived", "main_part"]

GROUP = 1.003
_UNITS = 1024
# Beyond so many PTKs and groups of levels prices are tied.
_UNTIED = 300
_SINGLE = 60
# A relaxation within this of its bound is good enough to fix shelves.
_NEAR = 3e-3
# The share of the price that is fixed at a time, and the share that the few must make up.
_FIXED = 0.1
# A shelf is fixed if its members pay for so much of it.
_PAID = 0.99
_MAIN = 0.995


def columns_of(table: OptionTable, levels: Levels) -> Columns:
    """Columns for many PTKs: levels in groups, and prices by classes where there are very many PTKs
    and levels.
    """
    groups = groups_of(levels.sizes, GROUP)
    columns = Columns(levels, Pricing(levels, most_units=_UNITS, groups=groups))
    if len(table) > _UNTIED and len(groups) > _SINGLE:
        columns.tie(classes_of(table, max(100, len(table) // 10)), least_areas(table))
    return columns


def dived(
    table: OptionTable,
    levels: Levels,
    columns: Columns,
    relaxed: ShelfRelaxation,
    few: int,
    solve_few: Callable[[OptionTable, Effort], Shelves],
    effort: Effort,
) -> Shelves:
    """Shelves for all PTKs; ``columns`` and ``relaxed`` are those of the whole."""
    left: Ints = np.arange(len(table))
    shelves: Shelves = []
    part, here = table, columns
    while True:
        main = main_part(here.prices)
        if len(main) <= few or effort.over:
            break
        taken = _largest(here, relaxed)
        if not taken:
            break
        shelves += [left[shelf] for shelf in taken]
        free = np.ones(len(left), dtype=bool)
        free[np.concatenate(taken)] = False
        stay = np.flatnonzero(free)
        left = left[stay]
        if not len(left):
            return shelves
        part = rows_of(part, stay)
        after = columns_of(part, levels_of(part))
        after.add(refilled(here, here.members, free)[:, stay])
        after.prices = here.prices[stay]
        relaxed = after.relax(enough=np.inf, effort=effort.part(0.15 * effort.limit), gap=_NEAR)
        here = after
    if len(main) <= few:
        ends = solve_few(rows_of(part, main), effort)
        shelves += [left[main[end]] for end in ends]
    done = np.zeros(len(table), dtype=bool)
    for shelf in shelves:
        done[shelf] = True
    return inserted(levels, shelves, np.flatnonzero(~done), effort)


def main_part(prices: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ints:
    """The fewest PTKs that make up nearly all of the price, in order."""
    order = np.argsort(-prices, kind="stable")
    passed = np.cumsum(prices[order])
    return np.sort(order[: int(np.searchsorted(passed, _MAIN * passed[-1])) + 1])


def _largest(columns: Columns, relaxed: ShelfRelaxation) -> Shelves:
    """Shelves with the largest parts, disjoint, for a share of the price; one at least.

    A part above 1 says that the shelf is wanted more than once, with others in the places of its
    members.
    """
    prices, levels = columns.prices, columns.levels
    order = np.argsort(-relaxed.parts, kind="stable")
    room = _FIXED * float(prices.sum())
    free = np.ones(len(prices), dtype=bool)
    taken: Shelves = []
    for c in order[:200]:
        for _ in range(max(1, round(float(relaxed.parts[c])))):
            members = refilled(columns, columns.members[c][None, :], free)[0]
            paid = float(prices[members].sum())
            if relaxed.parts[c] <= 0 or paid <= 0:
                break
            if taken and (paid > room or paid < _PAID * levels.cost(np.flatnonzero(members))):
                break
            taken.append(np.flatnonzero(members))
            free &= ~members
            room -= paid
        if room <= 0:
            break
    return taken
