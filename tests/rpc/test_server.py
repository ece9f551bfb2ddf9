"""The server itself: health, draining, hurry, addresses, large states."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from ptklib.errors import InvalidInput
from ptkstore import Store
from ptkstore.engine.specs import Specs
from ptkstore.server import Server
from ptkstore.v1 import (
    operation_pb2,
    operation_pb2_grpc,
    ptk_pb2,
    ptk_pb2_grpc,
    stream_pb2,
    stream_pb2_grpc,
)
from ptkstore.wire.faults import error_of
from tests.engine.small import DAY_MS, FIRST_MS, day
from tests.rpc.requests import create, ipc, refusal
from tests.rpc.small import channel_to, serving, settings_of
from tests.rpc.store_suite import filled


class TestFrame:
    def test_health_and_reflection(self, channel: grpc.Channel) -> None:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "ptkstore.v1.PtkService", "ptkstore.v1.EventService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = stub.ServerReflectionInfo(iter([request]))
        names = {one.name for one in answer.list_services_response.service}
        assert {"ptkstore.v1.PtkService", "ptkstore.v1.StreamService"} <= names
        assert "ptkstore.v1.SubscriberService" not in names

    def test_a_drained_server_has_said_so_and_ended_watchers(self, tmp_path: Path) -> None:
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest())
            assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
            call = operation_pb2_grpc.EventServiceStub(channel).WatchEvents(
                operation_pb2.WatchEventsRequest()
            )
            streams = stream_pb2_grpc.StreamServiceStub(channel)
            create(streams)
            next(call)
            begin = time.monotonic()
            server.stop()
            assert time.monotonic() - begin < 10
            assert refusal(lambda: next(call)) == "UNAVAILABLE SERVER_STOPPING"
            assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING

    def test_an_idle_append_ends_when_the_server_stops(self, tmp_path: Path) -> None:
        over = threading.Event()
        with serving(tmp_path) as (server, _), channel_to(server) as channel:
            streams = stream_pb2_grpc.StreamServiceStub(channel)
            create(streams)

            def requests() -> Iterator[Any]:
                yield stream_pb2.AppendRequest(
                    open=stream_pb2.AppendOpen(stream="rides", producer="p")
                )
                yield stream_pb2.AppendRequest(
                    batch=stream_pb2.AppendBatch(seq=1, arrow_ipc=ipc(day(0)))
                )
                over.wait(20)

            call = streams.Append(requests())
            assert next(call).seq == 1
            server.stop()
            assert refusal(lambda: next(call)) == "UNAVAILABLE SERVER_STOPPING"
            over.set()

    def test_a_caller_in_a_hurry_is_told(
        self, streams: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        create(streams)
        release = threading.Event()
        monkeypatch.setattr(Specs, "all", lambda _: release.wait(20) and [])
        with pytest.raises(grpc.RpcError) as error:
            streams.ListStreams(stream_pb2.ListStreamsRequest(), timeout=0.1)
        release.set()
        assert error_of(error.value).reason == "DEADLINE_PASSED"

    def test_an_address_that_is_taken_is_an_error_of_ours(
        self, server: Server, tmp_path: Path
    ) -> None:
        with (
            Store(tmp_path / "second", workers=0) as store,
            pytest.raises(InvalidInput, match="SERVER_ADDRESS_TAKEN"),
        ):
            Server(store, settings_of(server={"address": server.address}))

    def test_large_states_come_in_pieces_and_damage_is_noticed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("ptkstore.rpc.services.ptks.INLINE_BYTES", 10)
        monkeypatch.setattr("ptkstore.rpc.services.ptks.PIECE_BYTES", 100)
        with serving(tmp_path) as (server, embedded), Store(server.address) as store:
            filled(store)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            assert (
                store.get_state("hour-speed").to_bytes()
                == embedded.get_state("hour-speed").to_bytes()
            )
            with channel_to(server) as channel:
                ptks = ptk_pb2_grpc.PtkServiceStub(channel)
                digest = store.states("hour-speed")[0].digest
                pieces = list(
                    ptks.ReadState(ptk_pb2.ReadStateRequest(name="hour-speed", digest=digest))
                )
                assert len(pieces) > 1
                other = ptk_pb2.ReadStateRequest(name="hour-speed", digest="0" * 64)
                assert refusal(lambda: list(ptks.ReadState(other))) == "NOT_FOUND STATE_UNKNOWN"
            monkeypatch.setattr(
                "ptkstore.rpc.feeds.state_cache.StateCache.get", lambda *_: (b"x" * 1000, b"{}")
            )
            with pytest.raises(Exception, match="STATE_DAMAGED"):
                store.get_state("hour-speed")
