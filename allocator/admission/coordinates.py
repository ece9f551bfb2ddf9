"""From a stream's filter to scalar problems: the coordinates that plans count in.

A filter counts in vectors; a plan counts in one number. Each composition has **main** coordinates,
any one of which suffices, and at most one **side** coordinate, which must fit as well:

===============  ==================================================  ===============================
composition      main                                                side
===============  ==================================================  ===============================
pure, basic      epsilon                                             delta
renyi            each order with something left                      slack
gaussian         mu^2                                                none
strong           refused: its bound is not a sum (PLAN_COMPOSITION)
===============  ==================================================  ===============================

``loss`` is the largest loss per coordinate over the points of the window; admission falls as losses
rise, so what fits there fits at every point. Reasons: PLAN_COMPOSITION, LOSS_INVALID (a vector of
the wrong width), those of `problem`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from allocator.plan import Explanation, Plan
from allocator.problem import Option, Problem, PtkOptions
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import ATTO, NANO, show_units
from ptklib.privacy.filters import Demand, Filter

__all__ = [
    "Offer",
    "PtkOffers",
    "Settled",
    "admits",
    "beyond_side",
    "check_widths",
    "distance",
    "least_side",
    "nothing",
    "printer",
    "problem_at",
    "roles",
    "room_of",
    "total_demand",
    "usable_coordinates",
]

# Where amounts are epsilons, and add up.
_SUMS = ("pure", "basic")


@dataclass(frozen=True)
class Offer:
    """One way to train a PTK, with its demand as the filter counts: ``filter.demand(cost)``."""

    level: str
    samples: int
    demand: Demand


@dataclass(frozen=True)
class PtkOffers:
    """The offers of one PTK; possibly none."""

    id: str
    offers: tuple[Offer, ...]


@dataclass(frozen=True)
class Settled:
    """The plan, the coordinate it counts in, the scalar problem it answers, and what it adds to the
    loss.

    ``coordinate`` is None when none is usable; ``problem`` then too, and when only the side
    coordinate stands in the way.
    """

    plan: Plan
    coordinate: int | None
    problem: Problem | None
    demand: Demand


def usable_coordinates(privacy_filter: Filter, loss: Sequence[int]) -> tuple[int, ...]:
    """The main coordinates with something left."""
    main, _ = roles(privacy_filter)
    room = room_of(privacy_filter, loss)
    return tuple(coordinate for coordinate in main if room[coordinate] > 0)


def problem_at(
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    coordinate: int,
    *,
    n_max: int | None = None,
) -> Problem:
    """The scalar problem in one coordinate."""
    room = room_of(privacy_filter, loss)
    check_widths(privacy_filter, ptks)
    rows = []
    for ptk in ptks:
        options = tuple(
            Option(offer.level, offer.demand[coordinate], offer.samples) for offer in ptk.offers
        )
        rows.append(PtkOptions(ptk.id, options))
    return Problem(capacity=max(0, room[coordinate]), n_max=n_max, ptks=tuple(rows))


def check_widths(privacy_filter: Filter, ptks: Sequence[PtkOffers]) -> None:
    """Every demand has as many integers as the filter. Reason: LOSS_INVALID."""
    for ptk in ptks:
        for offer in ptk.offers:
            if len(offer.demand) != privacy_filter.width:
                raise _width(
                    f"the demand of {ptk.id} at {offer.level}", privacy_filter, offer.demand
                )


def roles(privacy_filter: Filter) -> tuple[tuple[int, ...], int | None]:
    """The main coordinates of a composition, and its side coordinate if it has one."""
    if privacy_filter.composition in ("pure", "basic"):
        return (0,), 1
    if privacy_filter.composition == "gaussian":
        return (0,), None
    if privacy_filter.composition == "renyi":
        return tuple(range(privacy_filter.width - 1)), privacy_filter.width - 1
    raise InvalidInput(
        "PLAN_COMPOSITION",
        "plans must count in something that adds up (pure, basic, renyi or gaussian composition), "
        f"got {privacy_filter.composition}: give the stream renyi composition",
        composition=privacy_filter.composition,
    )


def room_of(privacy_filter: Filter, loss: Sequence[int]) -> list[int]:
    """What is left of the capacity in every coordinate; negative where the loss is beyond it."""
    if len(loss) != privacy_filter.width:
        raise _width("the loss", privacy_filter, loss)
    return [most - used for most, used in zip(privacy_filter.capacity, loss, strict=True)]


def _width(what: str, privacy_filter: Filter, got: Sequence[int]) -> InvalidInput:
    return InvalidInput(
        "LOSS_INVALID", f"{what} must have {privacy_filter.width} integers, got {len(got)}"
    )


def least_side(ptks: Sequence[PtkOffers], side: int | None) -> Sequence[PtkOffers]:
    """The PTKs with their options of least side demand alone."""
    if side is None:
        return ptks
    return [
        replace(
            ptk,
            offers=tuple(
                offer
                for offer in ptk.offers
                if offer.demand[side] == min(o.demand[side] for o in ptk.offers)
            ),
        )
        for ptk in ptks
    ]


def total_demand(privacy_filter: Filter, ptks: Sequence[PtkOffers], plan: Plan) -> Demand:
    """What the plan adds where all its PTKs are together."""
    offers: Mapping[tuple[str, str], Offer] = {
        (ptk.id, offer.level): offer for ptk in ptks for offer in ptk.offers
    }
    chosen = [offers[assignment.id, assignment.level].demand for assignment in plan.assignments]
    # Saturated like any demand: the ceiling is above the capacity, and int64 holds it.
    return tuple(
        min(sum(demand[c] for demand in chosen), top)
        for c, top in enumerate(privacy_filter.ceiling)
    )


def nothing(privacy_filter: Filter) -> Demand:
    """No demand at all."""
    return (0,) * privacy_filter.width


def admits(privacy_filter: Filter, loss: Sequence[int], total: Demand) -> bool:
    """What the filter itself says to this demand on top of the loss."""
    return bool(
        privacy_filter.admits(np.array([loss], dtype=np.int64), np.array(total, dtype=np.int64))[0]
    )


def beyond_side(
    settled: Settled,
    privacy_filter: Filter,
    loss: Sequence[int],
    ptks: Sequence[PtkOffers],
    side: int | None,
) -> Settled:
    """No plan, because of the side coordinate: what would help."""
    assert side is not None
    left = max(0, privacy_filter.capacity[side] - loss[side])
    least = sum(min(offer.demand[side] for offer in ptk.offers) for ptk in ptks)
    reason = (
        f"The PTKs need a delta of at least {show_units(least, ATTO)} together, and "
        f"{show_units(left, ATTO)} is left"
    )
    if least <= left:
        reason = (
            "The options that fit the delta that is left do not fit the rest, and the other way "
            "round"
        )
    text = f"{reason}: give each charge a smaller delta, or the stream a larger one."
    plan = Plan(
        "INFEASIBLE",
        None,
        None,
        None,
        (),
        (),
        settled.plan.solver,
        settled.plan.seconds,
        Explanation(text),
    )
    return Settled(plan, settled.coordinate, None, nothing(privacy_filter))


def distance(settled: Settled) -> tuple[bool, float]:
    """How far a coordinate is from a plan, as a share of what it has left; those that lack only
    capacity come first.
    """
    if settled.problem is None:
        return False, 0.0
    assert settled.plan.explanation is not None
    told = settled.plan.explanation
    needed = next((change.value for change in told.changes if change.kind == "capacity"), None)
    if not isinstance(needed, int):
        return True, 0.0
    return False, needed / max(1, settled.problem.capacity)


def printer(privacy_filter: Filter, coordinate: int) -> Callable[[int], str]:
    """How amounts of a coordinate are shown to people: as an epsilon where epsilons add up, else as
    a share of what the stream promises, which everybody can read.
    """
    whole = privacy_filter.capacity[coordinate]
    if privacy_filter.composition in _SUMS or not whole:
        return lambda units: show_units(units, NANO) + " epsilon"
    return lambda units: f"{100 * units / whole:.5g}% of the stream's budget"
