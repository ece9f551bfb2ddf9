"""Backups: copies of what must outlive a disk, and of nothing that must not.

::

    BACKUP/meta.db        metadata, if it lies in the store's directory
    BACKUP/lake/          every state that the metadata knows, wherever the lake is
    BACKUP/ledger.db      the book of charges, if it lies in the store's directory
    BACKUP/backup.json    when it was made, and what is in it; written last: without it a copy is not a backup

They are copied in this order, so a copy of the ledger is never older than what a copy of the
metadata says was released. Each database is copied as of one moment, beside a server that may be
running. Databases elsewhere are copied by their own tools.

There is neither raw data nor a key of it in a backup: a copy of a block's key would outlive the
block's expiry. Nor is the ledger's key: beside the book it would let whoever reads the backup write
another book. It never changes; keep one copy apart.

Reasons: BACKUP_EXISTS, BACKUP_INVALID.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from ptklib.encoding.canonical import canonical
from ptklib.errors import InvalidInput
from ptkstore.engine.parts import Parts
from ptkstore.lake import DirectoryLake
from ptkstore.private_files import sync_directory
from ptkstore.streams.blocks.vault import replace_durably

__all__ = ["DATABASES", "Backup", "make_backup", "read_backup"]

# In the order in which they are copied; the lake comes between them.
DATABASES = ("meta.db", "ledger.db")
_FORMAT = 1
_FILE = "backup.json"


@dataclass(frozen=True, kw_only=True)
class Backup:
    """What is in a backup: the databases (those that lie elsewhere are not) and the number of
    states.
    """

    made_ms: int
    databases: tuple[str, ...]
    states: int


def make_backup(parts: Parts, to: Path) -> Backup:
    """Copy the store into ``to``, a directory that is missing or empty. Refused: BACKUP_EXISTS."""
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise InvalidInput(
            "BACKUP_EXISTS", f"{to} is there already: a backup goes into a directory of its own"
        )
    to.mkdir(parents=True, exist_ok=True, mode=0o700)
    here = [name for name in DATABASES if (parts.path / name).exists()]
    metadata, ledger = DATABASES
    if metadata in here:
        _copy_database(parts.path / metadata, to / metadata)
    with parts.metadata.read() as tx:
        digests = sorted(tx.states.digests())
    lake = DirectoryLake(to / "lake")
    for digest in digests:
        lake.put(*parts.lake.get(digest))
    if ledger in here:
        _copy_database(parts.path / ledger, to / ledger)
    made = Backup(made_ms=parts.now_ms(), databases=tuple(here), states=len(digests))
    body = {"format": _FORMAT, "made_ms": made.made_ms, "databases": list(here), "states": digests}
    replace_durably(to / _FILE, canonical(body))
    sync_directory(to.parent)
    return made


def read_backup(path: Path) -> tuple[Backup, Sequence[str]]:
    """What a backup says it holds, and the digests of its states. Refused: BACKUP_INVALID."""
    try:
        body = json.loads((path / _FILE).read_bytes())
        digests = [str(digest) for digest in body["states"]]
        known = body["format"] == _FORMAT and set(body["databases"]) <= set(DATABASES)
        made = Backup(
            made_ms=int(body["made_ms"]), databases=tuple(body["databases"]), states=len(digests)
        )
    except (OSError, ValueError, KeyError, TypeError):
        known = False
    if not known or not all((path / name).is_file() for name in made.databases):
        raise InvalidInput("BACKUP_INVALID", f"{path} is not a whole backup of this release")
    return made, digests


def _copy_database(source: Path, target: Path) -> None:
    """A SQLite database as of one moment, durable, whoever else is writing."""
    # Nobody else may read it while it is being written, either.
    target.touch(mode=0o600)
    with closing(sqlite3.connect(source)) as old, closing(sqlite3.connect(target)) as new:
        old.backup(new)
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
