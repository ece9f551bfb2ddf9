"""Solving again when PTKs come, go or are retargeted: as little change as possible for at most a
stated loss.

The first stage is what the fewest samples would be (a bound is enough). The second keeps every
PTK's option that it still has, and its place where it can; newcomers are laid over that. Only if
the result holds more than ``loss`` above the bound do others change, those first that waste most,
and as few of them as it takes. Where everybody stays and the current plan is good by its own
certificate, ``loss`` above what it holds is allowed as well: the bound may be out of anybody's
reach. Nothing is written anywhere: a what-if is the same call.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.shelf.levels import levels_of
from allocator.shelf.local_search import inserted
from allocator.strip.area import area_bound, least_area
from allocator.strip.branching import PackedOptions, shortest
from allocator.strip.building import as_plan
from allocator.strip.completing import completed
from allocator.strip.packing import Packed, pack
from allocator.strip.solve import solve_strip
from allocator.table import Ints, OptionTable, table_of

__all__ = ["LOSS", "changed", "kept", "resolve"]

# Above the bound, as a share.
LOSS = 0.01
# A plan whose gap is at most so many times the loss is good enough to be kept.
_GOOD = 2
NAME = "kept"
# Steps for packing kept options set by set, where levelling finds no way.
_COMPLETED = 1e9


def changed(before: Plan, after: Plan) -> tuple[str, ...]:
    """The PTKs of both plans whose level, demand or samples differ."""
    old = {
        assignment.id: (assignment.level, assignment.demand, assignment.samples)
        for assignment in before.assignments
    }
    return tuple(
        assignment.id
        for assignment in after.assignments
        if assignment.id in old
        and old[assignment.id] != (assignment.level, assignment.demand, assignment.samples)
    )


def resolve(
    problem: Problem, current: Plan, *, loss: float = LOSS, effort: Effort | None = None
) -> Plan:
    """A strip plan that changes as few PTKs of ``current`` as it can and holds at most ``loss``
    above the bound.

    INFEASIBLE or REJECTED as `solve_strip` says, where there is no plan; the current one then stays
    in force.
    """
    table = table_of(problem)
    if table is None or not len(table) or current.total_samples is None:
        return solve_strip(problem, effort=effort)
    bound = area_bound(table)
    most = int(bound * (1 + loss))
    choice, known = _choice(table, current, bound)
    if len(known) == len(current.assignments) and (current.gap or 0.0) <= _GOOD * loss:
        most = max(most, int(current.total_samples * (1 + loss)))
    if problem.n_max is not None:
        most = min(most, problem.n_max)
    base = _base(table, current, choice)
    packed_options = _laid(table, choice, base, bound, most)
    if packed_options is None:
        packed_options = _with_changes(table, choice, known, bound, most)
    if packed_options is None:
        return solve_strip(problem, effort=effort, start=kept(problem, current, "strip"))
    return as_plan(table, packed_options, bound, NAME)


def kept(problem: Problem, current: Plan, method: str) -> Plan | None:
    """The current plan with all its options and partitions, the newcomers added where they cost
    least; None if that fails.
    """
    table = table_of(problem)
    if table is None or not len(table) or current.total_samples is None:
        return None
    bound = area_bound(table)
    choice, known = _choice(table, current, bound)
    if method == "strip":
        packed_options = _laid(
            table,
            choice,
            _base(table, current, choice),
            bound,
            2 * max(bound, current.total_samples),
        )
    else:
        packed_options = _shelved(table, current, choice, known)
    if packed_options is None or (
        problem.n_max is not None and packed_options.packed.total > problem.n_max
    ):
        return None
    return as_plan(table, packed_options, bound, NAME)


def _choice(table: OptionTable, current: Plan, bound: int) -> tuple[Ints, Ints]:
    """Options: the current one where the PTK still has it, else that of least area; and who has the
    current one.
    """
    choice = least_area(table, bound)
    assert choice is not None
    old = {assignment.id: assignment for assignment in current.assignments}
    known = []
    for i, (name, row) in enumerate(zip(table.ids, table.rows, strict=True)):
        mine = old.get(name)
        for j, option in enumerate(row):
            if mine is not None and (option.demand, option.samples) == (mine.demand, mine.samples):
                choice[i] = j
                known.append(i)
    return choice, np.array(known, dtype=np.int64)


def _base(table: OptionTable, current: Plan, choice: Ints) -> Packed:
    """The current partitions with those who keep their options; empty ones left out."""
    rows = {name: i for i, name in enumerate(table.ids)}
    members = np.zeros((len(current.partitions), len(table)), dtype=bool)
    for assignment in current.assignments:
        i = rows.get(assignment.id)
        if i is not None and table.rows[i][int(choice[i])].samples == assignment.samples:
            members[list(assignment.partitions), i] = True
    widths = np.array([partition.samples for partition in current.partitions], dtype=np.int64)
    filled = members.any(axis=1)
    return Packed(widths[filled], members[filled])


def _laid(
    table: OptionTable, choice: Ints, base: Packed, bound: int, most: int
) -> PackedOptions | None:
    """These options on at most ``most`` records: on top of the base, or packed anew."""
    rows = np.arange(len(table))
    samples, demands = table.samples[rows, choice], table.demands[rows, choice]
    if int(samples.max()) > most:
        return None
    least = max(bound, base.total)
    for length in sorted({least + (most - least) * k // 8 for k in (0, 1, 2, 4, 8)}):
        if base.total <= length <= most:
            packed = pack(length, samples, demands, table.capacity, base)
            if packed is not None:
                return PackedOptions(choice, packed)
    packed = shortest(table, choice, bound, most + 1, steps=4)
    if packed is None and pack_fits(table, choice, most):
        packed = pack(most, samples, demands, table.capacity)
    if packed is None and pack_fits(table, choice, most):
        packed = completed(samples, demands, table.capacity, Effort(_COMPLETED))
    return None if packed is None or packed.total > most else PackedOptions(choice, packed)


def pack_fits(table: OptionTable, choice: Ints, length: int) -> bool:
    """True when the areas of these options leave a chance on so many records."""
    rows = np.arange(len(table))
    area = sum(
        map(
            int,
            table.samples[rows, choice].astype(object) * table.demands[rows, choice].astype(object),
        )
    )
    return area <= length * table.capacity


def _with_changes(
    table: OptionTable, choice: Ints, known: Ints, bound: int, most: int
) -> PackedOptions | None:
    """As few of the known as it takes move to their option of least area, those that waste most
    first.
    """
    best = least_area(table, most)
    if best is None:
        return None
    rows = np.arange(len(table))
    areas = table.samples.astype(np.float64) * table.demands
    waste = areas[rows, choice] - areas[rows, best]
    waste[table.samples[rows, choice] > most] = np.inf
    order = known[np.argsort(-waste[known], kind="stable")]
    order = order[waste[order] > 0]
    count = 1
    while count <= len(order):
        mixed = choice.copy()
        mixed[order[:count]] = best[order[:count]]
        if pack_fits(table, mixed, most) and int(table.samples[rows, mixed].max()) <= most:
            packed = shortest(table, mixed, bound, most + 1, steps=4)
            if packed is not None:
                return PackedOptions(mixed, packed)
        count = count + 1 if count < 8 else count * 5 // 4
    return None


def _shelved(table: OptionTable, current: Plan, choice: Ints, known: Ints) -> PackedOptions | None:
    """The current shelves as they are, with the others inserted."""
    if any(len(assignment.partitions) != 1 for assignment in current.assignments):
        return None
    levels = levels_of(table)
    base = _base(table, current, choice)
    shelves = [np.flatnonzero(row) for row in base.members]
    inside = np.zeros(len(table), dtype=bool)
    for shelf in shelves:
        inside[shelf] = True
    shelves = inserted(levels, shelves, np.flatnonzero(~inside), Effort(1e12))
    widths = np.array([levels.cost(shelf) for shelf in shelves], dtype=np.int64)
    members = np.zeros((len(shelves), len(table)), dtype=bool)
    options = choice.copy()
    stays = set(known.tolist())
    for k, (shelf, width) in enumerate(zip(shelves, widths.tolist(), strict=True)):
        members[k, shelf] = True
        for i in shelf:
            cheapest = next(j for j, option in enumerate(table.rows[i]) if option.samples <= width)
            options[i] = cheapest
        # Options as they were where there is room for them.
        load = sum(table.rows[i][int(options[i])].demand for i in shelf)
        for i in shelf:
            mine = table.rows[i][int(choice[i])]
            more = mine.demand - table.rows[i][int(options[i])].demand
            if int(i) in stays and mine.samples <= width and load + more <= table.capacity:
                options[i] = choice[i]
                load += more
    return PackedOptions(options, Packed(widths, members))
