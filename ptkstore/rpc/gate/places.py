"""Places for calls: how many are served at once, by whom, and for how long one may stay that says
nothing.

A call *arrives* (gRPC's own thread has its headers), *enters* (a thread begins to serve it) and
leaves. One that sent its headers and not its message is *silent*: it holds a thread for nothing. So
nobody has more than ``most_each`` places; who is silent for ``first_message_seconds`` is sent away;
and while all threads are held and somebody stands in line, some of those that were silent for a
while have to go, from whoever has most silent calls. Only beyond `MOST_IN_LINE` is an arrival
turned away for want of room.

Reason: TOO_MANY_CALLS.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any

from ptkstore.wire.faults import LimitExceeded

__all__ = ["GRACE_SECONDS", "MOST_IN_LINE", "CallPlace", "Places", "too_many"]

# The message of an honest caller comes right behind its headers; this much is left to the network,
# and to us.
GRACE_SECONDS = 0.25
MOST_IN_LINE = 10_000
RETRY_SECONDS = 1.0
# The part of all places that is cleared at a time.
_CLEARED = 8


class CallPlace:
    """One call among those of a `Places`, which guards everything in it."""

    def __init__(self, places: Places, who: str, end: Callable[[], None], since: float) -> None:
        """Silent since then."""
        self._places = places
        self.who = who
        self.end = end
        self.since = since
        # True when it was sent away because it said nothing.
        self.ended = False

    def first(self, incoming: Iterator[Any]) -> Any:
        """The first message, once it is there; StopIteration where the caller sends none."""
        try:
            return next(incoming)
        finally:
            self._places._heard(self)

    def leave(self) -> None:
        """The call is over. Once."""
        self._places._leave(self)


class Places:
    """The places of one pool of threads. Thread-safe."""

    def __init__(
        self,
        *,
        most: int,
        most_each: int,
        first_message_seconds: float,
        beside: Places | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """As many as there are threads; the thread that looks after the silent ones is started when
        there is one. What each has ``beside`` these counts, too.
        """
        self._most = most
        self._most_each = most_each
        self._patience = first_message_seconds
        self._clock = clock
        self._lock: threading.Lock = threading.Lock() if beside is None else beside._lock
        self._changed = threading.Condition(self._lock)
        # Calls that stand in line, calls that have entered, and how many of either each caller has,
        # as far as it is known.
        self._line = 0
        self._entered = 0
        self._each: Counter[str] = Counter() if beside is None else beside._each
        # Those that said nothing yet, longest first; and how many of them are being sent away.
        self._silent: dict[CallPlace, None] = {}
        self._leaving = 0
        self._closed = False
        self._thread: threading.Thread | None = None

    def arrive(self, who: str | None) -> None:
        """A call comes, from somebody who is known by now or not; or TOO_MANY_CALLS.

        Never waits.
        """
        with self._changed:
            if who is not None:
                self._require_share(who)
            if self._line >= MOST_IN_LINE:
                raise too_many("every thread is busy")
            self._line += 1
            if who is not None:
                self._each[who] += 1
            if self._entered >= self._most:
                self._changed.notify_all()

    def turn_away(self, who: str | None) -> None:
        """A call that arrived does not enter."""
        with self._changed:
            self._line -= 1
            if who is not None:
                self._forget(who)

    def enter(self, who: str, end: Callable[[], None], *, arrived: str | None) -> CallPlace:
        """A place for a call that arrived as ``arrived``, or TOO_MANY_CALLS (and it is turned
        away); ``end`` ends it.
        """
        with self._changed:
            self._line -= 1
            if arrived is not None:
                self._forget(arrived)
            self._require_share(who)
            place = CallPlace(self, who, end, self._clock())
            self._entered += 1
            self._each[who] += 1
            self._silent[place] = None
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(
                    target=self._look_after, name="sage-places", daemon=True
                )
                self._thread.start()
            elif len(self._silent) == 1 or self._entered >= self._most:
                self._changed.notify_all()
            return place

    def close(self) -> None:
        """Look after nobody any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _require_share(self, who: str) -> None:
        if self._each[who] >= self._most_each:
            raise too_many(f"{self._most_each} calls of yours are being served")

    def _forget(self, who: str) -> None:
        self._each[who] -= 1
        if self._each[who] <= 0:
            del self._each[who]

    def _heard(self, place: CallPlace) -> None:
        with self._changed:
            self._silent.pop(place, None)

    def _leave(self, place: CallPlace) -> None:
        with self._changed:
            self._entered -= 1
            self._leaving -= place.ended
            self._forget(place.who)

    def _look_after(self) -> None:
        with self._changed:
            while not self._closed:
                now = self._clock()
                over = self._over(now)
                for place in over:
                    del self._silent[place]
                    place.ended = True
                self._leaving += len(over)
                if over:
                    self._changed.release()
                    try:
                        for place in over:
                            place.end()
                    finally:
                        self._changed.acquire()
                else:
                    self._changed.wait(self._seconds_left(now))

    @property
    def _crowded(self) -> bool:
        """True while somebody stands in line, all threads are held, and nobody has been asked to
        leave.
        """
        return self._line > 0 and self._entered >= self._most and not self._leaving

    def _over(self, now: float) -> list[CallPlace]:
        """Who has to go."""
        late = [
            call_place for call_place in self._silent if now - call_place.since >= self._patience
        ]
        if late or not self._crowded:
            return late
        crowds: dict[str, deque[CallPlace]] = defaultdict(deque)
        for call_place in self._silent:
            if now - call_place.since >= GRACE_SECONDS:
                crowds[call_place.who].append(call_place)
        call_places: list[CallPlace] = []
        while crowds and len(call_places) < max(1, self._most // _CLEARED):
            largest = max(crowds, key=lambda who: len(crowds[who]))
            call_places.append(crowds[largest].popleft())
            if not crowds[largest]:
                del crowds[largest]
        return call_places

    def _seconds_left(self, now: float) -> float | None:
        """Until the next silent call may have to go; None when there is none."""
        oldest = next(iter(self._silent), None)
        if oldest is None:
            return None
        due = oldest.since + (GRACE_SECONDS if self._crowded else self._patience)
        return max(0.01, due - now)


def too_many(why: str) -> LimitExceeded:
    """What a caller hears for whom there is no place."""
    return LimitExceeded(
        "TOO_MANY_CALLS",
        f"{why}, which is all there is room for: ask again later",
        retry_seconds=RETRY_SECONDS,
    )
