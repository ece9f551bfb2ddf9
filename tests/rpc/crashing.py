"""A server in a process of its own that dies right after the n-th durable write of one call.

What counts as a write: a committed transaction of the metadata, a commit of the ledger, a watermark
that moved, a batch that was made durable; the first three only in the thread that serves the call.
`first_try` runs in a child of `tests.rpc.test_crashes`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import grpc

from ptkstore.ledger.writer import Writer
from ptkstore.metadata import Metadata
from ptkstore.rpc.gate.idempotency import Repeats
from ptkstore.streams import StreamWriter
from tests.rpc.small import channel_to, serving

__all__ = ["CRASHED", "SECTIONS", "call", "first_try"]

CRASHED = 86
SECTIONS: dict[str, Any] = {"subscribers": {"allowed": ["127.0.0.1:*"]}}


def call(channel: grpc.Channel, method: str, requests: list[bytes]) -> bytes:
    """The answer to a call; the last one where it streams them."""
    if len(requests) == 1:
        answer: bytes = channel.unary_unary(method)(requests[0], timeout=60)
        return answer
    *_, last = channel.stream_stream(method)(iter(requests), timeout=60)
    return bytes(last)


def first_try(
    path: Path, method: str, requests: list[bytes], writes: int, answers: Connection
) -> None:
    """Serve the store, make the call, and die after so many writes; send the answer where it was
    given before that.
    """
    _arm(writes)
    with serving(path, **SECTIONS) as (server, _), channel_to(server) as channel:
        answers.send(call(channel, method, requests))
        os._exit(0)


def _arm(writes: int) -> None:
    left = [writes]
    mine = threading.local()

    def written() -> None:
        if getattr(mine, "on", False):
            left[0] -= 1
            if left[0] == 0:
                os._exit(CRASHED)

    def replaced(
        kind: type, name: str, before: Callable[[], None], after: Callable[[], None]
    ) -> None:
        real: Callable[..., Any] = getattr(kind, name)

        def then(*given: Any, **named: Any) -> Any:
            before()
            found = real(*given, **named)
            after()
            return found

        setattr(kind, name, then)

    def arm() -> None:
        mine.on = True

    def nothing() -> None:
        pass

    real_write = Metadata.write

    @contextmanager
    def write(self: Metadata) -> Iterator[Any]:
        with real_write(self) as tx:
            yield tx
        written()

    Metadata.write = write  # type: ignore[method-assign]
    replaced(Writer, "submit", nothing, written)
    replaced(StreamWriter, "seal_due", nothing, written)
    replaced(Repeats, "once", arm, nothing)
    # Only Append calls it, from a thread of its own.
    replaced(StreamWriter, "append", arm, written)
