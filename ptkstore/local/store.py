"""The store in a directory, with everything a data scientist and an operator need.

::

    with LocalStore("shop") as store:
        store.create_stream(spec)
        store.push("rides", frame)
        store.register("hour-speed", stream="rides", kind="statistics", config={...}, target=0.05)
        store.run("rides", until_ms=...)
        featurize(my_frame, [store.get_state("hour-speed")])

Every verb is one function of the engine; `ptkstore.api.store.Store` says what it does. One process
at a time writes a stream; any number may read states.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ptklib import registry
from ptklib.privacy.amounts import Number
from ptklib.state import State
from ptkstore.api import views
from ptkstore.api.changes import Changes
from ptkstore.api.goal import Goal
from ptkstore.api.limits import MAP_BLOCKS
from ptkstore.api.over import ALL
from ptkstore.api.references import parse_reference
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views.overview import store_html
from ptkstore.closing import Closing
from ptkstore.engine.budgets import budgets
from ptkstore.engine.budgets.charges import charge_page
from ptkstore.engine.budgets.ledger_map import LedgerMaps
from ptkstore.engine.catalogue import profiles, ptks, states
from ptkstore.engine.catalogue.ptk_views import state_view
from ptkstore.engine.history.audit_log import audit_entries
from ptkstore.engine.history.cycles import CycleViews
from ptkstore.engine.history.events import events_after, newest_events
from ptkstore.engine.history.operations import operation_page
from ptkstore.engine.notices import deliveries, subscriptions
from ptkstore.engine.parts import Adapters, Parts
from ptkstore.engine.plans import registrations, stored
from ptkstore.engine.plans.applying import apply_changes, apply_once
from ptkstore.engine.plans.approving import approve, approve_once, ask
from ptkstore.engine.safekeeping.doctor import examine
from ptkstore.engine.streams.creating import create_stream
from ptkstore.engine.window.running import run_due, unheard
from ptkstore.local.pushing import LocalPusher
from ptkstore.streams.blocks.binding import bind

__all__ = ["LocalStore"]

_LOG = logging.getLogger(__name__)


class LocalStore(Closing):
    """A store in a directory. Thread-safe; windows run one at a time."""

    def __init__(
        self,
        path: str | Path = ".",
        *,
        clock: Callable[[], float] = time.time,
        workers: int | None = None,
        memory_bytes: int | None = None,
        adapters: Adapters | None = None,
    ) -> None:
        """Open the store in ``path``, or make one there.

        ``workers`` processes train, each with ``memory_bytes`` for its work.
        """
        self._parts = Parts.open(
            path, clock=clock, workers=workers, memory_bytes=memory_bytes, adapters=adapters
        )
        try:
            self._parts.head_guard.require_newest()
            bind(self._parts.path, self._parts.ledger)
            self._parts.head_guard.join()
        except BaseException:
            self._parts.close()
            raise
        self._pusher = LocalPusher(self._parts)
        self._cycles = CycleViews(self._parts)
        self._ledger_maps = LedgerMaps(self._parts)

    @property
    def parts(self) -> Parts:
        """The parts of the store, for those that serve it."""
        return self._parts

    def _repr_html_(self) -> str:
        """As a notebook shows it."""
        return store_html([spec.as_json() for spec in self.streams()], self.ptks())

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise."""
        create_stream(self._parts, spec)

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""
        return self._parts.specs.all()

    def stream(self, name: str) -> StreamSpec:
        """One stream."""
        return self._parts.specs.current(name)

    def push(
        self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None
    ) -> int | None:
        """Append a frame; durable when it returns."""
        return self._pusher.push(stream, frame, producer=producer, seq=seq)

    def run(
        self,
        stream: str | None = None,
        *,
        until_ms: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[views.CycleView]:
        """Run every complete window."""
        return run_due(self._parts, stream, until_ms=until_ms, progress=progress or unheard)

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
    ) -> views.Registration:
        """Ask for a PTK."""
        return registrations.register(
            self._parts.metadata,
            self.stream(stream),
            self._parts.privacy_filter(stream),
            name,
            kind=kind,
            config=config,
            goal=Goal.of(target, epsilon),
            train_every=train_every,
            over=over,
            now_ms=self._parts.public_ms(),
            memory_bytes=self._parts.workers.memory_bytes,
        )

    def deregister(self, name: str) -> None:
        """Retire a PTK."""
        registrations.deregister(self._parts, name)

    def update_config(
        self, name: str, config: Mapping[str, Any], *, etag: int | None = None
    ) -> views.Registration:
        """Another configuration."""
        return self._change(name, config=config, etag=etag)

    def update_target(
        self,
        name: str,
        target: float | None = None,
        *,
        epsilon: Number | None = None,
        etag: int | None = None,
    ) -> views.Registration:
        """Another target, or an epsilon instead."""
        return self._change(name, goal=Goal.of(target, epsilon), etag=etag)

    def _change(
        self,
        name: str,
        *,
        config: Mapping[str, Any] | None = None,
        goal: Goal | None = None,
        etag: int | None,
    ) -> views.Registration:
        return registrations.change(
            self._parts.metadata,
            self.stream,
            name,
            config=config,
            goal=goal,
            etag=etag,
            now_ms=self._parts.public_ms(),
            memory_bytes=self._parts.workers.memory_bytes,
        )

    def apply(self, changes: Changes, *, request_id: str = "") -> views.AppliedView:
        """Carry changes out, all of them or none."""
        if request_id:
            return apply_once(self._parts, changes, request_id)
        return apply_changes(self._parts, changes)

    def ptks(
        self, stream: str | None = None, *, status: str | None = None, limit: int | None = None
    ) -> list[views.PtkView]:
        """The PTKs by id."""
        return ptks.listed(self._parts, stream, status=status, limit=limit)

    def search_ptks(
        self,
        stream: str | None = None,
        *,
        status: str | None = None,
        find: str = "",
        sort: str = "name",
        page: int = 1,
        size: int = 25,
    ) -> views.PtkPage:
        """PTKs that are searched for, one page by its number."""
        search = ptks.search(
            self._parts, stream, status=status, find=find, sort=sort, page=page, size=size
        )
        matches = tuple(record.view for record in search.ptks)
        return views.PtkPage(matches, search.found, search.total, search.page)

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[views.PtkConfig]:
        """The configurations that a PTK has and had, newest first."""
        return ptks.configs(self._parts, name, limit=limit)

    def subscriptions(self, ptk: str) -> list[views.SubscriptionView]:
        """Who is told of a PTK's states by a call of the server."""
        return subscriptions.subscriptions(self._parts, ptk)

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status."""
        return ptks.count(self._parts, stream)

    def ptk(self, name: str) -> views.PtkView:
        """One PTK."""
        return ptks.named(self._parts, name).view

    def profile(self, name: str, levels: Sequence[str] = ()) -> views.ProfileView:
        """How many samples a PTK needs at each level."""
        return profiles.profile_of(self._parts, name, levels)

    def renew_profile(self, name: str) -> views.ProfileView:
        """Ask for a new profile in the next window."""
        return profiles.renew(self._parts, name)

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name, version or time."""
        name, version = parse_reference(reference, as_of_ms)
        digest = (
            states.witness_digest(self._parts, name)
            if version == 0
            else states.chosen(self._parts, name, version=version, as_of_ms=as_of_ms).digest
        )
        return State.from_bytes(*self._parts.lake.get(digest))

    def states(self, name: str) -> list[views.StateView]:
        """All versions of a PTK, oldest first."""
        return states.listed(self._parts, name)

    def subscribe(
        self, name: str, callback: Callable[[views.StateView], None]
    ) -> Callable[[], None]:
        """Call back for every new state of a PTK."""
        follower = self._parts.followers.follow(name, self.ptk(name).latest_version or 0)

        def tell() -> None:
            while fresh := follower.next():
                for row in fresh:
                    try:
                        callback(state_view(name, row))
                    except Exception as error:
                        _LOG.warning("a follower of %s failed with %s", name, type(error).__name__)

        threading.Thread(target=tell, name=f"sage-subscriber {name:.40}", daemon=True).start()
        return follower.close

    def plan(self, stream: str, *, window: int | None = None) -> views.PlanView | None:
        """The newest plan of a stream, or of one of its windows."""
        plan = stored.stored_plan(self._parts, stream, window)
        return None if plan is None else plan.view

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document."""
        plan = stored.stored_plan(self._parts, stream)
        return None if plan is None else stored.picture(self._parts, plan)

    def plan_now(self, stream: str) -> views.PlanView:
        """What the plan of a fresh window would be."""
        return self.what_if(stream).current

    def what_if(self, stream: str, changes: Changes | None = None) -> views.WhatIfView:
        """The plan as it is, and as it would be."""
        return ask(self._parts, stream, changes or Changes())

    def approve(self, stream: str, token: str, *, request_id: str = "") -> views.PlanView:
        """Carry out the changes of a what-if, all of them or none."""
        if request_id:
            return approve_once(self._parts, stream, token, request_id)
        return approve(self._parts, stream, token)

    def budget(self, stream: str) -> views.BudgetView:
        """What the stream promises and what is left of it, block by block."""
        return budgets.budget(self._parts, stream)

    def budget_summary(self, stream: str) -> views.BudgetSummary:
        """What the stream promises and holds, without its blocks."""
        return budgets.summary(self._parts, stream)

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> views.BlockPage:
        """The blocks of a stream, oldest first, a page."""
        return budgets.block_page(self._parts, stream, limit=limit, page_token=page_token)

    def charges(
        self,
        stream: str,
        *,
        limit: int = 100,
        page_token: str = "",
        newest_first: bool = False,
        find: str = "",
        blocks: str = "",
    ) -> views.ChargePage:
        """What the ledger wrote about a stream, a page."""
        return charge_page(
            self._parts,
            stream,
            limit=limit,
            page_token=page_token,
            newest_first=newest_first,
            find=find,
            blocks=blocks,
        )

    def ledger_map(
        self, stream: str, *, begin: int | None = None, count: int = MAP_BLOCKS
    ) -> views.LedgerMap:
        """What was spent at some blocks, and who spent most."""
        return self._ledger_maps.of(stream, begin=begin, count=count)

    def cycles(
        self, stream: str, *, newest: int | None = None, most_trained: int | None = None
    ) -> list[views.CycleView]:
        """The cycles of a stream, oldest first."""
        return self._cycles.listed(stream, newest=newest, most_trained=most_trained)

    def events(self, after: int = 0, limit: int = 100) -> list[views.EventView]:
        """What happened after that event, oldest first."""
        return events_after(self._parts, after, limit)

    def newest_events(
        self, *, find: str = "", limit: int = 100, page_token: str = ""
    ) -> views.EventPage:
        """What happened, newest first, a page."""
        return newest_events(self._parts, find=find, limit=limit, page_token=page_token)

    def operations(
        self, stream: str | None = None, *, limit: int = 100, page_token: str = ""
    ) -> views.OperationPage:
        """Long work that a server was asked for, newest first, a page."""
        return operation_page(self._parts, stream or "", limit=limit, page_token=page_token)

    def deliveries(
        self, *, dead_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.DeliveryPage:
        """Notifications that are late or given up, oldest first, a page."""
        return deliveries.deliveries(
            self._parts, dead_only=dead_only, limit=limit, page_token=page_token
        )

    def retry_delivery(self, delivery: str) -> views.DeliveryView:
        """Try a notification that was given up once more."""
        return deliveries.retry(self._parts, delivery)

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.AuditPage:
        """Who asked a server for what, newest first, a page."""
        return audit_entries(
            self._parts, find=find, changes_only=changes_only, limit=limit, page_token=page_token
        )

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[views.Finding]:
        """Check the store, and search every file for canaries."""
        return examine(self._parts, canaries)

    def caller(self) -> views.CallerView:
        """Who can open the directory may do everything."""
        return views.CallerView("local", ("reader", "producer", "developer", "operator"))

    def kinds(self) -> list[str]:
        """The kinds of PTKs that are installed."""
        return sorted(registry.kinds())

    def close(self) -> None:
        """Close the store. Everything acknowledged is durable already."""
        self._parts.close()
