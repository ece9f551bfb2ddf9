"""Operations: what each window went through, step by step as the steps are written, and running the
windows that are due.

Reason: TIME_INVALID.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from ptklib.encoding.error_place import kind_of
from ptklib.errors import InvalidInput, SageError
from ptkstore.api.moments import millis_of
from ptkstore.api.store import Store
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import CycleView, OperationView, TrainedLine
from ptkstore.console.page.faults import fault_of
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.streaming import StreamedEvent, tell
from ptkstore.console.page.wording import window_begins
from ptkstore.console.pages.events import EventLine, event_line

__all__ = ["PAGES", "STEPS", "CycleLine", "cycle_line"]

_LOG = logging.getLogger(__name__)
_FRESH_SECONDS = 1.0
_SHOWN = 6
_MOST_SHOWN = 60
_MOST_TRAINED = 25
_OPERATIONS = 5
_EVENTS = 8
_LOOK_SECONDS = 1.0
# A stream on which nothing runs is looked at less often: what is asked of a server is in its audit
# log.
_IDLE_LOOKS = 4
# What is wrong with a request is known by then; the windows go on in the background.
_PATIENCE_SECONDS = 2.0
STEPS = {
    "sealed": "blocks are sealed, and each publishes its one DP count",
    "profiled": "PTKs that need one get a profile",
    "planned": "who trains, with which epsilon, on how many samples",
    "reserved": "the ledger holds the budget of the plan",
    "trained": "each PTK is trained on its slices; what was begun stays spent",
    "published": "the states are in the lake",
    "notified": "subscribers are told",
    "expired": "the keys of the blocks are destroyed: the raw records are gone",
}


@dataclass(frozen=True)
class StepLine:
    """A step of a window.

    ``state``: done, bad (done, with less than it should have), now, or empty for one to come.
    """

    name: str
    what: str
    state: str


@dataclass(frozen=True)
class CycleLine:
    """A window as the page shows it."""

    begins: str
    status: str
    counted: bool
    dp_records: int
    plan_status: str
    published: int
    lost: int
    steps: tuple[StepLine, ...]
    trained: tuple[TrainedLine, ...]
    trained_count: int
    shortfall: str
    changes: tuple[str, ...]


def cycle_line(cycle: CycleView, window_seconds: int) -> CycleLine:
    """A cycle for people."""
    counts = cycle.outcomes
    ahead = [name for name in STEPS if name not in cycle.steps]
    now = ahead[0] if ahead and cycle.status == "RUNNING" else ""
    bad = _bad_steps(cycle)
    return CycleLine(
        begins=window_begins(cycle.window, window_seconds),
        status=cycle.status,
        counted="sealed" in cycle.steps,
        dp_records=cycle.dp_records,
        plan_status=cycle.plan_status,
        published=counts.get("PUBLISHED", 0),
        lost=counts.get("TRAIN_LOST", 0) + counts.get("TRAIN_FAILED", 0),
        steps=tuple(
            StepLine(name, what, _step_state(name, cycle.steps, bad, now))
            for name, what in STEPS.items()
        ),
        trained=cycle.trained,
        trained_count=sum(counts.values()),
        shortfall=cycle.shortfall,
        changes=cycle.changes,
    )


def _bad_steps(cycle: CycleView) -> set[str]:
    """Where a window fell short of what it should publish."""
    if not cycle.shortfall:
        return set()
    bad_steps = {"published"}
    if cycle.plan_status in ("SHORT", "INFEASIBLE", "KEPT"):
        bad_steps.add("planned")
    if cycle.outcomes.get("NOT_PROFILED"):
        bad_steps.add("profiled")
    if cycle.outcomes.keys() & {"TRAIN_LOST", "TRAIN_FAILED"} or bad_steps == {"published"}:
        bad_steps.add("trained")
    return bad_steps


def _step_state(name: str, done: Sequence[str], bad: set[str], now: str) -> str:
    if name in done:
        return "bad" if name in bad else "done"
    return "now" if name == now else ""


def operations(visit: Visit) -> Response:
    """The page of one stream; without a name, of the first."""
    return _page(visit, visit.asked("stream"))


def live(visit: Visit) -> Response:
    """Tells whenever the newest window has got further, or the server's work on the stream has."""
    stream = visit.store.stream(visit.asked("stream")).name

    def events(after: int) -> Iterator[StreamedEvent | None]:
        seen, looks = visit.asked("seen"), 0
        while True:
            if looks == 0:
                try:
                    cycles = visit.store.cycles(stream, newest=1, most_trained=0)
                    mark, body, running = _state(
                        cycles, visit.store.operations(stream, limit=1).operations
                    )
                except SageError:
                    # The browser asks again, and is told why if there is a reason.
                    return
                if mark != seen:
                    after, seen = after + 1, mark
                    yield StreamedEvent(after, "cycle", body)
                looks = 1 if running else _IDLE_LOOKS
            looks -= 1
            yield None

    return tell(visit, events, pause_seconds=_LOOK_SECONDS)


