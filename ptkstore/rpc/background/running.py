"""Long work in the background: closing windows, one at a time, in the order in which it was asked
for.

An operation is written down before it is begun, and its windows when they are known; the engine
journals every step of them. So a restart takes up what was running and loses nothing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import structlog

from ptklib.encoding.error_place import kind_of, place_of
from ptklib.errors import SageError
from ptkstore.api.telling import told
from ptkstore.api.views import OperationView
from ptkstore.backoff import SERVER_AWAY
from ptkstore.engine.history import operations
from ptkstore.engine.leader import LeadLost
from ptkstore.engine.parts import Parts
from ptkstore.engine.retry import passes
from ptkstore.engine.window.counting import arrived_until, seal_due
from ptkstore.engine.window.running import run_window
from ptkstore.engine.within import Within

__all__ = ["KIND", "Runner"]

KIND = "CloseWindow"
_LOG = structlog.get_logger("sage.operations")


class Runner:
    """The thread that does it, from `resume` to `stop`."""

    def __init__(self, parts: Parts, wake: Callable[[], None]) -> None:
        """``wake`` is called after every step, for those who watch."""
        self._parts = parts
        self._wake = wake
        self._todo: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def resume(self) -> None:
        """Take up what was running, here or in a server that led before, and what comes."""
        self._todo = queue.SimpleQueue()
        self._stopping.clear()
        for operation in operations.running(self._parts):
            self._todo.put(operation)
        self._thread = threading.Thread(target=self._run, name="sage-operations", daemon=True)
        self._thread.start()

    def start(self, stream: str, until_ms: int | None, within: Within[OperationView]) -> None:
        """Write an operation down, with what ``within`` writes, and begin it when its turn
        comes.
        """
        parts = self._parts
        # Which clock says "now" is decided when it is asked for, not when its turn comes.
        due_ms = arrived_until(parts, parts.specs[stream], until_ms)
        # Wrong times are refused here, to whoever asked.
        windows = seal_due(parts, stream, due_ms)
        self._todo.put(
            operations.start(parts, KIND, stream, until_ms=due_ms, windows=windows, within=within)
        )

    def stop(self) -> None:
        """Finish the window that is under way; the rest is taken up by the next start.

        Safe to call twice.
        """
        self._stopping.set()
        self._todo.put(None)
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while (operation := self._todo.get()) is not None and not self._stopping.is_set():
            try:
                self._do_patiently(operation)
            except SageError as error:
                # It stays RUNNING, and the next start takes it up.
                _LOG.error("stuck", operation=operation, reason=error.reason)
            except (
                Exception
            ) as error:  # a defect; without this thread no window would be closed any more
                _LOG.error(
                    "stuck", operation=operation, error=type(error).__name__, where=place_of(error)
                )

    def _do_patiently(self, operation: int) -> None:
        """Again while something it needs is away: a window goes on where it was, and no operation
        fails for that.
        """
        attempt = 0
        while not self._stopping.is_set():
            try:
                return self._do(operation)
            except Exception as error:
                if not _waits(error):
                    raise
                attempt += 1
                _LOG.warning("waiting", operation=operation, reason=kind_of(error))
                self._stopping.wait(SERVER_AWAY.seconds(attempt))
        return None

    def _do(self, operation: int) -> None:
        parts = self._parts
        row = operations.known(parts, operation)
        if row.status != "RUNNING":
            return
        try:
            # Decided when it was asked for: the clock is not asked again.
            asked_ms = row.until_ms
            until_ms = (
                arrived_until(parts, parts.specs[row.stream], None)
                if asked_ms is None
                else asked_ms
            )
            windows = seal_due(parts, row.stream, until_ms)
            for window in operations.add_windows(parts, operation, windows):
                if self._stopping.is_set():
                    return
                run_window(
                    parts, row.stream, window, progress=lambda text: self._tell(operation, text)
                )
            end = ("DONE", "", "")
        except Exception as error:
            if _waits(error):
                raise
            fault = told(error)
            if fault is not error:
                _LOG.error(
                    "failed", operation=operation, error=type(error).__name__, where=place_of(error)
                )
            end = ("FAILED", fault.reason, fault.message)
        operations.end(parts, operation, end[0], reason=end[1], message=end[2])
        self._wake()

    def _tell(self, operation: int, text: str) -> None:
        operations.tell(self._parts, operation, text)
        self._wake()


def _waits(error: Exception) -> bool:
    return isinstance(error, LeadLost) or passes(error)
