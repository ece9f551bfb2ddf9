"""The SDK, embedded: a store in a directory, with everything a data scientist and an operator need.

::

    with Store("shop") as store:
        store.create_stream(spec)
        store.push("rides", frame)
        store.register("hour-speed", stream="rides", kind="statistics", config={...}, target=0.05)
        store.run("rides", until_ms=...)
        featurize(my_frame, [store.get_state("hour-speed")])

Every answer is public or DP. One process at a time writes a stream; any number may read states.
Reasons: STREAM_UNKNOWN, STREAM_EXISTS, STATE_UNKNOWN, REFERENCE_INVALID, and those of the parts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, cast

from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import check_name
from ptklib.state import State
from ptkstore import tracing
from ptkstore.engine import budgets, registrations
from ptkstore.engine.answering import Work
from ptkstore.engine.approving import approve, approve_once, ask
from ptkstore.engine.charges import index_charges, list_charges, search_charges
from ptkstore.engine.counting import arrived_until, seal_due
from ptkstore.engine.creating import create_stream
from ptkstore.engine.cycle import Cycle, cycle_views, known_cycle_view, shortened
from ptkstore.engine.doctor import examine
from ptkstore.engine.finding import MAX_CONFIGS, find_ptks
from ptkstore.engine.home import Adapters, Home
from ptkstore.engine.ledger_map import COLUMNS, ledger_map
from ptkstore.engine.planning import draw_plan
from ptkstore.engine.profile_terms import profile_view, renew, witness
from ptkstore.engine.ptk_views import chosen_state, ptk_view, state_view
from ptkstore.engine.refining import refine
from ptkstore.engine.what_if import Changes
from ptkstore.extras import package_missing
from ptkstore.metadata import rows
from ptkstore.pushing import BATCH_ROWS, Numbering, first_number, numbered_batches
from ptkstore.references import is_address, parse_reference
from ptkstore.rpc import happenings
from ptkstore.rpc.pages import Page
from ptkstore.rpc.permissions import CHANGING
from ptkstore.streams import StreamSpec
from ptkstore.streams.binding import bind
from ptkstore.streams.refused import Tally
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

__all__ = ["BATCH_ROWS", "Store"]

_LOG = logging.getLogger(__name__)
# Rows in one query.
_AT_ONCE = 1000
# For each answer that was not settled when it was given, before windows are run. A server works on them longer, between times.
_REFINED = Work(1e10, 10.0, final=True)


class Store:
    """A store in a directory, or (``Store("host:port")``) behind a server. Thread-safe; windows run one at a time."""

    def __new__(cls, path: str | Path = ".", **options: Any) -> Self:
        """A store in a directory; for an address, a `ptkstore.remote.RemoteStore`, which has the same methods."""
        if isinstance(path, str) and is_address(path) and not Path(path).exists():
            try:
                from ptkstore.remote import RemoteStore
            except ModuleNotFoundError as missing:
                raise package_missing(missing.name, "server") from None

            return cast(Self, RemoteStore(path, **options))
        return super().__new__(cls)

    def __init__(
        self,
        path: str | Path = ".",
        *,
        clock: Callable[[], float] = time.time,
        workers: int | None = None,
        memory_bytes: int | None = None,
        adapters: Adapters | None = None,
        **remote: Any,
    ) -> None:
        """Open the store in ``path``, or make one there. ``workers`` processes train, each with ``memory_bytes`` for its work.

        ``Store("host:port")`` takes ``token``, ``ca_file``, ``cert_file``, ``key_file`` and ``timeout_seconds`` instead.
        """
        if remote:
            raise InvalidInput(
                "ADDRESS_INVALID", f"{', '.join(sorted(remote))}: for a server, whose address is host:port"
            )
        self._home = Home.open(path, clock=clock, workers=workers, memory_bytes=memory_bytes, adapters=adapters)
        try:
            self._home.witness.require_newest()
            bind(self._home.path, self._home.ledger)
            self._home.witness.join()
        except BaseException:
            self._home.close()
            raise
        self._cycling = threading.Lock()
        self._numbering = Numbering(lambda stream: self._home.writer(stream).begin())

    @property
    def home(self) -> Home:
        """The parts of the store, for those that serve it."""
        return self._home

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise, which never changes. Refused: STREAM_EXISTS."""
        create_stream(self._home, spec)

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""
        return [self._home.specs[name] for name in sorted(self._home.specs)]

    def stream(self, name: str) -> StreamSpec:
        """One stream. Refused: STREAM_UNKNOWN."""
        if name not in self._home.specs:
            raise Refused("STREAM_UNKNOWN", f"there is no stream {name!r}: create it first", stream=name)
        return self._home.specs[name]

    def push(self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None) -> int | None:
        """Append a frame (pandas, polars, Arrow, numpy); durable when it returns. Returns the watermark in milliseconds.

        ``seq`` counts the frames of a producer upwards: pushing the same (producer, seq) again changes nothing. Without it
        every push is new. Records that cannot be in the stream (a null, or beyond the bounds of a stream that refuses those)
        are left out, and RECORDS_REFUSED says so when all others are durable.
        """
        check_name(producer, "producer")
        count, batches = numbered_batches(frame, self.stream(stream), seq)
        if not count:
            return None
        writer = self._home.writer(stream)
        if seq is not None:
            session, first = "", first_number(seq)
        else:
            # What belongs to a session belongs to no producer: any number of processes may push under one name.
            producer, (session, first) = "", self._taken(stream, count)
        watermark, row, tally = None, 0, Tally()
        for number, batch in enumerate(batches(), first):
            ack = writer.append(batch, producer=producer, seq=number, session=session)
            tally.add(ack.refused, row)
            watermark, row = ack.watermark_ms, row + batch.num_rows
        tally.check()
        return watermark

    def _taken(self, stream: str, count: int) -> tuple[str, int]:
        """Numbers for a push that has none, in a session that lives."""
        session, first = self._numbering.take(stream, count)
        try:
            self._home.writer(stream).require_session(producer="", session=session)
        except Refused:
            self._numbering.forget(stream, session)
            return self._numbering.take(stream, count)
        return session, first

    def run(
        self, stream: str | None = None, *, until_ms: int | None = None, progress: Callable[[str], None] | None = None
    ) -> list[CycleView]:
        """Seal what is due, finish interrupted cycles, and run every complete window; one report each.

        ``until_ms`` says that all data up to there has arrived; without it the clock does, and is refused where it has
        jumped ahead (CLOCK_IMPLAUSIBLE).
        """
        say = progress or (lambda _text: None)
        names = [self.stream(stream).name] if stream is not None else sorted(self._home.specs)
        for name in names:
            refine(self._home, name, work=_REFINED)
        due = ((name, window) for name in names for window in self._due(name, until_ms))
        with self._cycling:
            return [self._run_one(name, window, say) for name, window in due]

    def due(self, stream: str, *, until_ms: int | None = None) -> list[int]:
        """Seal what is due, and name the windows that are complete and not done, oldest first."""
        return self._due(self.stream(stream).name, until_ms)

    def _due(self, stream: str, until_ms: int | None) -> list[int]:
        return seal_due(self._home, stream, arrived_until(self._home, self._home.specs[stream], until_ms))

    def run_window(self, stream: str, window: int, *, progress: Callable[[str], None] | None = None) -> CycleView:
        """Run or finish one window that is `due`; one that is done changes nothing."""
        with self._cycling:
            return self._run_one(self.stream(stream).name, window, progress or (lambda _text: None))

    def _run_one(self, stream: str, window: int, say: Callable[[str], None]) -> CycleView:
        with tracing.window(self._home, stream, window):
            found = Cycle(self._home, stream, window, say).run()
        # Now, and not when somebody waits for a page.
        index_charges(self._home)
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
        """Ask for a PTK: ACTIVE, or REJECTED with the reason and the nearest target that would be accepted.

        A PTK without a closed form for its samples is WAITING: the next window profiles it, and then it is one of the two. An
        answer takes about two seconds at most; one that could not be settled by then is ``refining``, the best so far.
        """
        return registrations.register(
            self._home.metadata,
            self.stream(stream),
            self._home.judge(stream),
            name,
            kind=kind,
            config=config,
            target=target,
            train_every=train_every,
            now_ms=self._home.public_ms(),
        )

    def deregister(self, name: str) -> None:
        """Retire a PTK: its versions stay, it trains no more."""
        with self._home.metadata.write() as tx:
            registrations.deregister(tx, name, now_ms=self._home.public_ms())

    def update_config(self, name: str, config: Mapping[str, Any], *, etag: int | None = None) -> Registration:
        """Another configuration, profiled and planned anew; kept as it was where that is REJECTED."""
        now_ms = self._home.public_ms()
        return registrations.change(self._home.metadata, self.stream, name, config=config, etag=etag, now_ms=now_ms)

    def update_target(self, name: str, target: float, *, etag: int | None = None) -> Registration:
        """Another target, planned anew; kept as it was where that is REJECTED."""
        now_ms = self._home.public_ms()
        return registrations.change(self._home.metadata, self.stream, name, target=target, etag=etag, now_ms=now_ms)

    def ptks(self, stream: str | None = None, *, status: str | None = None, limit: int | None = None) -> list[PtkView]:
        """The PTKs by id, with that status if given; the first ``limit`` of them."""
        if limit is not None and limit < 1:
            raise InvalidInput("PAGE_INVALID", f"limit must be a positive whole number, got {limit}")
        with self._home.metadata.read() as tx:
            found = tx.ptks.list(stream, status=status, limit=limit)
            newest: dict[int, rows.StateRow] = {}
            for begin in range(0, len(found), _AT_ONCE):
                newest |= tx.states.newest([row.id for row in found[begin : begin + _AT_ONCE]])
        return [ptk_view(row, newest.get(row.id)) for row in found]

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
        """PTKs whose name, kind or stream has every word of ``find``, sorted (``-target``: downwards): one page by number."""
        with self._home.metadata.read() as tx:
            part, newest, found, total, number = find_ptks(
                tx, stream=stream, status=status, find=find, sort=sort, page=page, size=size
            )
        return PtkPage(tuple(ptk_view(row, newest.get(row.id)) for row in part), found, total, number)

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[PtkConfig]:
        """The configurations that a PTK has and had, newest first, at most 100."""
        if not 1 <= limit <= MAX_CONFIGS:
            raise InvalidInput("PAGE_INVALID", f"limit must be from 1 to {MAX_CONFIGS}, got {limit}")
        with self._home.metadata.read() as tx:
            return [PtkConfig(*one) for one in tx.ptks.configs(tx.ptks.named(name).id, limit)]

    def subscriptions(self, ptk: str) -> list[SubscriptionView]:
        """Who is told of a PTK's states by a call of the server, and how far."""
        with self._home.metadata.read() as tx:
            return [
                SubscriptionView(str(one.id), ptk, one.endpoint, tx.notifications.mark(one.id) or 0)
                for one in tx.subscriptions.list(tx.ptks.named(ptk).id)
            ]

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status; those that there are none of are left out."""
        with self._home.metadata.read() as tx:
            return tx.ptks.count_by_status(stream)

    def ptk(self, name: str) -> PtkView:
        """One PTK. Refused: PTK_UNKNOWN."""
        with self._home.metadata.read() as tx:
            row = tx.ptks.named(name)
            return ptk_view(row, tx.states.latest(row.id))

    def profile(self, name: str, levels: Sequence[str] = ()) -> ProfileView:
        """How many samples a PTK needs at each level, as far as that is known. Reads no data, costs nothing."""
        with self._home.metadata.read() as tx:
            row = tx.ptks.named(name)
            return profile_view(tx, self.stream(row.stream), row, levels)

    def renew_profile(self, name: str) -> ProfileView:
        """Ask for a new profile in the next window; the old one counts until then. Reads no data, costs nothing now."""
        with self._home.metadata.write() as tx:
            row = tx.ptks.named(name)
            return renew(tx, self.stream(row.stream), row, now_ms=self._home.public_ms())

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name: the newest, ``name@v7``, or the newest as of a time, where states are made at whole minutes
        (`ptkstore.public_time`). Its bytes are verified.

        ``name@v0`` is the best witness of the PTK's profile, if it was measured: a DP state that keeps the target.
        """
        name, version = parse_reference(reference, as_of_ms)
        with self._home.metadata.read() as tx:
            if version == 0:
                digest = witness(tx, tx.ptks.named(name))
            else:
                digest = chosen_state(tx, name, version=version, as_of_ms=as_of_ms).digest
        return State.from_bytes(*self._home.lake.get(digest))

    def states(self, name: str) -> list[StateView]:
        """All versions of a PTK, oldest first."""
        with self._home.metadata.read() as tx:
            row = tx.ptks.named(name)
            return [state_view(name, one) for one in tx.states.list(row.id)]

    def subscribe(self, name: str, callback: Callable[[StateView], None]) -> Callable[[], None]:
        """Call back, in a thread of its own, for every new state of a PTK from now on, in order; returns what ends it.

        A callback that raises is told of the next state all the same.
        """
        follower = self._home.followers.follow(name, self.ptk(name).latest_version or 0)

        def tell() -> None:
            while fresh := follower.next():
                for row in fresh:
                    try:
                        callback(state_view(name, row))
                    except Exception as error:
                        _LOG.warning("a follower of %s failed with %s", name, type(error).__name__)

        threading.Thread(target=tell, name=f"sage-subscriber {name:.40}", daemon=True).start()
        return follower.close

    def plan(self, stream: str, *, window: int | None = None) -> PlanView | None:
        """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""
        self.stream(stream)
        with self._home.metadata.read() as tx:
            row = tx.plans.latest(stream, window=window)
        if row is None:
            return None
        return PlanView.from_json(row.body["view"])

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document, or None before its first window."""
        spec = self.stream(stream)
        with self._home.metadata.read() as tx:
            row = tx.plans.latest(stream)
        return None if row is None else draw_plan(spec, row.body)

    def plan_now(self, stream: str) -> PlanView:
        """What the plan of a fresh window would be with the PTKs as they are; touches nothing."""
        return self.what_if(stream).current

    def what_if(self, stream: str, changes: Changes | None = None) -> WhatIfView:
        """The plan of a fresh window as it is, and as it would be after some changes; touches nothing."""
        self.stream(stream)
        return ask(self._home, stream, changes or Changes())

    def approve(self, stream: str, token: str, *, request_id: str = "") -> PlanView:
        """Carry out the changes of a what-if that gave this token, all of them or none; returns the plan that was approved.

        The same ``request_id`` again changes nothing and gives the same answer. Refused: PLAN_STALE, PLAN_INFEASIBLE.
        """
        name = self.stream(stream).name
        return approve_once(self._home, name, token, request_id) if request_id else approve(self._home, name, token)

    def budget(self, stream: str) -> BudgetView:
        """What the stream promises and what is left of it, block by block."""
        told = self.budget_summary(stream)
        with self._home.metadata.read() as tx:
            blocks = tx.blocks.list(stream)
        lines = budgets.block_lines(self._home, stream, blocks)
        return BudgetView(stream, told.unit, told.epsilon, told.delta, told.composition, told.exposure, lines)

    def budget_summary(self, stream: str) -> BudgetSummary:
        """What the stream promises and holds, without its blocks: quick, however many there are."""
        return budgets.summary(self._home, self.stream(stream).name)

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> BlockPage:
        """The blocks of a stream, oldest first: a page of at most ``limit`` (up to 1,000), and the token of the next."""
        self.stream(stream)
        page = Page(f"blocks {stream}", limit, page_token, kind=str)
        with self._home.metadata.read() as tx:
            found = tx.blocks.list(stream, limit=page.size + 1, after=page.after)
        part, token = page.cut(found, lambda one: one.name)
        return BlockPage(budgets.block_lines(self._home, stream, part), token)

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
        """What the ledger wrote about a stream, oldest first: a page, and the token of the next.

        With ``find`` (a part of the key, such as the name of a PTK) or ``blocks`` (how the names of blocks begin) newest first,
        and a page looks at so many entries and no more: one with a token says that the search goes on.
        """
        self.stream(stream)
        if newest_first or find or blocks:
            page = Page(f"charges {stream} newest {find!r} {blocks!r}", limit, page_token)
            some, before = search_charges(
                self._home, stream, before=page.after, limit=page.size, find=find, blocks=blocks
            )
            return ChargePage(tuple(some), page.token(before) if before is not None else "")
        page = Page(f"charges {stream}", limit, page_token)
        found = list_charges(self._home, stream, after=page.after, limit=page.size + 1)
        part, token = page.cut(found, lambda one: one.number)
        return ChargePage(tuple(part), token)

    def ledger_map(self, stream: str, *, begin: int | None = None, count: int = COLUMNS) -> LedgerMap:
        """What was spent at some blocks, range of tags by range of tags, from place ``begin`` on or of the newest ones; and who
        spent most over all time."""
        return ledger_map(self._home, self.stream(stream).name, begin=begin, count=count)

    def cycles(self, stream: str, *, newest: int | None = None, most_trained: int | None = None) -> list[CycleView]:
        """The cycles of a stream, or so many of the newest (up to 1,000); oldest first.

        With ``newest`` they can tell of ``most_trained`` PTKs each, the lost ones first, and count the others.
        """
        self.stream(stream)
        with self._home.metadata.read() as tx:
            if newest is None:
                return cycle_views(tx, tx.cycles.list(stream))
            found = [known_cycle_view(self._home, tx, one) for one in tx.cycles.newest(stream, min(newest, _AT_ONCE))]
        return found if most_trained is None else [shortened(one, max(0, most_trained)) for one in found]

    def events(self, after: int = 0, limit: int = 100) -> list[EventView]:
        """What happened after that event, oldest first."""
        with self._home.metadata.read() as tx:
            return [happenings.event_view(one) for one in tx.events.after(after, limit)]

    def newest_events(self, *, find: str = "", limit: int = 100, page_token: str = "") -> EventPage:
        """What happened, newest first: a page, and the token of the next. ``find`` are words of the kind or the subject."""
        with self._home.metadata.read() as tx:
            return happenings.event_page(tx, find=find, limit=limit, page_token=page_token)

    def operations(self, stream: str | None = None, *, limit: int = 100, page_token: str = "") -> OperationPage:
        """Long work that a server was asked for, newest first: a page, and the token of the next."""
        with self._home.metadata.read() as tx:
            return happenings.operation_page(tx, stream or "", limit=limit, page_token=page_token)

    def deliveries(self, *, dead_only: bool = False, limit: int = 100, page_token: str = "") -> DeliveryPage:
        """Notifications that are late or given up, oldest first: a page, and the token of the next."""
        with self._home.metadata.read() as tx:
            return happenings.delivery_page(tx, dead_only=dead_only, limit=limit, page_token=page_token)

    def retry_delivery(self, delivery: str) -> DeliveryView:
        """Try a notification that was given up once more; a server does, when one runs. Refused: DELIVERY_UNKNOWN."""
        with self._home.metadata.write() as tx:
            return happenings.retry(tx, delivery, now_ms=self._home.now_ms())

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> AuditPage:
        """Who asked a server for what, newest first: a page, and the token of the next.

        ``find`` are words of who, what, the subject or the outcome; ``changes_only`` leaves out what was only read.
        """
        what = CHANGING if changes_only else ()
        with self._home.metadata.read() as tx:
            return happenings.audit_page(tx, find=find, what=what, limit=limit, page_token=page_token)

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[Finding]:
        """Check the store, and search every file for canaries that were planted in its streams."""
        return examine(self._home, canaries)

    def caller(self) -> CallerView:
        """Who the store takes you for. Who can open the directory may do everything."""
        return CallerView("local", ("reader", "producer", "developer", "operator"))

    def kinds(self) -> list[str]:
        """The kinds of PTKs that are installed."""
        return sorted(registry.kinds())

    def close(self) -> None:
        """Close the store. Everything acknowledged is durable already."""
        self._home.close()

    def __enter__(self) -> Self:
        """Use the store in a ``with`` block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close at the end of the block."""
        self.close()
