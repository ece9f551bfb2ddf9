"""PtkService: register, change, retire and watch PTKs; read their states; subscribe to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptkstore.api.changes import Changes
from ptkstore.api.over import ALL
from ptkstore.api.paging import DEFAULT_SIZE
from ptkstore.api.permissions import PERMISSIONS
from ptkstore.api.references import number_of
from ptkstore.api.views import AppliedView, ProfileView, Registration, SubscriptionView
from ptkstore.engine.asking import Ask, here
from ptkstore.engine.catalogue import profiles, ptks, states
from ptkstore.engine.catalogue.ptk_views import state_view
from ptkstore.engine.notices import subscriptions
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans import registrations
from ptkstore.engine.plans.applying import apply_changes, streams_concerned
from ptkstore.engine.within import Within
from ptkstore.metadata import Transaction, rows
from ptkstore.rpc.feeds.state_cache import StateCache
from ptkstore.rpc.feeds.watching import Send, Watchers
from ptkstore.rpc.gate.dispatch import Call, calls_back
from ptkstore.rpc.gate.identity import Caller
from ptkstore.v1 import ptk_pb2
from ptkstore.wire.messages import (
    applied_message,
    json_object,
    millis,
    profile_message,
    ptk_message,
    registration_message,
    state_message,
    status_number,
    status_word,
)

__all__ = ["INLINE_BYTES", "MAX_LEVELS", "PIECE_BYTES", "PtkService", "watch_message"]

INLINE_BYTES = 1 << 20
PIECE_BYTES = 1 << 20
MAX_LEVELS = 100
_CREATE_STREAM = "/ptkstore.v1.StreamService/CreateStream"


def watch_message(name: str, row: rows.StateRow) -> bytes:
    """What those who watch a PTK are told of a state."""
    return ptk_pb2.WatchPtkResponse(state=state_message(state_view(name, row))).SerializeToString()


class PtkService:
    """See the contract."""

    def __init__(
        self,
        parts: Parts,
        watchers: Watchers,
        *,
        endpoint_allowed: Callable[[str], bool],
        ask: Ask = here,
    ) -> None:
        """``endpoint_allowed`` is the operator's allow-list of subscribers; ``ask`` says where
        registrations are planned.
        """
        self._ask = ask
        self._parts = parts
        self._watchers = watchers
        self._states = StateCache(parts.lake.get)
        self._endpoint_allowed = endpoint_allowed

    def register_ptk(
        self, request: ptk_pb2.RegisterPtkRequest, call: Call
    ) -> ptk_pb2.RegisterPtkResponse:
        """See the contract."""
        parts, answer = self._parts, ptk_pb2.RegisterPtkResponse()
        registrations.register(
            parts.metadata,
            parts.specs.named(request.stream),
            parts.privacy_filter(request.stream),
            request.name,
            kind=request.kind,
            config=json_object(request.config_json, "config_json"),
            target=request.target,
            train_every=request.train_every or 1,
            over=request.over or ALL,
            now_ms=parts.public_ms(),
            within=_keeping(answer, call),
            ask=self._ask,
            memory_bytes=parts.workers.memory_bytes,
        )
        return answer

    def deregister_ptk(
        self, request: ptk_pb2.DeregisterPtkRequest, call: Call
    ) -> ptk_pb2.DeregisterPtkResponse:
        """See the contract."""
        answer = ptk_pb2.DeregisterPtkResponse()
        registrations.deregister(
            self._parts, request.name, lambda tx, _none: call.once.keep(tx, answer)
        )
        return answer

    def update_ptk_config(
        self, request: ptk_pb2.UpdatePtkConfigRequest, call: Call
    ) -> ptk_pb2.UpdatePtkConfigResponse:
        """See the contract."""
        answer = ptk_pb2.UpdatePtkConfigResponse()
        config = json_object(request.config_json, "config_json")
        self._change(request, _keeping(answer, call), config=config)
        return answer

    def update_ptk_performance_target(
        self, request: ptk_pb2.UpdatePtkPerformanceTargetRequest, call: Call
    ) -> ptk_pb2.UpdatePtkPerformanceTargetResponse:
        """See the contract."""
        answer = ptk_pb2.UpdatePtkPerformanceTargetResponse()
        self._change(request, _keeping(answer, call), target=request.target)
        return answer

    def _change(
        self,
        request: ptk_pb2.UpdatePtkConfigRequest | ptk_pb2.UpdatePtkPerformanceTargetRequest,
        within: Within[Registration],
        *,
        config: Mapping[str, Any] | None = None,
        target: float | None = None,
    ) -> None:
        parts = self._parts
        registrations.change(
            parts.metadata,
            parts.specs.named,
            request.name,
            config=config,
            target=target,
            etag=_etag(request.etag),
            now_ms=parts.public_ms(),
            within=within,
            ask=self._ask,
            memory_bytes=parts.workers.memory_bytes,
        )

    def apply_changes(
        self, request: ptk_pb2.ApplyChangesRequest, call: Call
    ) -> ptk_pb2.ApplyChangesResponse:
        """See the contract."""
        changes = Changes.from_json(json_object(request.changes_json, "changes_json"))
        _require_rights(call.caller, changes, streams_concerned(self._parts, changes))

        def within(tx: Transaction, applied: AppliedView) -> None:
            call.once.keep(tx, applied_message(applied))

        return applied_message(apply_changes(self._parts, changes, within))

    def get_ptk(self, request: ptk_pb2.GetPtkRequest, _call: Call) -> ptk_pb2.GetPtkResponse:
        """See the contract."""
        return ptk_pb2.GetPtkResponse(ptk=_ptk_message(ptks.named(self._parts, request.name)))

    def list_ptks(self, request: ptk_pb2.ListPtksRequest, call: Call) -> ptk_pb2.ListPtksResponse:
        """See the contract."""
        page = ptks.page_of(
            self._parts,
            request.stream,
            _status(request.status),
            limit=request.page_size,
            page_token=request.page_token,
            sees=call.caller.sees_ptk,
        )
        return ptk_pb2.ListPtksResponse(
            ptks=[_ptk_message(record) for record in page.ptks],
            next_page_token=page.next_page_token,
        )

    def count_ptks(
        self, request: ptk_pb2.CountPtksRequest, call: Call
    ) -> ptk_pb2.CountPtksResponse:
        """See the contract."""
        sees = call.caller.sees_ptk if call.caller.limited else None
        counts = ptks.count(self._parts, request.stream or None, sees=sees)
        ptk_counts = [
            ptk_pb2.PtkCount(status=status_number(word), count=count)
            for word, count in counts.items()
        ]
        return ptk_pb2.CountPtksResponse(counts=ptk_counts)

    def search_ptks(
        self, request: ptk_pb2.SearchPtksRequest, call: Call
    ) -> ptk_pb2.SearchPtksResponse:
        """See the contract."""
        search = ptks.search(
            self._parts,
            request.stream or None,
            status=_status(request.status) or None,
            find=request.find,
            sort=request.sort or "name",
            page=request.page or 1,
            size=request.page_size or DEFAULT_SIZE,
            sees=call.caller.sees_ptk,
        )
        return ptk_pb2.SearchPtksResponse(
            ptks=[_ptk_message(record) for record in search.ptks],
            found=search.found,
            total=search.total,
            page=search.page,
        )

    def list_ptk_configs(
        self, request: ptk_pb2.ListPtkConfigsRequest, _call: Call
    ) -> ptk_pb2.ListPtkConfigsResponse:
        """See the contract."""
        ptk_configs = ptks.configs(self._parts, request.name, limit=request.page_size or 20)
        return ptk_pb2.ListPtkConfigsResponse(
            configs=[
                ptk_pb2.PtkConfig(
                    config_version=ptk_config.version, config_json=json.dumps(ptk_config.config)
                )
                for ptk_config in ptk_configs
            ]
        )

    def list_ptk_kinds(
        self, _request: ptk_pb2.ListPtkKindsRequest, _call: Call
    ) -> ptk_pb2.ListPtkKindsResponse:
        """See the contract."""
        kinds = sorted(registry.kinds().items())
        return ptk_pb2.ListPtkKindsResponse(
            kinds=[
                ptk_pb2.PtkKind(kind=name, config_schema_json=json.dumps(kind.json_schema()))
                for name, kind in kinds
            ]
        )

    def get_ptk_profile(
        self, request: ptk_pb2.GetPtkProfileRequest, _call: Call
    ) -> ptk_pb2.GetPtkProfileResponse:
        """See the contract."""
        if len(request.levels) > MAX_LEVELS:
            raise InvalidInput(
                "LEVELS_INVALID", f"at most {MAX_LEVELS} levels can be asked for at once"
            )
        profile = profiles.profile_of(self._parts, request.name, tuple(request.levels))
        return ptk_pb2.GetPtkProfileResponse(profile=profile_message(profile))

    def renew_ptk_profile(
        self, request: ptk_pb2.RenewPtkProfileRequest, call: Call
    ) -> ptk_pb2.RenewPtkProfileResponse:
        """See the contract."""
        answer = ptk_pb2.RenewPtkProfileResponse()

        def within(tx: Transaction, view: ProfileView) -> None:
            answer.profile.CopyFrom(profile_message(view))
            call.once.keep(tx, answer)

        profiles.renew(self._parts, request.name, within)
        return answer

    def list_states(
        self, request: ptk_pb2.ListStatesRequest, _call: Call
    ) -> ptk_pb2.ListStatesResponse:
        """See the contract."""
        page = states.page_of(
            self._parts, request.name, limit=request.page_size, page_token=request.page_token
        )
        return ptk_pb2.ListStatesResponse(
            states=[state_message(view) for view in page.states],
            next_page_token=page.next_page_token,
        )

    def get_state(self, request: ptk_pb2.GetStateRequest, _call: Call) -> ptk_pb2.GetStateResponse:
        """See the contract."""
        version = request.version if request.WhichOneof("which") == "version" else None
        if version == 0:
            digest = states.witness_digest(self._parts, request.name)
            message = ptk_pb2.State(name=request.name, digest=digest)
        else:
            as_of_ms = millis(request, "as_of")
            view = states.chosen(self._parts, request.name, version=version, as_of_ms=as_of_ms)
            message = state_message(view)
        arrays, manifest = self._states.get(message.digest)
        presigned = getattr(self._parts.lake, "presigned_url", None)
        return ptk_pb2.GetStateResponse(
            state=message,
            manifest=manifest,
            arrays=arrays if len(arrays) <= INLINE_BYTES else b"",
            arrays_bytes=len(arrays),
            presigned_url=presigned(message.digest)
            if request.presign and presigned is not None
            else "",
        )

    def read_state(
        self, request: ptk_pb2.ReadStateRequest, _call: Call
    ) -> Iterator[ptk_pb2.ReadStateResponse]:
        """See the contract."""
        states.require_digest(self._parts, request.name, request.digest)
        arrays = self._states.get(request.digest)[0]
        for begin in range(0, len(arrays), PIECE_BYTES):
            yield ptk_pb2.ReadStateResponse(piece=arrays[begin : begin + PIECE_BYTES])

    @calls_back
    def watch_ptk(self, request: ptk_pb2.WatchPtkRequest, call: Call, send: Send) -> None:
        """See the contract."""
        after = max(0, request.after_version)
        self._watchers.watch(call.who, request.name, after, call.context, send)

    def subscribe_to_ptk(
        self, request: ptk_pb2.SubscribeToPtkRequest, call: Call
    ) -> ptk_pb2.SubscribeToPtkResponse:
        """See the contract."""
        if not self._endpoint_allowed(request.rpc_endpoint):
            raise Refused(
                "ENDPOINT_NOT_ALLOWED",
                "rpc_endpoint must be host:port and on the operator's list (subscribers.allowed)",
            )
        answer = ptk_pb2.SubscribeToPtkResponse()

        def within(tx: Transaction, view: SubscriptionView) -> None:
            answer.subscription.CopyFrom(_subscription_message(view))
            call.once.keep(tx, answer)

        subscriptions.subscribe(self._parts, request.ptk, request.rpc_endpoint, within)
        return answer

    def unsubscribe_from_ptk(
        self, request: ptk_pb2.UnsubscribeFromPtkRequest, call: Call
    ) -> ptk_pb2.UnsubscribeFromPtkResponse:
        """See the contract."""
        answer = ptk_pb2.UnsubscribeFromPtkResponse()
        subscriptions.unsubscribe(
            self._parts,
            request.id,
            lambda tx, _none: call.once.keep(tx, answer),
            require=call.caller.require_ptk,
        )
        return answer

    def list_subscriptions(
        self, request: ptk_pb2.ListSubscriptionsRequest, call: Call
    ) -> ptk_pb2.ListSubscriptionsResponse:
        """See the contract."""
        page = subscriptions.page_of(
            self._parts,
            request.ptk,
            limit=request.page_size,
            page_token=request.page_token,
            sees=call.caller.sees_ptk,
        )
        return ptk_pb2.ListSubscriptionsResponse(
            subscriptions=[_subscription_message(view) for view in page.subscriptions],
            next_page_token=page.next_page_token,
        )


def _keeping(answer: Any, call: Call) -> Callable[[Transaction, Registration], None]:
    """Fill the answer to a registration or a change in its transaction, and keep it there."""

    def within(tx: Transaction, registration: Registration) -> None:
        answer.registration.CopyFrom(registration_message(registration))
        answer.ptk.CopyFrom(_ptk_message(ptks.record(tx, registration.name)))
        call.once.keep(tx, answer)

    return within


def _ptk_message(record: ptks.PtkRecord) -> ptk_pb2.Ptk:
    return ptk_message(record.view, record.etag)


def _subscription_message(view: SubscriptionView) -> ptk_pb2.Subscription:
    return ptk_pb2.Subscription(
        id=view.id,
        ptk=view.ptk,
        rpc_endpoint=view.endpoint,
        delivered_version=view.delivered_version,
    )


def _status(number: int) -> str:
    """The status that is asked for; empty for every one. Reason: VALUE_INVALID."""
    word = status_word(number)
    if number and not word:
        raise InvalidInput("VALUE_INVALID", "status must be one that a PTK can have")
    return word


def _etag(text: str) -> int | None:
    """The etag a caller gave back; None where it gave none. Reason: ID_INVALID."""
    return number_of(text, "a state of the PTK (etag)") if text else None


def _require_rights(caller: Caller, changes: Changes, streams: Mapping[str, str | None]) -> None:
    """Streams are made, and told what to use, by those who may make streams; PTKs are added and changed by those whose
    they are.
    """
    if changes.streams or changes.use:
        caller.require_role(PERMISSIONS[_CREATE_STREAM])
    for name, stream in streams.items():
        caller.require_ptk(name, stream)
    for new in changes.add:
        caller.require_stream(new.stream)
    for stream in changes.use:
        caller.require_stream(stream)
