"""PtkService: register, change, retire and watch PTKs; read their states; subscribe to them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptkstore.client import Store
from ptkstore.engine import registrations
from ptkstore.engine.finding import find_ptks
from ptkstore.engine.profile_terms import renew, witness
from ptkstore.engine.ptk_views import chosen_state, ptk_view, state_view
from ptkstore.metadata import Transaction, rows
from ptkstore.rpc.dispatch import Call, calls_back
from ptkstore.rpc.happenings import number_of
from ptkstore.rpc.messages import (
    json_object,
    millis,
    profile_message,
    ptk_message,
    registration_message,
    state_message,
    status_number,
    status_word,
)
from ptkstore.rpc.pages import DEFAULT_SIZE, Page
from ptkstore.rpc.state_cache import StateCache
from ptkstore.rpc.watching import Send, Watchers
from ptkstore.v1 import ptk_pb2
from ptkstore.views import Registration

__all__ = ["INLINE_BYTES", "MAX_LEVELS", "PIECE_BYTES", "Ptks", "watch_message"]

INLINE_BYTES = 1 << 20
PIECE_BYTES = 1 << 20
MAX_LEVELS = 100


def watch_message(name: str, row: rows.StateRow) -> bytes:
    """What those who watch a PTK are told of a state."""
    return ptk_pb2.WatchPtkResponse(state=state_message(state_view(name, row))).SerializeToString()


class Ptks:
    """See the contract."""

    def __init__(
        self,
        store: Store,
        watchers: Watchers,
        *,
        endpoint_allowed: Callable[[str], bool],
        answer: registrations.AnswerOf | None = None,
    ) -> None:
        """``endpoint_allowed`` is the operator's allow-list of subscribers; ``answer`` plans, here when left out."""
        self._answer = answer
        self._store = store
        self._watchers = watchers
        self._states = StateCache(store.home.lake.get)
        self._endpoint_allowed = endpoint_allowed

    def register_ptk(self, request: ptk_pb2.RegisterPtkRequest, call: Call) -> ptk_pb2.RegisterPtkResponse:
        """See the contract."""
        home, answer = self._store.home, ptk_pb2.RegisterPtkResponse()
        registrations.register(
            home.metadata,
            self._store.stream(request.stream),
            home.judge(request.stream),
            request.name,
            kind=request.kind,
            config=json_object(request.config_json, "config_json"),
            target=request.target,
            train_every=request.train_every or 1,
            now_ms=home.public_ms(),
            within=_keeping(answer, call),
            answer=self._answer,
        )
        return answer

    def deregister_ptk(self, request: ptk_pb2.DeregisterPtkRequest, call: Call) -> ptk_pb2.DeregisterPtkResponse:
        """See the contract."""
        home = self._store.home
        with home.metadata.write() as tx:
            if tx.ptks.named(request.name).status != "RETIRED":
                registrations.deregister(tx, request.name, now_ms=home.public_ms())
            return call.once.keep(tx, ptk_pb2.DeregisterPtkResponse())

    def update_ptk_config(self, request: ptk_pb2.UpdatePtkConfigRequest, call: Call) -> ptk_pb2.UpdatePtkConfigResponse:
        """See the contract."""
        home, answer = self._store.home, ptk_pb2.UpdatePtkConfigResponse()
        registrations.change(
            home.metadata,
            self._store.stream,
            request.name,
            config=json_object(request.config_json, "config_json"),
            etag=_etag(request.etag),
            now_ms=home.public_ms(),
            within=_keeping(answer, call),
            answer=self._answer,
        )
        return answer

    def update_ptk_performance_target(
        self, request: ptk_pb2.UpdatePtkPerformanceTargetRequest, call: Call
    ) -> ptk_pb2.UpdatePtkPerformanceTargetResponse:
        """See the contract."""
        home, answer = self._store.home, ptk_pb2.UpdatePtkPerformanceTargetResponse()
        registrations.change(
            home.metadata,
            self._store.stream,
            request.name,
            target=request.target,
            etag=_etag(request.etag),
            now_ms=home.public_ms(),
            within=_keeping(answer, call),
            answer=self._answer,
        )
        return answer

    def get_ptk(self, request: ptk_pb2.GetPtkRequest, _call: Call) -> ptk_pb2.GetPtkResponse:
        """See the contract."""
        return ptk_pb2.GetPtkResponse(ptk=self._ptk(request.name))

    def list_ptks(self, request: ptk_pb2.ListPtksRequest, call: Call) -> ptk_pb2.ListPtksResponse:
        """See the contract."""
        status = status_word(request.status)
        if request.status and not status:
            raise InvalidInput("VALUE_INVALID", "status must be one that a PTK can have")
        page = Page(f"ptks {request.stream} {status}", request.page_size, request.page_token)
        found: list[rows.Ptk] = []
        after = page.after
        with self._store.home.metadata.read() as tx:
            # PTKs of others are passed over, so that a page is full unless it is the last.
            while len(found) <= page.size:
                some = tx.ptks.list(request.stream or None, status=status or None, limit=page.size + 1, after=after)
                found += [row for row in some if call.caller.sees_ptk(row.name, row.stream)]
                if len(some) <= page.size:
                    break
                after = some[-1].id
            part, token = page.cut(found[: page.size + 1], lambda row: row.id)
            newest = tx.states.newest([row.id for row in part])
        ptks = [_ptk_message(row, newest.get(row.id)) for row in part]
        return ptk_pb2.ListPtksResponse(ptks=ptks, next_page_token=token)

    def count_ptks(self, request: ptk_pb2.CountPtksRequest, call: Call) -> ptk_pb2.CountPtksResponse:
        """See the contract."""
        stream = request.stream or None
        with self._store.home.metadata.read() as tx:
            if call.caller.limited:
                seen = [one for one in tx.ptks.list(stream) if call.caller.sees_ptk(one.name, one.stream)]
                counts = dict(sorted(Counter(one.status for one in seen).items()))
            else:
                counts = tx.ptks.count_by_status(stream)
        found = [ptk_pb2.PtkCount(status=status_number(word), count=count) for word, count in counts.items()]
        return ptk_pb2.CountPtksResponse(counts=found)

    def search_ptks(self, request: ptk_pb2.SearchPtksRequest, call: Call) -> ptk_pb2.SearchPtksResponse:
        """See the contract."""
        status = status_word(request.status)
        if request.status and not status:
            raise InvalidInput("VALUE_INVALID", "status must be one that a PTK can have")
        with self._store.home.metadata.read() as tx:
            part, newest, found, total, page = find_ptks(
                tx,
                stream=request.stream or None,
                status=status or None,
                find=request.find,
                sort=request.sort or "name",
                page=request.page or 1,
                size=request.page_size or DEFAULT_SIZE,
                sees=call.caller.sees_ptk,
            )
        ptks = [_ptk_message(row, newest.get(row.id)) for row in part]
        return ptk_pb2.SearchPtksResponse(ptks=ptks, found=found, total=total, page=page)

    def list_ptk_configs(self, request: ptk_pb2.ListPtkConfigsRequest, _call: Call) -> ptk_pb2.ListPtkConfigsResponse:
        """See the contract."""
        found = self._store.ptk_configs(request.name, limit=request.page_size or 20)
        return ptk_pb2.ListPtkConfigsResponse(
            configs=[ptk_pb2.PtkConfig(config_version=one.version, config_json=json.dumps(one.config)) for one in found]
        )

    def list_ptk_kinds(self, _request: ptk_pb2.ListPtkKindsRequest, _call: Call) -> ptk_pb2.ListPtkKindsResponse:
        """See the contract."""
        kinds = sorted(registry.kinds().items())
        return ptk_pb2.ListPtkKindsResponse(
            kinds=[
                ptk_pb2.PtkKind(kind=name, config_schema_json=json.dumps(kind.json_schema())) for name, kind in kinds
            ]
        )

    def get_ptk_profile(self, request: ptk_pb2.GetPtkProfileRequest, _call: Call) -> ptk_pb2.GetPtkProfileResponse:
        """See the contract."""
        if len(request.levels) > MAX_LEVELS:
            raise InvalidInput("LEVELS_INVALID", f"at most {MAX_LEVELS} levels can be asked for at once")
        found = self._store.profile(request.name, tuple(request.levels))
        return ptk_pb2.GetPtkProfileResponse(profile=profile_message(found))

    def renew_ptk_profile(self, request: ptk_pb2.RenewPtkProfileRequest, call: Call) -> ptk_pb2.RenewPtkProfileResponse:
        """See the contract."""
        home = self._store.home
        with home.metadata.write() as tx:
            row = tx.ptks.named(request.name)
            found = renew(tx, self._store.stream(row.stream), row, now_ms=home.public_ms())
            return call.once.keep(tx, ptk_pb2.RenewPtkProfileResponse(profile=profile_message(found)))

    def list_states(self, request: ptk_pb2.ListStatesRequest, _call: Call) -> ptk_pb2.ListStatesResponse:
        """See the contract."""
        page = Page(f"states {request.name}", request.page_size, request.page_token)
        with self._store.home.metadata.read() as tx:
            ptk = tx.ptks.named(request.name).id
            found = tx.states.list(ptk, limit=page.size + 1, after=page.after)
        part, token = page.cut(found, lambda row: row.version)
        states = [state_message(state_view(request.name, row)) for row in part]
        return ptk_pb2.ListStatesResponse(states=states, next_page_token=token)

    def get_state(self, request: ptk_pb2.GetStateRequest, _call: Call) -> ptk_pb2.GetStateResponse:
        """See the contract."""
        if request.WhichOneof("which") == "version" and request.version == 0:
            with self._store.home.metadata.read() as tx:
                digest = witness(tx, tx.ptks.named(request.name))
            message = ptk_pb2.State(name=request.name, digest=digest)
        else:
            message = state_message(state_view(request.name, self._state(request)))
        arrays, manifest = self._states.get(message.digest)
        presigned = getattr(self._store.home.lake, "presigned_url", None)
        return ptk_pb2.GetStateResponse(
            state=message,
            manifest=manifest,
            arrays=arrays if len(arrays) <= INLINE_BYTES else b"",
            arrays_bytes=len(arrays),
            presigned_url=presigned(message.digest) if request.presign and presigned is not None else "",
        )

    def read_state(self, request: ptk_pb2.ReadStateRequest, _call: Call) -> Iterator[ptk_pb2.ReadStateResponse]:
        """See the contract."""
        with self._store.home.metadata.read() as tx:
            ptk = tx.ptks.named(request.name)
            known = tx.states.has_digest(ptk.id, request.digest) or request.digest == _witness(tx, ptk)
        if not known:
            raise Refused("STATE_UNKNOWN", f"PTK {request.name!r} has no state with this digest")
        arrays = self._states.get(request.digest)[0]
        for begin in range(0, len(arrays), PIECE_BYTES):
            yield ptk_pb2.ReadStateResponse(piece=arrays[begin : begin + PIECE_BYTES])

    @calls_back
    def watch_ptk(self, request: ptk_pb2.WatchPtkRequest, call: Call, send: Send) -> None:
        """See the contract."""
        self._watchers.watch(request.name, max(0, request.after_version), call.context, send)

    def subscribe_to_ptk(self, request: ptk_pb2.SubscribeToPtkRequest, call: Call) -> ptk_pb2.SubscribeToPtkResponse:
        """See the contract."""
        if not self._endpoint_allowed(request.rpc_endpoint):
            raise Refused(
                "ENDPOINT_NOT_ALLOWED",
                "rpc_endpoint must be host:port and on the operator's list (subscribers.allowed)",
            )
        with self._store.home.metadata.write() as tx:
            ptk = tx.ptks.named(request.ptk)
            one = tx.subscriptions.add(ptk.id, request.rpc_endpoint)
            if tx.notifications.mark(one.id) is None:
                latest = tx.states.latest(ptk.id)
                tx.notifications.set_mark(one.id, latest.version if latest is not None else 0)
            message = _subscription_message(tx, one, ptk.name)
            return call.once.keep(tx, ptk_pb2.SubscribeToPtkResponse(subscription=message))

    def unsubscribe_from_ptk(
        self, request: ptk_pb2.UnsubscribeFromPtkRequest, call: Call
    ) -> ptk_pb2.UnsubscribeFromPtkResponse:
        """See the contract."""
        number = number_of(request.id, "a subscription")
        with self._store.home.metadata.write() as tx:
            for one in tx.subscriptions.list(limit=1, after=number - 1):
                if one.id == number:
                    ptk = tx.ptks.get(one.ptk)
                    call.caller.require_ptk(ptk.name, ptk.stream)
                    tx.notifications.forget(number)
                    tx.subscriptions.remove(number)
            return call.once.keep(tx, ptk_pb2.UnsubscribeFromPtkResponse())

    def list_subscriptions(
        self, request: ptk_pb2.ListSubscriptionsRequest, call: Call
    ) -> ptk_pb2.ListSubscriptionsResponse:
        """See the contract."""
        page = Page(f"subscriptions {request.ptk}", request.page_size, request.page_token)
        messages: list[ptk_pb2.Subscription] = []
        ptks: dict[int, rows.Ptk] = {}
        after = page.after
        with self._store.home.metadata.read() as tx:
            wanted = tx.ptks.named(request.ptk).id if request.ptk else None
            while len(messages) <= page.size:
                some = tx.subscriptions.list(wanted, limit=page.size + 1, after=after)
                for one in some:
                    ptk = ptks[one.ptk] = ptks.get(one.ptk) or tx.ptks.get(one.ptk)
                    if call.caller.sees_ptk(ptk.name, ptk.stream):
                        messages.append(_subscription_message(tx, one, ptk.name))
                if len(some) <= page.size:
                    break
                after = some[-1].id
        part, token = page.cut(messages[: page.size + 1], lambda one: int(one.id))
        return ptk_pb2.ListSubscriptionsResponse(subscriptions=part, next_page_token=token)

    def _ptk(self, name: str) -> ptk_pb2.Ptk:
        with self._store.home.metadata.read() as tx:
            found = tx.newest.named(name)
        return _ptk_message(found.ptk, found.state)

    def _state(self, request: ptk_pb2.GetStateRequest) -> rows.StateRow:
        version = request.version if request.WhichOneof("which") == "version" else None
        as_of_ms = millis(request, "as_of")
        with self._store.home.metadata.read() as tx:
            return chosen_state(tx, request.name, version=version, as_of_ms=as_of_ms)


def _keeping(answer: Any, call: Call) -> Callable[[Transaction, Registration], None]:
    """Fill the answer to a registration or a change in its transaction, and keep it there."""

    def within(tx: Transaction, found: Registration) -> None:
        known = tx.newest.named(found.name)
        answer.registration.CopyFrom(registration_message(found))
        answer.ptk.CopyFrom(_ptk_message(known.ptk, known.state))
        call.once.keep(tx, answer)

    return within


def _ptk_message(row: rows.Ptk, latest: rows.StateRow | None) -> ptk_pb2.Ptk:
    return ptk_message(ptk_view(row, latest), row.etag)


def _subscription_message(tx: Transaction, one: rows.Subscription, ptk: str) -> ptk_pb2.Subscription:
    told = tx.notifications.mark(one.id) or 0
    return ptk_pb2.Subscription(id=str(one.id), ptk=ptk, rpc_endpoint=one.endpoint, delivered_version=told)


def _witness(tx: Transaction, ptk: rows.Ptk) -> str | None:
    try:
        return witness(tx, ptk)
    except Refused:
        return None


def _etag(text: str) -> int | None:
    """The etag a caller gave back; None where it gave none. Reason: ID_INVALID."""
    return number_of(text, "a state of the PTK (etag)") if text else None
