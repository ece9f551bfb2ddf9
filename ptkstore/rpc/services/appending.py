"""Append: batches in, acknowledgements out, several in flight.

A thread reads the caller's messages; up to `IN_FLIGHT` batches are parsed, checked, encrypted and
made durable at once, and share their fsyncs with all other callers. Acknowledgements leave in the
order in which the batches came. A caller that is faster than the disk is held back by gRPC's flow
control, because nothing is read while the line is full. The first error ends the call; what was not
acknowledged may be sent again. Numbers count for the caller who was identified, so nobody can use
up those of another. Reasons: APPEND_ORDER, SESSION_INVALID, and those of batches and sessions.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import check_name
from ptkstore.allowance import Allowance
from ptkstore.engine.parts import Parts
from ptkstore.rpc.gate.dispatch import Call, parse
from ptkstore.rpc.gate.identity import ANONYMOUS
from ptkstore.rpc.services.arrow import read_batch
from ptkstore.streams import Ack
from ptkstore.v1 import stream_pb2
from ptkstore.wire.batches import unframed
from ptkstore.wire.faults import ServerUnavailable
from ptkstore.wire.messages import moment

__all__ = ["IN_FLIGHT", "Appender"]

IN_FLIGHT = 4
_IDLE_SECONDS = 0.5
_Item = tuple[int, Future[Ack]] | BaseException | None


class Appender:
    """Feeds streams for all callers. Thread-safe."""

    def __init__(
        self,
        parts: Parts,
        admit: Callable[[Call, str], None],
        allowance: Allowance,
        *,
        threads: int,
        stopping: Callable[[], bool],
    ) -> None:
        """``admit`` writes down who was let in; ``allowance`` is in bytes; ``stopping`` ends calls
        that are idle.
        """
        self._parts = parts
        self._admit = admit
        self._allowance = allowance
        self._stopping = stopping
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="sage-append")

    def append(self, incoming: Iterator[bytes], call: Call) -> Iterator[stream_pb2.AppendResponse]:
        """One call of Append."""
        opening = self._opened(incoming, call)
        if opening.begin_session:
            writer = self._parts.writer(opening.stream)
            opening.session = writer.begin(producer=opening.producer, caller=_sender(call))
            yield stream_pb2.AppendResponse(session=opening.session)
        line: queue.Queue[_Item] = queue.Queue()
        slots = threading.Semaphore(IN_FLIGHT)
        over = threading.Event()
        threading.Thread(
            target=self._feed,
            args=(incoming, opening, line, slots, over, call),
            name="sage-append-feed",
            daemon=True,
        ).start()
        try:
            while (item := self._next(line)) is not None:
                if isinstance(item, BaseException):
                    raise item
                seq, done = item
                ack = done.result()
                slots.release()
                refused = [
                    stream_pb2.RefusedRecords(**refused_records._asdict())
                    for refused_records in ack.refused
                ]
                yield stream_pb2.AppendResponse(
                    seq=seq, watermark=moment(ack.watermark_ms), refused=refused
                )
        finally:
            over.set()
            slots.release()

    def _next(self, line: queue.Queue[_Item]) -> _Item:
        while True:
            try:
                return line.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                if self._stopping():
                    raise ServerUnavailable(
                        "SERVER_STOPPING", "the server is stopping: connect again"
                    ) from None

    def close(self) -> None:
        """Finish what is under way."""
        self._pool.shutdown()

    def _opened(self, incoming: Iterator[bytes], call: Call) -> stream_pb2.AppendOpen:
        first = parse(stream_pb2.AppendRequest, next(incoming, b""))
        if first.WhichOneof("message") != "open":
            raise InvalidInput("APPEND_ORDER", "the first message must open a stream")
        opening: stream_pb2.AppendOpen = first.open
        call.caller.require_stream(opening.stream)
        spec = self._parts.specs.named(opening.stream)
        self._check_sender(opening, call)
        if opening.schema_fingerprint not in ("", spec.fingerprint):
            raise InvalidInput(
                "SCHEMA_MISMATCH", f"the schema's fingerprint must be {spec.fingerprint}"
            )
        self._admit(call, spec.name)
        return opening

    def _check_sender(self, opening: stream_pb2.AppendOpen, call: Call) -> None:
        if opening.producer or not (opening.session or opening.begin_session):
            check_name(opening.producer, "producer")
        if not opening.session:
            return
        if opening.begin_session:
            raise InvalidInput("SESSION_INVALID", "a call begins a session or goes on with one")
        writer = self._parts.writer(opening.stream)
        try:
            writer.require_session(
                producer=opening.producer, session=opening.session, caller=_sender(call)
            )
        except Refused as error:
            # Nothing of this call was looked at: whoever has not sent anything before may begin
            # another session.
            raise Refused(
                error.reason, error.message, **{**error.details, "at": "opening"}
            ) from None

    def _feed(
        self,
        incoming: Iterator[bytes],
        opening: stream_pb2.AppendOpen,
        line: queue.Queue[_Item],
        slots: threading.Semaphore,
        over: threading.Event,
        call: Call,
    ) -> None:
        """Read the caller's batches into the line."""
        try:
            slots.acquire()
            for data in incoming:
                if over.is_set():
                    return
                self._allowance.take(call.caller.name, len(data))
                seq, records = unframed(data) or _parsed(data)
                line.put((seq, self._pool.submit(self._one, opening, _sender(call), seq, records)))
                # Before the next one is read: what is not read holds the caller back.
                slots.acquire()
            line.put(None)
        except BaseException as error:  # told to the caller, who is in another thread
            line.put(error)

    def _one(
        self, opening: stream_pb2.AppendOpen, caller: str, seq: int, records: memoryview | bytes
    ) -> Ack:
        spec = self._parts.specs.named(opening.stream)
        batch = read_batch(records, spec, convert=not opening.schema_fingerprint)
        writer = self._parts.writer(spec.name)
        sender = {"caller": caller, "producer": opening.producer, "session": opening.session}
        return writer.append(batch, seq=min(seq, 2**63), **sender)


def _sender(call: Call) -> str:
    """Whose numbers a call brings: without credentials there is one caller, the same as in a store
    that is opened here.
    """
    return "" if call.caller is ANONYMOUS else call.caller.name


def _parsed(data: bytes) -> tuple[int, bytes]:
    """A batch whose message is laid out in another way than ours."""
    message = parse(stream_pb2.AppendRequest, data)
    if message.WhichOneof("message") != "batch":
        raise InvalidInput("APPEND_ORDER", "after the first message there are batches only")
    return message.batch.seq, message.batch.arrow_ipc
