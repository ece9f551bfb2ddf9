"""Push over the wire: batches go out while acknowledgements come in, and what was not acknowledged is sent again.

A few batches are on their way at a time, so memory stays bounded and the server can share its fsyncs. When the connection
breaks, a new one begins with the oldest batch that was not acknowledged; the server drops those it has.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any

import grpc
import pyarrow as pa

from ptkstore.remote_channel import ATTEMPTS, Connection, delay_seconds
from ptkstore.rpc.faults import error_of
from ptkstore.rpc.messages import millis
from ptkstore.v1 import stream_pb2, stream_pb2_grpc

__all__ = ["BATCH_BYTES", "IN_FLIGHT", "Push"]

# About the best size on the wire.
BATCH_BYTES = 5 << 19
IN_FLIGHT = 8


class Push:
    """One push of numbered batches."""

    def __init__(
        self, connection: Connection, opening: stream_pb2.AppendOpen, batches: Iterator[tuple[int, pa.RecordBatch]]
    ) -> None:
        """Nothing is sent before `run`."""
        self._connection = connection
        self._opening = opening
        self._batches = batches
        self._lock = threading.Lock()
        self._unacknowledged: deque[stream_pb2.AppendRequest] = deque()
        self.watermark_ms: int | None = None

    def run(self) -> int | None:
        """Send everything; the last watermark."""
        attempt = 0
        while True:
            before = self.watermark_ms, len(self._unacknowledged)
            try:
                self._attempt()
                return self.watermark_ms
            except grpc.RpcError as failure:
                moved = before != (self.watermark_ms, len(self._unacknowledged))
                attempt = 1 if moved else attempt + 1
                if failure.code() != grpc.StatusCode.UNAVAILABLE or attempt >= ATTEMPTS:
                    raise error_of(failure) from None
                time.sleep(delay_seconds(attempt))

    def _attempt(self) -> None:
        sending = _Sending(self)
        stub = stream_pb2_grpc.StreamServiceStub(self._connection.channel)
        call = stub.Append(sending.requests(), metadata=self._connection.metadata)
        try:
            for ack in call:
                first = self._unacknowledged.popleft()
                assert first.batch.seq == ack.seq, "acknowledgements come in order"
                self.watermark_ms = millis(ack, "watermark")
                sending.slots.release()
        finally:
            sending.end()
            call.cancel()
        if sending.error is not None:
            raise sending.error

    def take(self, sending: _Sending) -> stream_pb2.AppendRequest | None:
        """The next batch, which counts as unacknowledged from now on; None for no more, or when the connection is given up."""
        with self._lock:
            if sending.over:
                return None
            number, batch = next(self._batches, (0, None))
            if batch is None:
                return None
            request = stream_pb2.AppendRequest(batch=stream_pb2.AppendBatch(seq=number, arrow_ipc=_ipc(batch)))
            self._unacknowledged.append(request)
            return request

    def begin(self) -> tuple[stream_pb2.AppendOpen, list[stream_pb2.AppendRequest]]:
        """What a new connection sends first."""
        with self._lock:
            return self._opening, list(self._unacknowledged)

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

    def requests(self) -> Iterator[Any]:
        try:
            opening, again = self._push.begin()
            yield stream_pb2.AppendRequest(open=opening)
            yield from again
            for _ in range(IN_FLIGHT - len(again)):
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


def _ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data
