"""WatchPtk without a thread for every watcher: a few threads send to all of them.

A watcher that may have something to be told stands in a line once, so that one thread at a time
sends to it and its states leave in order. gRPC holds back who sends to a peer that reads nothing;
when the line stands still, another thread is started, so that such a peer delays the others for a
moment and never stops them.
"""

from __future__ import annotations

import queue
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from ptklib.errors import SageError
from ptkstore.engine.following import Follower, Followers
from ptkstore.metadata import rows
from ptkstore.rpc.feeds.hub import Hub
from ptkstore.wire.faults import ServerUnavailable, status_of

__all__ = ["Send", "Watchers"]

# Takes the bytes of a message, or None for the end of the call.
Send = Callable[[bytes | None], None]
THREADS = 4
_GLANCE_SECONDS = 0.5
_KEPT = 64


class _Watcher:
    """One call. ``queued``, ``again`` and ``over`` are guarded by the lock of `Watchers`."""

    def __init__(self, context: Any, send: Send) -> None:
        self.context = context
        self.send = send
        self.follower: Follower | None = None
        self.queued = self.again = self.over = False


class Watchers:
    """All calls that watch a PTK. Thread-safe."""

    def __init__(
        self, followers: Followers, hub: Hub, message: Callable[[str, rows.StateRow], bytes]
    ) -> None:
        """``message`` makes what is sent of a state. Nothing runs before somebody watches."""
        self._followers = followers
        self._hub = hub
        self._message = message
        self._messages: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._line: queue.SimpleQueue[_Watcher | None] = queue.SimpleQueue()
        self._done = 0
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()

    def watch(self, who: str, name: str, after: int, context: Any, send: Send) -> None:
        """Send a caller every state of a PTK beyond ``after``, until the call or the server ends.

        Returns at once.
        """
        watcher = _Watcher(context, send)
        stopping = ServerUnavailable("SERVER_STOPPING", "the server is stopping: connect again")
        leave = self._hub.enter(who, lambda: self._end(watcher, stopping))
        try:
            watcher.follower = self._followers.follow(
                name, after, ready=lambda: self._ready(watcher)
            )
        except BaseException:
            leave()
            raise

        def left() -> None:
            with self._lock:
                watcher.over = True
            assert watcher.follower is not None
            watcher.follower.close()
            leave()

        if not context.add_callback(left):
            return left()
        with self._lock:
            if not self._threads:
                self._run(self._look_after, "sage-watch-line")
                for _ in range(THREADS):
                    self._run(self._work, "sage-watch-send")
        return self._ready(watcher)

    def close(self) -> None:
        """End the threads; there must be no calls any more."""
        self._closed.set()
        for _ in self._threads:
            self._line.put(None)
        for thread in self._threads:
            thread.join(_GLANCE_SECONDS)

    def _run(self, work: Callable[[], None], name: str) -> None:
        thread = threading.Thread(target=work, name=name, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _ready(self, watcher: _Watcher) -> None:
        with self._lock:
            if watcher.queued or watcher.over:
                watcher.again = True
                return
            watcher.queued = True
        self._line.put(watcher)

    def _work(self) -> None:
        """Send, for ever."""
        while (watcher := self._line.get()) is not None:
            with self._lock:
                watcher.again = False
            self._send(watcher)
            with self._lock:
                self._done += 1
                watcher.queued = watcher.again and not watcher.over
                again = watcher.queued
            if again:
                self._line.put(watcher)

    def _send(self, watcher: _Watcher) -> None:
        follower = watcher.follower
        if follower is None:
            return None  # it will be ready again when it has one
        try:
            fresh = follower.take()
        except SageError as error:
            return self._end(watcher, error)
        if fresh is None:
            return self._end(
                watcher,
                ServerUnavailable("SERVER_STOPPING", "the server is stopping: connect again"),
            )
        for row in fresh:
            watcher.send(self._made(follower.name, row))
        return None

    def _made(self, name: str, row: rows.StateRow) -> bytes:
        """The message about a state; the same bytes for all."""
        key = name, row.version
        with self._lock:
            made = self._messages.get(key)
        if made is None:
            made = self._message(name, row)
            with self._lock:
                self._messages[key] = made
                while len(self._messages) > _KEPT:
                    self._messages.popitem(last=False)
        return made

    def _end(self, watcher: _Watcher, error: SageError) -> None:
        """End a call from our side."""
        with self._lock:
            if watcher.over:
                return
            watcher.over = True
        # It notes the status and raises, for calls that could not go on otherwise.
        with suppress(Exception):
            watcher.context.abort_with_status(status_of(error))
        watcher.send(None)

    def _look_after(self) -> None:
        """Start another thread when those that are there stand still."""
        before = -1
        while not self._closed.wait(_GLANCE_SECONDS):
            with self._lock:
                if self._done == before and not self._line.empty():
                    self._run(self._work, "sage-watch-send")
                before = self._done
