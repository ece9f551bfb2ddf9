"""What a window carries that does not carry all PTKs: the set of `allocator.admission.largest_set`,
its plan, and why others are out.

``turns`` is the order of the PTKs given. Whether some have a plan is asked of the area that they
need first, which says no quickly, then of one partition, which is exact, then of a plan with many.
No look asks what would help. One ``effort`` is for all looks: when it is over, the largest set that
was found trains.

Why a PTK is left out:

====================  ==============================================================================
TARGET_UNREACHABLE    it has no level at all that reaches its target
BUDGET_TOO_SMALL      no level fits what is left of the budget, on however many records
WINDOW_TOO_SMALL      the levels that do need more records than there are for training
OTHERS_FIRST          it would fit by itself, and not beside those whose turn it is
====================  ==============================================================================
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from allocator.admission.coordinates import PtkOffers, Settled, nothing, room_of, usable_coordinates
from allocator.admission.judging import judge_many
from allocator.admission.largest_set import EXACT, LOOKS, largest_set
from allocator.admission.reach import least_in_each
from allocator.admission.single import settle
from allocator.effort import Effort
from allocator.plan import Explanation, Plan
from ptklib.privacy.filters import Filter

__all__ = ["Carried", "LeftOut", "carried_by"]

# Work for one look at up to so many PTKs, in steps. Most sets are far too large, or small enough for
# one partition: few need it. Of few PTKs a plan is hard to find, of many nearly every one is good.
_LOOK = ((EXACT, 4e9), (40, 8e8))
_LOOK_OF_MANY = 1e8
# And of what is left: the first sets are too large, and must not take it all.
_ONE_LOOK = 0.1
_TEXTS = {
    "TARGET_UNREACHABLE": "{name} reaches its target at no level: loosen it.",
    "BUDGET_TOO_SMALL": "{name} fits no more into what is left of the privacy budget: loosen its target.",
    "WINDOW_TOO_SMALL": "{name} needs {least} samples at least, and the window has {room} for training.",
    "OTHERS_FIRST": "{name} would fit by itself and not beside the others; it is in front of them from now on.",
}


@dataclass(frozen=True)
class LeftOut:
    """A PTK that does not train, the reason (see the module), and the reason in words."""

    id: str
    reason: str
    text: str


@dataclass(frozen=True)
class Carried:
    """The plan of those that train and why the others do not, in the order of turns; ``proven`` as
    in `largest_set`.
    """

    settled: Settled
    left_out: tuple[LeftOut, ...]
    proven: bool

    @property
    def members(self) -> tuple[str, ...]:
        """Who trains."""
        return tuple(assignment.id for assignment in self.settled.plan.assignments)


def carried_by(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    *,
    n_max: int,
    overdue: Collection[str] = (),
    looks: int = LOOKS,
    effort: Effort | None = None,
) -> Carried:
    """Who trains on at most ``n_max`` samples, of PTKs in the order of their turns."""
    offers = {ptk.id: ptk for ptk in ptks}
    whole = effort or Effort(math.inf)
    by_members: dict[tuple[str, ...], Settled] = {}

    def has_plan(names: Sequence[str]) -> bool:
        settled = _looked(privacy_filter, loss, [offers[name] for name in names], n_max, whole)
        if settled is not None:
            by_members[tuple(names)] = settled
        return settled is not None

    turns = [ptk.id for ptk in ptks]
    chosen = largest_set(
        turns,
        overdue,
        has_plan,
        sizes=_sizes(privacy_filter, loss, ptks),
        looks=looks,
        over=lambda: whole.over,
    )
    inside = set(chosen.members)
    left_out = [
        _left_out(privacy_filter, loss, offers[name], n_max, alone=name in chosen.alone)
        for name in turns
        if name not in inside
    ]
    settled = by_members[chosen.members] if chosen.members else _nobody(privacy_filter, left_out)
    return Carried(settled, tuple(left_out), chosen.proven)


def _looked(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    n_max: int,
    effort: Effort,
) -> Settled | None:
    if n_max < 1:
        return None
    usable = usable_coordinates(privacy_filter, loss)
    least = least_in_each(privacy_filter, room_of(privacy_filter, loss), ptks, usable)
    if not any(bound is not None and bound <= n_max for bound in least.values()):
        return None
    single = settle(privacy_filter, loss, ptks, n_max=n_max)
    if single.plan.total_samples is not None:
        return single
    if len(ptks) == 1:
        return None
    steps = next((work for count, work in _LOOK if len(ptks) <= count), _LOOK_OF_MANY)
    # Any plan will do: whoever trains is given the shortest in the end.
    share = effort.share(_ONE_LOOK).part(steps)
    judged = judge_many(privacy_filter, loss, ptks, n_max=n_max, effort=share)
    return judged.settled if judged.fits else None


def _sizes(
    privacy_filter: Filter, loss: Sequence[int], ptks: Sequence[PtkOffers]
) -> dict[str, float]:
    """The least part of a record's budget, times records, that a PTK can do with; infinite where it
    cannot.
    """
    room = room_of(privacy_filter, loss)
    usable = usable_coordinates(privacy_filter, loss)
    return {
        ptk.id: min(
            (
                offer.samples * offer.demand[c] / room[c]
                for offer in ptk.offers
                for c in usable
                if offer.demand[c] <= room[c]
            ),
            default=float("inf"),
        )
        for ptk in ptks
    }


def _left_out(
    privacy_filter: Filter, loss: Sequence[int], ptk: PtkOffers, n_max: int, *, alone: bool
) -> LeftOut:
    affordable = settle(privacy_filter, loss, [ptk]).plan.total_samples

    def told(reason: str) -> LeftOut:
        return LeftOut(
            ptk.id, reason, _TEXTS[reason].format(name=ptk.id, least=affordable, room=max(0, n_max))
        )

    if alone:
        return told("OTHERS_FIRST")
    if not ptk.offers:
        return told("TARGET_UNREACHABLE")
    return told("BUDGET_TOO_SMALL") if affordable is None else told("WINDOW_TOO_SMALL")


def _nobody(privacy_filter: Filter, left_out: Sequence[LeftOut]) -> Settled:
    told = left_out[0].text if left_out else "No PTK was asked for."
    plan = Plan("INFEASIBLE", None, None, None, (), (), "strip", explanation=Explanation(told))
    return Settled(plan, None, None, nothing(privacy_filter))