def run_windows(visit: Visit) -> Response:
    """Run what is complete.

    What is wrong is told beside the field; the work itself goes on behind the page.
    """
    stream, until = visit.form.get("stream", ""), visit.form.get("until", "").strip()
    try:
        until_ms = millis_of(until) if until else None
        work = _begin(visit.store, stream, until_ms)
        try:
            work.result(_PATIENCE_SECONDS)
        except NotYet:
            work.add_done_callback(_log)
    except InvalidInput as error:
        return _page(visit, stream, until=until, error=error)
    return visit.go("operations", stream=stream, began="1")


def _page(
    visit: Visit, name: str, *, until: str = "", error: InvalidInput | None = None
) -> Response:
    streams = visit.session.remember("streams", _FRESH_SECONDS, visit.store.streams)
    if not streams and not name:
        return visit.render("operations.html", streams=(), spec=None)
    spec = next((stream for stream in streams if stream.name == name), None) or (
        visit.store.stream(name) if name else streams[0]
    )
    shown = _shown(visit.asked("show"))
    cycle_views = visit.store.cycles(spec.name, newest=shown + 1, most_trained=_MOST_TRAINED)
    asked = visit.store.operations(spec.name, limit=_OPERATIONS).operations
    cycles = [cycle_line(cycle, spec.window_seconds) for cycle in reversed(cycle_views)]
    return visit.render(
        "operations.html",
        status=400 if error is not None else 200,
        streams=streams,
        spec=spec,
        cycles=cycles[:shown],
        more=min(_MOST_SHOWN, shown * 3) if len(cycles) > shown < _MOST_SHOWN else None,
        shown=shown,
        mark=_state(cycle_views[-1:], asked[:1])[0],
        operations=asked,
        events=_events(visit, spec),
        until=until,
        wrong=fault_of(error) if error is not None else None,
    )


def _events(visit: Visit, spec: StreamSpec) -> list[EventLine]:
    """The newest events. They are of all streams: a PTK's event names the PTK alone."""
    return [event_line(event, spec) for event in visit.store.newest_events(limit=_EVENTS).events]


def _shown(text: str) -> int:
    wanted = int(text) if text.isascii() and text.isdigit() and len(text) < 6 else _SHOWN
    return min(_MOST_SHOWN, max(1, wanted))


def _state(
    cycles: Sequence[CycleView], asked: Sequence[OperationView]
) -> tuple[str, dict[str, Any], bool]:
    """How far the newest window and the newest work are: a mark of it, what to tell of it, and
    whether something runs.
    """
    body = {
        "cycles": [
            {"window": cycle.window, "status": cycle.status, "steps": list(cycle.steps)}
            for cycle in cycles
        ],
        "operations": [
            {"id": operation.id, "status": operation.status, "progress": operation.progress}
            for operation in asked
        ],
    }
    mark = hashlib.sha256(json.dumps(body).encode()).hexdigest()[:16]
    states = [cycle.status for cycle in cycles] + [operation.status for operation in asked]
    return mark, body, "RUNNING" in states


def _begin(store: Store, stream: str, until_ms: int | None) -> Future[None]:
    """In a thread of its own: a window takes as long as it takes, and is taken up again if this
    process ends.
    """
    future: Future[None] = Future()

    def work() -> None:
        try:
            store.run(stream, until_ms=until_ms)
            future.set_result(None)
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="sage-console-windows", daemon=True).start()
    return future


def _log(work: Future[None]) -> None:
    """What failed after the page was answered. A server has it in the operation as well."""
    error = work.exception()
    if error is not None:
        _LOG.warning("running windows from the console failed: %s", kind_of(error))


PAGES = (
    Page(path="operations", view=operations, label="Operations"),
    Page(path="operations-live", view=live),
    Page(path="run-windows", view=run_windows, method="POST", role="operator", under="operations"),
)
