"""Profiles and plans: how many samples each PTK needs at each level, and who gets which level.

Everything here is public or post-processing of DP counts: planning is free and can be repeated. A
plan is for the PTKs that are due in a window. It cuts the window into partitions and lets each PTK
train on some of them (a *strip plan*): at no record do the demands of those who train on it add up
to more than is left there. PTKs keep their levels from plan to plan where that costs little.

Whether a PTK can be accepted is another question, with another deadline: see `answering`.

Reasons: those of `profiler`, `allocator` and the PTK.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from allocator.admission.settling import Current, settle_many
from allocator.admission.single import Offer, PtkOffers, Settled
from allocator.effort import STEPS_PER_SECOND, Effort
from allocator.recommend import recommend
from profiler.analytic import Profile, profile
from profiler.levels import privacy_levels
from ptklib import registry
from ptklib.encoding.canonical import canonical
from ptklib.privacy.amounts import exact, show
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PartitionLine, PlanLine, PlanView
from ptkstore.drawing.plan_picture import of_view
from ptkstore.drawing.plan_svg import document
from ptkstore.metadata import rows

__all__ = [
    "Candidate",
    "charge_delta",
    "closed_form",
    "draw_plan",
    "fresh_loss",
    "has_closed_form",
    "offers_of",
    "plan_view",
    "ptk_of",
    "records_per_unit",
    "settle_plan",
]

# Work for one coordinate of a plan, for a plan as a whole and for one look, counted, as a machine
# of the reference speed takes.
_SECONDS = 5.0
_WHOLE_SECONDS = 10.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class Candidate:
    """A PTK that wants to train: its row, its configuration as an object, its target; its measured
    profile if it has one, and whether that puts it on trial (`engine.profiles.on_trial`).
    """

    row: rows.PtkRow
    ptk: Ptk
    measured: Profile | None = None
    on_trial: bool = False

    @classmethod
    def of(cls, row: rows.PtkRow) -> Candidate:
        """Read the configuration of a registered PTK."""
        return cls(row, ptk_of(row.kind, row.config))


def ptk_of(kind: str, config: Mapping[str, Any]) -> Ptk:
    """A configuration as an object.

    Checking one takes a while, so those that were seen are kept: they never change.
    """
    return _made(kind, canonical(config))


@lru_cache(maxsize=4096)
def _made(kind: str, config: bytes) -> Ptk:
    return registry.make(kind, json.loads(config))


def charge_delta(spec: StreamSpec, ptk: Ptk) -> Fraction:
    """The delta that a PTK with Gaussian noise is calibrated to: small beside the promise; 0 for
    all others.

    Under basic composition deltas add up, so each takes a hundredth; elsewhere it only fixes the
    noise of a level.
    """
    if not ptk.tags.needs_delta:
        return Fraction(0)
    delta = Fraction(spec.policy.delta)
    return delta / 100 if spec.policy.composition == "basic" else delta / 10


def records_per_unit(spec: StreamSpec) -> int:
    """How many records of one unit of privacy a block may hold."""
    return spec.records_per_user if spec.unit == "user" else 1


def has_closed_form(spec: StreamSpec, privacy_filter: Filter, candidate: Candidate) -> bool:
    """True when the samples follow from public numbers: there is nothing to profile."""
    # Whether there is one does not depend on the level: the largest is worked out soonest.
    levels, units = privacy_levels(privacy_filter.epsilon)[-1:], records_per_unit(spec)
    return closed_form(
        candidate.ptk, candidate.row.target, levels, charge_delta(spec, candidate.ptk), units
    )


@lru_cache(maxsize=4096)
def closed_form(
    ptk: Ptk, target: float, levels: tuple[Fraction, ...], delta: Fraction, units: int
) -> bool:
    """Public numbers of a configuration and a target: the same in every window."""
    return ptk.analytic_profile(target, levels, delta, records_per_unit=units) is not None


def fresh_loss(spec: StreamSpec, privacy_filter: Filter) -> tuple[int, ...]:
    """The loss at every point of a new block once its DP count is published."""
    return privacy_filter.demand(spec.count_release().cost)


def offers_of(
    spec: StreamSpec, privacy_filter: Filter, candidate: Candidate, *, target: float | None = None
) -> PtkOffers:
    """The levels at which a PTK can reach its target, with samples and price.

    None at all is possible.
    """
    wanted = candidate.row.target if target is None else target
    delta = charge_delta(spec, candidate.ptk)
    measured = candidate.measured
    if measured is not None and exact(wanted) < measured.promised:
        # It was measured for a looser target, and says nothing of this one.
        return PtkOffers(candidate.row.name, ())
    offers = _offers(candidate.ptk, privacy_filter, wanted, delta, records_per_unit(spec), measured)
    return PtkOffers(candidate.row.name, offers)


@lru_cache(maxsize=4096)
def _offers(
    ptk: Ptk,
    privacy_filter: Filter,
    target: float,
    delta: Fraction,
    units: int,
    measured: Profile | None,
) -> tuple[Offer, ...]:
    """Public numbers of a configuration and a target: the same in every window."""
    levels = privacy_levels(privacy_filter.epsilon)
    ptk_profile = (
        measured
        if measured is not None
        else profile(ptk, target, levels, delta, records_per_unit=units)
    )
    return tuple(
        Offer(
            show(level),
            samples,
            privacy_filter.demand(ptk.cost(level, delta, records_per_unit=units)),
        )
        for level, samples in zip(ptk_profile.levels, ptk_profile.samples, strict=True)
        if samples is not None
    )


def settle_plan(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    candidates: Sequence[Candidate],
    *,
    available: int | None = None,
    current: Current | None = None,
    remedy: bool = True,
) -> Settled:
    """The plan of fewest samples found for these PTKs at points with that loss, within n_max and
    what is available.

    Without ``remedy`` nobody looks for what would help where there is none.
    """
    offered = tuple(offers_of(spec, privacy_filter, candidate) for candidate in candidates)
    settled = _settled(privacy_filter, tuple(loss), offered, spec.n_max, current, remedy)
    # One record is kept back, so that partitions that are rounded up to whole tags fit as well.
    room = None if available is None else max(1, available - 1)
    if settled.plan.total_samples is None or room is None or settled.plan.total_samples <= room:
        return settled
    return _settled(privacy_filter, tuple(loss), offered, room, None, remedy)


@lru_cache(maxsize=256)
def _settled(
    privacy_filter: Filter,
    loss: tuple[int, ...],
    offered: tuple[PtkOffers, ...],
    n_max: int,
    current: Current | None,
    remedy: bool,
) -> Settled:
    effort = Effort(_WHOLE_SECONDS * STEPS_PER_SECOND)
    return settle_many(
        privacy_filter,
        loss,
        offered,
        n_max=n_max,
        current=current,
        seconds=_SECONDS,
        effort=effort,
        remedy=remedy,
    )


def draw_plan(spec: StreamSpec, body: Mapping[str, Any]) -> str:
    """The picture of a plan as it is kept in the metadata, below the E of its stream."""
    return document(
        of_view(PlanView.from_json(body["view"]), str(spec.policy.as_json()["epsilon"]))
    )


def plan_view(
    spec: StreamSpec,
    privacy_filter: Filter,
    window: int,
    settled: Settled,
    candidates: Sequence[Candidate],
    *,
    available: int | None,
    records_per_second: Fraction | None,
) -> PlanView:
    """The plan for people, with the N and T it recommends."""
    plan = settled.plan
    targets = {candidate.row.name: candidate.row.target for candidate in candidates}
    capacity = settled.problem.capacity if settled.problem is not None else 0
    lines = tuple(
        PlanLine(
            ptk=assignment.id,
            epsilon=assignment.level,
            samples=assignment.samples,
            share=assignment.samples / available if available else 0.0,
            target=targets[assignment.id],
            partitions=assignment.partitions,
            used=assignment.demand / capacity if capacity else 0.0,
        )
        for assignment in plan.assignments
    )
    partitions = tuple(
        PartitionLine(
            partition.samples,
            len(partition.members),
            partition.demand / capacity if capacity else 0.0,
        )
        for partition in plan.partitions
    )
    advice = None
    if plan.total_samples and records_per_second:
        advice = recommend(
            plan,
            records_per_second=Fraction(records_per_second).limit_denominator(10**6),
            profile_share=show(Fraction(spec.profile_share)),
            block_seconds=spec.block_seconds,
            n_max=spec.n_max,
        )
    told = plan.explanation
    return PlanView(
        stream=spec.name,
        window=window,
        status=plan.status,
        total_samples=plan.total_samples,
        available_samples=available,
        solver=plan.solver,
        seconds=plan.seconds,
        lines=lines,
        explanation=told.text if told else "",
        changes=tuple(change.text for change in told.changes) if told else (),
        recommended_samples=advice.samples if advice else None,
        recommended_window_seconds=advice.window_seconds if advice else None,
        lower_bound=plan.lower_bound,
        gap=plan.gap,
        partitions=partitions,
        spent_before=_spent_before(privacy_filter, settled),
    )


def _spent_before(privacy_filter: Filter, settled: Settled) -> float | None:
    """What the plan does not have of the whole promise, in the coordinate that it counts in."""
    if settled.coordinate is None or settled.problem is None:
        return None
    return 1 - settled.problem.capacity / privacy_filter.capacity[settled.coordinate]
