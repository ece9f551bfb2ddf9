"""The answer to a registration: accepted with a plan in hand, or rejected with the nearest target and what else would help.

A pure function of what is registered and of how much work is allowed (`Work`), which holds for the whole answer: the plan, the
nearest target and the changes. **Accepted is only what has a verified plan.** What ran out of work is told as far as it was
found and marked ``refining``: nobody has ruled out that there is a plan, or that a tighter target would do. Work is
counted, so the same question gets the same answer; the clock, of the thread's own CPU, ends it on a slow machine.

Nothing here opens a transaction, and nobody may call it in one (`tests/engine/test_planning_apart.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from allocator.coordinates import printer
from allocator.currency import Settled, settle
from allocator.effort import Effort
from allocator.judging import Judged, judge_many, nearest
from allocator.lacking import single_fits
from allocator.plan import Plan
from allocator.solve import explained
from ptklib.privacy.filters import Filter
from ptkstore.engine.planning import Candidate, fresh_loss, has_closed_form, offers_of
from ptkstore.streams.spec import StreamSpec
from ptkstore.views import Registration

__all__ = ["FIRST", "LOOSEST", "REFINED", "Work", "answer_of", "preview"]

# In thousandths. Losses are below one, so a target of one promises nothing.
LOOSEST = 999
# Of the work: for the question whether it fits; of what is left then, for the nearest target.
_JUDGED, _NEAREST = 0.5, 0.7
_FURTHER = " It is looked for further in the background."


@dataclass(frozen=True)
class Work:
    """How much to spend on one answer: so many counted ``steps``, and ``seconds`` of CPU where the machine is slow.

    ``final``: nobody will work on it again, settled or not.
    """

    steps: float
    seconds: float
    final: bool = False
    clock: Callable[[], float] = time.thread_time

    def effort(self) -> Effort:
        """All of it, from now on."""
        return Effort.clocked(self.steps, self.clock, self.seconds)


# While somebody waits, and in the background.
FIRST = Work(1.8e9, 1.3)
REFINED = Work(6e10, 60.0, final=True)


def answer_of(
    spec: StreamSpec, judge: Filter, others: Sequence[Candidate], newcomer: Candidate, work: Work = FIRST
) -> Registration:
    """What becomes of a PTK beside the accepted ones, in a fresh window."""
    name = newcomer.row.name
    if newcomer.measured is None and not has_closed_form(spec, judge, newcomer):
        if Fraction(spec.profile_share) == 0:
            reason = f"a PTK of kind {newcomer.ptk.kind} must be profiled, and the stream has no profile_share"
            return Registration(name, "REJECTED", reason=reason)
        return Registration(name, "WAITING", reason="to be profiled when the next window closes")
    effort = work.effort()
    judged = preview(spec, judge, [*others, newcomer], effort.part(_JUDGED * effort.limit))
    plan = judged.settled.plan
    if plan.total_samples is not None:
        mine = next(one for one in plan.assignments if one.id == name)
        return Registration(name, "ACTIVE", planned_epsilon=mine.level, planned_samples=mine.samples)
    left = effort.part(_NEAREST * (effort.limit - effort.spent))
    target, found = _nearest(spec, judge, others, newcomer, left)
    told = _told(judge, judged.settled, effort)
    reason = told.explanation.text if told.explanation else "no plan exists"
    # What would help is a hint; that it is not the least is no reason to work on.
    refining = not (judged.proved and found) and not work.final
    return Registration(
        name,
        "REJECTED",
        reason=reason + (_FURTHER if refining and not judged.proved else ""),
        nearest_target=target,
        changes=tuple(one.text for one in told.explanation.changes) if told.explanation else (),
        refining=refining,
    )


def preview(spec: StreamSpec, judge: Filter, candidates: Sequence[Candidate], effort: Effort) -> Judged:
    """Whether these PTKs have a plan in a fresh window: on one partition if that is enough, else in strips."""
    loss = fresh_loss(spec, judge)
    offered = tuple(offers_of(spec, judge, one) for one in candidates)
    if single_fits(judge, loss, offered, spec.n_max):
        single = settle(judge, loss, offered, n_max=spec.n_max)
        if single.plan.total_samples is not None:
            return Judged(single, proved=True)
    return judge_many(judge, loss, offered, n_max=spec.n_max, effort=effort)


def _nearest(
    spec: StreamSpec, judge: Filter, others: Sequence[Candidate], newcomer: Candidate, effort: Effort
) -> tuple[float | None, bool]:
    """The tightest target, in thousandths, at which the newcomer would fit beside the others, and whether it is known to be."""
    beside = [offers_of(spec, judge, one) for one in others]
    found = nearest(
        judge,
        fresh_loss(spec, judge),
        beside,
        lambda thousandths: offers_of(spec, judge, newcomer, target=thousandths / 1000),
        range(int(newcomer.row.target * 1000) + 1, LOOSEST + 1),
        n_max=spec.n_max,
        effort=effort,
    )
    return None if found.step is None else found.step / 1000, found.proved


def _told(judge: Filter, settled: Settled, effort: Effort) -> Plan:
    """The plan that is none with what would help, where that can be said of one coordinate."""
    if settled.problem is None or settled.coordinate is None:
        return settled.plan
    return explained(settled.problem, settled.plan, show=printer(judge, settled.coordinate), effort=effort)
