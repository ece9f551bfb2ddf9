"""What happened, oldest first after an event that somebody knows, or searched from the newest.

``streams`` and ``names`` are those that a caller is limited to; empty for no limit. Reasons:
PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from collections.abc import Iterable

from ptkstore.api.paging import PageRequest
from ptkstore.api.views import EventPage, EventView
from ptkstore.engine.history.searching import further
from ptkstore.engine.parts import Parts
from ptkstore.metadata import rows

__all__ = ["events_after", "newest_events"]


def events_after(
    parts: Parts, after: int, limit: int, *, streams: Iterable[str] = (), names: Iterable[str] = ()
) -> list[EventView]:
    """The next events, oldest first."""
    with parts.metadata.read() as tx:
        events = tx.events.after(after, limit, streams=streams, names=names)
    return [_view(row) for row in events]


def newest_events(
    parts: Parts,
    *,
    find: str,
    limit: int,
    page_token: str,
    streams: Iterable[str] = (),
    names: Iterable[str] = (),
) -> EventPage:
    """Events with all words of ``find``, newest first."""
    page = PageRequest(f"events {find}", limit, page_token)
    with parts.metadata.read() as tx:
        events, first = tx.events.search(
            find=find, limit=page.size + 1, before=page.after, streams=streams, names=names
        )
    part, token = page.cut(events, lambda row: row.id)
    return EventPage(tuple(_view(row) for row in part), further(page, token, first))


def _view(row: rows.Event) -> EventView:
    return EventView(row.id, row.kind, row.subject, dict(row.body), row.at_ms)
