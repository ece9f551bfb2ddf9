"""PTKs and their states behind a server. Reasons: PAGE_INVALID, VALUE_INVALID, JSON_INVALID,
STATE_DAMAGED, and those of the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from ptklib.errors import Refused
from ptkstore.api import views
from ptkstore.api.limits import MAX_CONFIGS
from ptkstore.api.over import ALL, Over
from ptkstore.api.paging import check_limit
from ptkstore.client.channel import Connection
from ptkstore.client.requests import LARGEST, PAGE, config_json, fresh_id, ptk_status
from ptkstore.client.states import read_state
from ptkstore.client.timeouts import LONG_SECONDS
from ptkstore.client.watch import Watch
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc
from ptkstore.wire import messages

if TYPE_CHECKING:
    from ptklib.state import State
    from ptkstore.api.changes import Changes

__all__ = ["RemotePtks"]


class RemotePtks:
    """PtkService."""

    _connection: Connection

    @cached_property
    def _ptks(self) -> ptk_pb2_grpc.PtkServiceStub:
        return self._connection.stub(ptk_pb2_grpc.PtkServiceStub)

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
        """Ask for a PTK:

        ACTIVE, WAITING for its profile, or REJECTED with the reason and the nearest target.
        """
        asked = Over.of(over).text
        request = ptk_pb2.RegisterPtkRequest(
            request_id=fresh_id(),
            name=name,
            stream=stream,
            kind=kind,
            config_json=config_json(config),
            target=target,
            train_every=train_every,
            over=asked,
        )
        answer = self._connection.call(
            self._ptks.RegisterPtk, request, timeout_seconds=LONG_SECONDS
        )
        if answer.HasField("ptk") and (answer.ptk.over or ALL) != asked:
            raise Refused(
                "OVER_UNSUPPORTED",
                f"the server is older than `over`: it registered {name!r} over all windows. Retire "
                "it, or update the server and register it under another name",
                ptk=name,
            )
        return messages.registration_view(answer.registration)

    def apply(self, changes: Changes, *, request_id: str = "") -> views.AppliedView:
        """Carry changes out, all of them or none."""
        request = ptk_pb2.ApplyChangesRequest(
            request_id=request_id or fresh_id(), changes_json=config_json(changes.as_json())
        )
        return messages.applied_view(
            self._connection.call(self._ptks.ApplyChanges, request, timeout_seconds=LONG_SECONDS)
        )

    def deregister(self, name: str) -> None:
        """Retire a PTK: its versions stay, it trains no more."""
        self._connection.call(
            self._ptks.DeregisterPtk, ptk_pb2.DeregisterPtkRequest(request_id=fresh_id(), name=name)
        )

    def update_config(
        self, name: str, config: Mapping[str, Any], *, etag: int | None = None
    ) -> views.Registration:
        """Another configuration, profiled and planned anew; kept as it was where that is
        REJECTED.
        """
        request = ptk_pb2.UpdatePtkConfigRequest(
            request_id=fresh_id(),
            name=name,
            config_json=config_json(config),
            etag="" if etag is None else str(etag),
        )
        answer = self._connection.call(
            self._ptks.UpdatePtkConfig, request, timeout_seconds=LONG_SECONDS
        )
        return messages.registration_view(answer.registration)

    def update_target(
        self, name: str, target: float, *, etag: int | None = None
    ) -> views.Registration:
        """Another target, planned anew; kept as it was where that is REJECTED."""
        request = ptk_pb2.UpdatePtkPerformanceTargetRequest(
            request_id=fresh_id(), name=name, target=target, etag="" if etag is None else str(etag)
        )
        answer = self._connection.call(
            self._ptks.UpdatePtkPerformanceTarget, request, timeout_seconds=LONG_SECONDS
        )
        return messages.registration_view(answer.registration)

    def ptks(
        self, stream: str | None = None, *, status: str | None = None, limit: int | None = None
    ) -> list[views.PtkView]:
        """The PTKs by id, with that status if given; the first ``limit`` of them."""
        check_limit(limit)
        request = ptk_pb2.ListPtksRequest(stream=stream or "")
        if status is not None:
            request.status = ptk_status(status)
        pages = self._connection.pages(
            self._ptks.ListPtks, request, page_size=min(limit or PAGE, PAGE)
        )
        listed = (messages.ptk_view(ptk) for page in pages for ptk in page.ptks)
        return list(islice(listed, limit))

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
        """PTKs whose name, kind or stream has every word of ``find``, sorted: one page by its
        number.
        """
        request = ptk_pb2.SearchPtksRequest(
            stream=stream or "",
            find=find,
            sort=sort,
            page=min(page, LARGEST) if page > 0 else -1,
            page_size=min(size, PAGE + 1) if size > 0 else -1,
        )
        if status is not None:
            request.status = ptk_status(status)
        response = self._connection.call(self._ptks.SearchPtks, request)
        return views.PtkPage(
            tuple(messages.ptk_view(ptk) for ptk in response.ptks),
            response.found,
            response.total,
            response.page,
        )

    def ptk_configs(self, name: str, *, limit: int = 20) -> list[views.PtkConfig]:
        """The configurations that a PTK has and had, newest first, at most 100."""
        size = min(limit, MAX_CONFIGS + 1) if limit > 0 else -1
        response = self._connection.call(
            self._ptks.ListPtkConfigs, ptk_pb2.ListPtkConfigsRequest(name=name, page_size=size)
        )
        return [
            views.PtkConfig(config.config_version, json.loads(config.config_json))
            for config in response.configs
        ]

    def subscriptions(self, ptk: str) -> list[views.SubscriptionView]:
        """Who is told of a PTK's states by a call of the server, and how far."""
        pages = self._connection.pages(
            self._ptks.ListSubscriptions, ptk_pb2.ListSubscriptionsRequest(ptk=ptk)
        )
        return [
            views.SubscriptionView(
                subscription.id,
                subscription.ptk,
                subscription.rpc_endpoint,
                subscription.delivered_version,
            )
            for page in pages
            for subscription in page.subscriptions
        ]

    def count_ptks(self, stream: str | None = None) -> dict[str, int]:
        """How many PTKs there are with each status."""
        response = self._connection.call(
            self._ptks.CountPtks, ptk_pb2.CountPtksRequest(stream=stream or "")
        )
        return {messages.status_word(count.status): count.count for count in response.counts}

    def ptk(self, name: str) -> views.PtkView:
        """One PTK. Refused: PTK_UNKNOWN."""
        return messages.ptk_view(
            self._connection.call(self._ptks.GetPtk, ptk_pb2.GetPtkRequest(name=name)).ptk
        )

    def profile(self, name: str, levels: Sequence[str] = ()) -> views.ProfileView:
        """How many samples a PTK needs at each level, as far as that is known."""
        request = ptk_pb2.GetPtkProfileRequest(name=name, levels=levels)
        return messages.profile_view(
            name, self._connection.call(self._ptks.GetPtkProfile, request).profile
        )

    def renew_profile(self, name: str) -> views.ProfileView:
        """Ask for a new profile in the next window; the old one counts until then."""
        request = ptk_pb2.RenewPtkProfileRequest(request_id=fresh_id(), name=name)
        return messages.profile_view(
            name, self._connection.call(self._ptks.RenewPtkProfile, request).profile
        )

    def get_state(self, reference: str, *, as_of_ms: int | None = None) -> State:
        """A state by name: the newest, ``name@v7``, or the newest as of a time.

        Its bytes are verified.
        """
        return read_state(self._connection, self._ptks, reference, as_of_ms)

    def states(self, name: str) -> list[views.StateView]:
        """All versions of a PTK, oldest first."""
        pages = self._connection.pages(self._ptks.ListStates, ptk_pb2.ListStatesRequest(name=name))
        return [messages.state_view(state) for page in pages for state in page.states]

    def subscribe(
        self, name: str, callback: Callable[[views.StateView], None]
    ) -> Callable[[], None]:
        """Call back, in a thread of its own, for every new state of a PTK from now on; returns what
        ends it.
        """
        after = self.ptk(name).latest_version or 0
        return Watch(self._connection, name, after, callback).close

    def kinds(self) -> list[str]:
        """The kinds of PTKs that the server has."""
        return [
            kind.kind
            for kind in self._connection.call(
                self._ptks.ListPtkKinds, ptk_pb2.ListPtkKindsRequest()
            ).kinds
        ]
