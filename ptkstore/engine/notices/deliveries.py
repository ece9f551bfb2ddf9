"""Notifications that did not arrive, for people and for whoever tries them again.

A subscription has a mark: the version up to which it was told. A version beyond it that did not
arrive is LATE, with the time at which it is due again, or DEAD when it was given up. Reasons:
ID_INVALID, DELIVERY_UNKNOWN, PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

from dataclasses import dataclass

from ptkstore.api.paging import PageRequest
from ptkstore.api.references import number_of
from ptkstore.api.times import public_ms
from ptkstore.api.views import DeliveryPage, DeliveryView, StateView
from ptkstore.engine.catalogue.ptk_views import state_view
from ptkstore.engine.parts import Parts
from ptkstore.engine.within import Within, nothing
from ptkstore.metadata import Metadata, Transaction, rows
from ptkstore.metadata.outbox.notifications import Notification

__all__ = ["Failure", "deliveries", "due_times", "mark_failed", "mark_told", "next_due", "retry"]


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A state that did not arrive: how often it was tried, why, and when it is due again. ``dead``
    once it is given up.
    """

    attempts: int
    reason: str
    due_ms: int
    dead: bool


def deliveries(parts: Parts, *, dead_only: bool, limit: int, page_token: str) -> DeliveryPage:
    """Notifications that are late or given up, oldest first."""
    page = PageRequest(f"deliveries {dead_only}", limit, page_token)
    with parts.metadata.read() as tx:
        notifications = tx.notifications.list(
            status="DEAD" if dead_only else None, limit=page.size + 1, after=page.after
        )
        part, token = page.cut(notifications, lambda row: row.id)
        return DeliveryPage(tuple(_view(tx, row) for row in part), token)


def retry(parts: Parts, delivery: str, within: Within[DeliveryView] = nothing) -> DeliveryView:
    """Make a notification due now; its attempts count from the start. Refused: DELIVERY_UNKNOWN."""
    with parts.metadata.write() as tx:
        given_up = tx.notifications.get(number_of(delivery, "a delivery"))
        again = tx.notifications.put(
            given_up.subscription,
            given_up.version,
            attempts=0,
            status="LATE",
            reason=given_up.reason,
            due_ms=parts.now_ms(),
        )
        view = _view(tx, again)
        within(tx, view)
        return view


def due_times(metadata: Metadata, now_ms: int) -> list[tuple[rows.Subscription, int | None]]:
    """All subscriptions, each with the time at which it is to be told of something: of a new state
    now, of one that did not arrive when that is due; None for nothing.
    """
    with metadata.read() as tx:
        subscriptions = tx.subscriptions.list()
        newest = tx.states.newest({row.ptk for row in subscriptions})
        late: dict[int, int] = {}
        for waiting in tx.notifications.list(status="LATE"):
            known = late.get(waiting.subscription, waiting.due_ms)
            late[waiting.subscription] = min(known, waiting.due_ms)
        marks = tx.notifications.marks()

    def due_ms(row: rows.Subscription) -> int | None:
        fresh = row.ptk in newest and newest[row.ptk].version > marks.get(row.id, 0)
        return late.get(row.id, now_ms if fresh else None)

    return [(row, due_ms(row)) for row in subscriptions]


def next_due(
    metadata: Metadata, subscription: rows.Subscription, now_ms: int
) -> tuple[StateView, int] | None:
    """The oldest state that a subscription is to be told of now, and how often that was tried."""
    with metadata.read() as tx:
        late = [
            row
            for row in tx.notifications.list(subscription=subscription.id)
            if row.status == "LATE"
        ]
        mark = tx.notifications.mark(subscription.id)
        if mark is None:
            return None  # it ended meanwhile
        if late:
            first = min(late, key=lambda row: row.version)
            if first.due_ms > now_ms:
                return None
            version, attempts = first.version, first.attempts
        else:
            fresh = tx.states.standing(subscription.ptk, limit=1, after=mark)
            if not fresh:
                return None
            version, attempts = fresh[0].version, 0
        state = tx.states.get(subscription.ptk, version)
        name = tx.ptks.get(subscription.ptk).name
    return state_view(name, state), attempts


def mark_told(metadata: Metadata, subscription: int, version: int) -> bool:
    """A state arrived. False where the subscription ended meanwhile."""
    with metadata.write() as tx:
        if tx.notifications.mark(subscription) is None:
            return False
        tx.notifications.arrived(subscription, version)
        tx.notifications.set_mark(subscription, version)
        return True


def mark_failed(metadata: Metadata, subscription: int, version: int, failure: Failure) -> bool:
    """A state did not arrive; one that is given up makes room for the next version. False where
    the subscription ended meanwhile.
    """
    with metadata.write() as tx:
        if tx.notifications.mark(subscription) is None:
            return False
        tx.notifications.put(
            subscription,
            version,
            attempts=failure.attempts,
            status="DEAD" if failure.dead else "LATE",
            reason=failure.reason,
            due_ms=failure.due_ms,
        )
        if failure.dead:
            tx.notifications.set_mark(subscription, version)
        return True


def _view(tx: Transaction, notification: Notification) -> DeliveryView:
    """A notification that did not arrive, and whom it is for."""
    (subscription,) = tx.subscriptions.list(limit=1, after=notification.subscription - 1)
    dead = notification.status == "DEAD"
    return DeliveryView(
        id=str(notification.id),
        ptk=tx.ptks.get(subscription.ptk).name,
        rpc_endpoint=subscription.endpoint,
        version=notification.version,
        attempts=notification.attempts,
        dead=dead,
        reason=notification.reason,
        # It is tried by then. To the second it would tell when the state was made.
        next_attempt_ms=None if dead else public_ms(notification.due_ms),
    )
