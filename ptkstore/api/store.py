"""What a store can do, wherever it is: in a directory (`ptkstore.local`) or behind a server
(`ptkstore.client`). ``ptkstore.open(place)`` gives one.

Both have these verbs with these parameters, the same answers and the same reasons; a test compares
them. Every answer is public or DP. A store is closed when its ``with`` block ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, runtime_checkable

from ptkstore.api.limits import MAP_BLOCKS
from ptkstore.api.over import ALL

if TYPE_CHECKING:
    from ptklib.state import State
    from ptkstore.api import views
    from ptkstore.api.changes import Changes
    from ptkstore.api.stream_spec import StreamSpec

__all__ = ["Store"]


@runtime_checkable
class Store(Protocol):
    """Streams go in, DP states come out. Thread-safe."""

    def create_stream(self, spec: StreamSpec) -> None:
        """Make a stream with its promise, which never changes. Refused: STREAM_EXISTS."""

    def streams(self) -> list[StreamSpec]:
        """All streams, by name."""

    def stream(self, name: str) -> StreamSpec:
        """One stream. Refused: STREAM_UNKNOWN."""

    def push(
        self, stream: str, frame: Any, *, producer: str = "default", seq: int | None = None
    ) -> int | None:
        """Append a frame (pandas, polars, Arrow, numpy); durable when it returns. Returns the
        watermark in milliseconds.

        ``seq`` counts the frames of a producer upwards: pushing the same (producer, seq) again
        changes nothing. Without it every push is new. Records that cannot be in the stream (a null,
        or beyond the bounds of a stream that refuses those) are left out, and RECORDS_REFUSED says
        so when all others are durable.
        """

    def run(
        self,
        stream: str | None = None,
        *,
        until_ms: int | None = None,
        progress: Callable[[str], None] | None = None,
    ) -> list[views.CycleView]:
        """Seal what is due, finish interrupted cycles, and run every complete window; one report
        each.

        ``until_ms`` says that all data up to there has arrived; without it the clock does, and is
        refused where it has jumped ahead (CLOCK_IMPLAUSIBLE).
        """

    def register(
        self,
        name: str,
        *,
        stream: str,
        kind: str,
        config: Mapping[str, Any],
        target: float,
        train_every: int = 1,
        over: str = ALL,
    ) -> views.Registration:
        """Ask for a PTK: ACTIVE, or REJECTED with the reason and the nearest target that would be
        accepted.

        A PTK without a closed form for its samples is WAITING: the next window profiles it, and
        then it is one of the two. An answer takes about two seconds at most; one that could not be
        settled by then is ``refining``, the best so far. ``over`` says of which windows its states
        are: `ptkstore.api.over`.
        """

    def deregister(self, name: str) -> None:
        """Retire a PTK: its versions stay, it trains no more."""

    def update_config(
        self, name: str, config: Mapping[str, Any], *, etag: int | None = None
    ) -> views.Registration:
        """Another configuration, profiled and planned anew; kept as it was where that is
        REJECTED. With ``etag``, only if the PTK is still what was seen (ETAG_STALE).
        """

    def update_target(
        self, name: str, target: float, *, etag: int | None = None
    ) -> views.Registration:
        """Another target, planned anew; kept as it was where that is REJECTED."""

    def apply(self, changes: Changes, *, request_id: str = "") -> views.AppliedView:
        """Make streams, add, change and retire PTKs: all of it or nothing, planned once.

        Refused: PLAN_INFEASIBLE, with the PTK that has no place and what would help. The same
        ``request_id`` again gives the first answer.
        """

    def ptks(
        self, stream: str | None = None, *, status: str | None = None, limit: int | None = None
    ) -> list[views.PtkView]:
        """The PTKs by id, with that status if given; the first ``limit`` of them."""

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
        """PTKs whose name, kind or stream has every word of ``find``, sorted (``-target``:
        downwards): one page by its number.
        """

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[views.PtkConfig]:
        """The configurations that a PTK has and had, newest first, at most 100."""

    def subscriptions(self, ptk: str) -> list[views.SubscriptionView]:
        """Who is told of a PTK's states by a call of the server, and how far."""

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status; those that there are none of are left out."""

    def ptk(self, name: str) -> views.PtkView:
        """One PTK. Refused: PTK_UNKNOWN."""

    def profile(self, name: str, levels: Sequence[str] = ()) -> views.ProfileView:
        """How many samples a PTK needs at each level, as far as that is known.

        Reads no data, costs nothing.
        """

    def renew_profile(self, name: str) -> views.ProfileView:
        """Ask for a new profile in the next window; the old one counts until then.

        Reads no data, costs nothing now.
        """

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name: the newest, ``name@v7``, or the newest as of a time, where states are
        made at whole minutes (`ptkstore.api.times`). Its bytes are verified.

        ``name@v0`` is the best witness of the PTK's profile, if it was measured: a DP state that
        keeps the target.
        """

    def states(self, name: str) -> list[views.StateView]:
        """All versions of a PTK, oldest first."""

    def subscribe(
        self, name: str, callback: Callable[[views.StateView], None]
    ) -> Callable[[], None]:
        """Call back, in a thread of its own, for every new state of a PTK from now on, in order;
        returns what ends it.

        A callback that raises is told of the next state all the same.
        """

    def plan(self, stream: str, *, window: int | None = None) -> views.PlanView | None:
        """The newest plan of a stream, or of one of its windows; None where there is none (yet)."""

    def plan_picture(self, stream: str) -> str | None:
        """The newest plan of a stream as an SVG document, or None before its first window."""

    def plan_now(self, stream: str) -> views.PlanView:
        """What the plan of a fresh window would be with the PTKs as they are; touches nothing."""

    def what_if(self, stream: str, changes: Changes | None = None) -> views.WhatIfView:
        """The plan of a fresh window as it is, and as it would be after some changes; touches
        nothing.
        """

    def approve(self, stream: str, token: str, *, request_id: str = "") -> views.PlanView:
        """Carry out the changes of a what-if that gave this token, all of them or none; returns the
        plan that was approved.

        The same ``request_id`` again changes nothing and gives the same answer. Refused:
        PLAN_STALE, PLAN_INFEASIBLE.
        """

    def budget(self, stream: str) -> views.BudgetView:
        """What the stream promises and what is left of it, block by block."""

    def budget_summary(self, stream: str) -> views.BudgetSummary:
        """What the stream promises and holds, without its blocks: quick, however many there are."""

    def blocks(self, stream: str, *, limit: int = 100, page_token: str = "") -> views.BlockPage:
        """The blocks of a stream, oldest first: a page of at most ``limit`` (up to 1,000), and the
        token of the next.
        """

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
        """What the ledger wrote about a stream, oldest first: a page, and the token of the next.

        With ``find`` (a part of the key, such as the name of a PTK) or ``blocks`` (how the names of
        blocks begin) newest first, and a page looks at so many entries and no more: one with a
        token says that the search goes on.
        """

    def ledger_map(
        self, stream: str, *, begin: int | None = None, count: int = MAP_BLOCKS
    ) -> views.LedgerMap:
        """What was spent at some blocks, range of tags by range of tags, from place ``begin`` on or
        of the newest ones; and who spent most over all time.
        """

    def cycles(
        self, stream: str, *, newest: int | None = None, most_trained: int | None = None
    ) -> list[views.CycleView]:
        """The cycles of a stream, or so many of the newest (up to 1,000); oldest first.

        With ``newest`` they can tell of ``most_trained`` PTKs each, the lost ones first, and count
        the others.
        """

    def events(self, after: int = 0, limit: int = 100) -> list[views.EventView]:
        """What happened after that event, oldest first."""

    def newest_events(
        self, *, find: str = "", limit: int = 100, page_token: str = ""
    ) -> views.EventPage:
        """What happened, newest first: a page, and the token of the next.

        ``find`` are words of the kind or the subject.
        """

    def operations(
        self, stream: str | None = None, *, limit: int = 100, page_token: str = ""
    ) -> views.OperationPage:
        """Long work that a server was asked for, newest first: a page, and the token of the
        next.
        """

    def deliveries(
        self, *, dead_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.DeliveryPage:
        """Notifications that are late or given up, oldest first: a page, and the token of the
        next.
        """

    def retry_delivery(self, delivery: str) -> views.DeliveryView:
        """Try a notification that was given up once more; a server does, when one runs.

        Refused: DELIVERY_UNKNOWN.
        """

    def audit_entries(
        self, *, find: str = "", changes_only: bool = False, limit: int = 100, page_token: str = ""
    ) -> views.AuditPage:
        """Who asked a server for what, newest first: a page, and the token of the next.

        ``find`` are words of who, what, the subject or the outcome; ``changes_only`` leaves out
        what was only read.
        """

    def doctor(self, canaries: Sequence[bytes | str] = ()) -> list[views.Finding]:
        """Check the store, and search every file for canaries that were planted in its streams."""

    def caller(self) -> views.CallerView:
        """Who the store takes you for. Who can open the directory may do everything."""

    def kinds(self) -> list[str]:
        """The kinds of PTKs that the store has."""

    def close(self) -> None:
        """Close the store. Everything acknowledged is durable already."""

    def __enter__(self) -> Self:
        """Use the store in a ``with`` block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close at the end of the block."""
