"""Plans with one partition that a stream's filter admits.

`settle` solves one problem per main coordinate (`allocator.admission.coordinates`), with what its
capacity has left after the losses at the window, and keeps the plan of least exposure. Where the
side coordinate does not fit, it tries again with every PTK held to its options of least side
demand; that is complete when a PTK's options agree on it (one delta per charge), and sound always:
**a plan is accepted only if `Filter.admits` says yes** to the sum of its demands on top of the
losses.
"""

from __future__ import annotations

from collections.abc import Sequence

from allocator.admission.coordinates import (
    Offer,
    PtkOffers,
    Settled,
    admits,
    beyond_side,
    distance,
    least_side,
    nothing,
    printer,
    problem_at,
    roles,
    total_demand,
    usable_coordinates,
)
from allocator.plan import Explanation, Plan
from allocator.single.exact import least_exposure
from allocator.single.solve import EXACT, solve
from ptklib.privacy.filters import Filter

__all__ = ["Offer", "PtkOffers", "Settled", "problem_at", "settle", "usable_coordinates"]


def settle(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    *,
    n_max: int | None = None,
    solver: str = EXACT,
    time_limit_seconds: float = 10.0,
) -> Settled:
    """The plan of least exposure that the filter admits, or INFEASIBLE with the explanation of the
    nearest coordinate.
    """
    _, side = roles(privacy_filter)
    reach = {
        coordinate: least_exposure(problem_at(privacy_filter, loss, ptks, coordinate, n_max=n_max))
        for coordinate in usable_coordinates(privacy_filter, loss)
    }
    best: tuple[tuple[int, int, int], Settled] | None = None
    failed: list[Settled] = []
    # The most promising first: the rest need no full solve once their bound is beyond the best
    # plan.
    for coordinate in sorted(
        reach,
        key=lambda coordinate: (reach[coordinate] is None, reach[coordinate] or 0, coordinate),
    ):
        bound = reach[coordinate]
        if best is not None and (bound is None or bound > best[0][0]):
            break
        show = printer(privacy_filter, coordinate)
        for attempt, offered in enumerate((ptks, least_side(ptks, side))):
            problem = problem_at(privacy_filter, loss, offered, coordinate, n_max=n_max)
            plan = solve(problem, solver=solver, time_limit_seconds=time_limit_seconds, show=show)
            total = total_demand(privacy_filter, offered, plan)
            settled = Settled(plan, coordinate, problem, total)
            if plan.total_samples is None and not attempt:
                failed.append(settled)
                break
            if plan.total_samples is not None and admits(privacy_filter, loss, total):
                key = (
                    plan.total_samples,
                    sum(assignment.samples for assignment in plan.assignments),
                    coordinate,
                )
                best = (
                    min(best, (key, settled), key=lambda pair: pair[0]) if best else (key, settled)
                )
                break
            if attempt:
                # The first attempt fitted its coordinate: only the side coordinate can be the
                # reason.
                failed.append(beyond_side(settled, privacy_filter, loss, ptks, side))
    if best is not None:
        return best[1]
    if failed:
        return min(failed, key=distance)
    told = Explanation(
        "Nothing is left of the privacy budget at these points: wait for new blocks or shorten the "
        "window."
    )
    return Settled(
        Plan("INFEASIBLE", None, None, None, (), (), EXACT, 0.0, told),
        None,
        None,
        nothing(privacy_filter),
    )
