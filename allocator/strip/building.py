"""From a packing to a plan: partitions in an order that a stream can be cut in, assignments, the
certificate's numbers.
"""

from __future__ import annotations

import numpy as np

from allocator.plan import Assignment, Explanation, Partition, Plan
from allocator.problem import Problem
from allocator.strip.area import area_bound
from allocator.strip.branching import PackedOptions
from allocator.strip.packing import Packed
from allocator.table import Ints, OptionTable, table_of, why_no_table

__all__ = ["as_found", "as_plan", "begin", "no_plan", "nothing_asked", "unsettled"]

# Beyond so many segments only their widths decide the order.
_ORDERED = 400


def as_plan(table: OptionTable, packing: PackedOptions, bound: int, solver: str) -> Plan:
    """The plan of a packing; segments with the same members become one partition."""
    packed = _merged(packing.packed)
    total = packed.total
    options = [row[int(j)] for row, j in zip(table.rows, packing.choice, strict=True)]
    demands = np.array([option.demand for option in options], dtype=np.int64)
    order = _neighbourly(packed)
    members = packed.members[order]
    ids = np.array(table.ids, dtype=object)
    # By PTK once more: a row of memory is read faster than a column.
    places = np.ascontiguousarray(members.T)
    partitions = tuple(
        Partition(
            samples=int(width),
            demand=int(demands[row].sum()),
            members=tuple(ids[row].tolist()),
        )
        for width, row in zip(packed.widths[order], members, strict=True)
    )
    assignments = tuple(
        Assignment.of(name, option, tuple(np.flatnonzero(places[i]).tolist()))
        for i, (name, option) in enumerate(zip(table.ids, options, strict=True))
    )
    bound = min(bound, total)
    return Plan(
        status="OPTIMAL" if bound == total else "FEASIBLE",
        total_samples=total,
        lower_bound=bound,
        gap=(total - bound) / bound if bound else 0.0,
        partitions=partitions,
        assignments=assignments,
        solver=solver,
    )


def as_found(table: OptionTable, plan: Plan) -> PackedOptions:
    """A plan as a packing; options that the table left out for better ones are replaced by
    those.
    """
    rows = {name: i for i, name in enumerate(table.ids)}
    choice = np.zeros(len(table), dtype=np.int64)
    members = np.zeros((len(plan.partitions), len(table)), dtype=bool)
    widths = np.array([partition.samples for partition in plan.partitions], dtype=np.int64)
    for assignment in plan.assignments:
        i = rows[assignment.id]
        choice[i] = next(
            j
            for j, option in enumerate(table.rows[i])
            if option.demand <= assignment.demand and option.samples <= assignment.samples
        )
        members[list(assignment.partitions), i] = True
    return PackedOptions(choice, Packed(widths, members))


def begin(problem: Problem, solver: str) -> Plan | tuple[OptionTable, int]:
    """The problem as a table and the samples that every plan holds at least; or the answer, where
    that is known without a search.
    """
    table = table_of(problem)
    if table is None:
        return no_plan(why_no_table(problem), solver)
    if not len(table):
        return nothing_asked(solver)
    most, bound = problem.n_max, area_bound(table)
    if most is not None and bound > most:
        return no_plan(f"every plan holds at least {bound} samples, and n_max is {most}", solver)
    return table, bound


def nothing_asked(solver: str) -> Plan:
    """The plan for no PTKs."""
    return Plan("OPTIMAL", 0, 0, 0.0, (), (), solver=solver)


def no_plan(why: str, solver: str) -> Plan:
    """INFEASIBLE: ``why`` is the proof in words."""
    return Plan(
        "INFEASIBLE",
        None,
        None,
        None,
        (),
        (),
        solver=solver,
        explanation=Explanation(f"There is no plan: {why}."),
    )


def unsettled(problem: Problem, total: int | None, bound: int, solver: str) -> Plan:
    """REJECTED: the best plan found (if its length is known) is beyond n_max, and a shorter one was
    not ruled out.
    """
    said = (
        "No plan was found"
        if total is None
        else f"The shortest plan found holds {total} samples, more than"
    )
    held = "within" if total is None else ""
    text = (
        f"{' '.join(filter(None, (said, held)))} n_max = {problem.n_max}; whether one exists with "
        f"{bound} to {problem.n_max} samples was not settled."
    )
    return Plan("REJECTED", None, None, None, (), (), solver=solver, explanation=Explanation(text))


def _merged(packed: Packed) -> Packed:
    """Segments with the same members as one, in the order of the first."""
    places: dict[bytes, int] = {}
    widths: list[int] = []
    rows: list[int] = []
    for k, (width, row) in enumerate(zip(packed.widths, packed.members, strict=True)):
        place = places.setdefault(row.tobytes(), len(widths))
        if place == len(widths):
            widths.append(0)
            rows.append(k)
        widths[place] += int(width)
    return Packed(np.array(widths, dtype=np.int64), packed.members[rows])


def _neighbourly(packed: Packed) -> Ints:
    """An order of the segments in which neighbours share members: the widest first, then always the
    most alike.
    """
    count = len(packed.widths)
    if count > _ORDERED:
        return np.argsort(-packed.widths, kind="stable")
    left = list(range(count))
    order = [int(packed.widths.argmax())]
    left.remove(order[0])
    while left:
        shared = (packed.members[left] == packed.members[order[-1]]).sum(axis=1)
        order.append(left.pop(int(shared.argmax())))
    return np.array(order, dtype=np.int64)
