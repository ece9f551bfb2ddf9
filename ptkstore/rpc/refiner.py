"""The thread of the leader that settles answers to registrations which were given before they were settled.

It looks every few seconds, for registrations are taken by every server of a store, and only one works on them. It takes turns
with those who serve: after a few milliseconds of work it rests as long, so that appends do not wait for it.
"""

from __future__ import annotations

import math
import threading
import time
from dataclasses import replace

import structlog

from ptklib.errors import SageError
from ptkstore.engine.answering import REFINED, Work
from ptkstore.engine.home import Home
from ptkstore.engine.refining import refine

__all__ = ["POLL_SECONDS", "Refiner"]

POLL_SECONDS = 5.0
# Work between two rests.
_STRETCH_SECONDS = 0.005
_LOG = structlog.get_logger("sage.refiner")


class Refiner:
    """Works from the start until `close`."""

    def __init__(self, home: Home, *, work: Work = REFINED, poll_seconds: float = POLL_SECONDS) -> None:
        """Start."""
        self._home = home
        self._work = replace(work, clock=self._clock)
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._rested = 0.0
        self._thread = threading.Thread(target=self._run, name="sage-refiner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave what is under way: the next one who leads begins it again. Safe to call twice."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                refine(self._home, work=self._work, stopping=self._stopping.is_set)
            except SageError as error:
                _LOG.warning("waiting", reason=error.reason)
            except Exception as error:  # a defect; without this thread nothing would be settled any more
                _LOG.error("failed", error=type(error).__name__)
            self._stopping.wait(self._poll_seconds)

    def _clock(self) -> float:
        """The CPU time of the thread; asked often by whoever works, which is where it rests. At the end of time to stop."""
        if self._stopping.is_set():
            return math.inf
        now = time.thread_time()
        if now - self._rested > _STRETCH_SECONDS:
            time.sleep(min(now - self._rested, 10 * _STRETCH_SECONDS))
            self._rested = time.thread_time()
        return now
