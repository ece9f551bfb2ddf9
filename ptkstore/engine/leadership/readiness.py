"""Whether a store can really be written: found out by writing, again and again, and by trying what
failed once more.

Every `LOOK_SECONDS` the writers of streams are looked at; one that failed tries to recover, whether
or not anybody sends anything. Every `PROBE_SECONDS` (while something is wrong: every time) a file
is written in the store's directory, and a row in the metadata. What is wrong is told when it begins
and when it is over. A trouble of the directory or of a stream that lasts `HAND_OVER_SECONDS` is
told as one that another server may be without. What is written depends on no data. A stream that is
damaged is no reason not to serve the others: the doctor tells of it.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import structlog

from ptklib.encoding.error_place import kind_of
from ptklib.errors import SageError
from ptkstore.engine.leader import LeadLost
from ptkstore.engine.parts import Parts
from ptkstore.streams.faults import StreamUnavailable

__all__ = [
    "HAND_OVER_SECONDS",
    "LOOK_SECONDS",
    "PROBE_SECONDS",
    "Readiness",
    "unwritable",
    "write_probe",
]

LOOK_SECONDS = 0.5
PROBE_SECONDS = 5.0
HAND_OVER_SECONDS = 3.0
_FILE = "ready"
_LEASE = "ready"
_BODY = bytes(1 << 16)
_LOG = structlog.get_logger("sage.readiness")


def write_probe(directory: Path) -> None:
    """Write and sync a small file, as a batch would be."""
    descriptor = os.open(directory / _FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        left = memoryview(_BODY)
        while left:
            left = left[os.write(descriptor, left) :]
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)


def unwritable(parts: Parts) -> dict[str, SageError]:
    """The streams whose writers cannot write, with the reason; those that failed try again now."""
    sage_errors: dict[str, SageError] = {}
    failed = [stream for stream, writer in list(parts.writers.items()) if writer.fault is not None]
    for stream in sorted({*failed, *list(parts.unopened)}):
        try:
            parts.writer(stream).check()
        except LeadLost:
            return {}
        except SageError as error:
            sage_errors[stream] = error
    return sage_errors


class Readiness:
    """Looks after a store that is served, in a thread of its own."""

    def __init__(
        self, parts: Parts, *, changed: Callable[[bool], None], stuck: Callable[[], None]
    ) -> None:
        """``changed`` hears whether the store can be written when that changes; ``stuck`` that it
        could not for a while.
        """
        self._parts = parts
        self._changed = changed
        self._stuck = stuck
        self._troubles: dict[str, str] = {}
        self._since: float | None = None
        self._probe_at = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-readiness", daemon=True)

    @property
    def able(self) -> bool:
        """True while nothing is wrong with the directory."""
        return "directory" not in self._troubles

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more. Safe to call twice, and before `start`."""
        self._over.set()
        if self._thread.ident is not None:
            # However long it waits for a database: whoever stops us closes that next.
            self._thread.join()

    def look(self) -> None:
        """Look once."""
        troubles = {
            f"stream {stream}": error.reason
            for stream, error in unwritable(self._parts).items()
            if isinstance(error, StreamUnavailable)
        }
        if self._troubles or troubles or time.monotonic() >= self._probe_at:
            troubles |= self._probed()
            self._probe_at = time.monotonic() + PROBE_SECONDS
        was, self._troubles = self._troubles, troubles
        if was != troubles:
            if troubles:
                _LOG.error("cannot write", what=dict(sorted(troubles.items())))
            else:
                _LOG.warning("can write again")
            if bool(was) != bool(troubles):
                self._changed(not troubles)
        self._mind_how_long(troubles)

    def _probed(self) -> dict[str, str]:
        troubles = {}
        try:
            write_probe(self._parts.path)
        except OSError as error:
            troubles["directory"] = kind_of(error)
        try:
            with self._parts.metadata.write() as tx:
                tx.leases.take(
                    _LEASE, tx.leases.get(_LEASE), holder=_LEASE, address="", place="", lease_ms=1
                )
        except SageError as error:
            troubles["metadata"] = error.reason
        return troubles

    def _mind_how_long(self, troubles: dict[str, str]) -> None:
        # Metadata that is away is so for all servers.
        if not set(troubles) - {"metadata"}:
            self._since = None
        elif self._since is None:
            self._since = time.monotonic()
        elif time.monotonic() >= self._since + HAND_OVER_SECONDS:
            self._since = None
            self._stuck()

    def _run(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            try:
                self.look()
            except (
                Exception
            ) as error:  # not only ours: without this thread nobody would hear of any trouble
                _LOG.error("failed", error=kind_of(error))
