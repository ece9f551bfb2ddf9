"""Follow the states of PTKs: each new one is read once, however many follow, and told to all of
them in order.

Hints of the bus say when to look; the truth is in the metadata. A thread of `Followers` looks when
a hint comes, when a bus that can lose its connection has it back, and from time to time anyway, so
that a lost hint costs a delay and never a state.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ptklib.errors import SageError
from ptkstore.bus import Bus, Handle
from ptkstore.closing import Closing
from ptkstore.metadata import Metadata, rows

__all__ = ["POLL_SECONDS", "Follower", "Followers"]

# How often everything is looked at without a hint.
POLL_SECONDS = 2.0
# States of a PTK that are kept for its followers; one that is further behind reads for itself.
_RECENT = 16
_LOG = logging.getLogger(__name__)


class _Line:
    """One PTK and those who follow it. The lock of `Followers` guards it."""

    def __init__(self, ptk: int, newest: int) -> None:
        self.ptk = ptk
        self.newest = newest
        self.recent: deque[rows.StateRow] = deque(maxlen=_RECENT)
        self.followers: set[Follower] = set()


class Followers:
    """Everybody who follows a PTK through one store. Thread-safe."""

    def __init__(self, metadata: Metadata, bus: Bus, *, poll_seconds: float = POLL_SECONDS) -> None:
        """Nothing runs before somebody follows."""
        self._metadata = metadata
        self._bus = bus
        self._poll = poll_seconds
        self._lock = threading.Lock()
        self._lines: dict[str, _Line] = {}
        self._hinted: set[str] = set()
        self._all = False
        self._woken = threading.Event()
        self._closed = False
        self._handles: list[Handle] = []
        self._thread: threading.Thread | None = None

    def follow(self, name: str, after: int, ready: Callable[[], None] | None = None) -> Follower:
        """Follow a PTK from the version after ``after``. PTK_UNKNOWN.

        ``ready`` is called, for those who do not wait, when there may be something to `take`; it
        must not wait either.
        """
        with self._lock:
            self._start()
        follower = Follower(self, name, after, ready)
        with self._metadata.read() as tx:
            ptk = tx.ptks.named(name).id
            latest = tx.states.latest(ptk)
        with self._lock:
            line = self._lines.get(name)
            if line is None:
                line = self._lines[name] = _Line(ptk, 0 if latest is None else latest.version)
                # A hint that came before the line was there told nobody.
                self._hinted.add(name)
                self._woken.set()
            line.followers.add(follower)
        return follower

    def close(self) -> None:
        """End everybody's following. Safe to call twice."""
        with self._lock:
            self._closed = True
            thread, self._thread = self._thread, None
            handles, self._handles = self._handles, []
            waiting = [follower for line in self._lines.values() for follower in line.followers]
        for follower in waiting:
            follower.wake()
        for handle in handles:
            handle.close()
        self._woken.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def fresh(self, follower: Follower) -> Sequence[rows.StateRow] | None:
        """The states beyond what a follower has seen, oldest first; None when the following is
        over.
        """
        with self._lock:
            line = self._lines.get(follower.name)
            if self._closed or line is None or follower not in line.followers:
                return None
            if line.newest <= follower.after:
                return ()
            if line.recent and line.recent[0].version <= follower.after + 1:
                return [row for row in line.recent if row.version > follower.after]
        with self._metadata.read() as tx:
            return tx.states.standing(line.ptk, after=follower.after)

    def leave(self, follower: Follower) -> None:
        """Follow no more."""
        with self._lock:
            line = self._lines.get(follower.name)
            if line is not None:
                line.followers.discard(follower)
                if not line.followers:
                    del self._lines[follower.name]

    def _start(self) -> None:
        if self._thread is not None or self._closed:
            return
        self._handles.append(self._bus.subscribe("sage.ptk.state.*", self._hint))
        on_connect = getattr(self._bus, "on_connect", None)
        if on_connect is not None:
            self._handles.append(on_connect(self._look_at_all))
        self._thread = threading.Thread(target=self._run, name="sage-followers", daemon=True)
        self._thread.start()

    def _hint(self, _topic: str, message: dict[str, Any]) -> None:
        with self._lock:
            self._hinted.add(str(message.get("subject")))
        self._woken.set()

    def _look_at_all(self) -> None:
        self._all = True
        self._woken.set()

    def _run(self) -> None:
        due = time.monotonic() + self._poll
        while not self._closed:
            self._woken.wait(max(0.0, due - time.monotonic()))
            self._woken.clear()
            everything, self._all = self._all or time.monotonic() >= due, False
            if everything:
                due = time.monotonic() + self._poll
            with self._lock:
                hinted, self._hinted = self._hinted, set()
                names = set(self._lines) if everything else hinted & set(self._lines)
            try:
                self._look(names)
            except SageError as error:
                _LOG.warning("new states cannot be read now: %s", error.reason)

    def _look(self, names: set[str]) -> None:
        with self._lock:
            seen = {
                name: (line.ptk, line.newest)
                for name in names
                if (line := self._lines.get(name)) is not None
            }
        if not seen:
            return
        with self._metadata.read() as tx:
            newest = tx.states.newest({ptk for ptk, _ in seen.values()})
            standing = {
                name: tx.states.standing(ptk, after=version)
                for name, (ptk, version) in seen.items()
                if ptk in newest and newest[ptk].version > version
            }
        waiting: list[Follower] = []
        with self._lock:
            for name, fresh in standing.items():
                line = self._lines.get(name)
                if line is None or not fresh:
                    continue
                line.recent.extend(row for row in fresh if row.version > line.newest)
                line.newest = max(line.newest, fresh[-1].version)
                waiting += line.followers
        for follower in waiting:
            follower.wake()


class Follower(Closing):
    """One who follows a PTK. One thread at a time takes."""

    def __init__(
        self, followers: Followers, name: str, after: int, ready: Callable[[], None] | None
    ) -> None:
        """Made by `Followers.follow`."""
        self._followers = followers
        self._woken = threading.Event()
        self._ready = ready
        self._left = False
        self.name = name
        self.after = after

    def take(self) -> Sequence[rows.StateRow] | None:
        """The states that were not taken before, oldest first, perhaps none; None when the
        following is over.
        """
        fresh = None if self._left else self._followers.fresh(self)
        if fresh:
            self.after = fresh[-1].version
        return fresh

    def next(self) -> Sequence[rows.StateRow]:
        """Wait for states that were not taken before, oldest first; empty when the following is
        over.
        """
        while True:
            self._woken.clear()
            fresh = self.take()
            if fresh is None:
                return ()
            if fresh:
                return fresh
            self._woken.wait()

    def wake(self) -> None:
        """Look again."""
        self._woken.set()
        if self._ready is not None:
            self._ready()

    def close(self) -> None:
        """Follow no more; `next` returns at once. Safe to call twice."""
        self._left = True
        self._followers.leave(self)
        self.wake()
