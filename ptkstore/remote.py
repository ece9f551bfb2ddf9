"""The SDK over the wire: the same methods, the same views and the same errors as a store in a directory.

``Store("host:port")`` makes one. Frames are brought to the stream's types and features are computed here; the server sees
batches on the way in and gives out states, whose digests are checked. Calls have deadlines, and are tried again while the
server is unavailable.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import check_name
from ptklib.state import State
from ptkstore.engine.finding import MAX_CONFIGS
from ptkstore.engine.ledger_map import COLUMNS, MOST_BLOCKS
from ptkstore.engine.what_if import Changes
from ptkstore.pushing import Numbering, first_number, numbered_batches, rows_of
from ptkstore.remote_channel import TIMEOUT_SECONDS, Connection
from ptkstore.remote_operations import finished
from ptkstore.remote_push import BATCH_BYTES, Push, begin_session, over_before_it_began
from ptkstore.remote_requests import PAGE, config_json, fresh_id, page_size, plan_changes, ptk_status
from ptkstore.remote_states import read_state
from ptkstore.remote_watch import Watch
from ptkstore.rpc import messages
from ptkstore.streams import StreamSpec
from ptkstore.v1 import (
    budget_pb2,
    budget_pb2_grpc,
    operation_pb2,
    operation_pb2_grpc,
    plan_pb2,
    plan_pb2_grpc,
    ptk_pb2,
    ptk_pb2_grpc,
    stream_pb2,
    stream_pb2_grpc,
)
from ptkstore.views import (
    AuditPage,
    BlockPage,
    BudgetSummary,
    BudgetView,
    CallerView,
    ChargePage,
    CycleView,
    DeliveryPage,
    DeliveryView,
    EventPage,
    EventView,
    Finding,
    LedgerMap,
    OperationPage,
    PlanView,
    ProfileView,
    PtkConfig,
    PtkPage,
    PtkView,
    Registration,
    StateView,
    SubscriptionView,
    WhatIfView,
)

__all__ = ["RemoteStore"]

_LARGEST, _LONGEST = (1 << 31) - 1, (1 << 63) - 1
# Registering tries a PTK out and plans for all; a doctor reads everything.
_LONG_SECONDS = 300.0
# How many sessions a push is tried in, where they were over before it began.
_SESSIONS = 3


class RemoteStore:
    """A store behind a server. Thread-safe. See `ptkstore.client.Store` for what the methods do."""

    def __init__(
        self,
        address: str,
        *,
        token: str | None = None,
        ca_file: str | Path | None = None,
        cert_file: str | Path | None = None,
        key_file: str | Path | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        """Connect when first used."""
        self._connection = Connection(
            address,
            token=token,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            timeout_seconds=timeout_seconds,
        )
        channel = self._connection.channel
        self._streams = stream_pb2_grpc.StreamServiceStub(channel)
        self._ptks = ptk_pb2_grpc.PtkServiceStub(channel)
        self._plans = plan_pb2_grpc.PlanServiceStub(channel)
        self._budgets = budget_pb2_grpc.BudgetServiceStub(channel)
        self._operations = operation_pb2_grpc.OperationServiceStub(channel)
        self._events = operation_pb2_grpc.EventServiceStub(channel)
        self._numbering = Numbering(lambda stream: begin_session(self._connection, stream))

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise, which never changes. Refused: STREAM_EXISTS."""
        request = stream_pb2.CreateStreamRequest(request_id=fresh_id(), spec_json=spec.to_json_text())
        self._call(self._streams.CreateStream, request)

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""
        pages = self._connection.pages(self._streams.ListStreams, stream_pb2.ListStreamsRequest())
        return [messages.spec_of(one) for page in pages for one in page.streams]

    def stream(self, name: str) -> StreamSpec:
        """One stream. Refused: STREAM_UNKNOWN."""
        return messages.spec_of(self._call(self._streams.GetStream, stream_pb2.GetStreamRequest(name=name)).stream)

    def push(self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None) -> int | None:
        """Append a frame; durable when it returns. Returns the watermark in milliseconds."""
        check_name(producer, "producer")
        spec = self.stream(stream)
        count, batches = numbered_batches(frame, spec, seq, rows=rows_of(spec, BATCH_BYTES))
        opening = stream_pb2.AppendOpen(stream=stream, producer=producer, schema_fingerprint=spec.fingerprint)
        if seq is not None or not count:
            return Push(self._connection, opening, enumerate(batches(), first_number(seq or 0))).run()
        opening.producer = ""
        for _ in range(_SESSIONS):
            opening.session, first = self._numbering.take(stream, count)
            push = Push(self._connection, opening, enumerate(batches(), first))
            try:
                return push.run()
            except Refused as error:
                if error.reason in ("SESSION_ENDED", "SESSION_UNKNOWN"):
                    self._numbering.forget(stream, opening.session)
                if not over_before_it_began(push, error):
                    raise
        raise Refused("SESSION_ENDED", f"sessions of stream {stream!r} ended before anything was sent: ask again")

    def run(
        self, stream: str | None = None, *, until_ms: int | None = None, progress: Callable[[str], None] | None = None
    ) -> list[CycleView]:
        """Seal what is due, finish interrupted cycles, and run every complete window; one report each."""
        names = [stream] if stream is not None else [one.name for one in self.streams()]
        found = []
        for name in names:
            request = stream_pb2.CloseWindowRequest(request_id=fresh_id(), stream=name, until=messages.moment(until_ms))
            operation = self._call(self._streams.CloseWindow, request).operation
            found += finished(self._connection, self._operations, operation.id, progress or (lambda _text: None))
        return found

    def register(
        self,
        name: str,
        *,
        stream: str,
        kind: str,
        config: Mapping[str, Any],
        target: float,
        train_every: int = 1,
    ) -> Registration:
        """Ask for a PTK: ACTIVE, WAITING for its profile, or REJECTED with the reason and the nearest target."""
        request = ptk_pb2.RegisterPtkRequest(
            request_id=fresh_id(),
            name=name,
            stream=stream,
            kind=kind,
            config_json=config_json(config),
            target=target,
            train_every=train_every,
        )
        answer = self._call(self._ptks.RegisterPtk, request, _LONG_SECONDS)
        return messages.registration_view(answer.registration)

    def deregister(self, name: str) -> None:
        """Retire a PTK: its versions stay, it trains no more."""
        self._call(self._ptks.DeregisterPtk, ptk_pb2.DeregisterPtkRequest(request_id=fresh_id(), name=name))

    def update_config(self, name: str, config: Mapping[str, Any], *, etag: int | None = None) -> Registration:
        """Another configuration, profiled and planned anew; kept as it was where that is REJECTED."""
        request = ptk_pb2.UpdatePtkConfigRequest(
            request_id=fresh_id(), name=name, config_json=config_json(config), etag="" if etag is None else str(etag)
        )
        answer = self._call(self._ptks.UpdatePtkConfig, request, _LONG_SECONDS)
        return messages.registration_view(answer.registration)

    def update_target(self, name: str, target: float, *, etag: int | None = None) -> Registration:
        """Another target, planned anew; kept as it was where that is REJECTED."""
        request = ptk_pb2.UpdatePtkPerformanceTargetRequest(
            request_id=fresh_id(), name=name, target=target, etag="" if etag is None else str(etag)
        )
        answer = self._call(self._ptks.UpdatePtkPerformanceTarget, request, _LONG_SECONDS)
        return messages.registration_view(answer.registration)

    def ptks(self, stream: str | None = None, *, status: str | None = None, limit: int | None = None) -> list[PtkView]:
        """The PTKs by id, with that status if given; the first ``limit`` of them."""
        if limit is not None and limit < 1:
            raise InvalidInput("PAGE_INVALID", f"limit must be a positive whole number, got {limit}")
        request = ptk_pb2.ListPtksRequest(stream=stream or "")
        if status is not None:
            request.status = ptk_status(status)
        pages = self._connection.pages(self._ptks.ListPtks, request, page_size=min(limit or PAGE, PAGE))
        views = (messages.ptk_view(one) for page in pages for one in page.ptks)
        return list(islice(views, limit))

    def search_ptks(
        self,
        stream: str | None = None,
        *,
        status: str | None = None,
        find: str = "",
        sort: str = "name",
        page: int = 1,
        size: int = 25,
    ) -> PtkPage:
        """PTKs whose name, kind or stream has every word of ``find``, sorted: one page by its number."""
        request = ptk_pb2.SearchPtksRequest(
            stream=stream or "",
            find=find,
            sort=sort,
            page=min(page, _LARGEST) if page > 0 else -1,
            page_size=min(size, PAGE + 1) if size > 0 else -1,
        )
        if status is not None:
            request.status = ptk_status(status)
        found = self._call(self._ptks.SearchPtks, request)
        return PtkPage(tuple(messages.ptk_view(one) for one in found.ptks), found.found, found.total, found.page)

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[PtkConfig]:
        """The configurations that a PTK has and had, newest first, at most 100."""
        size = min(limit, MAX_CONFIGS + 1) if limit > 0 else -1
        found = self._call(self._ptks.ListPtkConfigs, ptk_pb2.ListPtkConfigsRequest(name=name, page_size=size))
        return [PtkConfig(one.config_version, json.loads(one.config_json)) for one in found.configs]

    def subscriptions(self, ptk: str) -> list[SubscriptionView]:
        """Who is told of a PTK's states by a call of the server, and how far."""
        pages = self._connection.pages(self._ptks.ListSubscriptions, ptk_pb2.ListSubscriptionsRequest(ptk=ptk))
        return [
            SubscriptionView(one.id, one.ptk, one.rpc_endpoint, one.delivered_version)
            for page in pages
            for one in page.subscriptions
        ]

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status."""
        found = self._call(self._ptks.CountPtks, ptk_pb2.CountPtksRequest(stream=stream or ""))
        return {messages.status_word(one.status): one.count for one in found.counts}

    def ptk(self, name: str) -> PtkView:
        """One PTK. Refused: PTK_UNKNOWN."""
        return messages.ptk_view(self._call(self._ptks.GetPtk, ptk_pb2.GetPtkRequest(name=name)).ptk)

    def profile(self, name: str, levels: Sequence[str] = ()) -> ProfileView:
        """How many samples a PTK needs at each level, as far as that is known."""
        request = ptk_pb2.GetPtkProfileRequest(name=name, levels=levels)
        return messages.profile_view(name, self._call(self._ptks.GetPtkProfile, request).profile)

    def renew_profile(self, name: str) -> ProfileView:
        """Ask for a new profile in the next window; the old one counts until then."""
        request = ptk_pb2.RenewPtkProfileRequest(request_id=fresh_id(), name=name)
        return messages.profile_view(name, self._call(self._ptks.RenewPtkProfile, request).profile)

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name: the newest, ``name@v7``, or the newest as of a time. Its bytes are verified."""
        return read_state(self._connection, self._ptks, reference, as_of_ms)

    def states(self, name: str) -> list[StateView]:
        """All versions of a PTK, oldest first."""
        pages = self._connection.pages(self._ptks.ListStates, ptk_pb2.ListStatesRequest(name=name))
        return [messages.state_view(one) for page in pages for one in page.states]

    def subscribe(self, name: str, callback: Callable[[StateView], None]) -> Callable[[], None]:
        """Call back, in a thread of its own, for every new state of a PTK from now on; returns what ends it."""
        after = self.ptk(name).latest_version or 0
        return Watch(self._connection, name, after, callback).close

    def plan(self, stream: str, *, window: int | None = None) -> PlanView | None:
        """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""
        found = self._call(self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, window=window))
        return messages.plan_view(found.plan) if found.HasField("plan") else None

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document, or None before its first window."""
        found = self._call(self._plans.GetPlan, plan_pb2.GetPlanRequest(stream=stream, with_picture=True))
        return found.picture_svg if found.HasField("plan") else None

    def plan_now(self, stream: str) -> PlanView:
        """What the plan of a fresh window would be with the PTKs as they are; touches nothing."""
        request = plan_pb2.GetPlanRequest(stream=stream, fresh=True)
        return messages.plan_view(self._call(self._plans.GetPlan, request, _LONG_SECONDS).plan)

    def what_if(self, stream: str, changes: Changes | None = None) -> WhatIfView:
        """The plan of a fresh window as it is, and as it would be after some changes; touches nothing."""
        asked = changes or Changes()
        request = plan_pb2.WhatIfRequest(
            stream=stream,
            changes=plan_changes(asked),
            epsilon="" if asked.epsilon is None else str(asked.epsilon),
            delta="" if asked.delta is None else str(asked.delta),
            composition=asked.composition or "",
            n_max=asked.n_max,
        )
        found = self._call(self._plans.WhatIf, request, _LONG_SECONDS)
        plans = messages.plan_view(found.current), messages.plan_view(found.proposed)
        return WhatIfView(*plans, unprofiled=tuple(found.unprofiled), token=found.token)

    def approve(self, stream: str, token: str, *, request_id: str = "") -> PlanView:
        """Carry out the changes of a what-if that gave this token, all of them or none; returns the plan that was approved."""
        request = plan_pb2.ApprovePlanRequest(request_id=request_id or fresh_id(), stream=stream, token=token)
        return messages.plan_view(self._call(self._plans.ApprovePlan, request, _LONG_SECONDS).plan)

    def budget(self, stream: str) -> BudgetView:
        """What the stream promises and what is left of it, block by block."""
        told = self.budget_summary(stream)
        pages = self._connection.pages(self._budgets.ListBlocks, budget_pb2.ListBlocksRequest(stream=stream))
        lines = tuple(messages.block_line(one) for page in pages for one in page.blocks)
        return BudgetView(stream, told.unit, told.epsilon, told.delta, told.composition, told.exposure, lines)

    def budget_summary(self, stream: str) -> BudgetSummary:
        """What the stream promises and holds, without its blocks: quick, however many there are."""
        request = budget_pb2.GetBudgetRequest(stream=stream)
        return messages.budget_summary(self._call(self._budgets.GetBudget, request).budget)

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> BlockPage:
        """The blocks of a stream, oldest first: a page of at most ``limit`` (up to 1,000), and the token of the next."""
        request = budget_pb2.ListBlocksRequest(stream=stream, page_size=page_size(limit), page_token=page_token)
        page = self._call(self._budgets.ListBlocks, request)
        return BlockPage(tuple(messages.block_line(one) for one in page.blocks), page.next_page_token)

    def charges(
        self,
        stream: str,
        *,
        limit: int = 100,
        page_token: str = "",
        newest_first: bool = False,
        find: str = "",
        blocks: str = "",
    ) -> ChargePage:
        """What the ledger wrote about a stream, oldest first: a page, and the token of the next."""
        request = budget_pb2.ListChargesRequest(
            stream=stream,
            page_size=page_size(limit),
            page_token=page_token,
            newest_first=newest_first,
            find=find,
            blocks=blocks,
        )
        page = self._call(self._budgets.ListCharges, request)
        return ChargePage(tuple(messages.charge_line(one) for one in page.charges), page.next_page_token)

    def ledger_map(self, stream: str, *, begin: int | None = None, count: int = COLUMNS) -> LedgerMap:
        """What was spent at some blocks, range of tags by range of tags, and who spent most over all time."""
        # What fits the message and means the same; 0 would be the default.
        asked = min(count, MOST_BLOCKS + 1) if count > 0 else -1
        place = None if begin is None else max(-1, min(begin, _LONGEST))
        request = budget_pb2.GetLedgerMapRequest(stream=stream, begin=place, count=asked)
        return messages.ledger_map(self._call(self._budgets.GetLedgerMap, request))

    def cycles(self, stream: str, *, newest: int | None = None, most_trained: int | None = None) -> list[CycleView]:
        """The cycles of a stream, or so many of the newest (up to 1,000); oldest first."""
        if newest is not None:
            request = operation_pb2.ListCyclesRequest(stream=stream, newest=min(newest, PAGE) if newest > 0 else -1)
            if most_trained is not None:
                request.most_trained = max(0, min(most_trained, _LARGEST))
            return [messages.cycle_view(one) for one in self._call(self._operations.ListCycles, request).cycles]
        pages = self._connection.pages(self._operations.ListCycles, operation_pb2.ListCyclesRequest(stream=stream))
        return [messages.cycle_view(one) for page in pages for one in page.cycles]

    def events(self, after: int = 0, limit: int = 100) -> list[EventView]:
        """What happened after that event, oldest first."""
        if limit < 1:
            raise InvalidInput("PAGE_INVALID", f"limit must be a positive whole number, got {limit}")
        found: list[EventView] = []
        while len(found) < limit:
            size = min(PAGE, limit - len(found))
            request = operation_pb2.ListEventsRequest(after=after, page_size=size)
            page = self._call(self._events.ListEvents, request).events
            found += [messages.event_view(one) for one in page]
            if len(page) < size:
                break
            after = page[-1].id
        return found

    def newest_events(self, *, find: str = "", limit: int = 100, page_token: str = "") -> EventPage:
        """What happened, newest first: a page, and the token of the next. ``find`` are words of the kind or the subject."""
        request = operation_pb2.ListEventsRequest(
            newest_first=True, find=find, page_size=page_size(limit), page_token=page_token
        )
        page = self._call(self._events.ListEvents, request)
        return EventPage(tuple(messages.event_view(one) for one in page.events), page.next_page_token)

    def operations(self, stream: str | None = None, *, limit: int = 100, page_token: str = "") -> OperationPage:
        """Long work that the server was asked for, newest first: a page, and the token of the next."""
        request = operation_pb2.ListOperationsRequest(
            stream=stream or "", page_size=page_size(limit), page_token=page_token
        )
        page = self._call(self._operations.ListOperations, request)
        return OperationPage(tuple(messages.operation_view(one) for one in page.operations), page.next_page_token)

    def deliveries(self, *, dead_only: bool = False, limit: int = 100, page_token: str = "") -> DeliveryPage:
        """Notifications that are late or given up, oldest first: a page, and the token of the next."""
        request = operation_pb2.ListDeliveriesRequest(
            dead_only=dead_only, page_size=page_size(limit), page_token=page_token
        )
        page = self._call(self._events.ListDeliveries, request)
        return DeliveryPage(tuple(messages.delivery_view(one) for one in page.deliveries), page.next_page_token)

    def retry_delivery(self, delivery: str) -> DeliveryView:
        """Try a notification that was given up once more. Refused: DELIVERY_UNKNOWN."""
        request = operation_pb2.RetryDeliveryRequest(request_id=fresh_id(), id=delivery)
        return messages.delivery_view(self._call(self._events.RetryDelivery, request).delivery)

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> AuditPage:
        """Who asked the server for what, newest first: a page, and the token of the next."""
        request = operation_pb2.ListAuditEntriesRequest(
            find=find, changes_only=changes_only, page_size=page_size(limit), page_token=page_token
        )
        page = self._call(self._events.ListAuditEntries, request)
        return AuditPage(tuple(messages.audit_view(one) for one in page.entries), page.next_page_token)

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[Finding]:
        """Check the store, and search every file for canaries that were planted in its streams."""
        texts = [one.encode() if isinstance(one, str) else one for one in canaries]
        found = self._call(self._operations.RunDoctor, operation_pb2.RunDoctorRequest(canaries=texts), _LONG_SECONDS)
        return [Finding(one.level, one.what, one.detail) for one in found.findings]

    def caller(self) -> CallerView:
        """Who the server takes you for."""
        found = self._call(self._events.GetCaller, operation_pb2.GetCallerRequest()).caller
        return CallerView(found.name, tuple(found.roles), tuple(found.streams), tuple(found.ptks))

    def kinds(self) -> list[str]:
        """The kinds of PTKs that the server has."""
        return [one.kind for one in self._call(self._ptks.ListPtkKinds, ptk_pb2.ListPtkKindsRequest()).kinds]

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def __enter__(self) -> Self:
        """Use the store in a ``with`` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close at the end of the block."""
        self.close()

    def _call(self, method: Any, request: Any, timeout_seconds: float | None = None) -> Any:
        return self._connection.call(method, request, timeout_seconds=timeout_seconds)
