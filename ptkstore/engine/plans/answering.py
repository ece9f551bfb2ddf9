"""The answer to a registration: accepted with a plan in hand, or rejected with the nearest target
and what else would help.

A pure function of what is registered and of how much work is allowed (`AnswerEffort`), which holds
for the whole answer: the plan, the nearest target and the changes, and with several newcomers for
all of them. **Accepted is only what has a verified plan.** What ran out of work is told as far as
it was found and marked ``refining``: nobody has ruled out that there is a plan, or that a tighter
target would do. Work is counted, so the same question gets the same answer; the clock, which
somebody who waits looks at, ends it on a slow or busy machine.

A PTK with a target is planned as if there were none of best effort: those train on what is left.
One of best effort is accepted where its epsilon fits beside everybody, else rejected with the
nearest that does.

Nothing here opens a transaction, and nobody may call it in one
(`tests/engine/test_planning_apart.py`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil

from allocator.admission.coordinates import printer
from allocator.admission.judging import Judged, judge_many, nearest
from allocator.admission.lacking import single_fits
from allocator.admission.single import Settled, settle
from allocator.effort import Effort
from allocator.plan import Assignment, Plan
from allocator.solving.solve import explained
from ptklib.errors import Refused
from ptklib.privacy.amounts import show
from ptklib.privacy.filters import Filter
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import Registration
from ptkstore.api.views.remedies import ADVICE, Remedy
from ptkstore.engine.plans.planning import (
    AnswerEffort,
    Candidate,
    fits_alone,
    fresh_loss,
    has_closed_form,
    offers_of,
    training_loss,
)
from ptkstore.engine.plans.remedies import LOOSEST, plan_remedies
from ptkstore.engine.room.memory import least_training_bytes, require_room

__all__ = [
    "BEST_EFFORT",
    "FIRST",
    "REFINED",
    "AnswerEffort",
    "answer_of",
    "answers_of",
    "preview",
    "within_memory",
]

# Of the work: for the question whether it fits; of what is left then, for the nearest target.
_JUDGED, _NEAREST = 0.5, 0.7
# For one of several newcomers.
_ONE = 0.5
# Looks for the nearest epsilon.
_HALVINGS = 10
BEST_EFFORT = (
    "best effort: it trains on what is left of each window, and its states tell their error"
)
_FURTHER = " It is looked for further in the background."


# While somebody waits, and in the background: there nobody does, and others come first, so that the
# seconds are those of the thread's own CPU.
FIRST = AnswerEffort(1.8e9, 2.0)
REFINED = AnswerEffort(6e10, 60.0, final=True, clock=time.thread_time)


def answer_of(
    spec: StreamSpec,
    privacy_filter: Filter,
    others: Sequence[Candidate],
    newcomer: Candidate,
    work: AnswerEffort = FIRST,
) -> Registration:
    """What becomes of a PTK beside the accepted ones, in a fresh window."""
    return _answered(spec, privacy_filter, others, newcomer, work.effort(), final=work.final)


def _answered(
    spec: StreamSpec,
    privacy_filter: Filter,
    others: Sequence[Candidate],
    newcomer: Candidate,
    effort: Effort,
    *,
    final: bool,
) -> Registration:
    name = newcomer.row.name
    if waits := _unprofiled(spec, privacy_filter, newcomer):
        return waits
    if newcomer.row.target is None:
        return _of_best_effort(spec, privacy_filter, others, newcomer, effort)
    others = [other for other in others if other.row.target is not None]
    judged = preview(spec, privacy_filter, [*others, newcomer], effort.share(_JUDGED))
    plan = judged.settled.plan
    if plan.total_samples is not None:
        return _accepted(newcomer, next(mine for mine in plan.assignments if mine.id == name))
    target, tightest = _nearest(spec, privacy_filter, others, newcomer, effort.share(_NEAREST))
    told = _told(privacy_filter, judged.settled, effort)
    reason = told.explanation.text if told.explanation else "no plan exists"
    remedies = plan_remedies(
        spec,
        privacy_filter,
        judged.settled,
        told.explanation,
        [*others, newcomer],
        known={name: target},
    )
    # What would help is a hint; that it is not the least is no reason to work on.
    refining = not (judged.proved and tightest) and not final
    return Registration(
        name,
        "REJECTED",
        reason=reason + (_FURTHER if refining and not judged.proved else ""),
        nearest_target=target,
        changes=tuple(remedy.text for remedy in remedies),
        refining=refining,
        remedies=remedies,
    )


def answers_of(
    spec: StreamSpec,
    privacy_filter: Filter,
    others: Sequence[Candidate],
    newcomers: Sequence[Candidate],
    work: AnswerEffort = FIRST,
) -> tuple[Registration, ...]:
    """What becomes of several PTKs together: one plan for all of them, or none.

    Where there is none they are asked for one after the other, those with targets first, up to the
    first that is REJECTED. All of it is one answer, with one deadline.
    """
    waiting = {
        newcomer.row.name: _unprofiled(spec, privacy_filter, newcomer) for newcomer in newcomers
    }
    planned = [newcomer for newcomer in newcomers if waiting[newcomer.row.name] is None]
    effort = work.effort()
    if planned and not any(
        registration and registration.status == "REJECTED" for registration in waiting.values()
    ):
        together = effort.share(_JUDGED)
        plan = preview(spec, privacy_filter, [*others, *planned], together).settled.plan
        mine = {assignment.id: assignment for assignment in plan.assignments}
        if plan.total_samples is not None:
            return tuple(
                waiting[newcomer.row.name] or _accepted(newcomer, mine[newcomer.row.name])
                for newcomer in newcomers
            )
    answers: dict[str, Registration] = {}
    admitted = list(others)
    for place, newcomer in enumerate(sorted(newcomers, key=_is_of_best_effort)):
        # Whoever fits takes little; the first who does not takes what is left.
        share = effort.share(max(_ONE, 1 / (len(newcomers) - place)))
        answer = _answered(spec, privacy_filter, admitted, newcomer, share, final=work.final)
        answers[answer.name] = answer
        if answer.status == "REJECTED":
            break
        if answer.status == "ACTIVE":
            admitted.append(newcomer)
    names = (newcomer.row.name for newcomer in newcomers)
    return tuple(answers[name] for name in names if name in answers)


def _is_of_best_effort(candidate: Candidate) -> bool:
    return candidate.row.target is None


def _accepted(newcomer: Candidate, planned: Assignment) -> Registration:
    return Registration(
        planned.id,
        "ACTIVE",
        planned_epsilon=planned.level,
        planned_samples=None if newcomer.row.target is None else planned.samples,
        reason=BEST_EFFORT if newcomer.row.target is None else "",
    )


def _of_best_effort(
    spec: StreamSpec,
    privacy_filter: Filter,
    others: Sequence[Candidate],
    newcomer: Candidate,
    effort: Effort,
) -> Registration:
    """What becomes of a PTK that states its epsilon: it fits beside the others on a floor of
    samples, or the nearest epsilon that does is told.
    """
    name, asked = newcomer.row.name, Fraction(newcomer.row.epsilon or "0")
    loss = training_loss(spec, privacy_filter, fresh_loss(spec, privacy_filter))
    part = effort.left / (1 + _HALVINGS)

    def fits(epsilon: Fraction) -> bool:
        changed = replace(newcomer, row=replace(newcomer.row, epsilon=show(epsilon)))
        if not fits_alone(spec, privacy_filter, loss, changed):
            return False
        judged = preview(spec, privacy_filter, [*others, changed], effort.part(part))
        return judged.settled.plan.total_samples is not None

    if fits(asked):
        return Registration(name, "ACTIVE", planned_epsilon=show(asked), reason=BEST_EFFORT)
    # In thousandths, below what was asked.
    low, high = 0, ceil(asked * 1000)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(Fraction(middle, 1000)) else (low, middle)
    if fits_alone(spec, privacy_filter, loss, newcomer):
        reason = (
            f"epsilon {show(asked)} does not fit beside the other PTKs within {spec.n_max} samples"
        )
    else:
        reason = (
            f"epsilon {show(asked)} does not fit on any record: the stream has "
            f"{spec.policy.as_json()['epsilon']} of it, of which counts take {show(Fraction(spec.count_epsilon))}, and "
            "quotas may leave less"
        )
    if not low:
        told = Remedy(kind=ADVICE, text="No epsilon of a thousandth or more fits.")
    else:
        nearest = show(Fraction(low, 1000))
        text = f"State epsilon {nearest} or less."
        told = Remedy(kind="epsilon", ptk=name, field="epsilon", value=nearest, text=text)
    return Registration(name, "REJECTED", reason=reason, changes=(told.text,), remedies=(told,))


def _unprofiled(
    spec: StreamSpec, privacy_filter: Filter, newcomer: Candidate
) -> Registration | None:
    """What becomes of a PTK that cannot be planned before it is profiled; None for all others."""
    name = newcomer.row.name
    if (
        newcomer.row.target is None
        or newcomer.measured is not None
        or has_closed_form(spec, privacy_filter, newcomer)
    ):
        return None
    if Fraction(spec.profile_share) == 0:
        reason = f"a PTK of kind {newcomer.ptk.kind} must be profiled, and the stream has no profile_share"
        return Registration(name, "REJECTED", reason=reason)
    return Registration(name, "WAITING", reason="to be profiled when the next window closes")


def within_memory(
    spec: StreamSpec, newcomer: Candidate, answer: Registration, memory_bytes: int
) -> Registration:
    """The answer, unless training would never fit into the memory of a worker: REJECTED then, and
    not skipped in every window.
    """
    if answer.status == "REJECTED":
        return answer
    needed = least_training_bytes(spec, newcomer.ptk, answer.planned_samples or 0)
    try:
        require_room(needed, memory_bytes, "training")
    except Refused as refusal:
        told = f"Give each worker {needed} bytes of memory (workers.memory_bytes)."
        remedy = Remedy(kind="memory_bytes", field="workers.memory_bytes", value=needed, text=told)
        return Registration(
            answer.name,
            "REJECTED",
            reason=f"{refusal.reason}: {refusal.message}",
            changes=(told,),
            remedies=(remedy,),
        )
    return answer


def preview(
    spec: StreamSpec, privacy_filter: Filter, candidates: Sequence[Candidate], effort: Effort
) -> Judged:
    """Whether these PTKs have a plan in a fresh window: on one partition if that is enough, else in
    strips.
    """
    loss = training_loss(spec, privacy_filter, fresh_loss(spec, privacy_filter))
    offered = tuple(offers_of(spec, privacy_filter, candidate) for candidate in candidates)
    if single_fits(privacy_filter, loss, offered, spec.n_max):
        single = settle(privacy_filter, loss, offered, n_max=spec.n_max)
        if single.plan.total_samples is not None:
            return Judged(single, proved=True)
    return judge_many(privacy_filter, loss, offered, n_max=spec.n_max, effort=effort)


def _nearest(
    spec: StreamSpec,
    privacy_filter: Filter,
    others: Sequence[Candidate],
    newcomer: Candidate,
    effort: Effort,
) -> tuple[float | None, bool]:
    """The tightest target, in thousandths, at which the newcomer would fit beside the others, and
    whether it is known to be.
    """
    target = newcomer.row.target
    assert target is not None
    beside = [offers_of(spec, privacy_filter, other) for other in others]
    answer = nearest(
        privacy_filter,
        training_loss(spec, privacy_filter, fresh_loss(spec, privacy_filter)),
        beside,
        lambda thousandths: offers_of(spec, privacy_filter, newcomer, target=thousandths / 1000),
        range(int(target * 1000) + 1, LOOSEST + 1),
        n_max=spec.n_max,
        effort=effort,
    )
    return None if answer.step is None else answer.step / 1000, answer.proved


def _told(privacy_filter: Filter, settled: Settled, effort: Effort) -> Plan:
    """The plan that is none with what would help, where that can be said of one coordinate."""
    if settled.problem is None or settled.coordinate is None:
        return settled.plan
    return explained(
        settled.problem,
        settled.plan,
        show=printer(privacy_filter, settled.coordinate),
        effort=effort,
    )
