"""Profiles and plans: how many samples each PTK needs at each level, and who gets which level.

Everything here is public or post-processing of DP counts: planning is free and can be repeated. A
plan is for the PTKs that are due in a window. It cuts the window into partitions and lets each PTK
train on some of them (a *strip plan*): at no record do the demands of those who train on it add up
to more than is left there. PTKs keep their levels from plan to plan where that costs little.

*One deadline.* Whoever asks says how much work an answer may be (`AnswerEffort`), and everything
that belongs to the answer shares that: two seconds for a registration, ten for a window or a
what-if. When it is over the best plan that was found and verified is the answer.

A PTK of best effort has one level, the epsilon that it states, and needs a floor of samples
(`floor_samples`). Those with targets come first: `settle_ranked` adds as many others as fit beside
them.

Whether a PTK can be accepted is another question, with another deadline: see `answering`.

Reasons: those of `profiler`, `allocator` and the PTK.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil
from typing import Any

from allocator.admission.coordinates import admits
from allocator.admission.settling import Current, settle_many
from allocator.admission.single import Offer, PtkOffers, Settled
from allocator.effort import Effort
from allocator.recommend import recommend
from allocator.solving.gap import gap_explained
from allocator.strip.building import no_plan
from profiler.analytic import Profile, profile
from profiler.levels import privacy_levels
from profiler.measuring.terms import FLOOR, PER_EPSILON
from ptklib import registry
from ptklib.encoding.canonical import canonical
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import epsilon_exact, exact, show
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PartitionLine, PlanLine, PlanView
from ptkstore.drawing.plan_picture import of_view
from ptkstore.drawing.plan_svg import document
from ptkstore.metadata import rows

__all__ = [
    "WINDOW",
    "AnswerEffort",
    "Candidate",
    "charge_delta",
    "closed_form",
    "draw_plan",
    "fits_alone",
    "floor_samples",
    "fresh_loss",
    "has_closed_form",
    "offers_of",
    "plan_view",
    "ptk_of",
    "records_per_unit",
    "settle_plan",
    "settle_ranked",
    "training_loss",
]

# Work for one coordinate of a plan, counted, as a machine of the reference speed takes.
_SECONDS = 5.0
# Of what is left, for the plan without the limit of a window that may be smaller.
_FREELY = 0.5
# An answer gets that much of a core, whatever the clock on the wall says.
_LEAST_OF_A_CORE = 0.25
# Of what is left, for each plan with more or fewer of best effort.
_RANKED = 0.4
# Plans that were asked for last.
_KEPT = 256
_DOOR = "door:ptk"


@dataclass(frozen=True)
class AnswerEffort:
    """How much to spend on one answer: so many counted ``steps``, and ``seconds`` of the ``clock``
    where the machine is slow or busy: that on the wall, if none is given.

    Whoever has less than a quarter of a core gets a quarter of the seconds all the same, by the
    thread's own CPU: an answer that nobody could work on helps nobody.
    ``final``: nobody will work on it again, settled or not.
    """

    steps: float
    seconds: float
    final: bool = False
    clock: Callable[[], float] | None = None

    def effort(self) -> Effort:
        """All of it, from now on."""
        return Effort.clocked(self.steps, self.clock or _patient_clock(), self.seconds)


def _patient_clock() -> Callable[[], float]:
    wall, own = time.monotonic(), time.thread_time()
    return lambda: min(time.monotonic() - wall, (time.thread_time() - own) / _LEAST_OF_A_CORE)


# For a window or a what-if.
WINDOW = AnswerEffort(1e10, 10.0, final=True)


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


def floor_samples(epsilon: Fraction) -> int:
    """What a PTK of best effort trains on at least: as little as any profile allows. Less would
    teach it noise.
    """
    return max(FLOOR, ceil(PER_EPSILON / epsilon))


def fits_alone(
    spec: StreamSpec, privacy_filter: Filter, loss: Sequence[int], candidate: Candidate
) -> bool:
    """Whether a PTK of best effort fits on records with that `training_loss` that nobody else
    trains on, and its quota.
    """
    return any(
        admits(privacy_filter, loss, offer.demand)
        for offer in offers_of(spec, privacy_filter, candidate).offers
    )


@lru_cache(maxsize=4096)
def closed_form(
    ptk: Ptk, target: float | None, levels: tuple[Fraction, ...], delta: Fraction, units: int
) -> bool:
    """Public numbers of a configuration and a target: the same in every window."""
    # Whether there is one does not depend on the target either, so any will do.
    wanted = 0.5 if target is None else target
    return ptk.analytic_profile(wanted, levels, delta, records_per_unit=units) is not None


def fresh_loss(spec: StreamSpec, privacy_filter: Filter) -> tuple[int, ...]:
    """The loss at every point of a new block once its DP count is published."""
    return privacy_filter.demand(spec.count_release().cost)


def training_loss(spec: StreamSpec, privacy_filter: Filter, loss: Sequence[int]) -> tuple[int, ...]:
    """The loss as plans of PTKs see it: where the quota of their door leaves less than the promise
    does, as if the rest were used already. What fits in a coordinate here fits both there.

    Nobody else comes by this door: nothing of its quota is used at the tags of plans.
    """
    if _DOOR not in spec.quotas:
        return tuple(loss)
    quota = privacy_filter.scaled(spec.quotas[_DOOR])
    rows = zip(loss, privacy_filter.capacity, quota.capacity, strict=True)
    return tuple(max(used, most - share) for used, most, share in rows)


def offers_of(
    spec: StreamSpec, privacy_filter: Filter, candidate: Candidate, *, target: float | None = None
) -> PtkOffers:
    """The levels at which a PTK can reach its target, with samples and price; of best effort, the
    one that it states. Without those that are beyond the PTK's own quota.

    None at all is possible.
    """
    share = spec.quotas.get(f"ptk:{candidate.row.name}")
    offers = _all_offers(spec, privacy_filter, candidate, target)
    if share is None:
        return offers
    quota, unused = privacy_filter.scaled(share), (0,) * privacy_filter.width
    return replace(
        offers,
        offers=tuple(offer for offer in offers.offers if admits(quota, unused, offer.demand)),
    )


def _all_offers(
    spec: StreamSpec, privacy_filter: Filter, candidate: Candidate, target: float | None
) -> PtkOffers:
    wanted = candidate.row.target if target is None else target
    delta = charge_delta(spec, candidate.ptk)
    if wanted is None:
        level = epsilon_exact(candidate.row.epsilon or "0")
        stated = _stated(candidate.ptk, privacy_filter, level, delta, records_per_unit(spec))
        return PtkOffers(candidate.row.name, stated)
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


@lru_cache(maxsize=4096)
def _stated(
    ptk: Ptk, privacy_filter: Filter, level: Fraction, delta: Fraction, units: int
) -> tuple[Offer, ...]:
    """What best effort takes: a floor of samples at the epsilon that is stated."""
    try:
        demand = privacy_filter.demand(ptk.cost(level, delta, records_per_unit=units))
    except InvalidInput:
        # A scale of noise that the mechanism does not have.
        return ()
    return (Offer(show(level), floor_samples(level), demand),)


def settle_ranked(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    candidates: Sequence[Candidate],
    *,
    available: int | None = None,
    current: Current | None = None,
    remedy: bool = True,
    effort: Effort | None = None,
) -> tuple[Settled, tuple[Candidate, ...]]:
    """`settle_plan` for those with targets and as many of best effort as fit beside them, in this
    order; and those of best effort who are left out.
    """
    whole_effort = effort or WINDOW.effort()
    promised = [candidate for candidate in candidates if candidate.row.target is not None]
    rest = [candidate for candidate in candidates if candidate.row.target is None]

    def settled(beside: Sequence[Candidate], remedy: bool = False) -> Settled:
        together = [*promised, *beside]
        return settle_plan(
            spec,
            privacy_filter,
            loss,
            together,
            available=available,
            current=current,
            remedy=remedy,
            effort=whole_effort.share(_RANKED) if rest else whole_effort,
        )

    whole = settled(rest, remedy and not rest)
    if whole.plan.total_samples is not None or not rest:
        return whole, ()
    fitting = [candidate for candidate in rest if fits_alone(spec, privacy_filter, loss, candidate)]
    best, low, high = settled((), remedy) if promised else whole, 0, len(fitting) + 1
    if promised and best.plan.total_samples is None:
        return best, tuple(rest)
    # A part of what fits fits as well.
    while high - low > 1:
        middle = (low + high) // 2
        more = settled(fitting[:middle])
        if more.plan.total_samples is None:
            high = middle
        else:
            best, low = more, middle
    inside = {candidate.row.id for candidate in fitting[:low]}
    return best, tuple(candidate for candidate in rest if candidate.row.id not in inside)


def settle_plan(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    candidates: Sequence[Candidate],
    *,
    available: int | None = None,
    current: Current | None = None,
    remedy: bool = True,
    effort: Effort | None = None,
    free: Settled | None = None,
) -> Settled:
    """The plan of fewest samples found for these PTKs at points with that loss, within n_max and
    what is available.

    Without ``remedy`` nobody looks for what would help where there is none. ``effort`` is for all
    of it, that of a window if left out. ``free`` is the answer without ``available``, if known.
    """
    whole = effort or WINDOW.effort()
    offered = tuple(offers_of(spec, privacy_filter, candidate) for candidate in candidates)
    asked = _Question(privacy_filter, tuple(loss), offered, spec.n_max, current, remedy)
    settled = free or _settled(asked, whole if available is None else whole.share(_FREELY))
    # One record is kept back, so that partitions that are rounded up to whole tags fit as well.
    room = None if available is None else max(1, available - 1)
    if settled.plan.total_samples is None or room is None or settled.plan.total_samples <= room:
        return settled
    least = settled.plan.lower_bound or 0
    if least > room:
        why = f"every plan holds at least {least} samples, and the window has {room}"
        return replace(settled, plan=no_plan(why, settled.plan.solver))
    return _settled(replace(asked, n_max=room, current=None), whole)


@dataclass(frozen=True)
class _Question:
    """What a plan follows from, beside the work it may be."""

    filter: Filter
    loss: tuple[int, ...]
    offered: tuple[PtkOffers, ...]
    n_max: int
    current: Current | None
    remedy: bool


# By the question and the work, with what was spent: the newest last.
_ANSWERS: OrderedDict[tuple[_Question, float], tuple[Settled, float]] = OrderedDict()


def _settled(asked: _Question, effort: Effort) -> Settled:
    """The plan; one that was asked for before with as much work is known, unless the clock had
    ended it.
    """
    key = (asked, effort.left)
    known = _ANSWERS.get(key)
    if known is not None:
        effort.spend(known[1])
        return known[0]
    begin = effort.spent
    settled = settle_many(
        asked.filter,
        asked.loss,
        asked.offered,
        n_max=asked.n_max,
        current=asked.current,
        seconds=_SECONDS,
        effort=effort,
        remedy=asked.remedy,
    )
    if not effort.cut:
        _ANSWERS[key] = settled, effort.spent - begin
        while len(_ANSWERS) > _KEPT:
            _ANSWERS.popitem(last=False)
    return settled


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
        gap_reason=_gap_reason(settled),
    )


def _gap_reason(settled: Settled) -> str:
    told = None if settled.problem is None else gap_explained(settled.problem, settled.plan)
    return "" if told is None else told.text


def _spent_before(privacy_filter: Filter, settled: Settled) -> float | None:
    """What the plan does not have of the whole promise, in the coordinate that it counts in."""
    if settled.coordinate is None or settled.problem is None:
        return None
    return 1 - settled.problem.capacity / privacy_filter.capacity[settled.coordinate]
