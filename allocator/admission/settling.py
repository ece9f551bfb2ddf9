"""Plans with many partitions that a stream's filter admits.

`settle_many` solves in the most promising main coordinate (`allocator.admission.coordinates`): with
up to `FEW` PTKs the one where one partition for all would be smallest, else the one of least bound.
Then the others are asked for a shorter plan (`allocator.admission.in_one`), in the order of their
bounds; with more PTKs than that the first `TRIED` of them. The certificate is for all coordinates:
the lower bound is the least of what was proven in those that were tried and of the quick bounds of
the others. **A plan is accepted only if `Filter.admits` says yes to every partition**: the sum of
its members' demands on top of the loss.

*One deadline.* One ``effort`` holds for all of it, and for the words where there is no plan. What
is found when it ends is the answer: the shortest plan so far, with what is proven by then.

*No plan.* Where the search for the shortest plan finds none within n_max,
`allocator.admission.judging` is asked whether there is any, in all coordinates, before the answer
is no. What would help is looked for once, in the coordinate that lacks least. INFEASIBLE is proven
for all coordinates; REJECTED says that nobody knows yet.

*Stable.* Where there is a ``current`` plan, PTKs keep their options as far as that costs at most
`allocator.solving.resolve.LOSS`, so one newcomer does not change everybody. The same question gets
the same answer: work is counted, not timed.

Reasons: those of `allocator.admission.coordinates` and `allocator.solving.solve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from allocator.admission.coordinates import (
    PtkOffers,
    Settled,
    check_widths,
    nothing,
    printer,
    room_of,
    usable_coordinates,
)
from allocator.admission.in_one import Asked, Current, certified, shortest_of_all, solved_in
from allocator.admission.judging import judge_many
from allocator.admission.reach import least_in_each
from allocator.effort import STEPS_PER_SECOND, Effort
from allocator.plan import Explanation, Plan
from allocator.single.exact import least_exposure
from allocator.solving.solve import explained
from ptklib.privacy.filters import Filter

__all__ = ["FEW", "TRIED", "Current", "settle_many"]

TRIED = 3
# So few PTKs are planned in every coordinate.
FEW = 32
# More samples than any plan holds.
_NEVER = 1 << 80
# Of what is left: for the plan in the most promising coordinate; for the question whether there is
# any plan, where that one has none, with and without words after it.
_FIRST = 0.5
_JUDGED, _JUDGED_ALONE = 0.6, 0.9
# Where nothing is said of the whole: so many steps, or so many coordinates.
_WHOLE, _EACH = 1e10, 4


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
    """The plan of fewest samples found that the filter admits everywhere, or none with what would
    help.

    ``seconds`` is the work for one coordinate, counted as a machine of the reference speed would
    take; None: as much as the size deserves. ``effort`` is for everything. ``Settled.demand`` is
    the largest demand of any partition, component by component. Without ``remedy`` nobody looks for
    what would help, which takes far longer than to find that there is no plan.
    """
    steps = _WHOLE if seconds is None else _EACH * seconds * STEPS_PER_SECOND
    whole = effort or Effort(steps)
    check_widths(privacy_filter, ptks)
    asked = Asked(privacy_filter, loss, ptks, n_max, current, seconds)
    usable = usable_coordinates(privacy_filter, loss)
    if not usable:
        told = "Nothing is left of the privacy budget at these points: wait for new blocks or shorten the window."
        none = Plan("INFEASIBLE", None, None, None, (), (), "strip", explanation=Explanation(told))
        return Settled(none, None, None, nothing(privacy_filter))
    quick = least_in_each(privacy_filter, room_of(privacy_filter, loss), ptks, usable)
    bounds = {coordinate: bound for coordinate, bound in quick.items() if bound is not None}
    few = len(ptks) <= FEW
    alone = {c: least_exposure(asked.problem_in(c)) or _NEVER for c in usable} if few else {}
    order = _promising(usable, bounds, alone)
    if current is not None and current.coordinate in order:
        order = [current.coordinate, *(c for c in order if c != current.coordinate)]
    best, failed = _first_plan(asked, order if few else order[:TRIED], whole)
    if best is None and n_max is not None:
        share = whole.share(_JUDGED if remedy else _JUDGED_ALONE)
        judged = judge_many(privacy_filter, loss, ptks, n_max=n_max, effort=share)
        failed = [judged.settled]
        if judged.fits:
            best = _made_shorter(asked, judged.settled, whole)
    if best is None:
        return _helped(privacy_filter, failed, whole if remedy else None)
    coordinate = best.coordinate
    assert coordinate is not None
    bounds[coordinate] = max(bounds.get(coordinate, 0), asked.bound_of(best))
    rivals = order if few else [*order[:TRIED], coordinate]
    best, proven = shortest_of_all(
        asked, best, {c: bounds[c] for c in rivals if c in bounds}, whole
    )
    return replace(best, plan=certified(best.plan, min((bounds | proven).values(), default=0)))


def _first_plan(
    asked: Asked, order: Sequence[int], effort: Effort
) -> tuple[Settled | None, list[Settled]]:
    """The plan in the first of these coordinates that has one, and those that have none.

    Where there is a limit to the samples, only the first is asked: whether others have a plan is
    found faster in all of them at once.
    """
    failed: list[Settled] = []
    for coordinate in order[:1] if asked.n_max is not None else order:
        settled = solved_in(asked, coordinate, effort.share(_FIRST))
        if settled.plan.total_samples is not None:
            return settled, failed
        failed.append(settled)
    return None, failed


def _made_shorter(asked: Asked, first: Settled, effort: Effort) -> Settled:
    """A plan that was the first to be found, as short as it gets."""
    assert first.coordinate is not None
    again = solved_in(asked, first.coordinate, effort.share(_FIRST), start=first.plan)
    return again if again.plan.total_samples is not None else first


def _helped(privacy_filter: Filter, failed: Sequence[Settled], effort: Effort | None) -> Settled:
    """No plan, with what would help unless there is no effort for it."""
    nearest = failed[0]
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
