"""Events: what happened to streams, plans and PTKs, searched and turned from the newest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from starlette.responses import Response

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import EventView
from ptkstore.console.page.listing import every
from ptkstore.console.page.page import Page, Visit
from ptkstore.console.page.spreadsheet import csv_file
from ptkstore.console.page.wording import window_begins

__all__ = ["PAGES", "EventLine", "event_line"]

_ROWS = 50
_CSV_ROWS = 10_000
_PAGE = 1000
# What is worth a place in a line, in this order.
_TOLD = (
    "version",
    "window",
    "epsilon",
    "samples",
    "nearest_target",
    "planned_epsilon",
    "planned_samples",
    "trainings",
)
_MOST_TEXT = 160


@dataclass(frozen=True)
class EventLine:
    """One event as the page shows it."""

    kind: str
    subject: str
    details: str
    at_ms: int | None

    @property
    def page(self) -> str:
        """Where the subject is shown; empty where nowhere."""
        return {"ptk": "ptk", "stream": "plan"}.get(self.kind.partition(".")[0], "")


def event_line(event: EventView, spec: StreamSpec | None = None) -> EventLine:
    """An event for people."""
    parts = [str(event.body["reason"]).rstrip(".")] if _says(event.body, "reason") else []
    parts += [
        f"{name.replace('_', ' ')} {_text(name, event.body[name], spec)}"
        for name in _TOLD
        if _says(event.body, name)
    ]
    text = "; ".join(parts)
    text = text[:1].upper() + text[1:]
    return EventLine(
        event.kind,
        event.subject,
        text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + "…",
        event.at_ms,
    )


def events(visit: Visit) -> Response:
    """The page."""
    find, token = visit.searched(), visit.asked("from")
    page = visit.store.newest_events(find=find, limit=_ROWS, page_token=token)
    query = {
        name: text for name, text in (("stream", visit.asked("stream")), ("find", find)) if text
    }
    return visit.render(
        "events.html",
        events=[event_line(event) for event in page.events],
        token=page.next_page_token,
        first=not token,
        find=find,
        query=query,
    )


def events_csv(visit: Visit) -> Response:
    """The newest events that match, up to 10,000."""
    columns = ("number", "time_ms", "kind", "subject", "details")
    find = visit.searched()

    def page_of(token: str) -> tuple[Sequence[EventView], str]:
        page = visit.store.newest_events(find=find, limit=_PAGE, page_token=token)
        return page.events, page.next_page_token

    rows = (
        (event.id, event.at_ms, event.kind, event.subject, event_line(event).details)
        for event in islice(every(page_of), _CSV_ROWS)
    )
    return csv_file("events", columns, rows)


def _says(body: dict[str, Any], name: str) -> bool:
    return isinstance(body.get(name), str | int | float) and body[name] != ""


def _text(name: str, value: Any, spec: StreamSpec | None) -> str:
    if name == "window" and spec is not None and isinstance(value, int):
        return f"of {window_begins(value, spec.window_seconds)}"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


PAGES = (
    Page(path="events", view=events, under="operations"),
    Page(path="events.csv", view=events_csv),
)
