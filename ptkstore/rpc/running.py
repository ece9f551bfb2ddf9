"""Long work in the background: closing windows, one at a time, in the order in which it was asked for.

An operation is written down before it is begun, and its windows when they are known; the engine journals every step of them.
So a restart takes up what was running and loses nothing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import structlog

from ptklib.errors import SageError
from ptkstore.client import Store
from ptkstore.engine.counting import arrived_until, seal_due
from ptkstore.engine.lead import LeadLost
from ptkstore.engine.patience import delay_seconds, passes
from ptkstore.metadata import Transaction
from ptkstore.metadata.operations import OperationRow
from ptkstore.rpc.faults import place_of, told
from ptkstore.streams.breakdown import kind_of

__all__ = ["KIND", "Runner"]

KIND = "CloseWindow"
_LOG = structlog.get_logger("sage.operations")


class Runner:
    """The thread that does it, from `resume` to `stop`."""

    def __init__(self, store: Store, wake: Callable[[], None]) -> None:
        """``wake`` is called after every step, for those who watch."""
        self._store = store
        self._wake = wake
        self._todo: queue.SimpleQueue[int | None] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def resume(self) -> None:
        """Take up what was running, here or in a server that led before, and what comes."""
        self._todo = queue.SimpleQueue()
        self._stopping.clear()
        with self._store.home.metadata.read() as tx:
            for row in tx.operations.running():
                self._todo.put(row.id)
        self._thread = threading.Thread(target=self._run, name="sage-operations", daemon=True)
        self._thread.start()

    def start(
        self, stream: str, until_ms: int | None, within: Callable[[Transaction, OperationRow], object]
    ) -> OperationRow:
        """Write an operation down, with what ``within`` writes, and begin it when its turn comes."""
        home = self._store.home
        # Which clock says "now" is decided when it is asked for, not when its turn comes.
        due_ms = arrived_until(home, home.specs[stream], until_ms)
        # Wrong times are refused here, to whoever asked.
        windows = seal_due(home, stream, due_ms)
        with home.metadata.write() as tx:
            row = tx.operations.start(KIND, stream, until_ms=due_ms, at_ms=home.public_ms())
            row = tx.operations.add_windows(row.id, windows)
            within(tx, row)
        self._todo.put(row.id)
        return row

    def stop(self) -> None:
        """Finish the window that is under way; the rest is taken up by the next start. Safe to call twice."""
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
            except Exception as error:  # a defect; without this thread no window would be closed any more
                _LOG.error("stuck", operation=operation, error=type(error).__name__, where=place_of(error))

    def _do_patiently(self, operation: int) -> None:
        """Again while something it needs is away: a window goes on where it was, and no operation fails for that."""
        attempt = 0
        while not self._stopping.is_set():
            try:
                return self._do(operation)
            except Exception as error:
                if not _waits(error):
                    raise
                attempt += 1
                _LOG.warning("waiting", operation=operation, reason=kind_of(error))
                self._stopping.wait(delay_seconds(attempt))
        return None

    def _do(self, operation: int) -> None:
        home = self._store.home
        with home.metadata.read() as tx:
            row = tx.operations.get(operation)
        if row.status != "RUNNING":
            return
        try:
            # Decided when it was asked for: the clock is not asked again.
            asked_ms = row.until_ms
            until_ms = arrived_until(home, home.specs[row.stream], None) if asked_ms is None else asked_ms
            windows = seal_due(home, row.stream, until_ms)
            with home.metadata.write() as tx:
                windows = tx.operations.add_windows(operation, windows).windows
            for window in windows:
                if self._stopping.is_set():
                    return
                self._store.run_window(row.stream, window, progress=lambda text: self._tell(operation, text))
            end = ("DONE", "", "")
        except Exception as error:
            if _waits(error):
                raise
            fault = told(error)
            if fault is not error:
                _LOG.error("failed", operation=operation, error=type(error).__name__, where=place_of(error))
            end = ("FAILED", fault.reason, fault.message)
        with home.metadata.write() as tx:
            tx.operations.end(operation, end[0], reason=end[1], message=end[2], at_ms=home.public_ms())
        self._wake()

    def _tell(self, operation: int, text: str) -> None:
        with self._store.home.metadata.write() as tx:
            tx.operations.set_progress(operation, text)
        self._wake()


def _waits(error: Exception) -> bool:
    return isinstance(error, LeadLost) or passes(error)
