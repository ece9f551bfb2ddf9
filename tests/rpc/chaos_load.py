"""The load of the chaos test, as processes of their own: ``python -m tests.rpc.chaos_load ROLE
ADDRESS …``.

A producer pushes small batches for ever, to the stream whose windows are closed and to one that
keeps everything. Every record has a number of its own, counted from the producer's first, and a
batch that was not acknowledged is sent again under the same sequence number; so what was
acknowledged is told by counts. Lines on its input move it to the next day, or end it; it answers
once nothing of the days before is on its way. The subscribers say on their output whatever they are
told.
"""

from __future__ import annotations

import json
import queue
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import numpy as np
import pyarrow as pa

from ptklib.errors import SageError
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.client.channel import Connection
from ptkstore.client.push import Push
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc, stream_pb2
from ptkstore.wire.faults import code_of

__all__ = ["ARCHIVE", "DAY_MS", "FIRST_MS", "RIDES", "is_unavailable", "numbers_of"]

DAY_MS = 86_400_000
FIRST_MS = 1_767_225_600_000  # 2026-01-01
ROWS = 60
# How many batches one connection of the producer that streams carries.
_BATCHES = 12
_PAUSE_SECONDS = 0.02
_MOST = 2**40
_COLUMNS = (
    Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
    Column(name="hour", type="int32", lower=0, upper=23),
    Column(name="speed", type="float64", lower=0, upper=60),
    Column(name="number", type="int64", lower=0, upper=_MOST),
)
# Noise of 1/40: a count that is not the number of records to the last one is not noise (2e-17).
RIDES = StreamSpec(
    name="rides",
    columns=_COLUMNS,
    time_column="at",
    policy=Policy(epsilon=200, delta=0),
    window_seconds=86_400,
    block_seconds=43_200,
    count_epsilon=40,
)
ARCHIVE = StreamSpec(
    name="archive",
    columns=_COLUMNS,
    time_column="at",
    policy=Policy(epsilon=200, delta=0),
    window_seconds=86_400,
    count_epsilon=40,
)


def is_unavailable(error: SageError) -> bool:
    """True for an error after which the same request may be sent again."""
    return bool(code_of(error) == grpc.StatusCode.UNAVAILABLE)


def numbers_of(producer: int, count: int) -> range:
    """The numbers of a producer's first so many records."""
    return range(producer << 32, (producer << 32) + count)


