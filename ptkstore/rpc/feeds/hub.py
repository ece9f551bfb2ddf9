"""Wakes those who watch. A hint of the bus, or the end of their call, makes them look again; the
truth is in the metadata.

Places are few, and a call that watches keeps its own for as long as it likes. So **a caller may have
as many as it leaves free, and no more**: alone it has half of them, a second one half of what is
left, and n callers that take all they can get have a share of 1/(n + 1) each where they come at the
same time. Whoever comes next finds one, as long as no more callers than the logarithm of all places
had the others; a fixed part for each would be gone after two.

Reason: TOO_MANY_WATCHERS.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ptkstore.bus import Bus, Handle
from ptkstore.wire.faults import LimitExceeded, ServerUnavailable

__all__ = ["POLL_SECONDS", "Hub"]

# How often a watcher looks without a hint.
POLL_SECONDS = 2.0


class Hub:
    """One subscription to the bus for all watchers."""

    def __init__(self, bus: Bus, *, most: int) -> None:
        """At most so many watch at once: each occupies a thread."""
        self._changed = threading.Condition()
        self._hints = 0
        self._ends: dict[object, Callable[[], None]] = {}
        self._each: Counter[str] = Counter()
        self._most = most
        self.stopping = False
        self._handles: list[Handle] = [
            bus.subscribe("sage.*", lambda _topic, _message: self.wake())
        ]
        on_connect = getattr(bus, "on_connect", None)
        if on_connect is not None:
            self._handles.append(on_connect(self.wake))

    def wake(self) -> None:
        """Let everybody look again."""
        with self._changed:
            self._hints += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """End all watching: the callers reconnect elsewhere or later."""
        with self._changed:
            self.stopping = True
            ends = list(self._ends.values())
        self.wake()
        for end in ends:
            end()

    def close(self) -> None:
        """Hear no more hints."""
        self.stop()
        for handle in self._handles:
            handle.close()

    @contextmanager
    def watching(self, who: str, context: Any) -> Iterator[Iterator[None]]:
        """An iterator that yields when it is time to look, first at once, until the call ends.

        SERVER_STOPPING when we stop.
        """
        leave = self.enter(who, lambda: None)
        try:
            context.add_callback(self.wake)
            yield self._looks(context)
        finally:
            leave()

    def enter(self, who: str, end: Callable[[], None]) -> Callable[[], None]:
        """One watcher more of this caller, or TOO_MANY_WATCHERS; ``end`` is called when we stop.

        Returns what takes the watcher out again.
        """
        token = object()
        with self._changed:
            if self.stopping:
                raise ServerUnavailable("SERVER_STOPPING", "the server is stopping: connect again")
            self._require_share(who)
            self._ends[token] = end
            self._each[who] += 1

        def leave() -> None:
            with self._changed:
                if self._ends.pop(token, None) is None:
                    return
                self._each[who] -= 1
                if not self._each[who]:
                    del self._each[who]

        return leave

    def _require_share(self, who: str) -> None:
        free = self._most - len(self._ends)
        if not free:
            raise LimitExceeded(
                "TOO_MANY_WATCHERS", f"{self._most} calls are watching already: try later"
            )
        if self._each[who] >= free:
            raise LimitExceeded(
                "TOO_MANY_WATCHERS",
                f"{self._each[who]} calls of yours are watching, and {free} places are left for "
                "others: end some, or try later",
            )

    def _looks(self, context: Any) -> Iterator[None]:
        while True:
            with self._changed:
                seen = self._hints
            if not context.is_active():
                return
            if self.stopping:
                raise ServerUnavailable("SERVER_STOPPING", "the server is stopping: connect again")
            yield
            with self._changed:
                self._changed.wait_for(lambda seen=seen: self._hints != seen, POLL_SECONDS)  # type: ignore[misc]
