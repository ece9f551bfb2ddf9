"""EventService: what happened, who was told of it, and who did it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.api.paging import DEFAULT_SIZE, MAX_SIZE
from ptkstore.api.views import DeliveryView, EventView
from ptkstore.engine.history.audit_log import audit_entries
from ptkstore.engine.history.events import events_after, newest_events
from ptkstore.engine.notices import deliveries
from ptkstore.engine.parts import Parts
from ptkstore.metadata import Transaction
from ptkstore.rpc.feeds.hub import Hub
from ptkstore.rpc.gate.auditing import Auditor
from ptkstore.rpc.gate.dispatch import Call
from ptkstore.rpc.gate.identity import Caller
from ptkstore.v1 import operation_pb2
from ptkstore.wire.messages import audit_message, delivery_message, event_message

__all__ = ["EventService"]


class EventService:
    """See the contract."""

    def __init__(
        self, parts: Parts, hub: Hub, auditor: Auditor, deliver: Callable[[], None]
    ) -> None:
        """``deliver`` makes the deliverer look again."""
        self._parts = parts
        self._hub = hub
        self._auditor = auditor
        self._deliver = deliver

    def list_events(self, request: Any, call: Call) -> operation_pb2.ListEventsResponse:
        """See the contract."""
        if request.page_size < 0 or request.after < 0:
            raise InvalidInput("PAGE_INVALID", "page_size and after must not be negative")
        if request.newest_first:
            return self._newest(request, call.caller)
        events = self._seen(
            call.caller, request.after, min(request.page_size or DEFAULT_SIZE, MAX_SIZE)
        )
        return operation_pb2.ListEventsResponse(events=[event_message(event) for event in events])

    def watch_events(self, request: Any, call: Call) -> Iterator[operation_pb2.WatchEventsResponse]:
        """See the contract."""
        after = max(0, request.after)
        with self._hub.watching(call.who, call.context) as looks:
            for _ in looks:
                while some := self._seen(call.caller, after, MAX_SIZE):
                    for event in some:
                        yield operation_pb2.WatchEventsResponse(event=event_message(event))
                    after = some[-1].id

    def get_caller(self, _request: Any, call: Call) -> operation_pb2.GetCallerResponse:
        """See the contract."""
        who = call.caller
        limits = {"streams": sorted(who.streams), "ptks": sorted(who.ptks)}
        caller = operation_pb2.Caller(name=who.name, roles=sorted(who.roles), **limits)
        return operation_pb2.GetCallerResponse(caller=caller)

    def list_deliveries(self, request: Any, _call: Call) -> operation_pb2.ListDeliveriesResponse:
        """See the contract."""
        page = deliveries.deliveries(
            self._parts,
            dead_only=request.dead_only,
            limit=request.page_size,
            page_token=request.page_token,
        )
        return operation_pb2.ListDeliveriesResponse(
            deliveries=[delivery_message(view) for view in page.deliveries],
            next_page_token=page.next_page_token,
        )

    def retry_delivery(self, request: Any, call: Call) -> operation_pb2.RetryDeliveryResponse:
        """See the contract."""
        answer = operation_pb2.RetryDeliveryResponse()

        def within(tx: Transaction, view: DeliveryView) -> None:
            answer.delivery.CopyFrom(delivery_message(view))
            call.once.keep(tx, answer)

        deliveries.retry(self._parts, request.id, within)
        self._deliver()
        return answer

    def list_audit_entries(
        self, request: Any, _call: Call
    ) -> operation_pb2.ListAuditEntriesResponse:
        """See the contract."""
        self._auditor.flush()
        page = audit_entries(
            self._parts,
            find=request.find,
            changes_only=request.changes_only,
            limit=request.page_size,
            page_token=request.page_token,
        )
        entries = [audit_message(entry) for entry in page.entries]
        return operation_pb2.ListAuditEntriesResponse(
            entries=entries, next_page_token=page.next_page_token
        )

    def _newest(self, request: Any, caller: Caller) -> operation_pb2.ListEventsResponse:
        page = newest_events(
            self._parts,
            find=request.find,
            limit=request.page_size,
            page_token=request.page_token,
            streams=caller.streams,
            names=caller.ptks,
        )
        events = [event_message(event) for event in page.events]
        return operation_pb2.ListEventsResponse(events=events, next_page_token=page.next_page_token)

    def _seen(self, caller: Caller, after: int, limit: int) -> list[EventView]:
        """The next events that a caller may see: they are about a PTK or a stream."""
        return events_after(self._parts, after, limit, streams=caller.streams, names=caller.ptks)