class _Line:
    """One stream of records of a producer: numbered without a gap, in batches with sequence
    numbers.
    """

    def __init__(self, spec: StreamSpec, producer: int) -> None:
        self.spec = spec
        self.rows = 0
        self.seq = 0
        self._producer = producer
        self._random = np.random.default_rng(producer)

    def batch(self, day: int, offset: int = 0) -> pa.RecordBatch:
        """The batch ``offset`` after the next one."""
        numbers = np.asarray(numbers_of(self._producer, self.rows + (offset + 1) * ROWS))[-ROWS:]
        at = self._random.integers(0, DAY_MS, ROWS) + FIRST_MS + day * DAY_MS
        hour = (at // 3_600_000 % 24).astype(np.int32)
        columns = [pa.array(at, pa.timestamp("ms")), hour, 20.0 + hour, numbers]
        return pa.RecordBatch.from_arrays(
            [pa.array(one) for one in columns], schema=self.spec.schema
        )

    def taken(self, batches: int) -> None:
        """So many batches were acknowledged."""
        self.rows += batches * ROWS
        self.seq += batches


class Producer:
    """Pushes until told to stop.

    One that ``streams`` sends many batches over one connection, the other one at a time.
    """

    def __init__(self, address: str, number: int, *, streams: bool) -> None:
        self._store = Store(address)
        self._connection = Connection(address)
        self._number = number
        self._streams = streams
        self._orders: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._rides = _Line(RIDES, number)
        self._archive = _Line(ARCHIVE, number)
        self._by_day: Counter[int] = Counter()
        self._refused: Counter[str] = Counter()

    def run(self) -> None:
        threading.Thread(target=self._listen, daemon=True).start()
        day = 0
        while True:
            while not self._orders.empty():
                order = self._orders.get()
                if order == "stop":
                    _say(
                        rows=dict(self._by_day),
                        archived=self._archive.rows,
                        batches=self._rides.seq + self._archive.seq,
                        refused=dict(self._refused),
                    )
                    return
                day = int(order)
                _say(day=day)
            for line in (self._rides, self._archive):
                taken = self._pushed(line, day if line is self._rides else 0)
                if line is self._rides:
                    if not self._by_day:
                        _say(day=day)
                    self._by_day[day] += taken * ROWS
            time.sleep(_PAUSE_SECONDS)

    def _listen(self) -> None:
        for line in sys.stdin:
            self._orders.put(line.strip())

    def _pushed(self, line: _Line, day: int) -> int:
        """Push the next batches of a line until they are acknowledged; how many."""
        count = _BATCHES if self._streams else 1
        batches = [(line.seq + one, line.batch(day, one)) for one in range(count)]
        while True:
            try:
                if self._streams:
                    Push(self._connection, self._opening(line), self._slowly(batches)).run()
                else:
                    ((seq, batch),) = batches
                    frame = pa.Table.from_batches([batch])
                    self._store.push(line.spec.name, frame, producer=f"p{self._number}", seq=seq)
                line.taken(count)
                return count
            except SageError as error:
                if not is_unavailable(error):
                    raise
                self._refused[error.reason] += 1

    def _opening(self, line: _Line) -> stream_pb2.AppendOpen:
        return stream_pb2.AppendOpen(
            stream=line.spec.name,
            producer=f"p{self._number}",
            schema_fingerprint=line.spec.fingerprint,
        )

    def _slowly(
        self, batches: list[tuple[int, pa.RecordBatch]]
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        for one in batches:
            yield one
            time.sleep(_PAUSE_SECONDS)


class Endpoint(ptk_pb2_grpc.SubscriberServiceServicer):
    """A subscriber that is called."""

    def __init__(self, who: str) -> None:
        self._who = who

    def NotifyNewPtkState(self, request: Any, _context: Any) -> Any:  # noqa: N802
        _say(who=self._who, ptk=request.state.name, version=request.state.version)
        return ptk_pb2.NotifyNewPtkStateResponse()


def subscribers(address: str, ptks: list[str], followers: int, endpoints: int) -> None:
    """Followers by the SDK and endpoints to be called, spread over the PTKs, until the input
    ends.
    """
    servers = []
    for number in range(endpoints):
        server = grpc.server(ThreadPoolExecutor(2), options=[("grpc.so_reuseport", 0)])
        ptk_pb2_grpc.add_SubscriberServiceServicer_to_server(Endpoint(f"endpoint-{number}"), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        servers.append(server)
        _say(who=f"endpoint-{number}", ptk=ptks[number % len(ptks)], port=port)
    store = Store(address)
    for number in range(followers):
        who, ptk = f"follower-{number}", ptks[number % len(ptks)]
        store.subscribe(
            ptk,
            lambda view, who=who: _say(who=who, ptk=view.name, version=view.version),  # type: ignore[misc]
        )
        _say(who=who, ptk=ptk, version=0)
    sys.stdin.read()
    for server in servers:
        server.stop(None).wait()


_SAYING = threading.Lock()


def _say(**body: object) -> None:
    with _SAYING:
        print(json.dumps(body), flush=True)


def main() -> None:
    """Play a role."""
    role, address, *rest = sys.argv[1:]
    if role == "producer":
        Producer(address, int(rest[0]), streams=rest[1] == "streams").run()
    else:
        subscribers(address, rest[0].split(","), int(rest[1]), int(rest[2]))


if __name__ == "__main__":
    main()
