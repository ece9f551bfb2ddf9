"""Does a newcomer fit beside the PTKs at hand? If not: what is the nearest target that would?

A target is a number that can be loosened step by step from the asked one to ``loosest``, upwards for a loss, downwards for a
score. Loosening never takes options away and never makes them dearer, so the steps that fit are the last ones, and a
binary search finds the first of them; the step before it has been tried and does not fit.

The form of the plan is the caller's: ``plan_of`` makes it (`allocator.solve.solve` for strip and shelf plans), one partition
when left out. A method that does not prove its answers may refuse a step that would fit; never the other way round.

Reason: TARGET_STEPS_INVALID, and what ``options_of`` raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from allocator.exact import least_exposure
from allocator.explain import explain
from allocator.plan import Change, Explanation, Plan
from allocator.problem import Option, Problem, PtkOptions
from allocator.single import EXACT, solve
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.amounts import show as show_number

__all__ = ["MAX_STEPS", "admit", "nearest_target"]

MAX_STEPS = 1_000_000

OptionsOf = Callable[[Fraction], Sequence[Option]]
PlanOf = Callable[[Problem], Plan]


def admit(
    problem: Problem,
    newcomer: str,
    options_of: OptionsOf,
    *,
    target: Number,
    loosest: Number,
    step: Number = "0.001",
    solver: str = EXACT,
    show: Callable[[int], str] = str,
    plan_of: PlanOf | None = None,
) -> Plan:
    """The plan for the PTKs of ``problem`` and the newcomer at its target, or REJECTED with what would help.

    ``options_of(target)`` are the newcomer's options at a target. INFEASIBLE when the others have no plan even without it.
    """
    asked = exact(target, name="target")
    together = _with(problem, newcomer, options_of(asked))
    plan = solve(together, solver=solver, show=show) if plan_of is None else plan_of(together)
    if plan.total_samples is not None:
        return plan
    if plan_of is None and least_exposure(problem) is None:
        return replace(plan, explanation=explain(problem, show=show))
    if plan_of is not None:
        before = plan_of(problem)
        if before.total_samples is None:
            return before
    told = plan.explanation
    assert told is not None
    nearest = nearest_target(problem, newcomer, options_of, target=asked, loosest=loosest, step=step, plan_of=plan_of)
    # The newcomer's own part is said better by its target.
    changes = tuple(one for one in told.changes if one.ptk != newcomer)
    if nearest is None:
        text = f"{newcomer} does not fit even at its loosest target {show_number(exact(loosest))}. {told.text}"
    else:
        text = f"{newcomer} does not fit at target {show_number(asked)}. {told.text}"
        loosen = f"Loosen the target of {newcomer} from {show_number(asked)} to {show_number(nearest)}."
        changes = (Change("target", newcomer, show_number(nearest), loosen), *changes)
    return replace(plan, status="REJECTED", explanation=Explanation(text, changes))


def nearest_target(
    problem: Problem,
    newcomer: str,
    options_of: OptionsOf,
    *,
    target: Number,
    loosest: Number,
    step: Number = "0.001",
    plan_of: PlanOf | None = None,
) -> Fraction | None:
    """The first of target, target ± step, ..., loosest at which the newcomer fits; None when none does."""
    asked, last, size = exact(target, name="target"), exact(loosest, name="loosest"), exact(step, name="step")
    if size == 0 or abs(last - asked) / size > MAX_STEPS:
        raise InvalidInput(
            "TARGET_STEPS_INVALID",
            f"step must be positive and lead from {show_number(asked)} to {show_number(last)} "
            f"in at most {MAX_STEPS} steps, got {show_number(size)}",
        )

    def at(index: int) -> Fraction:
        return min(asked + index * size, last) if last >= asked else max(asked - index * size, last)

    def fits(index: int) -> bool:
        together = _with(problem, newcomer, options_of(at(index)))
        if plan_of is None:
            return least_exposure(together) is not None
        return plan_of(together).total_samples is not None

    if fits(0):
        return asked
    low, high = 0, -(-abs(last - asked) // size)
    if not fits(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return at(high)


def _with(problem: Problem, newcomer: str, options: Sequence[Option]) -> Problem:
    return replace(problem, ptks=(*problem.ptks, PtkOptions(newcomer, tuple(options))))
