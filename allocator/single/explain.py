"""Why there is no plan with one partition, and which single change would give one.

Let d_i(N) be PTK i's smallest demand with at most N samples. There is a plan if and only if sum_i
d_i(n_max) <= capacity. So the least capacity, the least n_max, the room that one PTK would have if
the others took their cheapest, and whether it is enough to remove one PTK all follow by adding up;
each answer is the least that suffices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from allocator.plan import Change, Explanation
from allocator.problem import MAX_AMOUNT, Problem, PtkOptions

__all__ = ["explain"]

_NAMED = 3


def explain(problem: Problem, *, show: Callable[[int], str] = str) -> Explanation | None:
    """Why `problem` has no plan with one partition, and what would help; None when it has one.

    ``show`` prints an amount of the capacity for people (`amounts.show_units`, for example).
    """
    least = _cheapest(problem, problem.n_max)
    missing = [name for name, demand in least.items() if demand is None]
    needed = sum(demand for demand in least.values() if demand is not None)
    if not missing and needed <= problem.capacity:
        return None
    changes: list[Change] = []
    if not missing and needed <= MAX_AMOUNT:
        more = needed - problem.capacity
        changes.append(
            Change(
                "capacity", None, needed, f"Raise the capacity by {show(more)} to {show(needed)}."
            )
        )
    size = _least_n_max(problem)
    if size is not None:
        changes.append(
            Change(
                "n_max", None, size, f"Allow {size} samples to be held instead of {problem.n_max}."
            )
        )
    for ptk in sorted(problem.ptks, key=lambda ptk: ptk.id):
        if any(name != ptk.id for name in missing):
            continue
        room = problem.capacity - (needed - (least[ptk.id] or 0))
        if room >= 0:
            changes += _changes_of(ptk, room, problem.n_max, show)
    return Explanation(_why(problem, missing, needed, show), tuple(changes))


def _cheapest(problem: Problem, n_max: int | None) -> Mapping[str, int | None]:
    return {
        ptk.id: min(
            (option.demand for option in ptk.options if n_max is None or option.samples <= n_max),
            default=None,
        )
        for ptk in problem.ptks
    }


def _least_n_max(problem: Problem) -> int | None:
    """The smallest bound on samples with which a plan exists; None when no bound would do."""
    sizes = sorted({option.samples for ptk in problem.ptks for option in ptk.options})
    low, high = 0, len(sizes)
    while low < high:
        middle = (low + high) // 2
        demands = _cheapest(problem, sizes[middle]).values()
        if (
            None not in demands
            and sum(demand for demand in demands if demand is not None) <= problem.capacity
        ):
            high = middle
        else:
            low = middle + 1
    return sizes[low] if low < len(sizes) else None


def _changes_of(
    ptk: PtkOptions, room: int, n_max: int | None, show: Callable[[int], str]
) -> list[Change]:
    held = "" if n_max is None else f" within {n_max} samples"
    return [
        Change(
            "option",
            ptk.id,
            room,
            f"Loosen the target of {ptk.id} until it needs at most {show(room)}{held}.",
        ),
        Change("remove", ptk.id, None, f"Remove {ptk.id}."),
    ]


def _why(problem: Problem, missing: list[str], needed: int, show: Callable[[int], str]) -> str:
    held = (
        "at any profiled level"
        if problem.n_max is None
        else f"at any profiled level within {problem.n_max} samples"
    )
    if missing:
        more = len(missing) - _NAMED
        names = ", ".join(sorted(missing)[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        return f"The target of {names} is not reachable {held}."
    held = "" if problem.n_max is None else f" within {problem.n_max} samples"
    return (
        f"Even at their cheapest{held}, the {len(problem.ptks)} PTKs need {show(needed)} together, "
        f"and the capacity is {show(problem.capacity)}."
    )
