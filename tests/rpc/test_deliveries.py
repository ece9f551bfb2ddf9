"""Subscribers are told of every new state, at least once and in order, whatever they do."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from ptklib.errors import SageError
from ptkstore import Store
from ptkstore.api.times import GRAIN_MS
from ptkstore.backoff import Backoff
from ptkstore.rpc.feeds.delivering import Deliverer, Pace
from ptkstore.rpc.feeds.endpoints import is_allowed, resolved
from ptkstore.v1 import operation_pb2, operation_pb2_grpc, ptk_pb2, ptk_pb2_grpc
from ptkstore.wire.faults import error_of
from tests.engine.small import DAY_MS, FIRST_MS
from tests.rpc.small import PACE, channel_to, serving
from tests.rpc.store_suite import filled


class Subscriber(ptk_pb2_grpc.SubscriberServiceServicer):
    """Keeps what it was told; ``refuse(version)`` makes it fail."""

    def __init__(self, refuse: Callable[[int], bool] = lambda _: False) -> None:
        self.refuse = refuse
        self.told: list[int] = []
        self.asked: list[int] = []

    def NotifyNewPtkState(self, request: Any, context: Any) -> Any:  # noqa: N802
        self.asked.append(request.state.version)
        if self.refuse(request.state.version):
            context.abort(grpc.StatusCode.INTERNAL, "a text that must not be kept")
        self.told.append(request.state.version)
        return ptk_pb2.NotifyNewPtkStateResponse()


@contextmanager
def listening(subscriber: Subscriber, address: str = "127.0.0.1:0") -> Iterator[str]:
    server = grpc.server(ThreadPoolExecutor(4), options=[("grpc.so_reuseport", 0)])
    ptk_pb2_grpc.add_SubscriberServiceServicer_to_server(subscriber, server)
    port = server.add_insecure_port(address)
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


def until(holds: Callable[[], object], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def subscribe(channel: grpc.Channel, endpoint: str, request_id: str = "") -> ptk_pb2.Subscription:
    request = ptk_pb2.SubscribeToPtkRequest(
        request_id=request_id, ptk="hour-speed", rpc_endpoint=endpoint
    )
    found: ptk_pb2.Subscription = (
        ptk_pb2_grpc.PtkServiceStub(channel).SubscribeToPtk(request).subscription
    )
    return found


def run(store: Store, *days: int) -> None:
    for number in days:
        store.run("rides", until_ms=FIRST_MS + number * DAY_MS)


def deliveries(channel: grpc.Channel, dead_only: bool = False) -> list[Any]:
    stub = operation_pb2_grpc.EventServiceStub(channel)
    return list(
        stub.ListDeliveries(operation_pb2.ListDeliveriesRequest(dead_only=dead_only)).deliveries
    )


def test_new_states_are_told_in_order_and_old_ones_are_not(tmp_path: Path) -> None:
    subscriber = Subscriber()
    with (
        serving(tmp_path) as (server, store),
        channel_to(server) as channel,
        listening(subscriber) as endpoint,
    ):
        filled(store, 4)
        run(store, 1)
        first = subscribe(channel, endpoint)
        assert (first.ptk, first.rpc_endpoint, first.delivered_version) == (
            "hour-speed",
            endpoint,
            1,
        )
        assert subscribe(channel, endpoint) == first
        run(store, 2, 3)
        until(lambda: subscriber.told == [2, 3])
        stub = ptk_pb2_grpc.PtkServiceStub(channel)
        until(
            lambda: (
                stub.ListSubscriptions(ptk_pb2.ListSubscriptionsRequest())
                .subscriptions[0]
                .delivered_version
                == 3
            )
        )
        stub.UnsubscribeFromPtk(ptk_pb2.UnsubscribeFromPtkRequest(id=first.id))
        stub.UnsubscribeFromPtk(ptk_pb2.UnsubscribeFromPtkRequest(id=first.id))
        run(store, 4)
        time.sleep(0.5)
        assert subscriber.told == [2, 3]
        assert not stub.ListSubscriptions(
            ptk_pb2.ListSubscriptionsRequest(ptk="hour-speed")
        ).subscriptions
        deliverer = server._deliverer
        assert deliverer is not None
        until(lambda: not deliverer._channels)  # to whom nobody subscribes any more
        assert deliveries(channel) == []


def test_a_subscriber_that_comes_back_gets_what_it_missed_in_order(tmp_path: Path) -> None:
    subscriber = Subscriber()
    patient = replace(PACE, attempts=10_000)
    with serving(tmp_path, pace=patient) as (server, store), channel_to(server) as channel:
        filled(store, 3)
        with listening(subscriber) as endpoint:
            subscribe(channel, endpoint)
            run(store, 1)
            until(lambda: subscriber.told == [1])
        run(store, 2)
        until(lambda: deliveries(channel))
        (late,) = deliveries(channel)
        assert (late.version, late.dead, late.reason, late.rpc_endpoint) == (
            2,
            False,
            "UNAVAILABLE",
            endpoint,
        )
        assert late.HasField("next_attempt_time")
        assert late.next_attempt_time.ToMilliseconds() % GRAIN_MS == 0
        run(store, 3)
        with listening(subscriber, endpoint):
            until(lambda: subscriber.told[-2:] == [2, 3])
            until(lambda: deliveries(channel) == [])


def test_one_that_refuses_holds_up_nobody_else_and_ends_as_a_dead_letter(tmp_path: Path) -> None:
    stubborn, good = Subscriber(lambda version: version == 1), Subscriber()
    with (
        serving(tmp_path) as (server, store),
        channel_to(server) as channel,
        listening(stubborn) as there,
        listening(good) as here,
    ):
        filled(store, 2)
        subscribe(channel, there)
        subscribe(channel, here)
        run(store, 1, 2)
        until(lambda: good.told == [1, 2])
        until(lambda: stubborn.told == [2])
        assert stubborn.asked == [1, 1, 1, 1, 2]
        (dead,) = deliveries(channel, dead_only=True)
        assert (dead.version, dead.attempts, dead.dead, dead.reason) == (1, 4, True, "INTERNAL")
        assert not dead.HasField("next_attempt_time")
        stubborn.refuse = lambda _: False
        events = operation_pb2_grpc.EventServiceStub(channel)
        again = events.RetryDelivery(
            operation_pb2.RetryDeliveryRequest(request_id="x", id=dead.id)
        ).delivery
        assert not again.dead
        until(lambda: stubborn.told == [2, 1])
        until(lambda: deliveries(channel) == [])
        with pytest.raises(grpc.RpcError) as error:
            events.RetryDelivery(operation_pb2.RetryDeliveryRequest(id=dead.id))
        assert error_of(error.value).reason == "DELIVERY_UNKNOWN"


def test_what_is_due_survives_a_restart(tmp_path: Path) -> None:
    subscriber = Subscriber()
    with listening(subscriber) as endpoint:
        pass
    patient = replace(PACE, attempts=10_000)
    with serving(tmp_path, pace=patient) as (server, store), channel_to(server) as channel:
        filled(store, 2)
        subscribe(channel, endpoint)
        run(store, 1)
        until(lambda: deliveries(channel))
    with Store(tmp_path, workers=0) as store:
        run(store, 2)  # while no server runs
    with listening(subscriber, endpoint), serving(tmp_path, pace=patient):
        until(lambda: subscriber.told[-1:] == [2])
    assert subscriber.told == [1, 2]


def test_a_slow_subscriber_does_not_keep_the_server_from_stopping(tmp_path: Path) -> None:
    asked = threading.Event()
    free = threading.Event()

    def wait(_version: int) -> bool:
        asked.set()
        return not free.wait(10)

    with listening(Subscriber(wait)) as endpoint:
        with serving(tmp_path) as (server, store), channel_to(server) as channel:
            filled(store)
            subscribe(channel, endpoint)
            run(store, 1)
            assert asked.wait(10)
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 8
        free.set()


@pytest.mark.parametrize(
    ("endpoint", "allowed"),
    [
        ("a.example:1", True),
        ("b.a.example:1", False),
        ("10.0.0.7:9000", True),
        ("10.0.0.7:9001", False),
        ("[::1]:5", True),
        ("a.example:0", False),
        ("a.example:65536", False),
        ("a.example", False),
        ("unix:/tmp/x:1", False),
        ("dns:///a.example:1", False),
        ("ipv4:10.0.0.7:9000", False),
        ("a.example:1\n", False),
        ("a.example:1/x", False),
        ("user@a.example:1", False),
        ("", False),
        ("*:1", False),
    ],
)
def test_endpoints_are_on_the_list_and_nothing_but_host_and_port(
    endpoint: str, allowed: bool
) -> None:
    patterns = ("a.example:*", "10.0.0.?:9000", "[[]::1]:5", "*x:1")
    assert is_allowed(endpoint, patterns) == allowed
    assert not is_allowed(endpoint, ())


@pytest.mark.parametrize(
    ("endpoint", "patterns", "allowed"),
    [
        ("10.1.2.3:1", "10.*:*", True),
        ("10.evil.com:1", "10.*:*", False),
        ("10.1.2.evil:1", "10.*.*.*:*", False),
        ("10.1.2.3:1", "10.0.0.0/8:*", True),
        ("11.1.2.3:1", "10.0.0.0/8:*", False),
        ("[fd00::5]:1", "[fd00::/8]:*", True),
        ("[fe80::5]:1", "[fd00::/8]:*", False),
        ("a.corp:1", "*.corp:*", True),
        ("a.b.corp:1", "*.corp:*", False),
        ("evil.com.corp:1", "*.corp:*", False),
        ("hookXcorp:1", "hook.corp:*", False),
        ("anything.at.all:7", "*:7", True),
        ("10.1.2.3:7", "*:7", True),
        ("10.1.2.3:70", "*:7", False),
    ],
)
def test_a_star_stays_within_its_part_of_a_name_and_numbers_are_addresses(
    endpoint: str, patterns: str, allowed: bool
) -> None:
    assert is_allowed(endpoint, (patterns,)) is allowed


@pytest.mark.parametrize(
    ("patterns", "address", "allowed"),
    [
        (("*.corp:*",), "93.184.216.34", True),
        (("*.corp:*",), "127.0.0.1", False),
        (("*.corp:*",), "169.254.169.254", False),
        (("*.corp:*",), "10.1.2.3", False),
        (("*.corp:*", "10.0.0.0/8:*"), "10.1.2.3", True),
        (("*.corp:*", "10.0.0.0/8:9"), "10.1.2.3", False),
        (("hook.corp:*",), "10.1.2.3", True),
        (("hook.corp:*",), "127.0.0.1", False),
        (("hook.corp:*",), "169.254.169.254", False),
        (("hook.corp:*",), "::1", False),
        (("*:*",), "127.0.0.1", True),
    ],
)
def test_a_name_is_judged_by_the_address_behind_it_and_that_is_connected_to(
    monkeypatch: pytest.MonkeyPatch, patterns: tuple[str, ...], address: str, allowed: bool
) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET

    def answered(host: str, port: int, **_: object) -> list[Any]:
        assert host == "hook.corp"
        return [(family, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", answered)
    if allowed:
        assert resolved("hook.corp:443", patterns).address == f"{address}:443"
    else:
        with pytest.raises(SageError, match="ENDPOINT_NOT_ALLOWED"):
            resolved("hook.corp:443", patterns)


def test_a_name_that_is_turned_inwards_is_not_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscriber = Subscriber()
    with (
        listening(subscriber) as endpoint,
        serving(tmp_path, subscribers={"allowed": ["*.corp:*"]}) as (server, store),
        channel_to(server) as channel,
    ):
        port = int(endpoint.rpartition(":")[2])
        inside = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: inside)
        filled(store)
        subscribe(channel, f"hook.corp:{port}")
        run(store, 1)
        until(lambda: "ENDPOINT_NOT_ALLOWED" in {late.reason for late in deliveries(channel)})
    assert subscriber.asked == []


def test_a_subscriber_that_is_not_on_the_list_is_refused_and_never_called(tmp_path: Path) -> None:
    subscriber = Subscriber()
    with (
        listening(subscriber) as endpoint,
        serving(tmp_path, subscribers={"allowed": ["10.0.0.*:*"]}) as (server, store),
        channel_to(server) as channel,
    ):
        filled(store)
        with pytest.raises(grpc.RpcError) as error:
            subscribe(channel, endpoint)
        assert error_of(error.value).reason == "ENDPOINT_NOT_ALLOWED"
        # One that was allowed once, and is not any more.
        with store.parts.metadata.write() as tx:
            one = tx.subscriptions.add(tx.ptks.named("hour-speed").id, endpoint)
            tx.notifications.set_mark(one.id, 0)
        run(store, 1)
        until(lambda: [late.reason for late in deliveries(channel)] == ["ENDPOINT_NOT_ALLOWED"])
    assert subscriber.asked == []


def test_delays_double_with_jitter_up_to_the_longest() -> None:
    pace = Pace(backoff=Backoff(first_seconds=1, longest_seconds=60))
    for attempts in range(1, 100):
        most = min(60.0, 2.0 ** (attempts - 1))
        delays = {pace.delay_ms(attempts) for _ in range(50)}
        assert len(delays) > 1
        assert all(500 * most <= delay <= 1000 * most for delay in delays)


def test_a_state_for_many_subscribers_takes_a_few_looks_at_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[None] = []
    look = Deliverer._hand_out

    def counted(deliverer: Deliverer) -> float:
        looks.append(None)
        return look(deliverer)

    monkeypatch.setattr(Deliverer, "_hand_out", counted)
    subscriber = Subscriber()
    # Looks that somebody asked for are counted, not those that a slow machine has time for.
    pace = replace(PACE, poll_seconds=60)
    with (
        serving(tmp_path, pace=pace) as (server, store),
        channel_to(server) as channel,
        ExitStack() as stack,
    ):
        filled(store, 2)
        for _ in range(60):
            subscribe(channel, stack.enter_context(listening(subscriber)))
        before = len(looks)
        run(store, 1)
        until(lambda: len(subscriber.told) >= 60)
        assert len(looks) - before < 15
