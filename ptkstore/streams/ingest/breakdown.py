"""A writer that failed: why, since when, and when to try again.

After a write that failed (disk full, no file descriptors) it is not known what is durable. The
writer takes nothing until it has recovered from the disk, as after a crash; it tries that by
itself, whenever it is asked for something, at most every `RETRY_SECONDS`. The log hears once that
it stopped and once that it works again: the kind of error and its code, never a text or a path, for
which blocks are open is data. Reasons: STREAM_UNAVAILABLE, STREAM_CLOSED.
"""

from __future__ import annotations

import logging
import time

from ptklib.encoding.error_place import kind_of
from ptklib.errors import SageError
from ptkstore.streams.faults import StreamUnavailable

__all__ = ["RETRY_SECONDS", "Breakdown"]

RETRY_SECONDS = 0.5
_LOG = logging.getLogger(__name__)


class Breakdown:
    """Whether the writer of a stream works. Changed in the writer's turn."""

    def __init__(self, stream: str) -> None:
        """It works."""
        self._stream = stream
        self._fault: SageError | None = None
        self._closed = False
        self._again_at = 0.0

    @property
    def fault(self) -> SageError | None:
        """Why it does not work; None while it does, and for a writer that was closed."""
        return None if self._closed else self._fault

    def failed(self, error: BaseException) -> None:
        """It failed, or failed again."""
        fault: SageError = self._unavailable(
            "STREAM_UNAVAILABLE", f"failed to write ({kind_of(error)})"
        )
        if isinstance(error, SageError):
            fault = error
        if self._fault is None or self._fault.reason != fault.reason:
            _LOG.error(
                "the writer of stream %r stopped: %s (%s)",
                self._stream,
                fault.reason,
                kind_of(error),
            )
        self._fault = fault
        self._again_at = time.monotonic() + RETRY_SECONDS

    def closed(self) -> None:
        """It was closed: it never works again."""
        self._closed = True
        self._fault = self._unavailable("STREAM_CLOSED", "was closed")

    def due(self) -> bool:
        """True when it failed and it is time to recover."""
        return self._fault is not None and not self._closed and time.monotonic() >= self._again_at

    def healed(self) -> None:
        """It works again."""
        self._fault = None
        _LOG.warning("the writer of stream %r works again", self._stream)

    def require(self) -> None:
        """Raise what is wrong, if anything is."""
        if self._fault is not None:
            raise type(self._fault)(self._fault.reason, self._fault.message, **self._fault.details)

    def _unavailable(self, reason: str, what: str) -> StreamUnavailable:
        more = (
            ""
            if reason == "STREAM_CLOSED"
            else ": it recovers by itself when it can write again; send it again"
        )
        return StreamUnavailable(
            reason, f"the writer of stream {self._stream!r} {what}{more}", stream=self._stream
        )
