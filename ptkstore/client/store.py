"""The store behind a server: the same verbs, views and errors as a store in a directory.

``ptkstore.open("host:port")`` makes one; `ptkstore.api.store.Store` says what the verbs do. Frames
are brought to the stream's types and features are computed here; the server sees batches on the way
in and gives out states, whose digests are checked. Calls have deadlines, and are tried again while
the server is unavailable. What speaks on the wire (gRPC, Arrow) is imported when a store is made,
so naming this class costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptkstore.api.limits import MAP_BLOCKS
from ptkstore.api.over import ALL
from ptkstore.client.timeouts import TIMEOUT_SECONDS
from ptkstore.closing import Closing

if TYPE_CHECKING:
    from ptklib.privacy.amounts import Number
    from ptklib.state import State
    from ptkstore.api.changes import Changes
    from ptkstore.api.stream_spec import StreamSpec
    from ptkstore.api.views import (
        AppliedView,
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


class RemoteStore(Closing):
    """A store behind a server. Thread-safe."""

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
        from ptkstore.client.budgets import RemoteBudgets
        from ptkstore.client.channel import Connection
        from ptkstore.client.history import History
        from ptkstore.client.plans import RemotePlans
        from ptkstore.client.ptks import RemotePtks
        from ptkstore.client.streams import RemoteStreams

        self._connection = Connection(
            address,
            token=token,
            ca_file=ca_file,
            cert_file=cert_file,
            key_file=key_file,
            timeout_seconds=timeout_seconds,
        )
        self._streams = RemoteStreams(self._connection)
        self._ptks = RemotePtks(self._connection)
        self._plans = RemotePlans(self._connection)
        self._budgets = RemoteBudgets(self._connection)
        self._history = History(self._connection)

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise."""
        self._streams.create_stream(spec)

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""
        return self._streams.streams()

    def stream(self, name: str) -> StreamSpec:
        """One stream."""
        return self._streams.stream(name)

    def push(
        self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None
    ) -> int | None:
        """Append a frame; durable when it returns."""
        return self._streams.push(stream, frame, producer=producer, seq=seq)

    def run(
        self,
        stream: str | None = None,
        *,
        until_ms: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[CycleView]:
        """Run every complete window."""
        return self._streams.run(stream, until_ms=until_ms, progress=progress)

    def register(
        self,
        name: str,
        *,
        stream: str,
        kind: str,
        config: Mapping[str, Any],
        target: float | None = None,
        train_every: int = 1,
        over: str = ALL,
        epsilon: Number | None = None,
    ) -> Registration:
        """Ask for a PTK."""
        return self._ptks.register(
            name,
            stream=stream,
            kind=kind,
            config=config,
            target=target,
            train_every=train_every,
            over=over,
            epsilon=epsilon,
        )

    def deregister(self, name: str) -> None:
        """Retire a PTK."""
        self._ptks.deregister(name)

    def update_config(
        self, name: str, config: Mapping[str, Any], *, etag: int | None = None
    ) -> Registration:
        """Another configuration."""
        return self._ptks.update_config(name, config, etag=etag)

    def update_target(
        self,
        name: str,
        target: float | None = None,
        *,
        epsilon: Number | None = None,
        etag: int | None = None,
    ) -> Registration:
        """Another target, or an epsilon instead."""
        return self._ptks.update_target(name, target, epsilon=epsilon, etag=etag)

    def apply(self, changes: Changes, *, request_id: str = "") -> AppliedView:
        """Carry changes out, all of them or none."""
        return self._ptks.apply(changes, request_id=request_id)

    def ptks(
        self, stream: str | None = None, *, status: str | None = None, limit: int | None = None
    ) -> list[PtkView]:
        """The PTKs by id."""
        return self._ptks.ptks(stream, status=status, limit=limit)

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
        """PTKs that are searched for, one page by its number."""
        return self._ptks.search_ptks(
            stream, status=status, find=find, sort=sort, page=page, size=size
        )

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[PtkConfig]:
        """The configurations that a PTK has and had, newest first."""
        return self._ptks.ptk_configs(name, limit=limit)

    def subscriptions(self, ptk: str) -> list[SubscriptionView]:
        """Who is told of a PTK's states by a call of the server."""
        return self._ptks.subscriptions(ptk)

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status."""
        return self._ptks.count_ptks(stream)

    def ptk(self, name: str) -> PtkView:
        """One PTK."""
        return self._ptks.ptk(name)

    def profile(self, name: str, levels: Sequence[str] = ()) -> ProfileView:
        """How many samples a PTK needs at each level."""
        return self._ptks.profile(name, levels)

    def renew_profile(self, name: str) -> ProfileView:
        """Ask for a new profile in the next window."""
        return self._ptks.renew_profile(name)

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name, version or time."""
        return self._ptks.get_state(reference, as_of_ms=as_of_ms)

    def states(self, name: str) -> list[StateView]:
        """All versions of a PTK, oldest first."""
        return self._ptks.states(name)

    def subscribe(self, name: str, callback: Callable[[StateView], None]) -> Callable[[], None]:
        """Call back for every new state of a PTK."""
        return self._ptks.subscribe(name, callback)

    def plan(self, stream: str, *, window: int | None = None) -> PlanView | None:
        """The newest plan of a stream, or of one of its windows."""
        return self._plans.plan(stream, window=window)

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document."""
        return self._plans.plan_picture(stream)

    def plan_now(self, stream: str) -> PlanView:
        """What the plan of a fresh window would be."""
        return self._plans.plan_now(stream)

    def what_if(self, stream: str, changes: Changes | None = None) -> WhatIfView:
        """The plan as it is, and as it would be."""
        return self._plans.what_if(stream, changes)

    def approve(self, stream: str, token: str, *, request_id: str = "") -> PlanView:
        """Carry out the changes of a what-if, all of them or none."""
        return self._plans.approve(stream, token, request_id=request_id)

    def budget(self, stream: str) -> BudgetView:
        """What the stream promises and what is left of it, block by block."""
        return self._budgets.budget(stream)

    def budget_summary(self, stream: str) -> BudgetSummary:
        """What the stream promises and holds, without its blocks."""
        return self._budgets.budget_summary(stream)

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> BlockPage:
        """The blocks of a stream, oldest first, a page."""
        return self._budgets.blocks(stream, limit=limit, page_token=page_token)

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
        """What the ledger wrote about a stream, a page."""
        return self._budgets.charges(
            stream,
            limit=limit,
            page_token=page_token,
            newest_first=newest_first,
            find=find,
            blocks=blocks,
        )

    def ledger_map(
        self, stream: str, *, begin: int | None = None, count: int = MAP_BLOCKS
    ) -> LedgerMap:
        """What was spent at some blocks, and who spent most."""
        return self._budgets.ledger_map(stream, begin=begin, count=count)

    def cycles(
        self, stream: str, *, newest: int | None = None, most_trained: int | None = None
    ) -> list[CycleView]:
        """The cycles of a stream, oldest first."""
        return self._history.cycles(stream, newest=newest, most_trained=most_trained)

    def events(self, after: int = 0, limit: int = 100) -> list[EventView]:
        """What happened after that event, oldest first."""
        return self._history.events(after, limit)

    def newest_events(self, *, find: str = "", limit: int = 100, page_token: str = "") -> EventPage:
        """What happened, newest first, a page."""
        return self._history.newest_events(find=find, limit=limit, page_token=page_token)

    def operations(
        self, stream: str | None = None, *, limit: int = 100, page_token: str = ""
    ) -> OperationPage:
        """Long work that a server was asked for, newest first, a page."""
        return self._history.operations(stream, limit=limit, page_token=page_token)

    def deliveries(
        self, *, dead_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> DeliveryPage:
        """Notifications that are late or given up, oldest first, a page."""
        return self._history.deliveries(dead_only=dead_only, limit=limit, page_token=page_token)

    def retry_delivery(self, delivery: str) -> DeliveryView:
        """Try a notification that was given up once more."""
        return self._history.retry_delivery(delivery)

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> AuditPage:
        """Who asked a server for what, newest first, a page."""
        return self._history.audit_entries(
            find=find, changes_only=changes_only, limit=limit, page_token=page_token
        )

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[Finding]:
        """Check the store, and search every file for canaries."""
        return self._history.doctor(canaries)

    def caller(self) -> CallerView:
        """Who the server takes you for."""
        return self._history.caller()

    def kinds(self) -> list[str]:
        """The kinds of PTKs that the server has."""
        return self._ptks.kinds()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
