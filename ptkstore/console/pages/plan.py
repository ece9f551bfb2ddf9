"""Plan: who trains with which epsilon on how many samples, what that costs, what changed, and who
was left out and why.
"""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from ptklib.errors import Refused, SageError
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PlanLine, PlanView, PtkView
from ptkstore.console.page.downloading import attachment
from ptkstore.console.page.listing import listed
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.spreadsheet import csv_file
from ptkstore.console.page.wording import window_begins
from ptkstore.console.pages.plan_changes import PlanChanges, changes
from ptkstore.drawing.needed_svg import draw_needed
from ptkstore.drawing.plan_svg import draw, idle_share
from ptkstore.drawing.png import can_draw_png, png_of

__all__ = ["PAGES", "chosen_stream", "newest_plan"]

_FRESH_SECONDS = 3.0
# A promise follows from the target alone, or from a profile that a window made.
_PROMISE_SECONDS = 300.0
_ROWS = 25
_MOST_TOLD = 20
# How many windows back the plan before may be.
_STEPS_BACK = 4
_LEFT_OUT = ("REJECTED", "WAITING", "FAILED")
_ORDERS: dict[str, Any] = {
    "ptk": lambda line: line.ptk,
    "epsilon": lambda line: (float(line.epsilon), line.ptk),
    "samples": lambda line: (line.samples, line.ptk),
    "target": lambda line: (line.target or 0.0, line.ptk),
    "cost": lambda line: (line.used * line.samples, line.ptk),
}


def plan(visit: Visit) -> Response:
    """The page of one stream; without a name, of the first."""
    streams = visit.session.remember("streams", _FRESH_SECONDS, visit.store.streams)
    if not streams:
        return visit.render(
            "plan.html", streams=(), spec=None, plan=None, outside=(), more_outside=False
        )
    spec = chosen_stream(visit, streams)
    plan_view = newest_plan(visit, spec.name)
    outside = _left_out(visit, spec.name)
    shown: dict[str, Any] = {
        "streams": streams,
        "spec": spec,
        "plan": plan_view,
        "outside": outside[:_MOST_TOLD],
        "more_outside": len(outside) > _MOST_TOLD,
    }
    if plan_view is None:
        return visit.render("plan.html", **shown)
    listing = listed(
        visit,
        plan_view.lines,
        anchor="ptks",
        text=lambda line: line.ptk,
        orders=_ORDERS,
        size=_ROWS,
    )
    before = _before(visit, spec, plan_view)
    return visit.render(
        "plan.html",
        **shown,
        begins=window_begins(plan_view.window, spec.window_seconds),
        picture=visit.session.remember(
            ("picture", spec.name, plan_view.window),
            _PROMISE_SECONDS,
            lambda: draw(plan_view, str(spec.policy.as_json()["epsilon"])),
        ),
        needed=draw_needed(spec, plan_view.remedies) if not plan_view.partitions else "",
        has_png=can_draw_png(),
        idle=idle_share(plan_view),
        listing=listing,
        promised={line.ptk: _promised(visit, line) for line in listing.rows},
        before=before,
        before_begins=window_begins(before.before.window, spec.window_seconds)
        if before is not None
        else "",
        most=_MOST_TOLD,
    )


def plan_csv(visit: Visit) -> Response:
    """All lines of the newest plan."""
    plan_view = visit.store.plan(visit.asked("stream"))
    if plan_view is None:
        raise _no_plan()
    given = {line.ptk: line for line in plan_view.surplus}
    columns = (
        "ptk",
        "epsilon",
        "samples",
        "share_of_window",
        "target",
        "share_of_budget",
        "partitions",
        "epsilon_used",
        "samples_used",
    )
    rows = (
        (
            line.ptk,
            line.epsilon,
            line.samples,
            line.share,
            line.target,
            line.used,
            " ".join(str(k + 1) for k in line.partitions),
            given[line.ptk].epsilon if line.ptk in given else line.epsilon,
            given[line.ptk].samples if line.ptk in given else line.samples,
        )
        for line in plan_view.lines
    )
    return csv_file(f"plan-{plan_view.stream}-{plan_view.window}", columns, rows)


def plan_svg(visit: Visit) -> Response:
    """The picture of the newest plan, with its colours in it."""
    stream, picture = _picture(visit)
    return Response(picture, media_type="image/svg+xml", headers=attachment(f"plan-{stream}.svg"))


def plan_png(visit: Visit) -> Response:
    """The same picture for programs that take no SVG."""
    stream, picture = _picture(visit)
    return Response(
        png_of(picture), media_type="image/png", headers=attachment(f"plan-{stream}.png")
    )


def _picture(visit: Visit) -> tuple[str, str]:
    stream = visit.asked("stream")
    picture = visit.store.plan_picture(stream)
    if picture is None:
        raise _no_plan()
    return stream, picture


def _no_plan() -> Refused:
    return Refused("PLAN_UNKNOWN", "this stream has no plan yet: it is made when a window runs")


def chosen_stream(visit: Visit, streams: list[StreamSpec]) -> StreamSpec:
    """The stream that was asked for, or the first."""
    wanted = visit.asked("stream")
    return next((stream for stream in streams if stream.name == wanted), None) or (
        visit.store.stream(wanted) if wanted else streams[0]
    )


def newest_plan(visit: Visit, stream: str) -> PlanView | None:
    """The newest plan.

    It may be long, and changes with the steps of the newest cycle alone, so that is asked for
    first.
    """
    remember = visit.session.remember
    cycles = remember(
        ("cycle", stream),
        _FRESH_SECONDS,
        lambda: visit.store.cycles(stream, newest=1, most_trained=0),
    )
    step = tuple((cycle.window, cycle.status, cycle.steps) for cycle in cycles)
    return remember(("plan", stream, step), _PROMISE_SECONDS, lambda: visit.store.plan(stream))


def _left_out(visit: Visit, stream: str) -> list[PtkView]:
    """The first PTKs of each fate that keeps one from training."""

    def read() -> list[PtkView]:
        return [
            ptk
            for fate in _LEFT_OUT
            for ptk in visit.store.ptks(stream, status=fate, limit=_MOST_TOLD + 1)
        ]

    return visit.session.remember(("left out", stream), _FRESH_SECONDS, read)


def _before(visit: Visit, spec: StreamSpec, now: PlanView) -> PlanChanges | None:
    """The difference to the plan of the window before, or of one shortly before that."""

    def read() -> PlanChanges | None:
        for window in range(now.window - 1, now.window - 1 - _STEPS_BACK, -1):
            plan_view = visit.store.plan(spec.name, window=window)
            if plan_view is not None:
                return changes(plan_view, now)
        return None

    return visit.session.remember(("changes", spec.name, now.window), _PROMISE_SECONDS, read)


def _promised(visit: Visit, line: PlanLine) -> float | None:
    """The loss that the samples keep, as the profile says."""

    def read() -> float | None:
        try:
            told = visit.store.profile(line.ptk).promised
        except SageError:
            # Retired since, or not the visitor's to see.
            return None
        return float(told) if told else None

    return visit.session.remember(("promise", line.ptk, line.target), _PROMISE_SECONDS, read)


PAGES = (
    Page(path="plan", view=plan, label="Plan"),
    Page(path="plan.csv", view=plan_csv),
    Page(path="plan.svg", view=plan_svg),
    Page(path="plan.png", view=plan_png),
)
