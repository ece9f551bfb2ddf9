"""EventService: what happened, who was told of it, and who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.client import Store
from ptkstore.metadata import Transaction
from ptkstore.metadata.notifications import Notification
from ptkstore.rpc.auditing import Auditor
from ptkstore.rpc.callers import Caller
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.hub import Hub
from ptkstore.rpc.messages import event_message, moment
from ptkstore.rpc.operations import number_of
from ptkstore.rpc.pages import DEFAULT_SIZE, MAX_SIZE, Page
from ptkstore.v1 import operation_pb2
from ptkstore.views import EventView

__all__ = ["Events"]


class Events:
    """See the contract."""

    def __init__(self, store: Store, hub: Hub, auditor: Auditor, deliver: Callable[[], None]) -> None:
        """``deliver`` makes the deliverer look again."""
        self._store = store
        self._hub = hub
        self._auditor = auditor
        self._deliver = deliver

    def list_events(self, request: Any, call: Call) -> operation_pb2.ListEventsResponse:
        """See the contract."""
        if request.page_size < 0 or request.after < 0:
            raise InvalidInput("PAGE_INVALID", "page_size and after must not be negative")
        found = self._seen(call.caller, request.after, min(request.page_size or DEFAULT_SIZE, MAX_SIZE))
        return operation_pb2.ListEventsResponse(events=[event_message(one) for one in found])

    def watch_events(self, request: Any, call: Call) -> Iterator[operation_pb2.WatchEventsResponse]:
        """See the contract."""
        after = max(0, request.after)
        with self._hub.watching(call.context) as looks:
            for _ in looks:
                while some := self._seen(call.caller, after, MAX_SIZE):
                    for one in some:
                        yield operation_pb2.WatchEventsResponse(event=event_message(one))
                    after = some[-1].id

    def get_caller(self, _request: Any, call: Call) -> operation_pb2.GetCallerResponse:
        """See the contract."""
        who = call.caller
        limits = {"streams": sorted(who.streams), "ptks": sorted(who.ptks)}
        found = operation_pb2.Caller(name=who.name, roles=sorted(who.roles), **limits)
        return operation_pb2.GetCallerResponse(caller=found)

    def list_deliveries(self, request: Any, _call: Call) -> operation_pb2.ListDeliveriesResponse:
        """See the contract."""
        page = Page(f"deliveries {request.dead_only}", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            status = "DEAD" if request.dead_only else None
            found = tx.notifications.list(status=status, limit=page.size + 1, after=page.after)
            part, token = page.cut(found, lambda one: one.id)
            deliveries = [_delivery_message(tx, one) for one in part]
        return operation_pb2.ListDeliveriesResponse(deliveries=deliveries, next_page_token=token)

    def retry_delivery(self, request: Any, call: Call) -> operation_pb2.RetryDeliveryResponse:
        """See the contract."""
        now_ms = self._store.home.now_ms()
        with self._store.home.metadata.write() as tx:
            one = tx.notifications.get(number_of(request.id, "a delivery"))
            # Its attempts count from the start.
            one = tx.notifications.put(
                one.subscription, one.version, attempts=0, status="LATE", reason=one.reason, due_ms=now_ms
            )
            answer = operation_pb2.RetryDeliveryResponse(delivery=_delivery_message(tx, one))
            call.once.keep(tx, answer)
        self._deliver()
        return answer

    def list_audit_entries(self, request: Any, _call: Call) -> operation_pb2.ListAuditEntriesResponse:
        """See the contract."""
        self._auditor.flush()
        page = Page("audit", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            found = tx.audit.list(limit=page.size + 1, before=page.after)
        part, token = page.cut(found, lambda one: one.id)
        entries = [
            operation_pb2.AuditEntry(
                number=one.id,
                time=moment(one.at_ms),
                who=one.who,
                what=one.what,
                subject=one.subject,
                outcome=one.outcome,
            )
            for one in part
        ]
        return operation_pb2.ListAuditEntriesResponse(entries=entries, next_page_token=token)

    def _seen(self, caller: Caller, after: int, limit: int) -> list[EventView]:
        """The next events that a caller may see: they are about a PTK or a stream."""
        with self._store.home.metadata.read() as tx:
            return [
                EventView(one.id, one.kind, one.subject, dict(one.body), one.at_ms)
                for one in tx.events.after(after, limit, streams=caller.streams, names=caller.ptks)
            ]


def _delivery_message(tx: Transaction, one: Notification) -> operation_pb2.Delivery:
    (subscription,) = tx.subscriptions.list(limit=1, after=one.subscription - 1)
    return operation_pb2.Delivery(
        id=str(one.id),
        ptk=tx.ptks.get(subscription.ptk).name,
        rpc_endpoint=subscription.endpoint,
        version=one.version,
        attempts=one.attempts,
        dead=one.status == "DEAD",
        reason=one.reason,
        next_attempt_time=None if one.status == "DEAD" else moment(one.due_ms),
    )
