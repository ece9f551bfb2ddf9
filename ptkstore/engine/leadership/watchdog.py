"""The watchdog of a leader: a tiny process beside it that ends it when it stands still.

A leader holds the lock of the store as long as its process is there (`lead`). One that is stopped,
or so starved that none of its threads gets a turn, would hold it for ever: nobody else may lead,
for it may go on at any moment and write. Ending it is the one fence that asks nothing of the disk:
a dead process writes nothing, and the operating system frees its lock at once. What it had
acknowledged is durable; what it was doing is a crash, and crashes are recovered from.

The leader says that it lives ten times in ``seconds``; after a silence of all of them it is killed.
So it is replaced within ``seconds`` and what an election takes. A leader that cannot reach its
database does not stand still, and is left alone: nobody else could lead either. When the leader
ends by itself, or gives up the lead, so does its watchdog. Both wake up together from a machine
that slept. A process that hangs inside the kernel (a disk that does not answer) dies when the
kernel lets it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import structlog

__all__ = ["Watchdog"]

_SIGNS = 10
_PROGRAM = str(Path(__file__).with_name("watchdog_process.py"))
_LOG = structlog.get_logger("sage.watchdog")


class Watchdog:
    """Guards this process between `start` and `stop`: for a process that is a server and nothing
    else.
    """

    def __init__(self, seconds: float) -> None:
        """After how long a silence."""
        self._seconds = seconds
        self._process: subprocess.Popen[bytes] | None = None
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin. Does nothing the second time."""
        if self._thread is None:
            self._stopping.clear()
            self._spawn()
            self._thread = threading.Thread(target=self._live, name="sage-watchdog", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End; the process is on its own from now on. Safe to call twice."""
        if self._thread is not None:
            self._stopping.set()
            self._thread.join()
            self._thread = None
            self._dismiss()

    def _live(self) -> None:
        while not self._stopping.wait(self._seconds / _SIGNS):
            if not self._gave_sign():
                # Somebody ended it. A leader without a watchdog still leads.
                _LOG.warning("the watchdog is gone: beginning another")
                self._dismiss()
                self._spawn()

    def _gave_sign(self) -> bool:
        if self._process is None or self._process.stdin is None:
            return False
        try:
            self._process.stdin.write(b".")
            self._process.stdin.flush()
        except OSError:
            return False
        return True

    def _spawn(self) -> None:
        command = [sys.executable, "-I", "-S", _PROGRAM, str(os.getpid()), str(self._seconds)]
        try:
            # In a session of its own: what stops all processes of a terminal does not stop it.
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)  # noqa: S603
        except OSError as error:
            _LOG.error("no watchdog could be begun", reason=type(error).__name__)

    def _dismiss(self) -> None:
        process, self._process = self._process, None
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            process.wait()
