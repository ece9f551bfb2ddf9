"""The rest of a window: what PTKs get beyond the plan of fewest samples, where their stream says
so.

The plan of fewest samples is made first and stays what it is: who is accepted, what is promised,
how long a window should be. Then `allocator.surplus` hands out what is left of the records of the
window and of the budget of each of them. All of it is worked out from profiles and DP counts: free,
and said before anything is charged. **What is charged is what is trained**: one charge for each
PTK, at its epsilon here and on its tags here, and the ledger judges it like any other.

What a quota of the stream leaves to training (`door:ptk`, `ptk:NAME`) is all that is asked for:
``loss`` is `planning.training_loss`. Nor is more asked for than a worker's memory allows
(`memory`), nor more samples than ``n_max``.

PTKs of best effort live on this: in the plan of fewest samples they have a floor of samples, and
here they get records at the one epsilon that they state, also where the stream takes the minimum.
There everybody else keeps what the plan of fewest samples says. What makes their losses comparable
is their equal share of the window (`allocator.surplus.curves`).

Reasons: those of `allocator.surplus`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from allocator.admission.coordinates import Settled, admits
from allocator.admission.short_window import LeftOut
from allocator.surplus.curves import LossCurve, Rung
from allocator.surplus.enriching import Guard, Richer, enrich
from profiler.levels import privacy_levels
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import show
from ptklib.privacy.filters import Filter
from ptklib.ptk import Ptk
from ptkstore.api.stream_spec import SURPLUS, StreamSpec
from ptkstore.api.views import PlanView, SurplusLine
from ptkstore.engine.plans.planning import (
    Candidate,
    charge_delta,
    fits_alone,
    offers_of,
    records_per_unit,
)
from ptkstore.engine.room.memory import most_in_slice, most_in_window, training_bytes

__all__ = ["Held", "left_out_line", "most_samples", "richer_plan", "with_surplus"]

# A tenth more from one epsilon to the next, beside the levels of profiles.
_FINE = 45
# With more PTKs than this, PTKs are given levels of their profiles alone: what these cost is known.
_MANY = 1000


@dataclass(frozen=True)
class Held:
    """What a window holds by its DP count, in so many blocks, and the memory of a worker."""

    dp_records: int
    blocks: int
    memory_bytes: int

    def available(self, spec: StreamSpec) -> int:
        """The records that plans may use. One is kept back, so that partitions that are rounded up
        to whole tags fit as well.
        """
        return min(spec.n_max, int(self.dp_records * (1 - Fraction(spec.profile_share))) - 1)


def richer_plan(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    settled: Settled,
    candidates: Sequence[Candidate],
    held: Held,
) -> Richer | None:
    """What the PTKs of a plan are given of the rest of its window; None where the stream takes the
    minimum and nobody is of best effort, or nothing is gained.
    """
    if settled.coordinate is None or settled.plan.total_samples is None:
        return None
    samples = held.available(spec)
    by_name = {candidate.row.name: candidate for candidate in candidates}
    names = [assignment.id for assignment in settled.plan.assignments]
    if spec.use != SURPLUS and all(by_name[name].row.target is not None for name in names):
        return None
    curves = []
    for assignment in settled.plan.assignments:
        candidate = by_name[assignment.id]
        rungs = _allowed(spec, privacy_filter, candidate, many=len(names) > _MANY)
        most = most_samples(spec, candidate, assignment.samples, samples, held)
        reference = None
        if candidate.row.target is None:
            reference = max(assignment.samples, samples // len(names))
        elif spec.use != SURPLUS:
            rungs = tuple(rung for rung in rungs if rung.level == assignment.level)
            most = assignment.samples
        curves.append(_curve(spec, privacy_filter, candidate, rungs, most, reference))
    guards = [Guard(privacy_filter, tuple(loss))]
    return enrich(guards, curves, settled.plan, settled.coordinate, samples)


def with_surplus(
    view: PlanView, use: str, richer: Richer | None, available: int | None
) -> PlanView:
    """The plan for people with what its PTKs are given beyond it."""
    if richer is None:
        return replace(view, use=use)
    expected = {losses.id: losses for losses in richer.expected}
    lines = (
        SurplusLine(
            ptk=assignment.id,
            epsilon=assignment.level,
            samples=assignment.samples,
            share=assignment.samples / available if available else 0.0,
            expected_minimum=expected[assignment.id].minimum,
            expected=expected[assignment.id].surplus,
        )
        for assignment in richer.plan.assignments
    )
    return replace(view, use=use, surplus=tuple(lines), surplus_samples=richer.plan.total_samples)


def _curve(
    spec: StreamSpec,
    privacy_filter: Filter,
    candidate: Candidate,
    rungs: tuple[Rung, ...],
    most: int | None,
    reference: int | None,
) -> LossCurve:
    """What a PTK may be given: no rung beyond its own quota."""
    offers = offers_of(spec, privacy_filter, candidate).offers
    quota = spec.quotas.get(f"ptk:{candidate.row.name}")
    share = None if quota is None else privacy_filter.scaled(quota)
    unused = (0,) * privacy_filter.width
    allowed = (rung for rung in rungs if share is None or admits(share, unused, rung.demand))
    return LossCurve(candidate.row.name, offers, tuple(allowed), most, reference)


def _allowed(
    spec: StreamSpec, privacy_filter: Filter, candidate: Candidate, *, many: bool
) -> tuple[Rung, ...]:
    """The epsilons that a PTK may be given: the one that it states, else the levels of its profile
    and, unless there are many PTKs, finer ones.
    """
    if many or candidate.row.target is None:
        offers = offers_of(spec, privacy_filter, candidate).offers
        return tuple(Rung(offer.level, offer.demand) for offer in offers)
    delta, units = charge_delta(spec, candidate.ptk), records_per_unit(spec)
    return _rungs(candidate.ptk, privacy_filter, delta, units)


def left_out_line(
    spec: StreamSpec, privacy_filter: Filter, loss: Sequence[int], candidate: Candidate
) -> LeftOut:
    """Why a PTK of best effort is left out of a plan."""
    name, epsilon = candidate.row.name, candidate.row.epsilon
    if fits_alone(spec, privacy_filter, loss, candidate):
        told = f"{name} is of best effort: those with targets come first, and leave it no records."
        return LeftOut(name, "OTHERS_FIRST", told)
    told = (
        f"{name} fits no more into what is left of the privacy budget: state less than {epsilon}."
    )
    return LeftOut(name, "BUDGET_TOO_SMALL", told)


@lru_cache(maxsize=4096)
def _rungs(ptk: Ptk, privacy_filter: Filter, delta: Fraction, units: int) -> tuple[Rung, ...]:
    """The epsilons that a PTK may be given, with what they demand: public numbers."""
    coarse = privacy_levels(privacy_filter.epsilon)
    rungs = []
    for level in sorted({*coarse, *privacy_levels(privacy_filter.epsilon, count=_FINE)}):
        try:
            cost = ptk.cost(level, delta, records_per_unit=units)
            rungs.append(Rung(show(level), privacy_filter.demand(cost)))
        except InvalidInput:
            # A scale of noise that the mechanism does not have: no level of its profile either.
            continue
    return tuple(rungs)


def most_samples(
    spec: StreamSpec, candidate: Candidate, least: int, samples: int, held: Held
) -> int | None:
    """The most samples that a worker has the memory for, at least those of the plan; None where
    that is all of them.
    """
    window = most_in_window(held.dp_records, held.blocks, spec)
    units = records_per_unit(spec)

    def fits(count: int) -> bool:
        share = min(Fraction(1), Fraction(count, max(1, held.dp_records)))
        most = most_in_slice(window, share, units)
        return training_bytes(spec, candidate.ptk, window=window, most=most) <= held.memory_bytes

    if fits(samples):
        return None
    low, high = least, max(least, samples)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
