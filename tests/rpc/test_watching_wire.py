"""Watchers get everything that is new, and never take all threads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import grpc
import pytest

from ptkstore import Store
from ptkstore.engine.access.tokens import make_token
from ptkstore.server import Server
from ptkstore.v1 import operation_pb2, operation_pb2_grpc, ptk_pb2, ptk_pb2_grpc
from tests.engine.small import DAY_MS, FIRST_MS, spec
from tests.rpc.requests import refusal, until
from tests.rpc.small import channel_to, serving
from tests.rpc.store_suite import filled


def _token(store: Store, name: str) -> str:
    parts = store.parts
    return make_token(parts.metadata, name, roles=["reader"], now_ms=parts.now_ms())[0]


class TestWatching:
    def test_a_watcher_gets_old_and_new_states(self, server: Server, ptks: Any) -> None:
        with Store(server.address) as store:
            filled(store, 2)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            call = ptks.WatchPtk(ptk_pb2.WatchPtkRequest(name="hour-speed"))
            assert next(call).state.version == 1
            store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            assert next(call).state.version == 2
            call.cancel()

    def test_events_are_watched(self, server: Server, channel: grpc.Channel) -> None:
        stub = operation_pb2_grpc.EventServiceStub(channel)
        call = stub.WatchEvents(operation_pb2.WatchEventsRequest())
        with Store(server.address) as store:
            filled(store)
        assert [next(call).event.kind for _ in range(2)] == ["stream.created", "ptk.accepted"]
        call.cancel()

    def test_watchers_never_take_all_threads(self, tmp_path: Path) -> None:
        with (
            serving(tmp_path, server={"watchers": 4, "threads": 8}) as (server, _),
            channel_to(server) as channel,
        ):
            stub = operation_pb2_grpc.EventServiceStub(channel)
            with Store(server.address) as store:
                store.create_stream(spec())
                calls = [stub.WatchEvents(operation_pb2.WatchEventsRequest()) for _ in range(2)]
                assert all(next(call).event.id for call in calls)
                third = stub.WatchEvents(operation_pb2.WatchEventsRequest())
                assert refusal(lambda: next(third)) == "RESOURCE_EXHAUSTED TOO_MANY_WATCHERS"
                assert store.streams()
                for call in calls:
                    call.cancel()
                until(
                    lambda: next(stub.WatchEvents(operation_pb2.WatchEventsRequest())).event.id == 1
                )

    def test_a_follower_without_a_place_is_told_and_hears_when_there_is_one(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        words = "hour-speed is followed again after TOO_MANY_WATCHERS"
        with (
            serving(tmp_path, server={"watchers": 2, "threads": 8}) as (server, embedded),
            Store(server.address) as store,
        ):
            filled(embedded)
            seen: list[list[int]] = [[], []]
            ends = [
                store.subscribe("hour-speed", lambda view: seen[0].append(view.version)),
                store.subscribe("hour-speed", lambda view: seen[1].append(view.version)),
            ]
            until(lambda: words in [one.getMessage() for one in caplog.records])
            embedded.run("rides", until_ms=FIRST_MS + DAY_MS)
            until(lambda: sorted(seen) == [[], [1]])
            ends[seen.index([1])]()
            until(lambda: seen == [[1], [1]])
        told = [one for one in caplog.records if one.getMessage() == words]
        assert [one.levelname for one in told] == ["WARNING"], "once, and not at every try"

    def test_one_reader_cannot_take_all_places_by_any_rpc(self, tmp_path: Path) -> None:
        with serving(tmp_path, server={"watchers": 4, "threads": 8}) as (server, store):
            filled(store)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
            bearers = [(("authorization", f"Bearer {_token(store, one)}"),) for one in "ab"]
            with channel_to(server) as channel:
                events = operation_pb2_grpc.EventServiceStub(channel)
                ptks = ptk_pb2_grpc.PtkServiceStub(channel)
                calls = [
                    events.WatchEvents(operation_pb2.WatchEventsRequest(), metadata=bearers[0]),
                    ptks.WatchPtk(ptk_pb2.WatchPtkRequest(name="hour-speed"), metadata=bearers[0]),
                ]
                for call in calls:
                    next(call)
                for again in (
                    events.WatchEvents(operation_pb2.WatchEventsRequest(), metadata=bearers[0]),
                    ptks.WatchPtk(ptk_pb2.WatchPtkRequest(name="hour-speed"), metadata=bearers[0]),
                ):
                    told = refusal(lambda again=again: next(again))
                    assert told == "RESOURCE_EXHAUSTED TOO_MANY_WATCHERS"
                other = events.WatchEvents(operation_pb2.WatchEventsRequest(), metadata=bearers[1])
                assert next(other).event.id == 1
                for call in (*calls, other):
                    call.cancel()

    def test_a_subscription_survives_a_restart_and_misses_nothing(self, tmp_path: Path) -> None:
        seen: list[int] = []
        with serving(tmp_path) as (server, _):
            address = server.address
            with Store(address) as store:
                filled(store, 3)
                store.run("rides", until_ms=FIRST_MS + DAY_MS)
        follower = None
        for number in (2, 3):
            with serving(tmp_path, server={"address": address}) as (_, embedded):
                if follower is None:
                    follower = Store(address)
                    end = follower.subscribe("hour-speed", lambda view: seen.append(view.version))
                    embedded.run("rides", until_ms=FIRST_MS + number * DAY_MS)
                    until(lambda number=number: seen[-1:] == [number])
                else:
                    # Nobody watches yet when this one comes: the connection is still being made
                    # anew.
                    embedded.run("rides", until_ms=FIRST_MS + number * DAY_MS)
                    until(lambda number=number: seen[-1:] == [number])
                    end()
                    follower.close()
        assert seen == [2, 3]
