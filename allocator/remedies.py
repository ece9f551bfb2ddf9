"""What would give a plan where there is none: the least of each single change that is known to be
enough.

Works for any form of plan: ``solve`` is asked about changed problems, in memory, and a change is
named only if a plan for it was found. With a method that proves its answers the values are the
least; otherwise, and when ``over`` says that there is no time for more, a little less might do as
well, and some changes are not looked for.

==========  ========================================================================================
capacity    by halving between what every PTK needs at least by itself and what all need in one partition; of many PTKs
            first close to what their areas need
n_max       what the plan without that limit holds
option      for a PTK that has none: any within the capacity would do if the others have a plan without it
remove      for each PTK that stands in the way alone; with n_max, for those of most area first
==========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from allocator.plan import Change, Plan
from allocator.problem import MAX_AMOUNT, Option, Problem

__all__ = ["remedies"]

Solve = Callable[[Problem], Plan]

_TRIED = 8
# From so many PTKs on every look takes long, and what is found lies close to what areas need.
_MANY = 1000
_TRIED_OF_MANY = 2
_NEAR = 7


def remedies(
    problem: Problem,
    solve: Solve,
    *,
    show: Callable[[int], str] = str,
    steps: int = 24,
    fits: Solve | None = None,
    over: Callable[[], bool] = lambda: False,
) -> tuple[Change, ...]:
    """The changes, cheapest kind first.

    ``solve`` makes short plans, ``fits`` any plan (``solve`` too when left out).
    """
    fits = fits or solve
    changes: list[Change] = []
    lost = [ptk.id for ptk in problem.ptks if not _usable(problem, ptk.options)]
    capacity = _capacity(problem, fits, steps, over)
    if capacity is not None:
        more = show(capacity - problem.capacity)
        changes.append(
            Change("capacity", None, capacity, f"Raise the capacity by {more} to {show(capacity)}.")
        )
    if problem.n_max is not None and not over():
        free = solve(replace(problem, n_max=None)).total_samples
        if free is not None and free > problem.n_max:
            text = f"Allow {free} samples to be held instead of {problem.n_max}."
            changes.append(Change("n_max", None, free, text))
    if len(lost) > 1:
        return tuple(changes)
    for name in lost or _heaviest(problem):
        if over():
            break
        without = replace(problem, ptks=tuple(ptk for ptk in problem.ptks if ptk.id != name))
        if fits(without).total_samples is not None:
            if lost and problem.n_max is None:
                text = (
                    f"Loosen the target of {name} until it needs at most {show(problem.capacity)}."
                )
                changes.append(Change("option", name, problem.capacity, text))
            changes.append(Change("remove", name, None, f"Remove {name}."))
    return tuple(changes)


def _usable(problem: Problem, options: tuple[Option, ...]) -> list[Option]:
    most = problem.n_max
    return [
        option
        for option in options
        if option.demand <= problem.capacity and (most is None or option.samples <= most)
    ]


def _capacity(problem: Problem, fits: Solve, steps: int, over: Callable[[], bool]) -> int | None:
    """The least capacity found that is enough; None when no capacity is."""
    cheapest = []
    for ptk in problem.ptks:
        within = [
            option.demand
            for option in ptk.options
            if problem.n_max is None or option.samples <= problem.n_max
        ]
        if not within:
            return None
        cheapest.append(min(within))
    low, high = max(problem.capacity, max(cheapest, default=0) - 1), sum(cheapest)
    if problem.n_max is None:
        # One partition for each PTK is a plan as soon as each fits by itself.
        return max(cheapest) if max(cheapest) > problem.capacity else None
    if high > MAX_AMOUNT or high <= problem.capacity:
        return None
    # No smaller capacity carries the areas.
    low = max(low, min(_needed(problem), high) - 1)
    far = high
    if len(problem.ptks) >= _MANY:
        far = max(1, low >> _NEAR)
    while high - low > 1 and steps > 0 and not over():
        steps -= 1
        middle = min((low + high) // 2, low + far)
        far *= 4
        if fits(replace(problem, capacity=middle)).total_samples is None:
            low = middle
        else:
            high = middle
    return high


def _needed(problem: Problem) -> int:
    """No smaller capacity is enough: n_max records carry at most n_max times it."""
    most = problem.n_max or 1
    areas = (
        min(
            option.samples * option.demand for option in ptk.options if option.samples <= most
        )  # each has one, or nothing helps
        for ptk in problem.ptks
    )
    return -(-sum(areas) // most)


def _heaviest(problem: Problem) -> list[str]:
    """PTKs by falling least area, a handful."""
    if problem.n_max is None:
        return []
    areas = [
        (
            -min(
                (option.samples * option.demand for option in _usable(problem, ptk.options)),
                default=0,
            ),
            ptk.id,
        )
        for ptk in problem.ptks
    ]
    return [name for _, name in sorted(areas)[: _TRIED if len(areas) < _MANY else _TRIED_OF_MANY]]
