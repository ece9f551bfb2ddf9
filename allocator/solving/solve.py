"""One entry for plans of every form.

==========  ========================================================================================
strip       a PTK may span partitions: the shortest plans, and the default (`allocator.strip.solve`)
shelf       disjoint partitions, each PTK in exactly one (`allocator.shelf.solve`)
fig4        the same through the paper's program and an outside solver, for comparison (`allocator.shelf.fig4`)
==========  ========================================================================================

*Same input, same plan.* Strip and shelf are limited by counted work, never by the clock, unless a
time limit and a clock are both given: then they look for a better plan until the gap is closed or
the limit is over, and ``Plan.solver`` ends in ", cut short by the clock" where it was the limit.
Outside solvers of fig4 go by the clock.

*Ties.* Of the plans found that hold equally few samples: the fewest partitions, then the fewest
PTKs that change their level against ``current``, then the least demand.

*Sound.* Every plan is checked by `allocator.verify` before it is returned. Where there is none the
explanation names single changes after which there is one. Reasons: METHOD_UNKNOWN,
SOLVER_UNAVAILABLE, TIME_LIMIT_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from allocator.effort import Clock, Effort
from allocator.plan import Explanation, Plan
from allocator.problem import Problem
from allocator.remedies import remedies
from allocator.shelf.fig4 import solve_fig4
from allocator.shelf.solve import effort_for, solve_shelf
from allocator.single.program import SOLVERS
from allocator.single.solve import solve as solve_single
from allocator.solving.resolve import changed, kept
from allocator.strip.feasible import any_plan
from allocator.strip.solve import GAP, solve_strip
from allocator.strip.solve import effort_for as strip_effort_for
from allocator.verify import faults, least_possible
from ptklib.errors import InvalidInput

__all__ = ["METHODS", "explained", "solve"]

METHODS = ("strip", "shelf", "fig4")
_FIG4_SECONDS = 60.0
# A quick look at a changed problem.
_LOOK = 1e8
# From so many PTKs on a look takes seconds: it need not be as good.
_MANY = 1000
_LOOK_GAP = 0.01
_LOOK_PACKINGS = 15
# Up to so many PTKs a proof is worth the work.
_PROVEN = 30
# Of what a problem deserves, for the shelf plan that a strip plan begins with.
_SHELF = 0.15


def solve(
    problem: Problem,
    *,
    method: str = "strip",
    solver: str = "cbc",
    time_limit_seconds: float | None = None,
    current: Plan | None = None,
    clock: Clock | None = None,
    show: Callable[[int], str] = str,
    remedy: bool = True,
    effort: Effort | None = None,
    gap: float | None = None,
) -> Plan:
    """The best plan found, with its certificate.

    ``time_limit_seconds`` is for looking until the gap is closed; None: as much as the size of the
    problem deserves. ``gap`` of a strip plan is good enough; None: none for up to 30 PTKs, a
    ten-thousandth for more.
    ``clock`` tells seconds; without one a time limit becomes as many steps as take about half of
    it. ``solver`` is asked by fig4 alone. ``show`` prints amounts in explanations. Without
    ``remedy`` nobody looks for the changes that would help where there is no plan, which takes
    longer than to find that there is none. ``effort`` holds for all of it, beside what is said by
    the time limit.
    """
    if method not in METHODS:
        raise InvalidInput(
            "METHOD_UNKNOWN", f"method must be one of {', '.join(METHODS)}, got {method!r:.60}"
        )
    if solver not in SOLVERS:
        raise InvalidInput(
            "SOLVER_UNAVAILABLE",
            f"solver must be one of {', '.join(SOLVERS)}, got {solver!r:.60}",
            solver=solver,
        )
    limit = time_limit_seconds
    if limit is not None and not (math.isfinite(limit) and limit > 0):
        raise InvalidInput(
            "TIME_LIMIT_INVALID",
            f"the time limit must be a positive number of seconds, got {limit!r}",
        )
    begin = clock() if clock is not None else 0.0
    if method == "fig4":
        plan = solve_fig4(
            problem, solver=solver, time_limit_seconds=limit or _FIG4_SECONDS, clock=clock
        )
    else:
        plan = _ours(problem, method, limit, current, clock, effort, gap)
    if plan.total_samples is None and remedy:
        plan = explained(problem, plan, method=method, show=show, effort=effort)
    wrong = faults(problem, plan)
    assert not wrong, wrong
    return plan if clock is None else replace(plan, seconds=round(clock() - begin, 3))


def _ours(
    problem: Problem,
    method: str,
    limit: float | None,
    current: Plan | None,
    clock: Clock | None,
    whole: Effort | None,
    gap: float | None,
) -> Plan:
    size = len(problem.ptks)
    deserved = strip_effort_for(size) if method == "strip" else effort_for(size)
    # Who has a limit wants it used; who shares it among many solves wants what each deserves.
    steps = math.inf if limit is not None and whole is None else deserved
    effort = Effort(steps, seconds=limit)
    if limit is not None and clock is not None:
        # The last second still looks for a better plan.
        effort = Effort.clocked(steps, clock, limit)
    if whole is not None:
        effort = whole.part(effort.limit)
    start = None if current is None else kept(problem, current, method)
    if method == "strip":
        plan = solve_strip(
            problem,
            effort=effort,
            start=start,
            gap=gap if gap is not None else 0.0 if size <= _PROVEN else GAP,
            other=lambda: solve_shelf(problem, effort=effort.part(_SHELF * deserved)),
        )
    else:
        plan = solve_shelf(problem, effort=effort, start=start)
    single = solve_single(problem, states=1)
    if plan.total_samples is None:
        # One partition is a plan of any form.
        if single.total_samples is None:
            return plan
        return _as(method, solve_single(problem), least_possible(problem) or 0, effort)
    others = [plan]
    if single.total_samples is not None and single.total_samples <= plan.total_samples:
        others.append(solve_single(problem))
    if start is not None:
        others.append(start)
    best = min(
        (other for other in others if other.total_samples is not None),
        key=lambda other: (
            other.total_samples,
            len(other.partitions),
            0 if current is None else len(changed(current, other)),
            sum(part.demand * part.samples for part in other.partitions),
        ),
    )
    assert plan.lower_bound is not None
    return _as(method, best, plan.lower_bound, effort)


def _as(method: str, best: Plan, bound: int, effort: Effort) -> Plan:
    """The best plan with one bound for all of them: each is a plan of the asked form."""
    total = best.total_samples
    assert total is not None
    bound = min(bound, total)
    name = method + (", cut short by the clock" if effort.cut else "")
    return replace(
        best,
        status="OPTIMAL" if bound == total else "FEASIBLE",
        lower_bound=bound,
        gap=(total - bound) / bound if bound else 0.0,
        solver=name,
    )


def explained(
    problem: Problem,
    plan: Plan,
    *,
    method: str = "strip",
    show: Callable[[int], str] = str,
    effort: Effort | None = None,
) -> Plan:
    """A plan that is none, with the changes that would help, found with quick looks."""
    assert plan.explanation is not None
    whole = effort or Effort(math.inf)
    many = len(problem.ptks) >= _MANY
    steps = 3 if many else 24 if len(problem.ptks) <= 100 else 10

    def look(problem: Problem) -> Plan:
        if method != "strip":
            return solve_shelf(problem, effort=whole.part(_LOOK))
        return solve_strip(
            problem,
            effort=whole.part(_LOOK),
            gap=_LOOK_GAP if many else GAP,
            packings=_LOOK_PACKINGS,
        )

    def fits(problem: Problem) -> Plan:
        return any_plan(problem, effort=whole.part(_LOOK)) if method == "strip" else look(problem)

    changes = remedies(problem, look, show=show, steps=steps, fits=fits, over=lambda: whole.over)
    return replace(plan, explanation=Explanation(plan.explanation.text, changes))
