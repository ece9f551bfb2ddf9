"""EventService: what happened, who was told of it, and who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.client import Store
from ptkstore.rpc.auditing import Auditor
from ptkstore.rpc.callers import Caller
from ptkstore.rpc.dispatch import Call
from ptkstore.rpc.happenings import audit_page, delivery_page, event_page, event_view, retry
from ptkstore.rpc.hub import Hub
from ptkstore.rpc.messages import audit_message, delivery_message, event_message
from ptkstore.rpc.pages import DEFAULT_SIZE, MAX_SIZE
from ptkstore.rpc.permissions import CHANGING
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
        if request.newest_first:
            return self._newest(request, call.caller)
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
        with self._store.home.metadata.read() as tx:
            page = delivery_page(
                tx, dead_only=request.dead_only, limit=request.page_size, page_token=request.page_token
            )
        deliveries = [delivery_message(one) for one in page.deliveries]
        return operation_pb2.ListDeliveriesResponse(deliveries=deliveries, next_page_token=page.next_page_token)

    def retry_delivery(self, request: Any, call: Call) -> operation_pb2.RetryDeliveryResponse:
        """See the contract."""
        now_ms = self._store.home.now_ms()
        with self._store.home.metadata.write() as tx:
            again = retry(tx, request.id, now_ms=now_ms)
            answer = operation_pb2.RetryDeliveryResponse(delivery=delivery_message(again))
            call.once.keep(tx, answer)
        self._deliver()
        return answer

    def list_audit_entries(self, request: Any, _call: Call) -> operation_pb2.ListAuditEntriesResponse:
        """See the contract."""
        self._auditor.flush()
        with self._store.home.metadata.read() as tx:
            page = audit_page(
                tx,
                find=request.find,
                what=CHANGING if request.changes_only else (),
                limit=request.page_size,
                page_token=request.page_token,
            )
        entries = [audit_message(one) for one in page.entries]
        return operation_pb2.ListAuditEntriesResponse(entries=entries, next_page_token=page.next_page_token)

    def _newest(self, request: Any, caller: Caller) -> operation_pb2.ListEventsResponse:
        with self._store.home.metadata.read() as tx:
            page = event_page(
                tx,
                find=request.find,
                limit=request.page_size,
                page_token=request.page_token,
                streams=caller.streams,
                names=caller.ptks,
            )
        events = [event_message(one) for one in page.events]
        return operation_pb2.ListEventsResponse(events=events, next_page_token=page.next_page_token)

    def _seen(self, caller: Caller, after: int, limit: int) -> list[EventView]:
        """The next events that a caller may see: they are about a PTK or a stream."""
        with self._store.home.metadata.read() as tx:
            return [event_view(one) for one in tx.events.after(after, limit, streams=caller.streams, names=caller.ptks)]
