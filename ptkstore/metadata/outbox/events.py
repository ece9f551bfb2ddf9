"""The outbox: events written with the change they tell of, and how far each subscriber is.

Reason: EVENT_UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import sqlalchemy as sa

from ptklib.errors import InvalidInput, Refused
from ptkstore.metadata.checks import (
    check_endpoint,
    check_json,
    check_name,
    check_whole,
    check_whole_or_none,
)
from ptkstore.metadata.rows import Delivery, Event
from ptkstore.metadata.searching import containing, first_looked_at
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import deliveries, events, ptks

__all__ = ["RESULT_KINDS", "Events", "ResultEvents"]

# Events that tell what a window came to.
RESULT_KINDS = frozenset(
    (
        "plan.refused",
        "ptk.failed",
        "ptk.not_profiled",
        "ptk.not_shown",
        "ptk.profiled",
        "ptk.state",
        "window.short",
    )
)


class Events:
    """The outbox.

    Ids grow in the order of the commits, so nobody who read up to one ever misses a smaller one.
    """

    # Kinds that this transaction must not tell.
    _barred: ClassVar[frozenset[str]] = RESULT_KINDS

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def add(self, kind: str, subject: str, body: object, *, at_ms: int | None = None) -> int:
        """Add an event and return its id. ``subject`` is what it is about (a PTK's name): the order
        of the events of one subject is kept all the way to the subscribers. `RESULT_KINDS` are
        refused but in a transaction for results.
        """
        return self._session.insert(events, **self._values(kind, subject, body, at_ms))

    def add_all(self, told: Iterable[tuple[str, str, object]], *, at_ms: int | None = None) -> None:
        """`add` for several at once: (kind, subject, body) in their order."""
        self._session.insert_all(events, [self._values(*event, at_ms) for event in told])

    def after(
        self,
        event: int,
        limit: int | None = None,
        *,
        streams: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> tuple[Event, ...]:
        """The events after that id, oldest first; 0 for all.

        ``streams`` leaves only events about these streams and their PTKs, ``names`` only those
        about these PTKs.
        """
        query = (
            sa.select(events).where(events.c.id > check_whole(event, "event")).order_by(events.c.id)
        )
        return tuple(
            Event(**row) for row in self._session.all(query.where(*_about(streams, names)), limit)
        )

    def search(
        self,
        *,
        find: str = "",
        limit: int | None = None,
        before: int | None = None,
        streams: Iterable[str] = (),
        names: Iterable[str] = (),
    ) -> tuple[tuple[Event, ...], int]:
        """The events with all words of ``find`` in their kind or subject, newest first, as `after`
        limits them; and the id that the search went back to, 1 or less at the first event.
        """
        first = first_looked_at(before, self.newest())
        query = sa.select(events).where(events.c.id >= first).order_by(events.c.id.desc())
        if before is not None:
            query = query.where(events.c.id < before)
        query = query.where(
            *_about(streams, names), *containing(find, (events.c.kind, events.c.subject))
        )
        return tuple(Event(**row) for row in self._session.all(query, limit)), first

    def mark_delivered(self, subscriber: str, event: int, *, at_ms: int | None = None) -> None:
        """Write that a subscriber was handed every event up to that one. The mark never goes back.
        EVENT_UNKNOWN when there is no such event.
        """
        check_endpoint(subscriber, "a subscriber")
        check_whole_or_none(at_ms, "at_ms")
        if (
            self._session.one(
                sa.select(events.c.id).where(events.c.id == check_whole(event, "event"))
            )
            is None
        ):
            raise Refused("EVENT_UNKNOWN", f"there is no event {event}", event=event)
        here = deliveries.c.subscriber == subscriber
        if self._session.one(sa.select(deliveries).where(here)) is None:
            self._session.insert(deliveries, subscriber=subscriber, event=event, at_ms=at_ms)
        else:
            forward = deliveries.update().where(here, deliveries.c.event < event)
            self._session.execute(forward.values(event=event, at_ms=at_ms))

    def delivered(self, subscriber: str) -> int:
        """The id up to which a subscriber was handed everything; 0 for nothing yet."""
        return self._session.number(
            sa.select(deliveries.c.event).where(deliveries.c.subscriber == subscriber)
        )

    def deliveries(
        self, *, limit: int | None = None, after: str | None = None
    ) -> tuple[Delivery, ...]:
        """How far every subscriber is, by name; ``after`` is the last name of the page before."""
        page = self._session.page(sa.select(deliveries), deliveries.c.subscriber, after, limit)
        return tuple(Delivery(**row) for row in page)

    def newest(self) -> int:
        """The id of the newest event; 0 when there is none."""
        return self._session.number(sa.select(sa.func.max(events.c.id)))

    def _values(
        self, kind: str, subject: str, body: object, at_ms: int | None
    ) -> dict[str, object]:
        if kind in self._barred:
            raise InvalidInput(
                "VALUE_INVALID", f"{kind!r} tells a result: only a transaction for results may"
            )
        return {
            "kind": check_name(kind, "an event's kind"),
            "subject": check_name(subject, "an event's subject"),
            "body": check_json(body, "an event's body"),
            "at_ms": check_whole_or_none(at_ms, "at_ms"),
        }


class ResultEvents(Events):
    """The outbox in a transaction for results, which may tell of them."""

    _barred = frozenset()


def _about(streams: Iterable[str], names: Iterable[str]) -> list[sa.ColumnElement[bool]]:
    """What events about these streams and their PTKs, or about these PTKs, fulfil."""
    wanted, named = sorted(streams), sorted(names)
    about_ptk = events.c.kind.like("ptk.%")
    conditions: list[sa.ColumnElement[bool]] = []
    if wanted:
        theirs = sa.select(ptks.c.name).where(ptks.c.stream.in_(wanted))
        conditions.append(
            sa.or_(
                sa.and_(about_ptk, events.c.subject.in_(theirs)),
                sa.and_(sa.not_(about_ptk), events.c.subject.in_(wanted)),
            )
        )
    if named:
        conditions.append(sa.and_(about_ptk, events.c.subject.in_(named)))
    return conditions
