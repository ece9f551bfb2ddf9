"""Who sends what: no acknowledged row is lost, whatever clocks and names the callers have, and none
is stored twice.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.client.push import Push
from ptkstore.client.streams import RemoteStreams
from ptkstore.engine.access.tokens import make_token
from ptkstore.server import Server
from ptkstore.streams import StreamReader
from ptkstore.streams.progress import accepted
from ptkstore.v1 import stream_pb2
from tests.engine.small import DAY_MS, FIRST_MS, spec
from tests.rpc.requests import create, ipc, refusal
from tests.rpc.small import serving

CLIENTS, PUSHES, ROWS = 20, 100, 50
DAY_NS = 86_400 * 10**9


@contextmanager
def guarded(path: Path) -> Iterator[tuple[Server, Store]]:
    """A server that wants credentials, with a stream."""
    with serving(path, auth={"required": True}) as (server, store):
        store.create_stream(spec())
        yield server, store


def token(store: Store, name: str) -> str:
    return make_token(
        store.parts.metadata, name, roles=("producer", "reader"), now_ms=store.parts.now_ms()
    )[0]


def rows(*names: str) -> pa.Table:
    """One ride per name, all in the first block."""
    count = len(names)
    times = pa.array(np.full(count, FIRST_MS + 1000), pa.timestamp("ms"))
    hours = pa.array(np.zeros(count, dtype=np.int32))
    return pa.table(
        {"at": times, "hour": hours, "speed": np.full(count, 20.0), "driver": list(names)}
    )


def stored(store: Store) -> Counter[str]:
    """Every row of the first day, as the engine's own reader opens it with a grant."""
    parts = store.parts
    blocks = parts.writer("rides").seal_due(FIRST_MS + DAY_MS)
    parts.ledger.add_blocks("rides", blocks)
    grant = parts.ledger.reserve("rides", [Slice(tuple(blocks))], PureCost(epsilon="0.1"))
    found = StreamReader(parts.path, parts.specs["rides"]).open_slice(grant, parts.ledger)
    return Counter(name for batch in found for name in batch.column("driver").to_pylist())


