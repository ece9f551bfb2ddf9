"""Files that nobody but the store's own account may read, whatever the umask, and directories whose
names outlast a crash.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["MODE", "make_private", "sync_directory"]

MODE = 0o600
# What SQLite keeps beside a database; it gives them the database's own mode when it makes them.
_BESIDE = ("", "-wal", "-shm", "-journal")


def make_private(database: Path) -> None:
    """Make a SQLite database private, with what lies beside it: one that is there is closed to
    others, one that is not is made empty, which SQLite takes for a new one. Nothing happens where
    the directory is missing or not ours: SQLite says so.
    """
    with suppress(OSError):
        os.close(os.open(database, os.O_RDONLY | os.O_CREAT, MODE))
    for end in _BESIDE:
        path = database.with_name(database.name + end)
        with suppress(OSError):
            if path.stat().st_mode & 0o077:
                path.chmod(MODE)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
