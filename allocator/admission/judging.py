"""Do these PTKs fit under a stream's filter within n_max? Yes with a plan, no with a proof, or not
settled.

The answer to a registration: the first plan that the filter admits is enough, and one deadline
(`allocator.effort`) holds for all of it. Main coordinates (`allocator.admission.coordinates`) are
ruled out by bounds over arrays, all of them in the time of one packing; those that are left are
searched (`allocator.strip.feasible`) in the order of their bounds: all of them a little, then those
that were not settled with more and more of what is left to spend. **A plan is accepted only if
`Filter.admits` says yes to every partition.**

`nearest` looks for the first step of a scale (targets from tight to loose) that fits: bounds cut
the scale from below, quick packings from above, and only what lies between is searched. Loosening
never takes options away and never makes them dearer, so the steps that fit are the last ones; a
step that was not settled counts as one that does not fit, and the answer says that it may not be
the last word.

Reasons: those of `allocator.admission.coordinates`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from allocator.admission.coordinates import (
    PtkOffers,
    Settled,
    beyond_side,
    check_widths,
    least_side,
    nothing,
    problem_at,
    roles,
    room_of,
    usable_coordinates,
)
from allocator.admission.lacking import lacking
from allocator.admission.peak import members_of, peak_of
from allocator.admission.reach import arrays_of
from allocator.effort import Effort
from allocator.plan import Explanation, Plan
from allocator.problem import Problem
from allocator.strip.feasible import AnyPlan, any_plan, packed_within
from allocator.strip.prices.dual_feasible import Least, least_within
from ptklib.privacy.filters import Demand, Filter

__all__ = ["Judged", "Nearest", "judge_many", "nearest"]

_Ints = NDArray[np.int64]
# To spend on a coordinate, and on a step of a scale, in the first round; each round has so many
# times more.
_FIRST = 4e7
_FIRST_STEP = 1e8
_MORE = 4
# Coordinates that are packed the quick way for a step of a scale.
_TRIED = 4
# What bounds over one coordinate cost, for each option.
_BOUND = 3e3


@dataclass(frozen=True)
class Judged:
    """``settled`` has the plan, or says why there is none.

    ``proved``: more work would not change which of the two.
    """

    settled: Settled
    proved: bool

    @property
    def fits(self) -> bool:
        """True with a plan in hand."""
        return self.settled.plan.total_samples is not None


@dataclass(frozen=True)
class Nearest:
    """The first ``step`` that fits, None where none does.

    ``proved``: the one before is known not to fit.
    """

    step: int | None
    proved: bool


class _Question:
    """PTKs under a filter, as arrays: samples by PTK and option, demands by coordinate too."""

    def __init__(
        self,
        privacy_filter: Filter,
        loss: Sequence[int],
        ptks: Sequence[PtkOffers],
        n_max: int,
        effort: Effort,
    ) -> None:
        self.filter, self.loss, self.ptks, self.n_max, self.effort = (
            privacy_filter,
            loss,
            ptks,
            n_max,
            effort,
        )
        check_widths(privacy_filter, ptks)
        self.usable = usable_coordinates(privacy_filter, loss)
        self.room = room_of(privacy_filter, loss)
        self.complete = all(ptk.offers for ptk in ptks)

    @cached_property
    def arrays(self) -> tuple[_Ints, _Ints]:
        """Samples, and demands with the coordinate last."""
        return arrays_of(self.ptks)

    def lacking(self, coordinate: int) -> tuple[int, float]:
        """How far a coordinate is from a plan."""
        return lacking(self.ptks, coordinate, self.room[coordinate], self.n_max)

    @cached_property
    def bounds(self) -> dict[int, Least]:
        """The coordinates that are not ruled out, by rising bound."""
        if not self.complete:
            return {}
        if not self.ptks:
            return {
                coordinate: Least(0.0, np.zeros(0, dtype=np.int64)) for coordinate in self.usable
            }
        samples, demands = self.arrays
        bounds = {}
        for coordinate in self.usable:
            self.effort.spend(_BOUND * samples.size)
            least = least_within(
                samples, demands[:, :, coordinate], self.room[coordinate], self.n_max
            )
            if least is not None and np.ceil(least.bound - 1e-6) <= self.n_max:
                bounds[coordinate] = least
        return dict(sorted(bounds.items(), key=lambda pair: (pair[1].bound, pair[0])))

    def packs(self, tried: int) -> bool:
        """True when the quick way finds a plan that the filter admits in one of the first
        coordinates.
        """
        samples, demands = self.arrays
        rows = np.arange(len(samples))
        for bound in list(self.bounds)[:tried]:
            packed_options = packed_within(
                samples,
                demands[:, :, bound],
                self.room[bound],
                self.n_max,
                self.bounds[bound],
                self.effort,
            )
            if packed_options is None:
                continue
            chosen = demands[rows, packed_options.choice]
            if peak_of(self.filter, self.loss, chosen, packed_options.packed.members) is not None:
                return True
        return False


def judge_many(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    *,
    n_max: int,
    effort: Effort,
) -> Judged:
    """Yes, no, or not settled; see the module."""
    return _Judging(_Question(privacy_filter, loss, ptks, n_max, effort)).look(effort)


class _Judging:
    """A question that can be given more work."""

    def __init__(self, question: _Question) -> None:
        self.question = question
        self.share = _FIRST
        self.open = {bound: _Coordinate(question, bound) for bound in question.bounds}
        self.failed: dict[int, Judged] = {}

    def look(self, effort: Effort) -> Judged:
        """The answer with so much more work."""
        question = self.question
        if not question.usable:
            told = "Nothing is left of the privacy budget at these points: wait for new blocks or shorten the window."
            none = Plan(
                "INFEASIBLE", None, None, None, (), (), "strip", explanation=Explanation(told)
            )
            return Judged(Settled(none, None, None, nothing(question.filter)), proved=True)
        while self.open:
            for coordinate, work in list(self.open.items()):
                judged = work.look(effort.part(self.share))
                if judged.fits:
                    return judged
                self.failed[coordinate] = judged
                if judged.proved:
                    del self.open[coordinate]
                if effort.over:
                    return self._told(effort)
            if all(work.ended for work in self.open.values()):
                break
            self.share *= _MORE
        return self._told(effort)

    def _told(self, effort: Effort) -> Judged:
        """The words of the coordinate that lacks least: of those that are not settled, if any, for
        as long as there are some nobody says that there is no plan.
        """
        question = self.question
        best = min(
            self.open or self.failed or question.usable,
            key=lambda coordinate: (
                *lacking(question.ptks, coordinate, question.room[coordinate], question.n_max),
                coordinate,
            ),
        )
        if best in self.failed:
            return Judged(self.failed[best].settled, proved=not self.open)
        if best in self.open:
            # Not looked at yet: hardly, for nothing is left to spend.
            return replace(self.open[best].look(effort.part(0)), proved=False)
        problem = problem_at(
            question.filter, question.loss, question.ptks, best, n_max=question.n_max
        )
        plan = any_plan(problem, effort=Effort(0))
        return Judged(Settled(plan, best, problem, nothing(question.filter)), proved=True)


class _Coordinate:
    """The question in one coordinate: as `allocator.admission.settling` does it, once more with the
    least side demands if the filter does not admit the first plan.
    """

    def __init__(self, question: _Question, coordinate: int) -> None:
        self.question, self.coordinate = question, coordinate
        self.offered: Sequence[PtkOffers] = question.ptks
        self.work = AnyPlan(self._problem())
        self.lean = False

    def _problem(self) -> Problem:
        question = self.question
        return problem_at(
            question.filter, question.loss, self.offered, self.coordinate, n_max=question.n_max
        )

    @property
    def ended(self) -> bool:
        """True when more work would change nothing."""
        return self.work.ended

    def look(self, effort: Effort) -> Judged:
        question = self.question
        _, side = roles(question.filter)
        plan = self.work.look(effort)
        if plan.total_samples is not None:
            peak = self._peak(plan)
            if peak is not None:
                return Judged(Settled(plan, self.coordinate, self.work.problem, peak), proved=True)
            none = Settled(plan, self.coordinate, self.work.problem, nothing(question.filter))
            if self.lean:
                # Other packings of the same options might be admitted: that is not looked at,
                # however long.
                return Judged(
                    beyond_side(none, question.filter, question.loss, question.ptks, side),
                    proved=True,
                )
            self.offered, self.lean = least_side(question.ptks, side), True
            self.work = AnyPlan(self._problem())
            return self.look(effort)
        # Held to the least side demands, the plan without them being refused: no more than that was
        # promised.
        settled = Settled(plan, self.coordinate, self.work.problem, nothing(question.filter))
        return Judged(settled, proved=plan.status == "INFEASIBLE")

    def _peak(self, plan: Plan) -> Demand | None:
        demands = {
            (ptk.id, offer.level): offer.demand for ptk in self.offered for offer in ptk.offers
        }
        chosen = np.array(
            [demands[assignment.id, assignment.level] for assignment in plan.assignments],
            dtype=np.int64,
        )
        chosen = chosen.reshape(len(plan.assignments), self.question.filter.width)
        return peak_of(self.question.filter, self.question.loss, chosen, members_of(plan))


def nearest(
    privacy_filter: Filter,
    loss: Sequence[int],
    beside: Sequence[PtkOffers],
    newcomer_at: Callable[[int], PtkOffers],
    steps: range,
    *,
    n_max: int,
    effort: Effort,
) -> Nearest:
    """The first of ``steps`` (tight to loose) at which the newcomer fits beside the others; the
    last is tried first.
    """
    known: dict[int, _Question] = {}

    def question(step: int) -> _Question:
        if step not in known:
            known[step] = _Question(
                privacy_filter, loss, (*beside, newcomer_at(step)), n_max, effort
            )
        return known[step]

    if not len(steps):
        return Nearest(None, proved=True)
    fits, fails = len(steps), -1
    # What is ruled out, by the bounds alone; then what the quick way finds.
    low, high = -1, len(steps)
    while high - low > 1 and not effort.over:
        middle = (low + high) // 2 if high < len(steps) or low >= 0 else len(steps) - 1
        low, high = (low, middle) if question(steps[middle]).bounds else (middle, high)
    fails = low
    if fails == len(steps) - 1:
        return Nearest(None, proved=True)
    low, high = fails, len(steps)
    while high - low > 1 and not effort.over:
        middle = (low + high) // 2 if high < len(steps) else max(low + 1, _ahead(low, len(steps)))
        low, high = (low, middle) if question(steps[middle]).packs(_TRIED) else (middle, high)
    fits, share = high, _FIRST_STEP
    judging: dict[int, _Judging] = {}
    while fits - fails > 1 and not effort.over:
        low = fails
        while fits - low > 1 and not effort.over:
            # Where nothing fits yet the loosest decides whether anything does.
            middle = (low + fits) // 2 if fits < len(steps) else len(steps) - 1
            if middle not in judging:
                judging[middle] = _Judging(question(steps[middle]))
            judged = judging[middle].look(effort.part(share))
            if judged.fits:
                fits = middle
            else:
                low, fails = middle, middle if judged.proved else fails
        share *= _MORE
    step = steps[fits] if fits < len(steps) else None
    return Nearest(step, proved=fits - fails <= 1)


def _ahead(low: int, count: int) -> int:
    """Where nothing fits yet: twice as far from where nothing can, the last step at most."""
    return min(count - 1, max(low + 1, 2 * (low + 1)))
