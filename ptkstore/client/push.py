"""Push over the wire: batches go out while acknowledgements come in, and what was not acknowledged
is sent again.

A few batches are on their way at a time, so memory stays bounded and the server can share its
fsyncs. When the connection breaks, a new one begins with the oldest batch that was not
acknowledged; the server drops those it has.

A push without a number goes under the next numbers of a session (`begin_session`): sent again after
a break, its batches have the same numbers, so they are stored once. Where the session was over
before anything was sent, another one is begun.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator

import grpc
import pyarrow as pa

from ptklib.errors import Refused
from ptkstore.api.refused import RefusedRecords, RefusedTally
from ptkstore.backoff import SERVER_AWAY
from ptkstore.client.channel import ATTEMPTS, Connection
from ptkstore.v1 import stream_pb2, stream_pb2_grpc
from ptkstore.wire.batches import framed
from ptkstore.wire.faults import error_of
from ptkstore.wire.messages import millis

__all__ = [
    "BATCH_BYTES",
    "IN_FLIGHT",
    "Push",
    "batch_request",
    "begin_session",
    "over_before_it_began",
]

# About the best size on the wire.
BATCH_BYTES = 5 << 19
IN_FLIGHT = 8
_METHOD = "/ptkstore.v1.StreamService/Append"


class Push:
    """One push of numbered batches."""

    def __init__(
        self,
        connection: Connection,
        opening: stream_pb2.AppendOpen,
        batches: Iterator[tuple[int, pa.RecordBatch]],
    ) -> None:
        """Nothing is sent before `run`."""
        self._connection = connection
        self._opening = opening
        self._batches = batches
        self._lock = threading.Lock()
        self._unacknowledged: deque[tuple[int, bytes]] = deque()
        self.connections = 0
        # Rows of what is not acknowledged, batch by batch, and of all that is.
        self._rows: deque[int] = deque()
        self._acknowledged_rows = 0
        self._tally = RefusedTally()
        self.watermark_ms: int | None = None

    def run(self) -> int | None:
        """Send everything; the last watermark. Refused at the end: RECORDS_REFUSED."""
        attempt = 0
        while True:
            before = self.watermark_ms, len(self._unacknowledged)
            try:
                self._attempt()
                self._tally.check()
                return self.watermark_ms
            except grpc.RpcError as failure:
                moved = before != (self.watermark_ms, len(self._unacknowledged))
                attempt = 1 if moved else attempt + 1
                if failure.code() != grpc.StatusCode.UNAVAILABLE or attempt >= ATTEMPTS:
                    raise error_of(failure) from None
                time.sleep(SERVER_AWAY.seconds(attempt))

    def _attempt(self) -> None:
        self.connections += 1
        sending = _Sending(self)
        # Requests are bytes already.
        append = self._connection.channel.stream_stream(
            _METHOD, response_deserializer=stream_pb2.AppendResponse.FromString
        )
        call = self._connection.streaming(append, sending.requests())
        try:
            for ack in call:
                first, _ = self._unacknowledged.popleft()
                assert first == ack.seq, "acknowledgements come in order"
                self.watermark_ms = millis(ack, "watermark")
                refused = (
                    RefusedRecords(
                        refusal.column, refusal.reason, refusal.records, refusal.first_row
                    )
                    for refusal in ack.refused
                )
                self._tally.add(refused, self._acknowledged_rows)
                self._acknowledged_rows += self._rows.popleft()
                sending.slots.release()
        finally:
            sending.end()
            call.cancel()
        if sending.error is not None:
            raise sending.error

    def take(self, sending: _Sending) -> bytes | None:
        """The next batch, which counts as unacknowledged from now on; None for no more, or when the
        connection is given up.
        """
        with self._lock:
            if sending.over:
                return None
            number, batch = next(self._batches, (0, None))
            if batch is None:
                return None
            request = batch_request(number, batch)
            self._unacknowledged.append((number, request))
            self._rows.append(batch.num_rows)
            return request

    def begin(self) -> list[bytes]:
        """What a new connection sends first: the opening, and what was not acknowledged."""
        with self._lock:
            opening = stream_pb2.AppendRequest(open=self._opening).SerializeToString()
            return [opening, *(request for _, request in self._unacknowledged)]

    def give_up(self, sending: _Sending) -> None:
        """After this the thread that sends takes no more batches."""
        with self._lock:
            sending.over = True


class _Sending:
    """The sending half of one connection; gRPC reads it in a thread of its own."""

    def __init__(self, push: Push) -> None:
        self._push = push
        self.over = False
        self.error: BaseException | None = None
        self.slots = threading.Semaphore(0)

    def requests(self) -> Iterator[bytes]:
        try:
            again = self._push.begin()
            yield from again
            for _ in range(IN_FLIGHT + 1 - len(again)):
                self.slots.release()
            while True:
                self.slots.acquire()
                request = self._push.take(self)
                if request is None:
                    return
                yield request
        except Exception as error:
            # gRPC would tell of it as a broken call.
            self.error = error

    def end(self) -> None:
        self._push.give_up(self)
        self.slots.release()


def begin_session(connection: Connection, stream: str) -> str:
    """A new session in a stream, of no producer in particular.

    Asking again gives another one, which does no harm.
    """
    opening = stream_pb2.AppendRequest(
        open=stream_pb2.AppendOpen(stream=stream, begin_session=True)
    )
    append = connection.stub(stream_pb2_grpc.StreamServiceStub).Append

    def once() -> str:
        # To its end: a call that is left before it counts as cancelled.
        answers = list(
            append(
                iter([opening]), timeout=connection.timeout_seconds, metadata=connection.metadata
            )
        )
        return str(answers[0].session)

    return str(connection.patiently(once))


def over_before_it_began(push: Push, error: Refused) -> bool:
    """True when a session was over before anything was sent in this push: it may be sent in another
    one.
    """
    known = (
        error.reason in ("SESSION_ENDED", "SESSION_UNKNOWN")
        and error.details.get("at") == "opening"
    )
    return known and push.connections == 1


def batch_request(seq: int, batch: pa.RecordBatch) -> bytes:
    """An AppendRequest with a batch, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return framed(seq, memoryview(sink.getvalue()))
