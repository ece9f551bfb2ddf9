"""Strip plans: a PTK trains on any records, as many as its option asks for, and no record carries
more than the capacity.

The default form of a plan. Every shelf plan is a strip plan, so the best strip plan is never
longer. How it is found:

1. the area bound (`allocator.strip.area`), and at that length the options of least area, levelled
   out (`allocator.strip.packing`): for many PTKs this alone meets the bound; set by set
   (`allocator.strip.completing`) where who shares with whom is all that matters;
2. for many PTKs whose heights do not fit well together, prices of heights
   (`allocator.strip.heights`) give a better bound and better options;
3. for few PTKs, and for some hundreds where that is not enough, branch and bound over the linear
   program of configurations (`allocator.strip.branching`), without the *dust*: the PTKs that
   together fill next to nothing, which are laid on top at the end;
4. if a shelf plan was given and is shorter, that.

Work is limited by counted effort, not by the clock, so the same problem gives the same plan on any
machine; the time limit is a second limit that only a slow machine meets.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.strip.area import area_bound, least_area
from allocator.strip.branching import PackedOptions, Search, shortest
from allocator.strip.building import as_found, as_plan, begin, no_plan, unsettled
from allocator.strip.choosing import Choosing
from allocator.strip.completing import completed
from allocator.strip.configurations import Configurations
from allocator.strip.heights import Heights
from allocator.strip.packing import Packed, pack
from allocator.strip.prices.charges import OptionCharges
from allocator.strip.whole_records import is_small, settled
from allocator.table import Ints, OptionTable

__all__ = ["GAP", "NAME", "effort_for", "solve_strip"]

NAME = "strip"
# Good enough: a plan within this of its bound is not improved further.
GAP = 1e-4
# The linear program over PTKs is for at most so many; beyond, heights are enough.
_FEW = 80
# Up to so many it is tried where heights leave more than this of a gap: tall PTKs, of which few
# share a record.
_SOME = 300
_CLOSE = 2e-3
# Up to so many PTKs the options that pay least by areas alone are worth their time.
_MANY = 1500
_DUST = 2e-5
# Tried for the first plan.
_PACKINGS = 60


def effort_for(ptks: int) -> float:
    """Steps to spend when nothing else is said: about 2, 2, 4, 6 and 30 seconds for 13, 50, 200,
    1,000 and 5,000 PTKs.
    """
    return float(np.interp(ptks, [13, 50, 200, 1000, 5000], [1.7e9, 1.7e9, 4e9, 8e9, 4e10]))


def solve_strip(
    problem: Problem,
    *,
    effort: Effort | None = None,
    gap: float = GAP,
    start: Plan | None = None,
    packings: int = _PACKINGS,
    other: Callable[[], Plan] | None = None,
) -> Plan:
    """The shortest strip plan found and how short one can be at best; INFEASIBLE with the proof in
    words when there is none.

    ``start`` is a plan of the same problem, of any form, that the answer will not be longer than.
    ``packings`` are tried for the first plan: fewer for a quick look. ``other`` is asked for one
    more plan to begin with, where the first is not close to its bound. With more effort the answer
    is never longer: what is looked at, and in which order, does not depend on how much there is.
    """
    effort = effort or Effort(effort_for(len(problem.ptks)))
    begun = begin(problem, NAME)
    if isinstance(begun, Plan):
        return begun
    most, (table, bound) = problem.n_max, begun
    best = _first(table, bound, packings, effort)
    best = _shorter(table, best, start)
    if other is not None and best.packed.total > bound * (1 + _CLOSE):
        best = _shorter(table, best, other())
    if best.packed.total > (bound if is_small(table, best.packed.total) else bound * (1 + gap)):
        best, bound = _better(table, best, bound, gap, effort)
    if most is not None and best.packed.total > most:
        if bound > most:
            return no_plan(f"every plan holds at least {bound} samples, and n_max is {most}", NAME)
        return unsettled(problem, best.packed.total, bound, NAME)
    return as_plan(table, best, bound, NAME)


def _shorter(table: OptionTable, best: PackedOptions, plan: Plan | None) -> PackedOptions:
    if plan is None or plan.total_samples is None or plan.total_samples >= best.packed.total:
        return best
    return as_found(table, plan)


def _first(table: OptionTable, bound: int, packings: int, effort: Effort) -> PackedOptions:
    """Least areas at the bound, levelled; if need be also at lengths above it, where other options
    are allowed.
    """
    choice = least_area(table, bound)
    assert choice is not None
    packed = shortest(table, choice, bound, _serial(table, choice) + 1, steps=packings)
    if packed is None:
        # Too few tries to come down from where one stands after the other.
        rows = np.arange(len(table))
        packed = Packed(table.samples[rows, choice], np.eye(len(table), dtype=bool))
    best = PackedOptions(choice, packed)
    length = bound
    for _ in range(packings // 5):
        if effort.over:
            break
        length += max(1, (best.packed.total - bound) // 12)
        if length >= best.packed.total:
            break
        other = least_area(table, length)
        if other is not None and (other != choice).any():
            choice = other
            packed = shortest(table, choice, bound, best.packed.total, steps=12)
            if packed is not None:
                best = PackedOptions(choice, packed)
    return _completed(table, best, best.choice, bound, effort)


def _completed(
    table: OptionTable, best: PackedOptions, choice: Ints, bound: int, effort: Effort
) -> PackedOptions:
    """The best, or these options packed set by set where that is shorter and there is something to
    gain.
    """
    if best.packed.total <= bound * (1 + _CLOSE):
        return best
    rows = np.arange(len(table))
    packed = completed(
        table.samples[rows, choice], table.demands[rows, choice], table.capacity, effort
    )
    if packed is None or packed.total >= best.packed.total:
        return best
    return PackedOptions(choice, packed)


def _serial(table: OptionTable, choice: Ints) -> int:
    """One PTK after the other always fits."""
    return sum(int(sample) for sample in table.samples[np.arange(len(table)), choice])


def _better(
    table: OptionTable, best: PackedOptions, bound: int, gap: float, effort: Effort
) -> tuple[PackedOptions, int]:
    if len(table) > _SOME:
        if len(table) <= _MANY:
            best, bound = _by_charges(table, best, bound, effort)
        if best.packed.total <= bound * (1 + gap) or effort.over:
            return best, bound
        return _by_heights(table, best, bound, gap, effort)
    if is_small(table, best.packed.total):
        return settled(table, best, bound, effort)
    kept = _main_part(table, bound)
    part = OptionTable(
        table.capacity, tuple(table.ids[i] for i in kept), tuple(table.rows[i] for i in kept)
    )
    # A plan of the whole is a plan of the part, and a bound of the part holds for the whole.
    start = PackedOptions(best.choice[kept], _without(best.packed, kept))
    packed_options, low = _searched(part, start, gap / 2, effort)
    bound = max(bound, low)
    if packed_options.packed.total < best.packed.total:
        whole = _with_dust(table, kept, packed_options, bound, best.packed.total)
        if whole is not None:
            best = whole
    return best, min(bound, best.packed.total)


def _searched(
    table: OptionTable, start: PackedOptions, gap: float, effort: Effort
) -> tuple[PackedOptions, int]:
    """Options chosen and told in turn; branch and bound for what that leaves."""
    configurations = Configurations(table)
    choosing = Choosing(table, start, area_bound(table), gap=gap, configurations=configurations)
    choosing.run(effort)
    if choosing.closed or effort.over or len(table) > _FEW:
        return choosing.best, choosing.bound
    search = Search(table, choosing.best, choosing.bound, gap=gap, configurations=configurations)
    best, bound = search.run(effort)
    return best, min(max(bound, choosing.bound), best.packed.total)


def _main_part(table: OptionTable, length: int) -> Ints:
    """The PTKs that matter, in order: all but those that together fill less than `_DUST` of the
    window.
    """
    areas = (table.samples.astype(np.float64) * table.demands).min(axis=1)
    small = np.argsort(areas, kind="stable")
    dust = np.cumsum(areas[small]) <= _DUST * length * table.capacity
    return np.sort(small[~dust]) if not dust.all() else np.arange(len(table))


def _without(packed: Packed, kept: Ints) -> Packed:
    members = packed.members[:, kept]
    filled = members.any(axis=1)
    return Packed(packed.widths[filled], members[filled])


def _with_dust(
    table: OptionTable, kept: Ints, packing: PackedOptions, bound: int, below: int
) -> PackedOptions | None:
    """The plan of the main part with the others laid over it, at their least area."""
    choice = least_area(table, max(bound, packing.packed.total))
    assert choice is not None
    choice[kept] = packing.choice
    rows = np.arange(len(table))
    members = np.zeros((len(packing.packed.widths), len(table)), dtype=bool)
    members[:, kept] = packing.packed.members
    start = Packed(packing.packed.widths, members)
    length = max(bound, packing.packed.total)
    while length < below:
        packed = pack(
            length, table.samples[rows, choice], table.demands[rows, choice], table.capacity, start
        )
        if packed is not None:
            return PackedOptions(choice, packed)
        length += max(1, (below - packing.packed.total) // 64)
    return None


def _by_charges(
    table: OptionTable, best: PackedOptions, bound: int, effort: Effort
) -> tuple[PackedOptions, int]:
    """The options that pay least by areas, rounded in many ways, and a bound."""
    cut = best.packed.total
    allowed = table.allowed(cut - 1)
    if not allowed.any(axis=1).all():
        return best, cut
    cheapest = OptionCharges(table).cheapest(
        allowed, below=cut, low=min(bound, cut - 1), gap=_CLOSE / 2, effort=effort
    )
    if effort.over:
        return best, bound
    bound = max(bound, min(int(np.ceil(cheapest.bound - 1e-6)), cut))
    if cheapest.choice is None:
        return best, bound
    packed = shortest(table, cheapest.choice, bound, cut, steps=6)
    if packed is not None:
        best = PackedOptions(cheapest.choice, packed)
    return _completed(table, best, cheapest.choice, bound, effort), bound


def _by_heights(
    table: OptionTable, best: PackedOptions, bound: int, gap: float, effort: Effort
) -> tuple[PackedOptions, int]:
    """A bound and options from the prices of heights, at a few lengths between the bound and the
    plan.
    """
    heights = Heights(table)
    for _ in range(4):
        if best.packed.total <= bound * (1 + gap) or effort.over:
            break
        # No shorter plan uses options of more samples than it holds.
        allowed = table.allowed(best.packed.total - 1)
        if not allowed.any(axis=1).all():
            return best, best.packed.total
        priced = heights.relax(allowed, enough=best.packed.total, effort=effort)
        bound = max(bound, min(int(np.ceil(priced.bound - 1e-6)), best.packed.total))
        if effort.whole_over:
            break
        worth = np.where(allowed, table.samples * priced.prices, np.inf)
        improved = False
        for choice in (worth.argmin(axis=1), np.where(allowed, priced.shares, -1.0).argmax(axis=1)):
            packed = shortest(table, choice, bound, best.packed.total, steps=12)
            if packed is not None:
                best, improved = PackedOptions(choice, packed), True
            before, best = best, _completed(table, best, choice, bound, effort)
            improved |= best is not before
        if not improved:
            break
    return best, bound
