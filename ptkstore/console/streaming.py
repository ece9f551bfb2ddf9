"""Server-sent events: a page that shows what happens as it happens.

``events`` is a blocking iterator that yields None while there is nothing to tell, so that a visitor who has gone is noticed and
the work behind it ends. The stream ends with the session.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any

from starlette.concurrency import iterate_in_threadpool
from starlette.responses import Response, StreamingResponse

from ptkstore.console.visit import Visit

__all__ = ["Told", "tell"]


@dataclass(frozen=True)
class Told:
    """One event: where it can be taken up again, its kind, and a JSON value."""

    id: int
    kind: str
    body: Any

    def as_text(self) -> str:
        """The event on the wire."""
        return f"id: {self.id}\nevent: {self.kind}\ndata: {json.dumps(self.body)}\n\n"


def tell(visit: Visit, events: Callable[[int], Iterator[Told | None]]) -> Response:
    """A stream of events after the last one that the browser has."""
    last = visit.request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 16 else 0

    async def body() -> AsyncIterator[str]:
        yield "retry: 3000\n\n"
        async for one in iterate_in_threadpool(events(after)):
            if not visit.alive() or await visit.request.is_disconnected():
                return
            yield ": still here\n\n" if one is None else one.as_text()

    return StreamingResponse(body(), media_type="text/event-stream", headers={"x-accel-buffering": "no"})
