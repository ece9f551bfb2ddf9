"""What was done, told and asked for, as people see it: operations, events, notifications that did not arrive, the audit log.

All of it is public: names, times, reasons and words of ours. Reasons: ID_INVALID, PAGE_INVALID, PAGE_TOKEN_INVALID, and
DELIVERY_UNKNOWN of the metadata.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from ptklib.errors import InvalidInput
from ptkstore.engine.cycle import cycle_views
from ptkstore.metadata import Transaction, rows
from ptkstore.metadata.notifications import Notification
from ptkstore.metadata.operations import OperationRow
from ptkstore.public_time import public_ms
from ptkstore.rpc.pages import Page
from ptkstore.views import (
    AuditPage,
    AuditView,
    CycleView,
    DeliveryPage,
    DeliveryView,
    EventPage,
    EventView,
    OperationPage,
    OperationView,
)

__all__ = [
    "audit_page",
    "delivery_page",
    "delivery_view",
    "event_page",
    "event_view",
    "number_of",
    "operation_page",
    "operation_view",
    "retry",
]


def number_of(text: str, what: str) -> int:
    """The number that an id is. Reason: ID_INVALID."""
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidInput("ID_INVALID", f"the id of {what} must be one that the server gave")
    return int(text)


def operation_view(tx: Transaction, row: OperationRow) -> OperationView:
    """An operation with the cycles of its windows as they are now."""
    return operation_views(tx, [row])[0]


def operation_views(tx: Transaction, rows: Sequence[OperationRow]) -> list[OperationView]:
    """Operations with their cycles, all of them at once."""
    windows: dict[str, set[int]] = {}
    for row in rows:
        windows.setdefault(row.stream, set()).update(row.windows)
    cycles = [one for stream, some in windows.items() for one in tx.cycles.of_windows(stream, some)]
    known = {(one.stream, one.window): one for one in cycle_views(tx, cycles)}
    return [_operation_view(row, known) for row in rows]


def _operation_view(row: OperationRow, known: Mapping[tuple[str, int], CycleView]) -> OperationView:
    cycles = tuple(known[row.stream, window] for window in row.windows if (row.stream, window) in known)
    return OperationView(
        id=str(row.id),
        kind=row.kind,
        stream=row.stream,
        status=row.status,
        progress=row.progress,
        cycles=cycles,
        reason=row.reason,
        message=row.message,
        created_ms=row.created_ms,
        ended_ms=row.ended_ms,
    )


def operation_page(
    tx: Transaction, stream: str, *, limit: int, page_token: str, sees: Callable[[str], bool] = lambda _stream: True
) -> OperationPage:
    """Operations of a stream (all if empty) that ``sees`` allows, newest first."""
    page = Page(f"operations {stream}", limit, page_token)
    found: list[OperationRow] = []
    before = page.after
    # Rows of other streams are passed over, so that a page is full unless it is the last.
    while len(found) <= page.size:
        rows = tx.operations.list(stream or None, limit=page.size + 1, before=before)
        found += [row for row in rows if sees(row.stream)]
        if len(rows) <= page.size:
            break
        before = rows[-1].id
    part, token = page.cut(found, lambda row: row.id)
    return OperationPage(tuple(operation_views(tx, part)), token)


def delivery_view(tx: Transaction, one: Notification) -> DeliveryView:
    """A notification that did not arrive, and whom it is for."""
    (subscription,) = tx.subscriptions.list(limit=1, after=one.subscription - 1)
    return DeliveryView(
        id=str(one.id),
        ptk=tx.ptks.get(subscription.ptk).name,
        rpc_endpoint=subscription.endpoint,
        version=one.version,
        attempts=one.attempts,
        dead=one.status == "DEAD",
        reason=one.reason,
        # It is tried by then. To the second it would tell when the state was made.
        next_attempt_ms=None if one.status == "DEAD" else public_ms(one.due_ms),
    )


def delivery_page(tx: Transaction, *, dead_only: bool, limit: int, page_token: str) -> DeliveryPage:
    """Notifications that are late or given up, oldest first."""
    page = Page(f"deliveries {dead_only}", limit, page_token)
    found = tx.notifications.list(status="DEAD" if dead_only else None, limit=page.size + 1, after=page.after)
    part, token = page.cut(found, lambda one: one.id)
    return DeliveryPage(tuple(delivery_view(tx, one) for one in part), token)


def retry(tx: Transaction, delivery: str, *, now_ms: int) -> DeliveryView:
    """Make a notification due now; its attempts count from the start."""
    one = tx.notifications.get(number_of(delivery, "a delivery"))
    again = tx.notifications.put(
        one.subscription, one.version, attempts=0, status="LATE", reason=one.reason, due_ms=now_ms
    )
    return delivery_view(tx, again)


def audit_page(tx: Transaction, *, find: str, what: Sequence[str], limit: int, page_token: str) -> AuditPage:
    """Entries of the audit log with all words of ``find`` about one of ``what`` (all if empty), newest first."""
    page = Page(f"audit {bool(what)} {find}", limit, page_token)
    found, first = tx.audit.search(find=find, what=what, limit=page.size + 1, before=page.after)
    part, token = page.cut(found, lambda one: one.id)
    entries = (AuditView(one.id, one.at_ms, one.who, one.what, one.subject, one.outcome, one.times) for one in part)
    return AuditPage(tuple(entries), _further(page, token, first))


def event_view(one: rows.Event) -> EventView:
    """Something that happened."""
    return EventView(one.id, one.kind, one.subject, dict(one.body), one.at_ms)


def event_page(
    tx: Transaction,
    *,
    find: str,
    limit: int,
    page_token: str,
    streams: Iterable[str] = (),
    names: Iterable[str] = (),
) -> EventPage:
    """Events with all words of ``find``, newest first, about these streams and PTKs if there are any."""
    page = Page(f"events {find}", limit, page_token)
    found, first = tx.events.search(find=find, limit=page.size + 1, before=page.after, streams=streams, names=names)
    part, token = page.cut(found, lambda one: one.id)
    events = (event_view(one) for one in part)
    return EventPage(tuple(events), _further(page, token, first))


def _further(page: Page, token: str, first: int) -> str:
    """The token of the next page: after the rows of this one, else further back than the search went."""
    return token or (page.token(first) if first > 1 else "")
