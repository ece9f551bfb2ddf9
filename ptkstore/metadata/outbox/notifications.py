"""How far each subscription was told of its PTK, and which notifications are late or given up.

Reason: DELIVERY_UNKNOWN.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from ptklib.errors import Refused
from ptkstore.metadata.checks import check_choice, check_text, check_whole
from ptkstore.metadata.session import MetadataSession
from ptkstore.metadata.tables import marks, notifications

__all__ = ["STATUSES", "Notification", "Notifications"]

STATUSES = ("LATE", "DEAD")


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification that did not arrive yet:

    LATE and tried again when it is due, or DEAD and tried no more.
    """

    id: int
    subscription: int
    version: int
    attempts: int
    status: str
    reason: str
    due_ms: int


class Notifications:
    """Marks and late notifications of the subscriptions."""

    def __init__(self, session: MetadataSession) -> None:
        """Work inside one transaction."""
        self._session = session

    def mark(self, subscription: int) -> int | None:
        """The version up to which a subscription was told, or None for one that was never
        marked.
        """
        row = self._session.one(
            sa.select(marks.c.version).where(marks.c.subscription == subscription)
        )
        return None if row is None else int(row["version"])

    def marks(self) -> dict[int, int]:
        """The marks of all subscriptions that have one."""
        return {
            row["subscription"]: int(row["version"]) for row in self._session.all(sa.select(marks))
        }

    def set_mark(self, subscription: int, version: int) -> None:
        """Move the mark of a subscription up. It never goes back."""
        check_whole(version, "version", 0)
        here = marks.c.subscription == subscription
        if self.mark(subscription) is None:
            self._session.insert(marks, subscription=subscription, version=version)
        else:
            self._session.execute(
                marks.update().where(here, marks.c.version < version).values(version=version)
            )

    def put(
        self,
        subscription: int,
        version: int,
        *,
        attempts: int,
        status: str,
        reason: str,
        due_ms: int,
    ) -> Notification:
        """Write how a notification stands that did not arrive."""
        check_choice(status, "status", STATUSES)
        values = {
            "attempts": attempts,
            "status": status,
            "reason": check_text(reason, "reason", 200),
            "due_ms": due_ms,
        }
        here = _is(subscription, version)
        if self._session.one(sa.select(notifications.c.id).where(here)) is None:
            self._session.insert(
                notifications, subscription=subscription, version=version, **values
            )
        else:
            self._session.execute(notifications.update().where(here).values(**values))
        row = self._session.one(sa.select(notifications).where(here))
        assert row is not None
        return Notification(**row)

    def get(self, notification: int) -> Notification:
        """The notification of that id, or DELIVERY_UNKNOWN: it may have arrived meanwhile."""
        row = self._session.one(sa.select(notifications).where(notifications.c.id == notification))
        if row is None:
            raise Refused(
                "DELIVERY_UNKNOWN",
                f"no delivery {notification} is late or given up",
                delivery=notification,
            )
        return Notification(**row)

    def arrived(self, subscription: int, version: int) -> None:
        """Nothing is late any more about this version."""
        self._session.execute(notifications.delete().where(_is(subscription, version)))

    def forget(self, subscription: int) -> None:
        """Drop everything about a subscription that ends."""
        self._session.execute(
            notifications.delete().where(notifications.c.subscription == subscription)
        )
        self._session.execute(marks.delete().where(marks.c.subscription == subscription))

    def list(
        self,
        *,
        subscription: int | None = None,
        status: str | None = None,
        limit: int | None = None,
        after: int | None = None,
    ) -> tuple[Notification, ...]:
        """Late and dead notifications by id; ``after`` is the last id of the page before."""
        query = sa.select(notifications)
        if subscription is not None:
            query = query.where(notifications.c.subscription == subscription)
        if status is not None:
            query = query.where(notifications.c.status == check_choice(status, "status", STATUSES))
        page = self._session.page(query, notifications.c.id, after, limit)
        return tuple(Notification(**row) for row in page)


def _is(subscription: int, version: int) -> sa.ColumnElement[bool]:
    return sa.and_(notifications.c.subscription == subscription, notifications.c.version == version)
