"""The thread of the leader that settles answers to registrations which were given before they were
settled.

It looks every few seconds, for registrations are taken by every server of a store, and only one
works on them. The work is done in a process of its own (`ptkstore.engine.plans.planner`), so that
nobody who is served waits for it.
"""

from __future__ import annotations

import threading

import structlog

from ptklib.errors import SageError
from ptkstore.engine.parts import Parts
from ptkstore.engine.plans.answering import REFINED, AnswerEffort
from ptkstore.engine.plans.planner import BACKGROUND, Planner
from ptkstore.engine.plans.refining import refine

__all__ = ["POLL_SECONDS", "Refiner"]

POLL_SECONDS = 5.0
_LOG = structlog.get_logger("sage.refiner")


class Refiner:
    """Works from the start until `close`."""

    def __init__(
        self, parts: Parts, *, work: AnswerEffort = REFINED, poll_seconds: float = POLL_SECONDS
    ) -> None:
        """Start."""
        self._parts = parts
        self._work = work
        self._planner = Planner(place=BACKGROUND)
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
                refine(
                    self._parts,
                    work=self._work,
                    stopping=self._stopping.is_set,
                    ask=self._planner.ask,
                )
            except SageError as error:
                _LOG.warning("waiting", reason=error.reason)
            except (
                Exception
            ) as error:  # a defect; without this thread nothing would be settled any more
                _LOG.error("failed", error=type(error).__name__)
            self._stopping.wait(self._poll_seconds)
