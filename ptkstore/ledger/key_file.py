"""The ledger's key: 32 random bytes in a file of their own, readable by the owner only.

It signs grants and chains the journal. Kept apart from the database, it makes editing the database
without it detectable; whoever can read both can forge both (see docs/threat-model.md). Reasons:
KEY_MISSING, KEY_INVALID.
"""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from ptklib.errors import JournalDamaged

__all__ = ["KEY_BYTES", "read_key", "read_or_make_key"]

KEY_BYTES = 32


def read_key(path: Path) -> bytes:
    """The key in ``path``; refuses a file that others may read."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        raise JournalDamaged(
            "KEY_MISSING", f"{path} is missing: a journal without its key proves nothing"
        ) from None
    if len(key) != KEY_BYTES:
        raise JournalDamaged(
            "KEY_INVALID", f"{path} must hold {KEY_BYTES} bytes, it holds {len(key)}"
        )
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise JournalDamaged(
            "KEY_INVALID", f"{path} must be readable by its owner only: chmod 600 it"
        )
    return key


def read_or_make_key(path: Path) -> bytes:
    """The key in ``path``, made now if there is none.

    Two processes that race get the same key, never half of one.
    """
    if not path.exists():
        draft = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(secrets.token_bytes(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):
                os.link(draft, path)
        finally:
            draft.unlink()
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    return read_key(path)
