"""Plans with many partitions that a stream's filter admits.

`settle_many` solves in one main coordinate after the other (`allocator.admission.coordinates`):
with up to `FEW` PTKs first in the one where one partition for all would be smallest, then in those
with the least bound. It keeps the plan of fewest samples, and leaves out coordinates that cannot be
better; with more PTKs than that it tries `TRIED` of them. The certificate is for all of them: the
lower bound is the least of what was proven in the coordinates that were tried and of the quick
bounds of the others. One ``effort`` holds for all of them, and for the words where there is no
plan. **A plan is accepted only if `Filter.admits` says yes to every partition**: the sum of its
members' demands on top of the loss. Where the side coordinate stands in the way, PTKs are held to
their options of least side demand and solved again.

*No plan.* Where the search for the shortest plan finds none within n_max,
`allocator.admission.judging` is asked whether there is any before the answer is no. What would help
is looked for once, in the coordinate that lacks least.

*Stable.* Where there is a ``current`` plan, PTKs keep their options as far as that costs at most
`allocator.solving.resolve.LOSS`, so one newcomer does not change everybody. The same question gets
the same answer: work is counted, not timed.

Reasons: those of `allocator.admission.coordinates` and `allocator.solving.solve`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allocator.admission.coordinates import (
    PtkOffers,
    Settled,
    beyond_side,
    check_widths,
    least_side,
    nothing,
    printer,
    problem_at,
    roles,
    room_of,
    usable_coordinates,
)
from allocator.admission.judging import judge_many
from allocator.admission.lacking import lacking
from allocator.admission.peak import members_of, peak_of
from allocator.admission.reach import least_in_each
from allocator.effort import Effort
from allocator.plan import Explanation, Plan
from allocator.problem import Problem
from allocator.single.exact import least_exposure
from allocator.solving.resolve import resolve
from allocator.solving.solve import explained, solve
from allocator.strip.solve import effort_for
from allocator.verify import faults
from ptklib.privacy.filters import Demand, Filter

__all__ = ["FEW", "TRIED", "Current", "settle_many"]

TRIED = 3
# So few PTKs are planned in every coordinate.
FEW = 32
# Coordinates beyond the first `TRIED` get this part of the work, one in so many.
_BRIEF = 10
# From so many PTKs on it takes long to say what would help.
_MANY = 1000
# More samples than any plan holds.
_NEVER = 1 << 80
# For the question whether there is any plan, where the search for the shortest found none.
_JUDGED = 1e9


@dataclass(frozen=True)
class Current:
    """The plan in force and the coordinate that it counts in."""

    plan: Plan
    coordinate: int

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Current | None:
        """From the JSON form of a plan and its coordinate, None where it counts in none."""
        return (
            None
            if body["coordinate"] is None
            else cls(Plan.from_json(body["plan"]), body["coordinate"])
        )


def settle_many(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    *,
    n_max: int | None = None,
    current: Current | None = None,
    seconds: float | None = None,
    effort: Effort | None = None,
    remedy: bool = True,
) -> Settled:
    """The plan of fewest samples found that the filter admits everywhere, or INFEASIBLE with what
    would help.

    ``seconds`` is the work for one coordinate, counted as a machine of the reference speed would
    take; None: as much as the size deserves. ``effort`` is for everything. ``Settled.demand`` is
    the largest demand of any partition, component by component. Without ``remedy`` nobody looks for
    what would help, which takes far longer than to find that there is no plan.
    """
    whole = effort or Effort(math.inf)
    check_widths(privacy_filter, ptks)
    usable = usable_coordinates(privacy_filter, loss)
    quick = least_in_each(privacy_filter, room_of(privacy_filter, loss), ptks, usable)
    bounds = {coordinate: bound for coordinate, bound in quick.items() if bound is not None}
    best: Settled | None = None
    failed: list[Settled] = []

    def problem_in(coordinate: int) -> Problem:
        return problem_at(privacy_filter, loss, ptks, coordinate, n_max=n_max)

    few = len(ptks) <= FEW
    alone = (
        {coordinate: least_exposure(problem_in(coordinate)) or _NEVER for coordinate in usable}
        if few
        else {}
    )
    order = _promising(usable, bounds, alone)
    for place, coordinate in enumerate(order if few else order[:TRIED]):
        if best is not None and bounds.get(coordinate, _NEVER) >= (best.plan.total_samples or 0):
            continue
        if whole.over:
            break
        problem = problem_in(coordinate)
        late = place >= TRIED
        work = seconds / _BRIEF if late and seconds is not None else seconds
        settled = _in_one(privacy_filter, loss, ptks, problem, coordinate, current, work, whole)
        if settled.plan.total_samples is None:
            # Those that came first explain why there is no plan.
            failed += [] if late else [settled]
            if settled.problem is not None:
                # Nothing fits here; where only the side coordinate is in the way, that is not
                # proven.
                bounds.pop(coordinate, None)
            if len(ptks) >= _MANY and n_max is not None and (quick[coordinate] or _NEVER) > n_max:
                # The others need no fewer samples.
                break
            continue
        if settled.plan.lower_bound is not None and settled.problem is problem:
            bounds[coordinate] = max(bounds.get(coordinate, 0), settled.plan.lower_bound)
        if best is None or settled.plan.total_samples < (best.plan.total_samples or 0):
            best = settled
    if best is not None:
        return replace(best, plan=_certified(best.plan, min(bounds.values(), default=0)))
    if usable and n_max is not None:
        share = _JUDGED if remedy else _JUDGED / _BRIEF
        judged = judge_many(privacy_filter, loss, ptks, n_max=n_max, effort=whole.part(share))
        if judged.fits or not failed:
            return judged.settled
    if failed:
        return _helped(privacy_filter, loss, ptks, failed, whole if remedy else None)
    told = "Nothing is left of the privacy budget at these points: wait for new blocks or shorten the window."
    none = Plan("INFEASIBLE", None, None, None, (), (), "strip", explanation=Explanation(told))
    return Settled(none, None, None, nothing(privacy_filter))


def _helped(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    failed: Sequence[Settled],
    effort: Effort | None,
) -> Settled:
    """The one that lacks least, with what would help unless there is no effort for it."""
    room = room_of(privacy_filter, loss)

    def distance(settled: Settled) -> tuple[bool, int, float]:
        if settled.problem is None or settled.coordinate is None:
            # Only the side coordinate is in the way.
            return False, 0, 0.0
        return True, *lacking(
            ptks, settled.coordinate, room[settled.coordinate], settled.problem.n_max
        )

    nearest = min(failed, key=distance)
    if nearest.problem is None or nearest.coordinate is None or effort is None:
        return nearest
    show = printer(privacy_filter, nearest.coordinate)
    return replace(nearest, plan=explained(nearest.problem, nearest.plan, show=show, effort=effort))


def _promising(
    usable: Sequence[int], bounds: Mapping[int, int], alone: Mapping[int, int]
) -> list[int]:
    """The coordinates in the order in which they are tried.

    ``alone``: what one partition for all would hold, if known.
    """
    order = sorted(
        usable,
        key=lambda coordinate: (
            bounds.get(coordinate, _NEVER),
            alone.get(coordinate, _NEVER),
            coordinate,
        ),
    )
    first = min(order, key=lambda coordinate: alone.get(coordinate, _NEVER), default=None)
    return sorted(order, key=lambda coordinate: coordinate != first)


def _certified(plan: Plan, bound: int) -> Plan:
    """The plan with what is proven about plans in any coordinate."""
    total = plan.total_samples
    assert total is not None
    bound = min(bound, total)
    status = "OPTIMAL" if bound == total else "FEASIBLE"
    return replace(
        plan, status=status, lower_bound=bound, gap=(total - bound) / bound if bound else 0.0
    )


def _in_one(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    problem: Problem,
    coordinate: int,
    current: Current | None,
    seconds: float | None,
    effort: Effort,
) -> Settled:
    """The plan in one coordinate; once more with the least side demands if the filter does not
    admit the first.
    """
    _, side = roles(privacy_filter)
    held = current.plan if current is not None and current.coordinate == coordinate else None
    plan = _planned(problem, held, seconds, effort)
    if plan.total_samples is None:
        return Settled(plan, coordinate, problem, nothing(privacy_filter))
    peak = _peak(privacy_filter, loss, ptks, plan)
    if peak is not None:
        return Settled(plan, coordinate, problem, peak)
    lean = least_side(ptks, side)
    again = problem_at(privacy_filter, loss, lean, coordinate, n_max=problem.n_max)
    plan = _planned(again, None, seconds, effort)
    peak = None if plan.total_samples is None else _peak(privacy_filter, loss, lean, plan)
    if peak is not None:
        return Settled(plan, coordinate, again, peak)
    return beyond_side(
        Settled(plan, coordinate, again, nothing(privacy_filter)), privacy_filter, loss, ptks, side
    )


def _planned(problem: Problem, held: Plan | None, seconds: float | None, effort: Effort) -> Plan:
    if held is not None:
        kept = resolve(problem, held, effort=effort.part(effort_for(len(problem.ptks))))
        if kept.total_samples is not None and not faults(problem, kept):
            if kept.status == "OPTIMAL" or len(problem.ptks) > FEW:
                return kept
            # Kept because it is nearly as good as the best: how nearly, the best one tells.
            best = solve(problem, time_limit_seconds=seconds, remedy=False, effort=effort)
            return _certified(kept, max(kept.lower_bound or 0, best.lower_bound or 0))
    return solve(problem, time_limit_seconds=seconds, remedy=False, effort=effort)


def _peak(
    privacy_filter: Filter, loss: Sequence[int], ptks: Sequence[PtkOffers], plan: Plan
) -> Demand | None:
    """The largest demand of any partition, per component; None when the filter does not admit one
    of them.
    """
    demands = {(ptk.id, offer.level): offer.demand for ptk in ptks for offer in ptk.offers}
    rows = np.array(
        [demands[assignment.id, assignment.level] for assignment in plan.assignments],
        dtype=np.int64,
    )
    return peak_of(privacy_filter, loss, rows.reshape(-1, privacy_filter.width), members_of(plan))
