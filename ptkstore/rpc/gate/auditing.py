"""Decisions on their way into the audit log.

What changes something is in the log, durably, before it is done (`now`); readings and refusals
follow within `FLUSH_SECONDS`, unless the machine dies before, and what repeats is counted
(`tally`). Who feeds a stream is in the log once a day (`daily`), without the time: an entry for
every call would count them. Nothing is let through that cannot be logged: when the log cannot be
written, calls are refused until it can. Entries are chained as they come, so that writing them down
takes little time from those who are being served. Reason: AUDIT_UNAVAILABLE.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import replace

from ptklib.errors import SageError
from ptkstore.engine.access.audit import append, newest_digest
from ptkstore.metadata import Metadata, MetadataUnavailable
from ptkstore.metadata.access.audit import Decision, Link, chained
from ptkstore.rpc.gate.tally import LogTally

__all__ = ["FLUSH_SECONDS", "MAX_WAITING", "Auditor"]

FLUSH_SECONDS = 2.0
DAY_MS = 86_400_000
MAX_WAITING = 50_000
_LOG = logging.getLogger(__name__)


class Auditor:
    """The writer of the audit log. Thread-safe."""

    def __init__(self, metadata: Metadata) -> None:
        """Start the thread that writes readings down."""
        self._metadata = metadata
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        # Entries that wait, chained to the one with the digest `_newest`, which is in the log.
        self._waiting: list[Link] = []
        self._newest = newest_digest(metadata)
        self._tally = LogTally()
        self._dating = threading.Lock()
        self._day = -1
        self._dated: set[Decision] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-audit", daemon=True)
        self._thread.start()

    def now(self, decision: Decision) -> None:
        """In the log when it returns."""
        self.soon(decision)
        self.flush()

    def soon(self, decision: Decision) -> None:
        """In the log before long."""
        with self._lock:
            self._require_room()
            before = self._waiting[-1][-1] if self._waiting else self._newest
            self._waiting += chained(before, [decision])

    def tally(self, decision: Decision) -> bool:
        """In the log before long: by itself (True), or counted with those like it."""
        self._require_room()
        first = self._tally.first(decision)
        if first is not None:
            self.soon(first)
        return first is not None

    def daily(self, decision: Decision) -> bool:
        """In the log when it returns; True for the first of that day. Dated to the day alone."""
        day = decision.at_ms // DAY_MS
        dated = replace(decision, at_ms=day * DAY_MS)
        with self._dating:
            if day != self._day:
                self._day, self._dated = day, set()
            fresh = dated not in self._dated
            if fresh:
                self.now(dated)
                self._dated.add(dated)
            return fresh

    def flush(self) -> None:
        """Write down all that waits; those who come together share one write."""
        with self._flushing:
            with self._lock:
                links, self._waiting, before = self._waiting, [], self._newest
                # What comes meanwhile is chained to the last of these.
                self._newest = links[-1][-1] if links else before
            if not links:
                return
            try:
                written = append(self._metadata, links, after=before)
            except BaseException:
                with self._lock:
                    self._waiting, self._newest = links + self._waiting, before
                raise
            with self._lock:
                if written != self._newest:
                    self._waiting = chained(
                        written, (Decision(*link[:-1]) for link in self._waiting)
                    )
                    self._newest = written

    def close(self) -> None:
        """Write down what waits and stop."""
        self._stopping.set()
        self._thread.join()
        self._chain(self._tally.over(all_of_them=True))
        self.flush()

    def _require_room(self) -> None:
        if len(self._waiting) >= MAX_WAITING:
            raise MetadataUnavailable(
                "AUDIT_UNAVAILABLE", "the audit log cannot be written now: ask again later"
            )

    def _chain(self, decisions: list[Decision]) -> None:
        """They wait, however many do."""
        with self._lock:
            self._waiting += chained(
                self._waiting[-1][-1] if self._waiting else self._newest, decisions
            )

    def _run(self) -> None:
        while not self._stopping.wait(FLUSH_SECONDS):
            try:
                self._chain(self._tally.over())
                self.flush()
            except SageError as error:
                _LOG.warning("the audit log cannot be written now: %s", error.reason)
            except (
                Exception
            ) as error:  # a defect; without this thread readings would wait until there is no room
                _LOG.error("the audit log cannot be written now: %s", type(error).__name__)
