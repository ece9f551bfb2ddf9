"""Plans of fewest samples in one coordinate of a filter, and which other coordinates can beat one.

`solved_in` plans in one coordinate; where the filter does not admit the plan because of the side
coordinate, once more with PTKs held to their options of least side demand.

`shortest_of_all` is given a plan and asks all other coordinates for a shorter one. In which order:
that of their bounds. How long: all of them a little, then those that are not settled more and more
(`allocator.strip.feasible`, which ends with the first plan that is shorter, or with a proof that
there is none). What is found is made as short as it gets, and the others must beat that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from allocator.admission.coordinates import (
    PtkOffers,
    Settled,
    beyond_side,
    least_side,
    nothing,
    problem_at,
    roles,
)
from allocator.admission.peak import members_of, peak_of
from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.solving.resolve import LOSS, resolve
from allocator.solving.solve import solve
from allocator.strip.feasible import AnyPlan
from allocator.strip.solve import effort_for
from allocator.verify import faults
from ptklib.privacy.filters import Demand, Filter

__all__ = ["Asked", "Current", "certified", "shortest_of_all", "solved_in"]

# To spend on a coordinate in the first round; each round has so many times more.
_FIRST = 4e7
_MORE = 4
# Of what is left, for making a plan shorter that was found in passing.
_SHORTER = 0.5
# Up to so many PTKs a plan that was kept is compared with the best.
_COMPARED = 32


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


@dataclass(frozen=True)
class Asked:
    """PTKs under a filter, beside the loss at the points of a window and the plan in force.

    ``seconds`` is the work for one coordinate, None for as much as the size deserves.
    """

    filter: Filter
    loss: Sequence[int]
    ptks: Sequence[PtkOffers]
    n_max: int | None
    current: Current | None = None
    seconds: float | None = None

    def problem_in(self, coordinate: int, *, n_max: int | None = None) -> Problem:
        """The scalar problem, with another limit if one is given."""
        limit = self.n_max if n_max is None else n_max
        return problem_at(self.filter, self.loss, self.ptks, coordinate, n_max=limit)

    def bound_of(self, settled: Settled) -> int:
        """What a plan of one coordinate proves about all that there are in it; 0 where PTKs were
        held to some of their options.
        """
        if settled.coordinate is None or settled.problem != self.problem_in(settled.coordinate):
            return 0
        return settled.plan.lower_bound or 0

    def worth_changing(self, best: Settled) -> int:
        """A plan in another coordinate must hold fewer samples to be taken: it would change what
        most PTKs have.
        """
        total = best.plan.total_samples or 0
        if self.current is None or self.current.coordinate != best.coordinate:
            return total
        return int(total / (1 + LOSS))


def certified(plan: Plan, bound: int) -> Plan:
    """The plan with what is proven about plans in any coordinate."""
    total = plan.total_samples
    assert total is not None
    bound = min(bound, total)
    status = "OPTIMAL" if bound == total else "FEASIBLE"
    return replace(
        plan, status=status, lower_bound=bound, gap=(total - bound) / bound if bound else 0.0
    )


def solved_in(
    asked: Asked, coordinate: int, effort: Effort, *, start: Plan | None = None
) -> Settled:
    """The shortest plan that is found in one coordinate, not longer than ``start``."""
    privacy_filter, loss, ptks = asked.filter, asked.loss, asked.ptks
    problem = asked.problem_in(coordinate)
    _, side = roles(privacy_filter)
    current = asked.current
    held = current.plan if current is not None and current.coordinate == coordinate else None
    plan = _planned(problem, held, start, asked.seconds, effort)
    if plan.total_samples is None:
        return Settled(plan, coordinate, problem, nothing(privacy_filter))
    peak = _peak(privacy_filter, loss, ptks, plan)
    if peak is not None:
        return Settled(plan, coordinate, problem, peak)
    lean = least_side(ptks, side)
    again = problem_at(privacy_filter, loss, lean, coordinate, n_max=problem.n_max)
    plan = _planned(again, None, None, asked.seconds, effort)
    peak = None if plan.total_samples is None else _peak(privacy_filter, loss, lean, plan)
    if peak is not None:
        return Settled(plan, coordinate, again, peak)
    return beyond_side(
        Settled(plan, coordinate, again, nothing(privacy_filter)), privacy_filter, loss, ptks, side
    )


def _planned(
    problem: Problem, held: Plan | None, start: Plan | None, seconds: float | None, effort: Effort
) -> Plan:
    if held is not None:
        kept = resolve(problem, held, effort=effort.part(effort_for(len(problem.ptks))))
        if kept.total_samples is not None and not faults(problem, kept):
            if kept.status == "OPTIMAL" or len(problem.ptks) > _COMPARED:
                return kept
            # Kept because it is nearly as good as the best: how nearly, the best one tells.
            best = solve(problem, time_limit_seconds=seconds, remedy=False, effort=effort)
            return certified(kept, max(kept.lower_bound or 0, best.lower_bound or 0))
    return solve(problem, time_limit_seconds=seconds, remedy=False, effort=effort, current=start)


def shortest_of_all(
    asked: Asked, best: Settled, bounds: Mapping[int, int], effort: Effort
) -> tuple[Settled, dict[int, int]]:
    """The shortest plan that is found in any coordinate with a bound, and what is proven about plans
    in each of them.

    ``best`` is a plan in one of them.
    """
    proven, share = dict(bounds), _FIRST
    total = best.plan.total_samples or 0
    rivals = [c for c in sorted(proven, key=lambda c: (proven[c], c)) if c != best.coordinate]
    # Nothing is shorter than the plan of nobody, or of one sample.
    rivals = [c for c in rivals if proven[c] < total and total > 1]
    searches: dict[int, AnyPlan] = {}
    while rivals:
        total = best.plan.total_samples or 0
        for coordinate in rivals:
            if effort.over:
                return best, proven
            if coordinate not in searches:
                problem = asked.problem_in(coordinate, n_max=total - 1)
                searches[coordinate] = AnyPlan(problem)
            shorter = searches[coordinate].look(effort.part(share))
            low = (
                total if shorter.status == "INFEASIBLE" else min(total, searches[coordinate].bound)
            )
            proven[coordinate] = max(proven[coordinate], low)
            if shorter.total_samples is not None:
                settled = solved_in(asked, coordinate, effort.share(_SHORTER), start=shorter)
                proven[coordinate] = max(bounds[coordinate], asked.bound_of(settled))
                if (settled.plan.total_samples or total) < asked.worth_changing(best):
                    best = settled
                    searches.clear()
                rivals.remove(coordinate)
                break
        else:
            share *= _MORE
        total = best.plan.total_samples or 0
        rivals = [
            c for c in rivals if proven[c] < total and not (c in searches and searches[c].ended)
        ]
    return best, proven


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
