"""Does a plan hold? Written for itself: no line is shared with what makes plans.

`faults` checks any plan (one partition or many, PTKs in one or several of them) against its
problem: every PTK exactly once, with an option it has; partitions within the capacity and large
enough for their members; totals that add up; a status that its numbers support. `faults_of_single`
also checks the *claim* of a plan with one partition, that nothing smaller exists, by trying
everything smaller at the members' cheapest; `faults_of_shelf` that every PTK is in one partition.
All answer with sentences; an empty tuple means sound. `least_possible` is a lower bound on plans of
every form, computed afresh: a lower bound up to it needs no trust in any solver, and a total below
it is impossible.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from allocator.plan import STATUSES, Assignment, Plan
from allocator.problem import Problem
from ptklib.privacy.bisection import first_true

__all__ = ["faults", "faults_of_shelf", "faults_of_single", "least_possible"]


def faults(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """What is wrong with a plan."""
    if plan.status not in STATUSES:
        return (f"the status {plan.status!r} is unknown",)
    if plan.status in ("INFEASIBLE", "REJECTED"):
        return tuple(_no_plan(plan))
    return (*_assignments(problem, plan), *_partitions(problem, plan), *_numbers(problem, plan))


def faults_of_shelf(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """What is wrong with a shelf plan: each PTK in exactly one partition, which is as large as its
    members need.
    """
    all_faults = list(faults(problem, plan))
    all_faults += [
        f"{assignment.id} is in {len(assignment.partitions)} partitions"
        for assignment in plan.assignments
        if len(assignment.partitions) > 1
    ]
    for index, partition in enumerate(plan.partitions):
        needed = max(
            (
                assignment.samples
                for assignment in plan.assignments
                if assignment.partitions == (index,)
            ),
            default=0,
        )
        if needed < partition.samples:
            all_faults.append(
                f"partition {index} holds {partition.samples} samples, and its members need "
                f"{needed}"
            )
    return tuple(all_faults)


def least_possible(problem: Problem) -> int | None:
    """No plan of any form holds fewer:

    N records carry at most N times the capacity. None when no number is enough.
    """
    low, high = 0, 1
    while not _carries(problem, high):
        low, high = high, high * 2
        if high > 1 << 70:
            return None
    if not problem.ptks:
        return 0
    return first_true(lambda size: _carries(problem, size), low, high)


def _carries(problem: Problem, size: int) -> bool:
    area = 0
    for ptk in problem.ptks:
        areas = [
            option.samples * option.demand
            for option in ptk.options
            if option.samples <= size and option.demand <= problem.capacity
        ]
        if not areas:
            return False
        area += min(areas)
    return area <= size * problem.capacity


def faults_of_single(problem: Problem, plan: Plan) -> tuple[str, ...]:
    """What is wrong with a plan of at most one partition, its claim to be the smallest (or
    impossible) included.
    """
    all_faults = list(faults(problem, plan))
    if len(plan.partitions) > 1:
        all_faults.append(f"the plan has {len(plan.partitions)} partitions, not one")
    if plan.status == "REJECTED":
        return tuple(all_faults)
    # A smaller plan would use only options below the total (or, when none was found, any within
    # n_max).
    below = plan.total_samples if plan.status == "OPTIMAL" else None
    cheapest = []
    for ptk in problem.ptks:
        usable = [
            option.demand
            for option in ptk.options
            if (problem.n_max is None or option.samples <= problem.n_max)
            and (below is None or option.samples < below)
        ]
        cheapest.append(min(usable) if usable else None)
    possible = (
        None not in cheapest
        and sum(demand for demand in cheapest if demand is not None) <= problem.capacity
    )
    if plan.status == "INFEASIBLE" and possible:
        all_faults.append("the plan says infeasible, and the cheapest options fit")
    if plan.status == "OPTIMAL" and problem.ptks and possible:
        all_faults.append(
            f"the plan says {plan.total_samples} samples are the fewest, and fewer suffice"
        )
    return tuple(all_faults)


def _no_plan(plan: Plan) -> Iterator[str]:
    if plan.partitions or plan.assignments:
        yield f"a plan that is {plan.status} assigns something"
    if (plan.total_samples, plan.lower_bound, plan.gap) != (None, None, None):
        yield f"a plan that is {plan.status} has numbers"
    if plan.explanation is None or not plan.explanation.text:
        yield f"a plan that is {plan.status} does not say why"


def _assignments(problem: Problem, plan: Plan) -> Iterator[str]:
    asked = {ptk.id: ptk for ptk in problem.ptks}
    times = Counter(assignment.id for assignment in plan.assignments)
    yield from (f"{name} has no assignment" for name in asked if not times[name])
    yield from (f"{name} is assigned {count} times" for name, count in times.items() if count > 1)
    for assignment in plan.assignments:
        if assignment.id not in asked:
            yield f"{assignment.id} is not in the problem"
            continue
        if not any(
            (option.level, option.demand, option.samples)
            == (assignment.level, assignment.demand, assignment.samples)
            for option in asked[assignment.id].options
        ):
            yield (
                f"{assignment.id} has no option with level {assignment.level}, "
                f"demand {assignment.demand} and samples {assignment.samples}"
            )
        if not assignment.partitions or len(set(assignment.partitions)) != len(
            assignment.partitions
        ):
            yield f"the partitions of {assignment.id} are none, or one of them twice"
        elif not all(0 <= index < len(plan.partitions) for index in assignment.partitions):
            yield f"{assignment.id} is in a partition that the plan does not have"
        elif (
            sum(plan.partitions[index].samples for index in assignment.partitions)
            < assignment.samples
        ):
            yield f"the partitions of {assignment.id} hold fewer than its {assignment.samples} samples"


def _partitions(problem: Problem, plan: Plan) -> Iterator[str]:
    held: list[list[Assignment]] = [[] for _ in plan.partitions]
    for assignment in plan.assignments:
        for index in set(assignment.partitions):
            if 0 <= index < len(held):
                held[index].append(assignment)
    for index, (partition, inside) in enumerate(zip(plan.partitions, held, strict=True)):
        if sorted(partition.members) != sorted(assignment.id for assignment in inside):
            yield f"partition {index} lists other members than the assignments say"
        demand = sum(assignment.demand for assignment in inside)
        if demand != partition.demand:
            yield f"partition {index} says it demands {partition.demand}, its members demand {demand}"
        if demand > problem.capacity:
            yield f"partition {index} demands {demand} of a capacity of {problem.capacity}"
        if partition.samples < 1 or not inside:
            yield f"partition {index} is empty"


def _numbers(problem: Problem, plan: Plan) -> Iterator[str]:
    total = sum(partition.samples for partition in plan.partitions)
    if plan.total_samples != total:
        yield f"the plan says it holds {plan.total_samples} samples, its partitions hold {total}"
    if problem.n_max is not None and total > problem.n_max:
        yield f"the plan holds {total} samples of at most {problem.n_max}"
    if plan.lower_bound is None or plan.gap is None:
        yield "the plan has no lower bound or no gap"
        return
    possible = least_possible(problem)
    if possible is None or total < possible:
        yield f"the plan says {total} samples are enough, and no plan holds fewer than {possible}"
    if not 0 <= plan.lower_bound <= total:
        yield f"the lower bound {plan.lower_bound} is not between 0 and {total}"
        return
    gap = (total - plan.lower_bound) / plan.lower_bound if plan.lower_bound else float(total > 0)
    if abs(plan.gap - gap) > 1e-9:
        yield f"the gap {plan.gap} should be {gap}"
    if (plan.status == "OPTIMAL") != (plan.lower_bound == total):
        yield f"the status {plan.status} does not go with {total} samples and a lower bound of {plan.lower_bound}"
    if plan.explanation is not None:
        yield "a plan that exists explains why it does not"
