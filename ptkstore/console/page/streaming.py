"""Server-sent events: a page that shows what happens as it happens.

``events`` is an iterator that yields None while there is nothing to tell, so that a visitor who has
gone is noticed and the work behind it ends. It is not asked again for ``pause_seconds`` then: it
need not wait itself, which would hold a thread for every open page. The stream ends with the
session, and with the console (`end_all`), which would wait for it otherwise.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from ptkstore.console.page.page import Visit

__all__ = ["StreamedEvent", "end_all", "tell"]

# What ends the streams of each console: those of one share its loop.
_OPEN: WeakKeyDictionary[asyncio.AbstractEventLoop, set[asyncio.Event]] = WeakKeyDictionary()


@dataclass(frozen=True)
class StreamedEvent:
    """One event: where it can be taken up again, its kind, and a JSON value."""

    id: int
    kind: str
    body: Any

    def as_text(self) -> str:
        """The event on the wire."""
        return f"id: {self.id}\nevent: {self.kind}\ndata: {json.dumps(self.body)}\n\n"


def tell(
    visit: Visit,
    events: Callable[[int], Iterator[StreamedEvent | None]],
    *,
    pause_seconds: float = 0.0,
) -> Response:
    """A stream of events after the last one that the browser has."""
    last = visit.request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0

    async def body() -> AsyncIterator[str]:
        over = asyncio.Event()
        mine = _OPEN.setdefault(asyncio.get_running_loop(), set())
        mine.add(over)
        try:
            yield "retry: 3000\n\n"
            async for streamed_event in iterate_in_threadpool(events(after)):
                if over.is_set() or not visit.alive() or await visit.request.is_disconnected():
                    return
                yield ": still here\n\n" if streamed_event is None else streamed_event.as_text()
                if streamed_event is None and pause_seconds:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(over.wait(), pause_seconds)
        finally:
            mine.discard(over)

    return StreamingResponse(
        body(), media_type="text/event-stream", headers={"x-accel-buffering": "no"}
    )


def end_all() -> None:
    """End the streams of the console that calls."""
    for over in _OPEN.get(asyncio.get_running_loop(), ()):
        over.set()
