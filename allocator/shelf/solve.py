"""Shelf plans: disjoint partitions, every PTK in exactly one (the form of the paper's Fig. 4), best
over all numbers of them.

1. a first plan: one partition if it fits, or PTKs inserted where they cost least, improved by small
   changes;
2. a lower bound and good shelves by columns (`allocator.shelf.columns`); for many PTKs with tied
   prices and levels in groups;
3. whole shelves from those (`allocator.shelf.rounding`), improved (`allocator.shelf.local_search`);
4. few PTKs or few levels: branch (`allocator.shelf.branching`), or all subsets where they are few
   (`allocator.shelf.subsets`); many: fix the surest shelves and solve for the rest
   (`allocator.shelf.diving`), then take a few shelves apart and solve for their members again,
   window by window.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.shelf.branching import branched
from allocator.shelf.columns import Columns
from allocator.shelf.diving import GROUP, columns_of, dived, main_part
from allocator.shelf.levels import Levels, coarse, levels_of
from allocator.shelf.local_search import Shelves, improved, inserted
from allocator.shelf.pricing import Pricing
from allocator.shelf.rounding import by_parts, whole
from allocator.shelf.subsets import MOST_PTKS, best_cover
from allocator.strip.branching import PackedOptions
from allocator.strip.building import as_found, as_plan, begin, no_plan, unsettled
from allocator.strip.packing import Packed
from allocator.table import Ints, OptionTable, rows_of

__all__ = ["GAP", "NAME", "effort_for", "solve_shelf"]

NAME = "shelf"
GAP = 5e-4
# Up to so many PTKs a proof is worth the work.
_PROVEN = 30
# Up to so many PTKs prices are free, levels single and branching worth it.
FEW = 60
# Up to so many levels as well, however many PTKs.
_PLAIN = 40
_UNITS = 1024
# Where fewer PTKs than this share a shelf, fixing shelves one after the other is a bad idea.
_SHORT = 5
# Beyond so many PTKs they are then solved for in parts.
_APART = 200
# A bound that is so much below the relaxation's value is worth some work.
_LOW = 2.5e-3
# With less to spend than so many pricings there is nothing to gain from prices.
_LEAST = 6
# So few that trying all is the quickest way.
_HANDFUL = 8


def effort_for(ptks: int) -> float:
    """Steps to spend when nothing else is said: about 1, 3, 15 and 40 seconds for 25, 50, 200 and
    1,000 PTKs.
    """
    return float(np.interp(ptks, [13, 25, 50, 200, 1000], [1e9, 1.6e9, 3e9, 1.5e10, 4e10]))


def solve_shelf(
    problem: Problem,
    *,
    effort: Effort | None = None,
    gap: float | None = None,
    start: Plan | None = None,
) -> Plan:
    """The best shelf plan found and how good one can be at best; INFEASIBLE with the proof in words
    when there is none.

    ``start`` is a shelf plan of the same problem that the answer will not be longer than. ``gap``
    is good enough; when left out, a proof for few PTKs and `GAP` for more.
    """
    if gap is None:
        gap = 0.0 if len(problem.ptks) <= _PROVEN else GAP
    effort = effort or Effort(effort_for(len(problem.ptks)))
    begun = begin(problem, NAME)
    if isinstance(begun, Plan):
        return begun
    most, (table, bound) = problem.n_max, begun
    levels = levels_of(table)
    shelves = _first(table, levels, effort)
    if start is not None and start.total_samples is not None:
        given = _given(table, start)
        shelves = min(shelves, given, key=lambda shelf: total(levels, shelf))
    if total(levels, shelves) > bound * (1 + gap):
        solve = _few if len(table) <= FEW or len(levels.sizes) <= _PLAIN else _many
        shelves, low = solve(table, levels, shelves, float(bound), gap, effort)
        bound = max(bound, int(np.ceil(low - 1e-6)))
    held = total(levels, shelves)
    if most is not None and held > most:
        if bound > most:
            return no_plan(
                f"every shelf plan holds at least {bound} samples, and n_max is {most}", NAME
            )
        return unsettled(problem, held, bound, NAME)
    return as_plan(table, _found(table, levels, shelves), bound, NAME)


def total(levels: Levels, shelves: Shelves) -> int:
    """Samples of all shelves."""
    return sum(levels.cost(shelf) for shelf in shelves)


def _first(table: OptionTable, levels: Levels, effort: Effort) -> Shelves:
    everyone = np.arange(len(table))
    rough = levels if len(table) <= FEW else coarse(levels, 1.02)
    shelves = improved(
        rough,
        inserted(rough, [], everyone, effort),
        effort.part(0.1 * effort.limit),
        swaps=len(table) <= FEW,
    )
    together = levels.needs.sum(axis=0)
    if (together <= levels.units).any() and levels.cost(everyone) <= total(levels, shelves):
        return [everyone]
    return shelves


def _few(
    table: OptionTable, levels: Levels, shelves: Shelves, bound: float, gap: float, effort: Effort
) -> tuple[Shelves, float]:
    if len(table) <= _HANDFUL:
        shelves = best_cover(levels, effort)
        return shelves, float(total(levels, shelves))
    columns = Columns(levels, Pricing(levels, most_units=_UNITS))
    columns.add(_rows(shelves, len(table)))
    relaxed = columns.relax(
        enough=float(total(levels, shelves)), effort=effort.part(0.6 * effort.limit), gap=gap / 4
    )
    shelves = _rounded(columns, shelves, effort)
    bound = max(bound, columns.bound)
    if _done(levels, shelves, bound, gap):
        return shelves, bound
    if len(table) > FEW:
        other = dived(table, levels, columns, relaxed, FEW, _end, effort.part(0.4 * effort.limit))
        shelves = min(
            shelves,
            improved(levels, other, effort.part(0.1 * effort.limit)),
            key=lambda shelf: total(levels, shelf),
        )
    if len(table) <= MOST_PTKS:
        shelves = best_cover(levels, effort)
        return shelves, float(total(levels, shelves))
    shelves, low = branched(columns, shelves, gap, effort)
    return shelves, max(bound, low)


def _rounded(columns: Columns, shelves: Shelves, effort: Effort) -> Shelves:
    levels = columns.levels
    below = float(total(levels, shelves))
    if np.ceil(columns.bound - 1e-6) >= below:
        return shelves
    plans = [by_parts(columns, effort), by_parts(columns, effort, exchanges=False)]
    if len(columns.own) <= FEW:
        plans += [plan for plan in [whole(columns, effort, below=below)] if plan is not None]
    better = [improved(levels, plan, effort.part(0.1 * effort.limit)) for plan in plans]
    return min([shelves, *better], key=lambda plan: total(levels, plan))


def _many(
    table: OptionTable, levels: Levels, shelves: Shelves, bound: float, gap: float, effort: Effort
) -> tuple[Shelves, float]:
    columns = columns_of(table, levels)
    if (
        _LEAST * columns.pricing.steps(len(columns.pricing.tops), len(table))
        > effort.limit - effort.spent
    ):
        return shelves, bound
    columns.add(_rows(shelves, len(table)))
    relaxed = columns.relax(
        enough=float(total(levels, shelves)),
        effort=effort.part(0.35 * effort.limit),
        columns=100,
        gap=1e-3,
    )
    if columns.bound < relaxed.value * (1 - _LOW):
        columns.tighten(gap=1e-3, effort=effort.part(0.25 * effort.limit))
    bound = max(bound, columns.bound)
    if effort.over or _done(levels, shelves, bound, gap):
        return shelves, bound
    main = main_part(columns.prices)
    if len(main) <= FEW:
        other, low = _by_main(table, levels, main, gap, effort.part(0.6 * effort.limit))
        bound = max(bound, low)
    else:
        shelves = _rounded(columns, shelves, effort.part(0.15 * effort.limit))
        other = shelves
        if len(table) > _SHORT * len(shelves):
            other = dived(
                table, levels, columns, relaxed, FEW, _end, effort.part(0.5 * effort.limit)
            )
        elif len(table) > _APART:
            other = _apart(table, levels, effort.part(0.4 * effort.limit))
    other = improved(coarse(levels, GROUP), other, effort.part(0.1 * effort.limit))
    shelves = min(shelves, other, key=lambda shelf: total(levels, shelf))
    return _windows(table, levels, shelves, bound, gap, effort), bound


def _by_main(
    table: OptionTable, levels: Levels, main: Ints, gap: float, effort: Effort
) -> tuple[Shelves, float]:
    """Few PTKs make up nearly all of the price: the best for those, with the others laid where they
    cost least.

    A bound on the plans of some PTKs holds for the plans of all.
    """
    part = rows_of(table, main)
    small = levels_of(part)
    shelves, low = _few(part, small, _first(part, small, effort), 0.0, gap, effort)
    others = np.setdiff1d(np.arange(len(table)), main)
    return inserted(levels, [main[shelf] for shelf in shelves], others, effort), low


def _apart(table: OptionTable, levels: Levels, effort: Effort) -> Shelves:
    """Shelves of parts that are each like the whole: where few share a shelf, little is lost by
    that.
    """
    sizes = levels.sizes[(levels.needs > levels.units).sum(axis=1)]
    order = np.lexsort((np.arange(len(table)), table.demands.min(axis=1), sizes))
    count = -(-len(table) // _APART)
    shelves: Shelves = []
    for k in range(count):
        inside = np.sort(order[k::count])
        part = rows_of(table, inside)
        small = levels_of(part)
        start = inserted(small, [], np.arange(len(part)), effort)
        columns = columns_of(part, small)
        columns.add(_rows(start, len(part)))
        share = effort.part(effort.limit / count)
        columns.relax(enough=np.inf, effort=share.part(0.7 * share.limit), columns=100, gap=2e-3)
        shelves += [inside[shelf] for shelf in _rounded(columns, start, share)]
    return shelves


def _end(table: OptionTable, effort: Effort) -> Shelves:
    """Good shelves for few PTKs, without proof."""
    levels = levels_of(table)
    start = _first(table, levels, effort)
    columns = Columns(levels, Pricing(levels, most_units=256))
    columns.add(_rows(start, len(table)))
    columns.relax(
        enough=float(total(levels, start)), effort=effort.part(0.2 * effort.limit), gap=2e-4
    )
    return _rounded(columns, start, effort)


def _windows(
    table: OptionTable, levels: Levels, shelves: Shelves, bound: float, gap: float, effort: Effort
) -> Shelves:
    """Take neighbouring shelves apart and solve for their members again, as long as there is effort
    and it helps.
    """
    width, shift, idle = 45, 0, 0
    while not effort.over and not _done(levels, shelves, bound, gap) and idle < 2:
        shelves = sorted(shelves, key=lambda shelf: (-levels.cost(shelf), int(shelf[0])))
        before = total(levels, shelves)
        windows = _cut(shelves, width, shift)
        kept: Shelves = []
        for window in windows:
            kept += window if effort.over else _again(table, window, effort)
        shelves = kept
        idle = idle + 1 if total(levels, shelves) > before * (1 - 2e-4) else 0
        shift += width // 2
        width = min(FEW, width + 5)
    return shelves


def _cut(shelves: Shelves, width: int, shift: int) -> list[Shelves]:
    """Runs of shelves with about ``width`` members; the first run is shorter by the shift, so that
    borders move.
    """
    windows: list[Shelves] = [[]]
    room = width - shift % width
    for shelf in shelves:
        if room < len(shelf) and windows[-1]:
            windows.append([])
            room = width
        windows[-1].append(shelf)
        room -= len(shelf)
    return windows


def _again(table: OptionTable, window: Shelves, effort: Effort) -> Shelves:
    inside = np.sort(np.concatenate(window))
    if len(window) < 2 or len(inside) > 2 * FEW:
        return window
    part = rows_of(table, inside)
    small = levels_of(part)
    places = {int(i): k for k, i in enumerate(inside)}
    old = [np.array([places[int(i)] for i in shelf], dtype=np.int64) for shelf in window]
    columns = Columns(small, Pricing(small, most_units=256))
    columns.add(_rows(old, len(inside)))
    share = effort.part(1e9)
    columns.relax(enough=float(total(small, old)), effort=share, gap=5e-4)
    new = _rounded(columns, old, share)
    return [inside[shelf] for shelf in new]


def _done(levels: Levels, shelves: Shelves, bound: float, gap: float) -> bool:
    return bool(total(levels, shelves) <= np.ceil(bound - 1e-6) * (1 + gap))


def _rows(shelves: Shelves, count: int) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    rows = np.zeros((len(shelves), count), dtype=bool)
    for k, shelf in enumerate(shelves):
        rows[k, shelf] = True
    return rows


def _given(table: OptionTable, plan: Plan) -> Shelves:
    packed_options = as_found(table, plan)
    return [np.flatnonzero(row) for row in packed_options.packed.members]


def _found(table: OptionTable, levels: Levels, shelves: Shelves) -> PackedOptions:
    """Every member takes its cheapest option at the level of its shelf."""
    choice = np.zeros(len(table), dtype=np.int64)
    widths = np.array([levels.cost(shelf) for shelf in shelves], dtype=np.int64)
    for shelf, width in zip(shelves, widths, strict=True):
        for i in shelf:
            choice[i] = next(j for j, option in enumerate(table.rows[i]) if option.samples <= width)
    return PackedOptions(choice, Packed(widths, _rows(shelves, len(table))))