def in_threads(count: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for one in running:
        one.start()
    for one in running:
        one.join(600)
    assert not errors, errors[0]


@pytest.fixture
def skewed(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give the calling thread a clock of its own, so many nanoseconds off."""
    mine = threading.local()
    real_ns = time.time_ns

    def time_ns() -> int:
        return real_ns() + getattr(mine, "off", 0)

    monkeypatch.setattr(time, "time_ns", time_ns)

    def set_off(nanoseconds: int) -> None:
        mine.off = nanoseconds

    return set_off


def test_no_acknowledged_row_is_lost_with_skewed_clocks_and_foreign_names(
    tmp_path: Path, skewed: Callable[[int], None]
) -> None:
    """Twenty callers, clocks up to a day off.

    Every other push has no number; the rest are numbered, under one name.
    """
    acknowledged: Counter[str] = Counter()
    lock = threading.Lock()
    with guarded(tmp_path) as (server, store):
        tokens = [token(store, f"depot-{number}") for number in range(CLIENTS)]

        def client(number: int) -> None:
            skewed((2 * number - CLIENTS) * DAY_NS // CLIENTS)
            with Store(server.address, token=tokens[number]) as remote:
                for push in range(PUSHES):
                    names = [f"{number}.{push}.{row}" for row in range(ROWS)]
                    numbered: dict[str, Any] = (
                        {"producer": "depot", "seq": push} if push % 2 else {}
                    )
                    remote.push("rides", rows(*names), **numbered)
                    with lock:
                        acknowledged.update(names)

        in_threads(CLIENTS, client)
        assert acknowledged.total() == CLIENTS * PUSHES * ROWS == 100_000
        found = stored(store)
    lost = acknowledged - found
    assert not lost, f"{lost.total()} of {acknowledged.total()} acknowledged rows are gone"
    assert found == acknowledged


def test_pushes_without_a_number_are_new_however_many_there_are(
    tmp_path: Path, skewed: Callable[[int], None]
) -> None:
    """More pushes than ranges are remembered, then some from a clock two minutes behind."""
    with serving(tmp_path) as (server, store), Store(server.address) as remote:
        store.create_stream(spec())
        for push in range(1100):
            remote.push("rides", rows(f"ahead.{push}"))
        skewed(-120 * 10**9)
        for push in range(20):
            remote.push("rides", rows(f"behind.{push}"))
        found = stored(store)
    assert sum(name.startswith("behind") for name in found) == 20
    assert found.total() == 1120


def test_a_caller_cannot_use_up_the_numbers_of_another(tmp_path: Path) -> None:
    with guarded(tmp_path) as (server, store):
        with Store(server.address, token=token(store, "intruder")) as intruder:
            for seq in range(10):
                intruder.push("rides", rows(f"false.{seq}"), producer="depot", seq=seq)
        with Store(server.address, token=token(store, "depot")) as depot:
            for seq in range(10):
                depot.push("rides", rows(f"true.{seq}"), producer="depot", seq=seq)
                depot.push("rides", rows(f"true.{seq}"), producer="depot", seq=seq)
        found = stored(store)
    assert sum(count for name, count in found.items() if name.startswith("true")) == 10
    assert found.total() == 20


class TestSessions:
    """A client of its own: it asks for a session, and counts from 0 in it."""

    def opened(self, **fields: Any) -> stream_pb2.AppendRequest:
        return stream_pb2.AppendRequest(open=stream_pb2.AppendOpen(stream="rides", **fields))

    def sent(
        self, streams: Any, opening: stream_pb2.AppendRequest, *names: str, first: int = 0
    ) -> list[int]:
        numbered = enumerate(names, first)
        batches = [
            stream_pb2.AppendBatch(seq=seq, arrow_ipc=ipc(rows(name))) for seq, name in numbered
        ]
        requests = [opening, *(stream_pb2.AppendRequest(batch=one) for one in batches)]
        return [ack.seq for ack in streams.Append(iter(requests)) if not ack.session]

    def begun(self, streams: Any, **fields: Any) -> str:
        (answer,) = streams.Append(iter([self.opened(begin_session=True, **fields)]))
        return str(answer.session)

    def test_batches_may_follow_in_the_call_that_begins_it_and_in_others(
        self, streams: Any, server: Server
    ) -> None:
        create(streams)
        assert self.sent(streams, self.opened(begin_session=True), "a", "b") == [0, 1]
        session = self.begun(streams)
        for _ in range(2):
            assert self.sent(streams, self.opened(session=session), "c", "d") == [0, 1]
        assert self.sent(streams, self.opened(session=session), "e", first=2) == [2]

    def test_a_late_resend_of_an_old_session_is_refused(self, streams: Any, server: Server) -> None:
        create(streams)
        old = self.begun(streams, producer="depot")
        assert self.sent(streams, self.opened(producer="depot", session=old), "a") == [0]
        new = self.begun(streams, producer="depot")
        late = self.opened(producer="depot", session=old)
        assert refusal(lambda: self.sent(streams, late, "a")) == "FAILED_PRECONDITION SESSION_ENDED"
        assert refusal(lambda: self.sent(streams, self.opened(producer="depot"), "a")).endswith(
            "SESSION_ENDED"
        )
        assert self.sent(streams, self.opened(producer="depot", session=new), "b") == [0]

    def test_what_is_no_session_is_refused(self, streams: Any, server: Server) -> None:
        create(streams)
        session = self.begun(streams)
        wrong: dict[str, list[dict[str, Any]]] = {
            "INVALID_ARGUMENT SESSION_INVALID": [
                {"session": "mine"},
                {"session": session, "begin_session": True},
            ],
            "FAILED_PRECONDITION SESSION_UNKNOWN": [
                {"session": "999-0123456789abcdef"},
                {"session": session, "producer": "p"},
            ],
            "INVALID_ARGUMENT NAME_INVALID": [{"begin_session": True, "producer": "\n"}],
        }
        for reason, openings in wrong.items():
            for fields in openings:
                assert refusal(partial(self.sent, streams, self.opened(**fields), "a")) == reason


def test_a_push_without_a_number_is_stored_once_though_the_connection_broke(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server dies in the middle of it, and another one takes its place."""
    monkeypatch.setattr("ptkstore.client.pushing.rows_of", lambda *_: 10)
    names = [f"n{number}" for number in range(400)]
    taken: list[int] = []
    half, replaced, over = threading.Event(), threading.Event(), threading.Event()
    real = Push.take

    def slow(self: Push, sending: Any) -> Any:
        found = real(self, sending)
        taken.append(1)
        if len(taken) == 20:
            half.set()
            replaced.wait(20)
        return found

    with serving(tmp_path, server={"drain_seconds": 0}) as (server, store):
        address = server.address
        store.create_stream(spec())
    monkeypatch.setattr(Push, "take", slow)
    found: list[Counter[str]] = []

    def replace() -> None:
        with serving(tmp_path, server={"address": address, "drain_seconds": 0}):
            half.wait(20)
        with serving(tmp_path, server={"address": address, "drain_seconds": 0}) as (_, store):
            replaced.set()
            over.wait(30)
            found.append(stored(store))

    thread = threading.Thread(target=replace)
    thread.start()
    with Store(address) as remote:
        try:
            remote.push("rides", rows(*names))
        finally:
            over.set()
            thread.join(60)
    assert found == [Counter(names)]


def test_a_store_whose_session_is_over_begins_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepted, "MAX_SESSIONS", 2)
    with serving(tmp_path) as (server, store), Store(server.address) as idle:
        store.create_stream(spec())
        idle.push("rides", rows("first"))
        for number in range(4):
            with Store(server.address) as other:
                other.push("rides", rows(f"other.{number}"))
        store.push("rides", rows("here"))
        idle.push("rides", rows("second"))
        found = stored(store)
    assert found == Counter(
        ["first", "second", "here", *(f"other.{number}" for number in range(4))]
    )


def test_an_older_client_that_numbers_by_its_clock_is_refused_and_loses_nothing(
    tmp_path: Path,
) -> None:
    """Before sessions a push without a number went as producer `default` under the nanoseconds of a
    clock.
    """
    ahead, behind = range(1000, 3600, 2), range(1001, 1041, 2)
    with serving(tmp_path) as (server, store), Store(server.address) as remote:
        store.create_stream(spec())
        for seq in ahead:
            remote.push("rides", rows(f"n{seq}"), producer="default", seq=seq)
        for seq in behind:
            with pytest.raises(Refused, match="SEQ_FORGOTTEN"):
                remote.push("rides", rows(f"n{seq}"), producer="default", seq=seq)
        assert stored(store) == Counter(f"n{seq}" for seq in ahead)


def test_a_stream_is_asked_for_once_and_again_when_another_took_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    real = RemoteStreams.stream

    def counted(self: RemoteStreams, name: str) -> StreamSpec:
        asked.append(name)
        return real(self, name)

    monkeypatch.setattr(RemoteStreams, "stream", counted)
    with serving(tmp_path / "first") as (server, store):
        address = server.address
        store.create_stream(spec())
        remote = Store(address)
        for number in range(5):
            remote.push("rides", rows(f"n{number}"))
        with pytest.raises(InvalidInput):
            remote.push("rides", pa.table({"at": [1]}))
        # What was wrong with the frame was asked about once more, and the answer was the same.
        assert asked == ["rides"] * 2
    other = spec()
    other = replace(other, columns=tuple(c for c in other.columns if c.name != "hour"))
    with serving(tmp_path / "second", server={"address": address}) as (_, store), remote:
        store.create_stream(other)
        remote.push("rides", rows("here").drop_columns(["hour"]))
        remote.push("rides", rows("there"))
        assert asked == ["rides"] * 3
        assert stored(store) == Counter(["here", "there"])
