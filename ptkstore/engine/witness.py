"""What the store's directory knows of the ledger: its newest head, so that a ledger that was set back is noticed.

A ledger that is older than what was released would forget what was spent. Before anything that a window comes to is visible,
the head that contains its charges lies in ``STORE/ledger.head``; a store whose ledger is older is not opened. There are two
ways for results, and both keep the head first: `Home.writing_step` (metadata) and `GuardedLake.put` (states).
``STORE/restoring`` is there while a restore is under way, from its first change to its last.

A directory that goes back together with its ledger cannot notice it: whoever puts an old copy back must say so with
``sage restore``. Reasons: HISTORY_CUT, RESTORE_UNFINISHED.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ptklib.errors import JournalDamaged, Refused
from ptklib.ledger.canonical import canonical
from ptkstore.ledger import Ledger
from ptkstore.ledger.chain import Head
from ptkstore.streams.vault import replace_durably, sync_directory

__all__ = ["Witness", "begin_restoring", "known_head"]

_HEAD = "ledger.head"
_LOCK = "ledger.head.lock"
_RESTORING = "restoring"


def known_head(path: Path) -> Head | None:
    """The newest head that the directory knows; None where it knows of none."""
    try:
        body = json.loads((path / _HEAD).read_bytes())
        return Head(int(body["seq"]), bytes.fromhex(body["mac"]))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise JournalDamaged("HISTORY_CUT", f"{path / _HEAD} cannot be read: run `sage restore`") from None


def begin_restoring(path: Path) -> None:
    """From now on the store is not opened until the restore is done."""
    replace_durably(path / _RESTORING, b"")


class Witness:
    """Keeps the head of one store's ledger outside of the ledger. Thread-safe; several servers may share the directory."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        """Nothing is looked at yet."""
        self._path = path
        self._ledger = ledger
        self._kept: Head | None = None
        self._turn = threading.Lock()

    def keep(self) -> None:
        """Make the ledger's head known to the directory, durably, if it has moved. What is known never goes back."""
        head = self._ledger.head
        with self._turn:
            if head == self._kept:
                return
            with self._locked():
                known = known_head(self._path)
                # Another server may have been faster.
                if known is None or known.seq < head.seq:
                    self._write(head)
            self._kept = head

    def require_newest(self) -> None:
        """Refuse a ledger that is older than the directory knows, and a store that is half restored."""
        if (self._path / _RESTORING).exists():
            raise Refused(
                "RESTORE_UNFINISHED", "a restore was interrupted: run `sage restore` again before anything else"
            )
        known, head = known_head(self._path), self._ledger.head
        if known is not None and (head.seq < known.seq or (head.seq == known.seq and head.mac != known.mac)):
            raise JournalDamaged(
                "HISTORY_CUT",
                f"the ledger ends at commit {head.seq}, and commit {known.seq} is known here: it was set back, and has "
                "forgotten what was spent. If an old copy was put back on purpose, run `sage restore`",
                found=head.seq,
                known=known.seq,
            )

    def end_restoring(self) -> None:
        """The restore is done: what the ledger says now is what counts, older or not."""
        with self._turn, self._locked():
            self._kept = self._ledger.head
            self._write(self._kept)
        (self._path / _RESTORING).unlink(missing_ok=True)
        sync_directory(self._path)

    def _write(self, head: Head) -> None:
        replace_durably(self._path / _HEAD, canonical({"seq": head.seq, "mac": head.mac.hex()}))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """One at a time over all processes: to look and then to write must be one."""
        descriptor = os.open(self._path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)
