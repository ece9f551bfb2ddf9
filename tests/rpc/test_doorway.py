"""Calls that say nothing, or too much, hold up themselves alone: health and everybody else are
answered meanwhile.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from ptkstore.rpc.gate import places as rpc_places
from ptkstore.rpc.gate.places import Places
from ptkstore.server import Server
from ptkstore.v1 import stream_pb2
from ptkstore.wire.faults import LimitExceeded, error_of
from tests.engine.small import spec
from tests.rpc.calling import Clients
from tests.rpc.silent import SilentConnection
from tests.rpc.small import channel_to, serving

LIST = "/ptkstore.v1.StreamService/ListStreams"
APPEND = "/ptkstore.v1.StreamService/Append"
CHECK = "/grpc.health.v1.Health/Check"
WATCH = "/grpc.health.v1.Health/Watch"
MANY = 5_000
# Generous: whoever is locked out is locked out for good.
SECONDS = 20


@pytest.fixture
def clients(tmp_path: Path) -> Iterator[Clients]:
    with (
        serving(tmp_path, auth={"required": True}) as (server, store),
        channel_to(server) as channel,
    ):
        store.create_stream(spec())
        yield Clients(server, store, channel)


def health(server: Server) -> Any:
    """What a probe hears that comes anew."""
    with channel_to(server) as channel:
        request = health_pb2.HealthCheckRequest()
        return health_pb2_grpc.HealthStub(channel).Check(request, timeout=SECONDS).status


def asked(server: Server, token: str | None = None) -> str:
    """What a caller hears that comes anew."""
    metadata = () if token is None else (("authorization", f"Bearer {token}"),)
    with channel_to(server) as channel:
        try:
            channel.unary_unary(LIST)(b"", metadata=metadata, timeout=SECONDS)
        except grpc.RpcError as error:
            return error_of(error).reason
    return "OK"


@pytest.mark.parametrize("method", [LIST, APPEND, "/ptkstore.v1.EventService/WatchEvents"])
@pytest.mark.parametrize("known", [False, True])
def test_calls_without_a_message_lock_nobody_out(
    clients: Clients, method: str, known: bool
) -> None:
    operator = clients.token("root", "operator")
    eve = clients.token("eve", "reader", "producer")
    with SilentConnection(clients.server.address) as silent:
        begun = silent.call(method, MANY, token=eve if known else None)
        assert health(clients.server) == health_pb2.HealthCheckResponse.SERVING
        assert asked(clients.server, operator) == "OK"
        if known:
            assert silent.open_calls(begun), "who is known may wait"
        else:
            assert silent.wait_until_ended(begun, SECONDS), "who is not known is refused at once"


def test_many_connections_lock_nobody_out_where_callers_have_no_names(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, _), ExitStack() as stack:
        for silent in [stack.enter_context(SilentConnection(server.address)) for _ in range(20)]:
            silent.call(LIST, MANY // 20)
        assert health(server) == health_pb2.HealthCheckResponse.SERVING
        assert asked(server) == "OK"


def test_a_call_without_a_message_is_ended_in_time_and_written_down(tmp_path: Path) -> None:
    with (
        serving(tmp_path, auth={"required": True}, server={"first_message_seconds": 0.5}) as (
            server,
            store,
        ),
        channel_to(server) as channel,
    ):
        clients = Clients(server, store, channel)
        with SilentConnection(server.address) as silent:
            begun = silent.call(LIST, 8, token=clients.token("eve", "reader"))
            assert silent.wait_until_ended(begun, SECONDS)
        assert ("eve", "ListStreams", "", "FIRST_MESSAGE_LATE") in clients.audit()


def test_a_call_that_ends_without_a_message_is_told_so(clients: Clients) -> None:
    token = (("authorization", f"Bearer {clients.token('ann', 'reader')}"),)
    with pytest.raises(grpc.RpcError) as error:
        clients.channel.stream_unary(LIST)(iter(()), metadata=token, timeout=SECONDS)
    assert error_of(error.value).reason == "REQUEST_UNREADABLE"


def test_health_is_not_locked_out_by_its_own_callers(clients: Clients) -> None:
    with (
        SilentConnection(clients.server.address) as silent,
        SilentConnection(clients.server.address) as other,
    ):
        begun = silent.call(CHECK, MANY)
        other.call(WATCH, MANY)
        for _ in range(3):
            assert health(clients.server) == health_pb2.HealthCheckResponse.SERVING
        assert silent.wait_until_ended(begun, SECONDS)


def test_who_watches_health_and_reads_nothing_holds_up_nobody(clients: Clients) -> None:
    with SilentConnection(clients.server.address, window=0) as deaf:
        deaf.call(
            WATCH,
            4,
            message=health_pb2.HealthCheckRequest(service="").SerializeToString() or b"\x0a\x00",
        )
        stub = health_pb2_grpc.HealthStub(clients.channel)
        heard = stub.Watch(health_pb2.HealthCheckRequest(), timeout=SECONDS)
        assert next(heard).status == health_pb2.HealthCheckResponse.SERVING
        assert health(clients.server) == health_pb2.HealthCheckResponse.SERVING
        clients.server._health.enter_graceful_shutdown()
        assert next(heard).status == health_pb2.HealthCheckResponse.NOT_SERVING
        assert health(clients.server) == health_pb2.HealthCheckResponse.NOT_SERVING


def test_no_caller_takes_all_places_with_calls_that_stay(clients: Clients) -> None:
    """An Append is open as long as its producer likes."""
    opening = stream_pb2.AppendRequest(
        open=stream_pb2.AppendOpen(stream="rides", producer="eve")
    ).SerializeToString()
    operator, eve = clients.token("root", "operator"), clients.token("eve", "producer")
    with SilentConnection(clients.server.address) as busy:
        begun = busy.call(APPEND, 200, token=eve, message=opening)
        assert asked(clients.server, operator) == "OK"
        while len(busy.open_calls(begun)) > 16:
            busy.wait_until_ended(begun, 0.05)
        assert asked(clients.server, eve) == "TOO_MANY_CALLS"
        assert asked(clients.server, operator) == "OK"


def test_places_go_to_who_arrives_and_are_taken_from_who_has_most_silent_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rpc_places, "GRACE_SECONDS", 0.0)
    places = Places(most=4, most_each=3, first_message_seconds=60)
    ended: list[str] = []
    gone = threading.Event()

    def enter(who: str, name: str) -> Any:
        def end() -> None:
            ended.append(name)
            gone.set()

        places.arrive(None)
        return places.enter(who, end, arrived=None)

    crowd = [enter("eve", f"eve {number}") for number in range(3)]
    with pytest.raises(LimitExceeded, match="3 calls of yours"):
        enter("eve", "eve 3")
    with pytest.raises(LimitExceeded, match="3 calls of yours"):
        places.arrive("eve")
    enter("ann", "ann")
    assert not ended
    places.arrive(None)
    assert gone.wait(SECONDS), "there is a fifth, for whom one has to go"
    assert ended == ["eve 0"]
    crowd[0].leave()
    places.turn_away(None)
    monkeypatch.setattr(rpc_places, "MOST_IN_LINE", 0)
    with pytest.raises(LimitExceeded, match="every thread is busy"):
        places.arrive(None)
    places.close()
