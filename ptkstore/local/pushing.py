"""Frames into the streams of a store in a directory: numbered, cut into batches, and appended in
this process. Reasons: STREAM_UNKNOWN, RECORDS_REFUSED, and those of frames and of the writer.
"""

from __future__ import annotations

from typing import Any

from ptklib.errors import Refused
from ptklib.ledger.slices import check_name
from ptkstore.api.pushing import Numbering, first_number, numbered_batches
from ptkstore.api.refused import RefusedTally
from ptkstore.engine.parts import Parts

__all__ = ["LocalPusher"]


class LocalPusher:
    """Pushes for all threads of a process. Thread-safe."""

    def __init__(self, parts: Parts) -> None:
        """Sessions are begun when they are needed."""
        self._parts = parts
        self._numbering = Numbering(lambda stream: parts.writer(stream).begin())

    def push(self, stream: str, frame: Any, *, producer: str, seq: int | None) -> int | None:
        """Append a frame; the watermark when all of it is durable, None for an empty one."""
        check_name(producer, "producer")
        count, batches = numbered_batches(frame, self._parts.specs.named(stream), seq)
        if not count:
            return None
        writer = self._parts.writer(stream)
        if seq is not None:
            session, first = "", first_number(seq)
        else:
            # What belongs to a session belongs to no producer: any number of processes may push
            # under one name.
            producer, (session, first) = "", self._taken(stream, count)
        watermark, row, tally = None, 0, RefusedTally()
        for number, batch in enumerate(batches(), first):
            ack = writer.append(batch, producer=producer, seq=number, session=session)
            tally.add(ack.refused, row)
            watermark, row = ack.watermark_ms, row + batch.num_rows
        tally.check()
        return watermark

    def _taken(self, stream: str, count: int) -> tuple[str, int]:
        """Numbers for a push that has none, in a session that lives."""
        session, first = self._numbering.take(stream, count)
        try:
            self._parts.writer(stream).require_session(producer="", session=session)
        except Refused:
            self._numbering.forget(stream, session)
            return self._numbering.take(stream, count)
        return session, first
