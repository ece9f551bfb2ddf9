"""Frames into the streams of a server: numbered and cut into batches here, sent and acknowledged
there. Reasons: SESSION_ENDED, RECORDS_REFUSED, and those of frames and of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.slices import check_name
from ptkstore.api.pushing import Numbering, first_number, numbered_batches, rows_of
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.client.channel import Connection
from ptkstore.client.push import BATCH_BYTES, Push, begin_session, over_before_it_began
from ptkstore.v1 import stream_pb2

__all__ = ["RemotePusher"]

# How many sessions a push is tried in, where they were over before it began.
_SESSIONS = 3


class RemotePusher:
    """Pushes for all threads of a process. Thread-safe."""

    def __init__(self, connection: Connection, spec_of: Callable[[str], StreamSpec]) -> None:
        """Sessions are begun when they are needed, and streams asked for once."""
        self._connection = connection
        self._spec_of = spec_of
        # What a stream takes never changes, and asking takes as long as a small push.
        self._specs: dict[str, StreamSpec] = {}
        self._numbering = Numbering(lambda stream: begin_session(connection, stream))

    def push(self, stream: str, frame: Any, *, producer: str, seq: int | None) -> int | None:
        """Append a frame; the watermark when all of it is durable."""
        check_name(producer, "producer")
        known = self._specs.get(stream)
        spec = known or self._asked(stream)
        try:
            return self._pushed(spec, frame, producer=producer, seq=seq)
        except InvalidInput:
            # Another store may have taken the place of the one that was asked.
            if known is None or (spec := self._asked(stream)).fingerprint == known.fingerprint:
                raise
        return self._pushed(spec, frame, producer=producer, seq=seq)

    def _asked(self, stream: str) -> StreamSpec:
        spec = self._specs[stream] = self._spec_of(stream)
        return spec

    def _pushed(
        self, spec: StreamSpec, frame: Any, *, producer: str, seq: int | None
    ) -> int | None:
        count, batches = numbered_batches(frame, spec, seq, rows=rows_of(spec, BATCH_BYTES))
        opening = stream_pb2.AppendOpen(
            stream=spec.name, producer=producer, schema_fingerprint=spec.fingerprint
        )
        if seq is not None or not count:
            return Push(
                self._connection, opening, enumerate(batches(), first_number(seq or 0))
            ).run()
        opening.producer = ""
        for _ in range(_SESSIONS):
            opening.session, first = self._numbering.take(spec.name, count)
            push = Push(self._connection, opening, enumerate(batches(), first))
            try:
                return push.run()
            except Refused as error:
                if error.reason in ("SESSION_ENDED", "SESSION_UNKNOWN"):
                    self._numbering.forget(spec.name, opening.session)
                if not over_before_it_began(push, error):
                    raise
        raise Refused(
            "SESSION_ENDED",
            f"sessions of stream {spec.name!r} ended before anything was sent: ask again",
        )
