"""Who may write streams and run windows: everybody in a store of its own, one server where several
share a store.

Two things make the leader. The *lock*, a file in the store's directory that the operating system
keeps for exactly one process and frees when it dies; it guards the raw data. And the *lease*, a row
in the metadata; it says where the leader is reached, and its term guards what the cycle writes: no
step of a window is written by a server that does not hold the lease in that very transaction
(`fence`). Reason: LEAD_LOST.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Protocol

from ptklib.errors import LeadLost
from ptkstore.metadata.database.store import Transaction

__all__ = ["Alone", "Lead", "LeadLost", "StoreLock"]

_FILE = "lead.lock"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class Lead(Protocol):
    """What the engine asks before it does what only one server may do.

    Everything may raise LEAD_LOST.
    """

    def require_lock(self) -> None:
        """Before a stream is written."""

    def require_lease(self) -> None:
        """Before a step of a window is begun."""

    def fence(self, tx: Transaction) -> None:
        """In the transaction that writes a step."""


class Alone:
    """The lead of a store that no other server shares."""

    def require_lock(self) -> None:
        """Always so: each stream has a lock of its own."""

    def require_lease(self) -> None:
        """Always so."""

    def fence(self, tx: Transaction) -> None:
        """Always so."""


class StoreLock:
    """The lock of the leader, in the store's directory."""

    def __init__(self, directory: Path) -> None:
        """Not held yet."""
        self._path = directory / _FILE
        self._file = -1

    @property
    def place(self) -> str:
        """The same for two processes exactly if they are on one machine since its start and mean
        the same file.
        """
        boot = _BOOT.read_text().strip() if _BOOT.exists() else os.uname().nodename
        self._path.touch(mode=0o600)
        status = self._path.stat()
        return f"{boot} {status.st_dev} {status.st_ino}"

    def take(self) -> bool:
        """True when it is ours, now or since before."""
        if self._file >= 0:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._file = descriptor
        return True

    def release(self) -> None:
        """Let others have it. Safe to call twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
