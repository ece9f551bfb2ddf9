"""Decisions on their way into the audit log.

What changes something is in the log, durably, before it is done (`now`); readings follow within `FLUSH_SECONDS` (`soon`).
Nothing is let through that cannot be logged: when the log cannot be written, calls are refused until it can. Reason:
AUDIT_UNAVAILABLE.
"""

from __future__ import annotations

import logging
import threading
from collections import deque

from ptklib.errors import SageError
from ptkstore.ledger.group_commit import GroupCommit
from ptkstore.metadata import Metadata, MetadataUnavailable
from ptkstore.metadata.audit import Decision

__all__ = ["FLUSH_SECONDS", "MAX_WAITING", "Auditor"]

FLUSH_SECONDS = 2.0
MAX_WAITING = 20_000
_LOG = logging.getLogger(__name__)


class Auditor:
    """The writer of the audit log. Thread-safe."""

    def __init__(self, metadata: Metadata) -> None:
        """Start the thread that writes readings down."""
        self._metadata = metadata
        self._group: GroupCommit[Decision, None] = GroupCommit(self._commit)
        self._waiting: deque[Decision] = deque()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sage-audit", daemon=True)
        self._thread.start()

    def now(self, decision: Decision) -> None:
        """In the log when it returns."""
        self._group.submit(decision)

    def soon(self, decision: Decision) -> None:
        """In the log before long."""
        if len(self._waiting) >= MAX_WAITING:
            raise MetadataUnavailable("AUDIT_UNAVAILABLE", "the audit log cannot be written now: ask again later")
        self._waiting.append(decision)

    def flush(self) -> None:
        """Write down all that waits."""
        while self._waiting:
            some = [self._waiting.popleft() for _ in range(min(1000, len(self._waiting)))]
            try:
                with self._metadata.write() as tx:
                    tx.audit.add_all(some)
            except BaseException:
                self._waiting.extendleft(reversed(some))
                raise

    def close(self) -> None:
        """Write down what waits and stop."""
        self._stopping.set()
        self._thread.join()
        self.flush()

    def _commit(self, decisions: list[Decision], _more: object) -> list[BaseException | None]:
        with self._metadata.write() as tx:
            tx.audit.add_all(decisions)
        return [None] * len(decisions)

    def _run(self) -> None:
        while not self._stopping.wait(FLUSH_SECONDS):
            try:
                self.flush()
            except SageError as error:
                _LOG.warning("the audit log cannot be written now: %s", error.reason)
