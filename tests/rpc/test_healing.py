"""A server whose disk was full, or whose descriptors were gone, writes again by itself when the
cause is gone.
"""

from __future__ import annotations

import errno
import json
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import grpc
import pytest

from ptkstore import Store
from ptkstore.streams import StreamUnavailable
from ptkstore.v1 import stream_pb2, stream_pb2_grpc
from tests.engine.small import DAY_MS, FIRST_MS, spec
from tests.rpc.limited import Limited, limited
from tests.rpc.requests import ipc
from tests.rpc.small import serving
from tests.rpc.test_producers import rows, stored

ROUNDS = 20
WAIT = 60.0
ROOM = 8 << 20
FILLER, FILLERS = "f" * 40, 150_000


class Producer:
    """Sends one row under one number, over one connection."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._append = stream_pb2_grpc.StreamServiceStub(channel).Append

    def tried(self, seq: int) -> bool:
        """True when it was acknowledged.

        A refusal must be one after which sending it again is right.
        """
        opening = stream_pb2.AppendOpen(stream="rides", producer="p")
        batch = stream_pb2.AppendBatch(seq=seq, arrow_ipc=ipc(rows(f"n{seq}")))
        requests = [stream_pb2.AppendRequest(open=opening), stream_pb2.AppendRequest(batch=batch)]
        try:
            acks = list(self._append(iter(requests), timeout=10))
        except grpc.RpcError as error:
            if error.code() not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
                raise
            return False
        return [ack.seq for ack in acks] == [seq]


def eventually(act: Callable[[], bool]) -> float:
    """Seconds until it was so."""
    begin = time.monotonic()
    while not act():
        assert time.monotonic() - begin < WAIT
        time.sleep(0.05)
    return time.monotonic() - begin


CAUSES: dict[str, Callable[[Limited], AbstractContextManager[None]]] = {
    "disk full": lambda server: server.disk_full(),
    # The database has room left, so calls are let in and fail where records are written.
    "disk full for records": lambda server: server.disk_full(ROOM),
    "descriptors gone": lambda server: server.descriptors_gone(),
}


def prepared(path: Path) -> None:
    """A stream whose open block is larger than `ROOM`."""
    with Store(path / "store", workers=0) as store:
        store.create_stream(spec())
        store.push("rides", rows(*[FILLER] * FILLERS))
    assert max(one.stat().st_size for one in path.rglob("*.block")) > ROOM


def stored_rows(path: Path) -> Counter[str]:
    with Store(path / "store", workers=0) as store:
        found = stored(store)
    assert found.pop(FILLER) == FILLERS
    return found


@pytest.mark.parametrize("cause", CAUSES)
def test_writes_work_again_when_the_cause_is_gone(tmp_path: Path, cause: str) -> None:
    prepared(tmp_path)
    waited = []
    with limited(tmp_path) as server, grpc.insecure_channel(server.address) as channel:
        producer = Producer(channel)
        assert producer.tried(0)
        for seq in range(1, ROUNDS + 1):
            with CAUSES[cause](server):
                assert not producer.tried(seq)
            waited.append(eventually(partial(producer.tried, seq)))
        log = server.log.read_text()
    print(f"{cause}: longest {max(waited):.2f} s of {ROUNDS}")
    assert stored_rows(tmp_path) == Counter(f"n{seq}" for seq in range(ROUNDS + 1))
    assert "Traceback" not in log


@pytest.mark.parametrize("cause", ["disk full", "disk full for records"])
def test_a_server_that_cannot_write_says_so(tmp_path: Path, cause: str) -> None:
    """To probes, to the doctor and in the log; and it says when it is over, though nobody sends
    anything.
    """
    prepared(tmp_path)
    with (
        limited(tmp_path) as server,
        grpc.insecure_channel(server.address) as channel,
        Store(server.address) as remote,
    ):
        producer = Producer(channel)
        assert producer.tried(0)
        eventually(lambda: server.health() == "SERVING")
        with CAUSES[cause](server):
            assert not producer.tried(1)
            eventually(lambda: server.health() == "NOT_SERVING")
            assert server.health("live") == "SERVING"
            assert server.health("ptkstore.v1.StreamService") == "NOT_SERVING"
            # Events may wait as well, which is a warning.
            found = {one.what for one in remote.doctor() if one.level == "ERROR"}
        eventually(lambda: server.health() == "SERVING")
        assert all(one.level != "ERROR" for one in remote.doctor())
        assert producer.tried(1)
        log = server.log.read_text()
    assert found == {"writing" if cause == "disk full" else "writing of rides"}
    lines = [json.loads(line) for line in log.splitlines()]
    told = [
        (one["level"], one["event"])
        for one in lines
        if one["event"] in ("cannot write", "can write again")
    ]
    assert (told[0], told[-1]) == (("error", "cannot write"), ("warning", "can write again"))
    stopped = [one["event"] for one in lines if "the writer of stream" in one["event"]]
    assert cause == "disk full" or stopped == [
        "the writer of stream 'rides' stopped: STREAM_UNAVAILABLE (OSError EFBIG)",
        "the writer of stream 'rides' works again",
    ]


def test_more_idle_connections_than_descriptors_do_not_break_it(tmp_path: Path) -> None:
    """A hundred connections to a server that may have 64 descriptors: while they last it may
    refuse, afterwards it does not.
    """
    prepared(tmp_path)
    with limited(tmp_path, descriptors=64) as server:
        host, _, port = server.address.rpartition(":")
        with grpc.insecure_channel(server.address) as channel:
            assert Producer(channel).tried(0)
        for round_number in range(1, 4):
            idle = [socket.create_connection((host, int(port))) for _ in range(100)]
            with grpc.insecure_channel(server.address) as channel:
                Producer(channel).tried(round_number)
            for one in idle:
                one.close()

            def again(number: int = round_number) -> bool:
                with grpc.insecure_channel(server.address) as fresh:
                    return Producer(fresh).tried(number)

            eventually(again)
        eventually(lambda: server.health() == "SERVING")
    assert stored_rows(tmp_path) == Counter(f"n{seq}" for seq in range(4))


@pytest.mark.parametrize(
    "trouble",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EMFILE, "Too many open files"),
        StreamUnavailable("STREAM_UNAVAILABLE", "the writer failed"),
    ],
    ids=["no space", "no descriptors", "no writer"],
)
def test_a_window_waits_for_room(tmp_path: Path, trouble: Exception) -> None:
    """A step of it meets the trouble twice: the operation goes on where it was, and is not told as
    failed.
    """
    left = [2]

    def step(_step: str, _moment: str) -> None:
        if left[0]:
            left[0] -= 1
            raise trouble

    with serving(tmp_path) as (server, store), Store(server.address) as remote:
        store.create_stream(spec())
        remote.push("rides", rows(*["n"] * 1000))
        store.parts.observers.add(step)
        (cycle,) = remote.run("rides", until_ms=FIRST_MS + DAY_MS)
    assert left == [0]
    assert abs(cycle.dp_records - 1000) < 200


_DOCTOR = """
import resource, sys
from ptkstore import Store
from tests.engine.small import spec
with Store(sys.argv[1], workers=0) as store:
    store.create_stream(spec())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, limits[1]))
    found = store.doctor()
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
print(*(f"{one.level} {one.what}: {one.detail}" for one in found), sep="\\n")
"""


def test_a_doctor_without_descriptors_says_what_it_could_not_look_at(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _DOCTOR, str(tmp_path / "store")]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    )
    assert "ERROR ledger: " in done.stdout
    assert "ERROR writing: the store's directory cannot be written (OSError EMFILE)" in done.stdout
    assert str(tmp_path) not in done.stdout
