"""The thread of the leader that settles answers to registrations which were given before they were settled.

It looks every few seconds, for registrations are taken by every server of a store, and only one works on them. The work is done
in a process of its own (`ptkstore.engine.planner`), so that nobody who is served waits for it.
"""

from __future__ import annotations

import threading

import structlog

from ptklib.errors import SageError
from ptkstore.engine.answering import REFINED, Work
from ptkstore.engine.home import Home
from ptkstore.engine.planner import Planner
from ptkstore.engine.refining import refine

__all__ = ["POLL_SECONDS", "Refiner"]

POLL_SECONDS = 5.0
_LOG = structlog.get_logger("sage.refiner")


class Refiner:
    """Works from the start until `close`."""

    def __init__(self, home: Home, *, work: Work = REFINED, poll_seconds: float = POLL_SECONDS) -> None:
        """Start."""
        self._home = home
        self._work = work
        self._planner = Planner()
        self._poll_seconds = poll_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-refiner", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave what is under way: the next one who leads begins it again. Safe to call twice."""
        self._stopping.set()
        self._planner.close()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                refine(self._home, work=self._work, stopping=self._stopping.is_set, answer=self._planner.answer)
            except SageError as error:
                _LOG.warning("waiting", reason=error.reason)
            except Exception as error:  # a defect; without this thread nothing would be settled any more
                _LOG.error("failed", error=type(error).__name__)
            self._stopping.wait(self._poll_seconds)
