"""What was done, told and asked for behind a server: cycles, events, operations, deliveries, the
audit log; and the doctor. Reason: PAGE_INVALID, and those of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ptklib.errors import InvalidInput
from ptkstore.api import views
from ptkstore.client.channel import Connection
from ptkstore.client.requests import LARGEST, PAGE, fresh_id, page_size
from ptkstore.client.timeouts import LONG_SECONDS
from ptkstore.v1 import operation_pb2, operation_pb2_grpc
from ptkstore.wire import messages

__all__ = ["History"]


class History:
    """OperationService and EventService."""

    _connection: Connection

    @cached_property
    def _operations(self) -> operation_pb2_grpc.OperationServiceStub:
        return self._connection.stub(operation_pb2_grpc.OperationServiceStub)

    @cached_property
    def _events(self) -> operation_pb2_grpc.EventServiceStub:
        return self._connection.stub(operation_pb2_grpc.EventServiceStub)

    def cycles(
        self, stream: str, *, newest: int | None = None, most_trained: int | None = None
    ) -> list[views.CycleView]:
        """The cycles of a stream, or so many of the newest (up to 1,000); oldest first."""
        if newest is not None:
            request = operation_pb2.ListCyclesRequest(
                stream=stream, newest=min(newest, PAGE) if newest > 0 else -1
            )
            if most_trained is not None:
                request.most_trained = max(0, min(most_trained, LARGEST))
            return [
                messages.cycle_view(cycle)
                for cycle in self._connection.call(self._operations.ListCycles, request).cycles
            ]
        pages = self._connection.pages(
            self._operations.ListCycles, operation_pb2.ListCyclesRequest(stream=stream)
        )
        return [messages.cycle_view(cycle) for page in pages for cycle in page.cycles]

    def events(self, after: int = 0, limit: int = 100) -> list[views.EventView]:
        """What happened after that event, oldest first."""
        if limit < 1:
            raise InvalidInput(
                "PAGE_INVALID", f"limit must be a positive whole number, got {limit}"
            )
        event_views: list[views.EventView] = []
        while len(event_views) < limit:
            size = min(PAGE, limit - len(event_views))
            request = operation_pb2.ListEventsRequest(after=after, page_size=size)
            page = self._connection.call(self._events.ListEvents, request).events
            event_views += [messages.event_view(event) for event in page]
            if len(page) < size:
                break
            after = page[-1].id
        return event_views

    def newest_events(
        self, *, find: str = "", limit: int = 100, page_token: str = ""
    ) -> views.EventPage:
        """What happened, newest first: a page, and the token of the next.

        ``find`` are words of the kind or the subject.
        """
        request = operation_pb2.ListEventsRequest(
            newest_first=True, find=find, page_size=page_size(limit), page_token=page_token
        )
        page = self._connection.call(self._events.ListEvents, request)
        return views.EventPage(
            tuple(messages.event_view(event) for event in page.events), page.next_page_token
        )

    def operations(
        self, stream: str | None = None, *, limit: int = 100, page_token: str = ""
    ) -> views.OperationPage:
        """Long work that the server was asked for, newest first: a page, and the token of the
        next.
        """
        request = operation_pb2.ListOperationsRequest(
            stream=stream or "", page_size=page_size(limit), page_token=page_token
        )
        page = self._connection.call(self._operations.ListOperations, request)
        return views.OperationPage(
            tuple(messages.operation_view(operation) for operation in page.operations),
            page.next_page_token,
        )

    def deliveries(
        self, *, dead_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.DeliveryPage:
        """Notifications that are late or given up, oldest first: a page, and the token of the
        next.
        """
        request = operation_pb2.ListDeliveriesRequest(
            dead_only=dead_only, page_size=page_size(limit), page_token=page_token
        )
        page = self._connection.call(self._events.ListDeliveries, request)
        return views.DeliveryPage(
            tuple(messages.delivery_view(delivery) for delivery in page.deliveries),
            page.next_page_token,
        )

    def retry_delivery(self, delivery: str) -> views.DeliveryView:
        """Try a notification that was given up once more. Refused: DELIVERY_UNKNOWN."""
        request = operation_pb2.RetryDeliveryRequest(request_id=fresh_id(), id=delivery)
        return messages.delivery_view(
            self._connection.call(self._events.RetryDelivery, request).delivery
        )

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.AuditPage:
        """Who asked the server for what, newest first: a page, and the token of the next."""
        request = operation_pb2.ListAuditEntriesRequest(
            find=find, changes_only=changes_only, page_size=page_size(limit), page_token=page_token
        )
        page = self._connection.call(self._events.ListAuditEntries, request)
        return views.AuditPage(
            tuple(messages.audit_view(entry) for entry in page.entries), page.next_page_token
        )

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[views.Finding]:
        """Check the store, and search every file for canaries that were planted in its streams."""
        texts = [canary.encode() if isinstance(canary, str) else canary for canary in canaries]
        response = self._connection.call(
            self._operations.RunDoctor,
            operation_pb2.RunDoctorRequest(canaries=texts),
            timeout_seconds=LONG_SECONDS,
        )
        return [
            views.Finding(finding.level, finding.what, finding.detail)
            for finding in response.findings
        ]

    def caller(self) -> views.CallerView:
        """Who the server takes you for."""
        caller = self._connection.call(
            self._events.GetCaller, operation_pb2.GetCallerRequest()
        ).caller
        return views.CallerView(
            caller.name, tuple(caller.roles), tuple(caller.streams), tuple(caller.ptks)
        )
