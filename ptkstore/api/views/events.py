"""What happened in a store, who was not told of it, and who asked for what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ptkstore.api.views.view import View

__all__ = [
    "AuditPage",
    "AuditView",
    "CallerView",
    "DeliveryPage",
    "DeliveryView",
    "EventPage",
    "EventView",
]


@dataclass(frozen=True)
class EventView(View):
    """Something that happened, in order."""

    id: int
    kind: str
    subject: str
    body: dict[str, Any]
    at_ms: int | None


@dataclass(frozen=True)
class EventPage(View):
    """Some events, newest first; ``next_page_token`` is empty after the last page. A search goes
    back step by step: a page may have few events, or none, and yet not be the last.
    """

    events: tuple[EventView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class DeliveryView(View):
    """A notification that did not arrive: late, and tried again at ``next_attempt_ms``, or given up
    (``dead``).
    """

    id: str
    ptk: str
    rpc_endpoint: str
    version: int
    attempts: int
    dead: bool
    reason: str
    next_attempt_ms: int | None


@dataclass(frozen=True)
class DeliveryPage(View):
    """Some notifications that did not arrive, oldest first; ``next_page_token`` is empty after the
    last page.
    """

    deliveries: tuple[DeliveryView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class AuditView(View):
    """Who asked a server for what, when, and what was decided: ALLOWED, DENIED or the reason of an
    error; and how often it was, up to then, since the entry before that says the same.
    """

    number: int
    at_ms: int | None
    who: str
    what: str
    subject: str
    outcome: str
    times: int = 1


@dataclass(frozen=True)
class AuditPage(View):
    """Some entries of the audit log, newest first; ``next_page_token`` is empty after the last
    page. A search goes back step by step: a page may have few entries, or none, and yet not be the
    last.
    """

    entries: tuple[AuditView, ...]
    next_page_token: str = ""


@dataclass(frozen=True)
class CallerView(View):
    """Who the store takes you for. Empty ``streams`` and ``ptks`` mean all of them."""

    name: str
    roles: tuple[str, ...]
    streams: tuple[str, ...] = ()
    ptks: tuple[str, ...] = ()
