"""The plan of one window: for all PTKs that are due or, where it does not carry all, for as many as
it does.

A window that is smaller than usual is planned with other levels first. If no levels do,
`allocator.admission.largest_set` states who trains, `allocator.admission.short_window` why others
do not. The line that its rule goes by is public and the same for everybody: who was left out
before, since which window, the longest first; then whose newest version is of the oldest window;
then who was registered first. It is kept in the plan (``left_out_since``). A PTK that was in a plan
leaves the line whatever became of its training, so one that always fails takes nobody's turn.

PTKs of best effort are planned beside those with targets and never instead of them: where a window
does not carry all, those with targets are planned as if they were alone, and as many others are
added, by the same line, as fit in then.

DP counts, profiles and losses alone are looked at: planning is free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from allocator.admission.coordinates import Settled
from allocator.admission.settling import Current
from allocator.admission.short_window import LeftOut, carried_by
from allocator.effort import Effort
from allocator.plan import Plan
from allocator.surplus.enriching import Richer
from ptklib.privacy.filters import Filter
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import LeftOutLine, PlanView
from ptkstore.api.views.remedies import ADVICE, Remedy
from ptkstore.engine.plans.planning import (
    WINDOW,
    Candidate,
    offers_of,
    plan_view,
    settle_plan,
    settle_ranked,
)
from ptkstore.engine.plans.surplus import Held, left_out_line, richer_plan, with_surplus

__all__ = ["ADOPTED", "SHORT", "Line", "WindowPlan", "plan_window"]

ADOPTED = "ADOPTED"
SHORT = "SHORT"
# Windows are counted from 1970, so that is before all of them; and none is so late.
_NEVER = -1
_LATEST = 1 << 62
# Of what is left of the work: for the plan of all wherever it takes them, for the same within the
# window, for those with targets alone, for who trains where there is no plan. The rest is for the plan of those.
_FREELY, _ALL, _PROMISED, _CARRIED = 0.5, 0.5, 0.6, 0.6


@dataclass(frozen=True)
class Line:
    """Where the PTKs of a stream stand: since which window each was left out, and the window of its
    newest version.
    """

    left_out_since: Mapping[str, int]
    newest: Mapping[str, int]

    def in_turn(self, due: Sequence[Candidate]) -> list[Candidate]:
        """The PTKs, whose turn comes first in front."""

        def place(candidate: Candidate) -> tuple[int, int, int]:
            name = candidate.row.name
            return (
                self.left_out_since.get(name, _LATEST),
                self.newest.get(name, _NEVER),
                candidate.row.id,
            )

        return sorted(due, key=place)

    def after(
        self, window: int, due: Sequence[Candidate], left_out: Sequence[LeftOut]
    ) -> dict[str, int]:
        """``left_out_since`` after a window; who was not due in it stays where it was."""
        planned = {candidate.row.name for candidate in due}
        rest = {name: since for name, since in self.left_out_since.items() if name not in planned}
        return rest | {ptk.id: self.left_out_since.get(ptk.id, window) for ptk in left_out}


@dataclass(frozen=True)
class WindowPlan:
    """Who trains, who is left out and why, and the plan for people. ``settled`` is the plan of fewest
    samples, which later plans keep to; `trained` is what becomes of the window.
    """

    settled: Settled
    left_out: tuple[LeftOut, ...]
    view: PlanView
    # What is trained, where the stream uses the surplus and that gains anything.
    richer: Richer | None = None

    @property
    def trained(self) -> Plan:
        """What is charged and trained."""
        return self.settled.plan if self.richer is None else self.richer.plan

    @property
    def status(self) -> str:
        """As it is kept: ADOPTED, or SHORT where somebody is left out."""
        return SHORT if self.left_out else ADOPTED


def plan_window(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    due: Sequence[Candidate],
    line: Line,
    *,
    window: int,
    held: Held,
    current: Current | None,
) -> WindowPlan:
    """The plan of a window that holds so much, at points with that loss.

    Found by one deadline: that of `ptkstore.engine.plans.planning.WINDOW`.
    """
    effort = WINDOW.effort()
    fewest = _fewest(
        spec,
        privacy_filter,
        loss,
        due,
        line,
        window=window,
        dp_records=held.dp_records,
        current=current,
        effort=effort,
    )
    richer = richer_plan(spec, privacy_filter, loss, fewest.settled, due, held)
    view = with_surplus(fewest.view, spec.use, richer, fewest.view.available_samples)
    return replace(fewest, view=view, richer=richer)


def _fewest(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    due: Sequence[Candidate],
    line: Line,
    *,
    window: int,
    dp_records: int,
    current: Current | None,
    effort: Effort,
) -> WindowPlan:
    """The plan of fewest samples, for all or for as many as the window carries."""
    available = int(dp_records * (1 - Fraction(spec.profile_share)))
    rate = Fraction(dp_records, spec.window_seconds)

    def shown(settled: Settled) -> PlanView:
        per_second = rate if rate > 0 else None
        return plan_view(
            spec,
            privacy_filter,
            window,
            settled,
            due,
            available=available,
            records_per_second=per_second,
        )

    promised = [candidate for candidate in due if candidate.row.target is not None]
    free = settle_plan(
        spec,
        privacy_filter,
        loss,
        due,
        current=current,
        remedy=False,
        effort=effort.share(_FREELY),
    )
    # A window of no or one record has none to keep back, and nothing to cut.
    if not due or available > 1:
        whole = settle_plan(
            spec,
            privacy_filter,
            loss,
            due,
            available=available,
            current=current,
            remedy=False,
            effort=effort.share(_ALL),
            free=free,
        )
        if whole.plan.total_samples is not None:
            return WindowPlan(whole, (), shown(whole))
    if len(promised) < len(due):
        return _beside(
            spec,
            privacy_filter,
            loss,
            due,
            line,
            _fewest(
                spec,
                privacy_filter,
                loss,
                promised,
                line,
                window=window,
                dp_records=dp_records,
                current=current,
                effort=effort.share(_PROMISED),
            ),
            available=available,
            shown=shown,
            effort=effort,
        )
    turns = line.in_turn(due)
    carried = carried_by(
        privacy_filter,
        loss,
        [offers_of(spec, privacy_filter, turn) for turn in turns],
        n_max=min(spec.n_max, available - 1),
        overdue=set(line.left_out_since),
        effort=effort.share(_CARRIED),
    )
    settled = carried.settled
    inside = [candidate for candidate in due if candidate.row.name in carried.members]
    if inside:
        # With the work that a plan deserves, and levels as they were where that costs little.
        better = settle_plan(
            spec,
            privacy_filter,
            loss,
            inside,
            available=available,
            current=current,
            remedy=False,
            effort=effort,
        )
        settled = better if better.plan.total_samples is not None else settled
    needed = free.plan.total_samples
    text, remedies = _told(spec, due, carried.left_out, available=available, needed=needed)
    view = replace(
        shown(settled),
        status=SHORT if inside else "INFEASIBLE",
        explanation=text,
        changes=tuple(remedy.text for remedy in remedies),
        remedies=remedies,
        left_out=tuple(
            LeftOutLine(left_out.id, left_out.reason, left_out.text)
            for left_out in carried.left_out
        ),
        # What would be enough for some is no advice.
        recommended_samples=None,
        recommended_window_seconds=None,
    )
    return WindowPlan(settled, carried.left_out, view)


def _beside(
    spec: StreamSpec,
    privacy_filter: Filter,
    loss: Sequence[int],
    due: Sequence[Candidate],
    line: Line,
    promised: WindowPlan,
    *,
    available: int,
    shown: Callable[[Settled], PlanView],
    effort: Effort,
) -> WindowPlan:
    """The plan of those with targets, with as many of best effort as fit in."""
    settled, out = promised.settled, set[int]()
    rest = [candidate for candidate in line.in_turn(due) if candidate.row.target is None]
    planned = {assignment.id for assignment in settled.plan.assignments}
    inside = [candidate for candidate in due if candidate.row.name in planned]
    if available > 1:
        settled, left = settle_ranked(
            spec,
            privacy_filter,
            loss,
            [*inside, *rest],
            available=available,
            remedy=False,
            effort=effort,
        )
        out = {candidate.row.id for candidate in left}
    if available <= 1 or settled.plan.total_samples is None:
        settled, out = promised.settled, {candidate.row.id for candidate in rest}
    left_out = (
        *promised.left_out,
        *(
            left_out_line(spec, privacy_filter, loss, candidate)
            for candidate in rest
            if candidate.row.id in out
        ),
    )
    told = [promised.view.explanation] if promised.left_out else []
    if out:
        told.append(
            f"{len(out)} of {len(rest)} PTKs of best effort get no records: those with targets come first."
        )
    view = replace(
        shown(settled),
        status=SHORT if settled.plan.assignments else "INFEASIBLE",
        explanation=" ".join(told),
        changes=promised.view.changes if promised.left_out else (),
        remedies=promised.view.remedies if promised.left_out else (),
        left_out=tuple(LeftOutLine(ptk.id, ptk.reason, ptk.text) for ptk in left_out),
        recommended_samples=None,
        recommended_window_seconds=None,
    )
    return WindowPlan(settled, left_out, view)


def _told(
    spec: StreamSpec,
    due: Sequence[Candidate],
    left_out: Sequence[LeftOut],
    *,
    available: int,
    needed: int | None,
) -> tuple[str, tuple[Remedy, ...]]:
    """Why not all train, and what would help."""
    room, count = max(0, available - 1), len(due)
    every = "the one PTK that is due needs" if count == 1 else f"the {count} PTKs that are due need"
    remedies: list[Remedy] = []
    if needed is None:
        text = f"No plan within E and {spec.n_max} samples holds for {every.removesuffix(' need').removesuffix(' needs')}."
    elif needed > room:
        text = f"The window has {room} samples for training, and {every} {needed}."
        records = ceil((needed + 1) / (1 - Fraction(spec.profile_share)))
        told = f"Send at least {records} records in a window, or give the stream a longer one."
        remedies.append(Remedy(kind="records", value=records, text=told))
    else:
        text = f"No plan was found for {every.removesuffix(' need').removesuffix(' needs')}."
    small = [ptk.id for ptk in left_out if ptk.reason == "WINDOW_TOO_SMALL"]
    stuck = [
        ptk.text for ptk in left_out if ptk.reason in ("TARGET_UNREACHABLE", "BUDGET_TOO_SMALL")
    ]
    if small:
        told = f"Loosen the target of {_named(small)}, or train less often on longer windows."
        remedies.append(Remedy(kind=ADVICE, text=told))
    remedies += [Remedy(kind=ADVICE, text=told) for told in stuck[:3]]
    if any(ptk.reason == "OTHERS_FIRST" for ptk in left_out):
        told = "Wait: who was left out longest comes first in the next window."
        remedies.append(Remedy(kind=ADVICE, text=told))
    return text, tuple(remedies)


def _named(names: Sequence[str], most: int = 5) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
