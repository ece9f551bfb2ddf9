"""Whole shelves for many PTKs: fix a few, solve the relaxation for the rest, and so on until few are left.

After each relaxation the shelves with the largest parts are taken as they are, up to a share of what is left to pay. The
relaxation of the rest knows what is gone, so little is lost towards the end; and the end, when few PTKs make up nearly all of
the price, is solved by the method for few. The others are laid where they cost least.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allocator.classes import classes_of, least_areas
from allocator.effort import Effort
from allocator.levels import Levels, groups_of, levels_of
from allocator.local_search import Shelves, inserted
from allocator.shelf_columns import Columns, Relaxed
from allocator.shelf_pricing import Pricing
from allocator.table import Ints, Table, rows_of

__all__ = ["GROUP", "dived", "main_part", "tied_columns"]

GROUP = 1.003
_UNITS = 1024
# So many levels are priced one by one.
_SINGLE = 400
# The share of the price that is fixed at a time, and the share that the few must make up.
_FIXED = 0.2
_MAIN = 0.995


def tied_columns(table: Table, levels: Levels) -> Columns:
    """Columns with prices by classes and levels in groups."""
    groups = groups_of(levels.sizes, GROUP) if len(levels.sizes) > _SINGLE else None
    columns = Columns(levels, Pricing(levels, most_units=_UNITS, groups=groups))
    columns.tie(classes_of(table, max(50, len(table) // 10)), least_areas(table))
    return columns


def dived(
    table: Table,
    levels: Levels,
    columns: Columns,
    relaxed: Relaxed,
    few: int,
    solve_few: Callable[[Table, Effort], Shelves],
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
        shelves += [left[one] for one in taken]
        gone = np.zeros(len(left), dtype=bool)
        gone[np.concatenate(taken)] = True
        stay = np.flatnonzero(~gone)
        left = left[stay]
        if not len(left):
            return shelves
        part = rows_of(part, stay)
        after = tied_columns(part, levels_of(part))
        after.add(here.members[:, stay])
        relaxed = after.relax(enough=np.inf, effort=effort.part(0.15 * effort.limit), columns=60, gap=2e-3)
        here = after
    if len(main) <= few:
        ends = solve_few(rows_of(part, main), effort)
        shelves += [left[main[one]] for one in ends]
    done = np.zeros(len(table), dtype=bool)
    for one in shelves:
        done[one] = True
    return inserted(levels, shelves, np.flatnonzero(~done), effort)


def main_part(prices: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ints:
    """The fewest PTKs that make up nearly all of the price, in order."""
    order = np.argsort(-prices, kind="stable")
    passed = np.cumsum(prices[order])
    return np.sort(order[: int(np.searchsorted(passed, _MAIN * passed[-1])) + 1])


def _largest(columns: Columns, relaxed: Relaxed) -> Shelves:
    """Shelves with the largest parts, disjoint, for a share of the price; one at least."""
    prices = columns.prices
    order = np.argsort(-relaxed.parts, kind="stable")
    room = _FIXED * float(prices.sum())
    free = np.ones(len(prices), dtype=bool)
    taken: Shelves = []
    for c in order[:200]:
        members = columns.members[c] & free
        paid = float(prices[members].sum())
        if relaxed.parts[c] <= 0 or paid <= 0:
            continue
        if taken and (paid > room or paid < 0.99 * float(columns.costs[c])):
            continue
        taken.append(np.flatnonzero(members))
        free &= ~members
        room -= paid
        if room <= 0:
            break
    return taken
