"""The journal: ledger entries, appended for ever, on SQLite (WAL, synchronous=FULL).

One row is one commit: the entries of a group of callers, in order, that became durable together. It carries
``mac = MAC(key, previous mac | seq | body)``: without the key no commit can be changed, removed from the middle, swapped or
added. Cutting off the newest commits leaves a valid shorter chain; `head` is what to keep elsewhere to notice that.
Snapshots only save time; they are signed, and `verify` replays past them.

Several processes may open one journal: a writer holds SQLite's write lock from `begin` to `commit`,
and reads what the others wrote first. Reasons: NOT_A_LEDGER, SCHEMA_TOO_NEW, SCHEMA_ALTERED,
JOURNAL_DAMAGED, CHAIN_BROKEN, HISTORY_CUT, SNAPSHOT_INVALID, JOURNAL_UNAVAILABLE.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ptklib.errors import JournalDamaged, JournalUnavailable
from ptklib.ledger.state import Entry
from ptkstore.ledger.journals.chain import (
    Commit,
    Head,
    checked,
    commit_mac,
    head_gone,
    snapshot_mac,
)
from ptkstore.ledger.journals.chained import ChainedJournal
from ptkstore.private_files import make_private

__all__ = ["BUSY_MS", "Head", "Journal", "connect"]

BUSY_MS = 30_000
_APPLICATION = 0x53414745  # "SAGE"
_SNAPSHOTS_KEPT = 2

# What SQLite says of a file that was cut or changed.
_DAMAGED = ("malformed", "no such table", "no such column", "unsupported file format", "corrupt")

# Each step takes the schema from its index to the next; steps are never edited once released.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    ("CREATE TABLE commits (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, mac BLOB NOT NULL)",),
    ("CREATE TABLE snapshots (seq INTEGER PRIMARY KEY, body BLOB NOT NULL, mac BLOB NOT NULL)",),
)

_FIRST = "INSERT OR IGNORE INTO commits (seq, body, mac) VALUES (?, ?, ?)"
# The commit before must be there as we know it, or else there is no body and the row is refused: a
# journal that swallows commits is noticed at the next one.
_NEXT = "INSERT OR IGNORE INTO commits (seq, body, mac) VALUES (?, (SELECT ? FROM commits WHERE seq = ? AND mac = ?), ?)"


# A commit with the mac of the one before it; as many at once as SQLite takes variables.
_PICK = (
    "SELECT c.seq, c.body, c.mac, p.mac FROM commits c LEFT JOIN commits p ON p.seq = c.seq - 1"
    " WHERE c.seq IN ({marks}) ORDER BY c.seq"
)
_PICKED = 900


def connect(path: Path) -> sqlite3.Connection:
    """A connection that leaves transactions to us, to a file that nobody else may read."""
    make_private(path)
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000
    )


class Journal(ChainedJournal):
    """One open journal. Not thread-safe: its owner holds a lock."""

    _SNAPSHOTS = "SELECT seq, body FROM snapshots"
    _NEWEST_SNAPSHOT = (
        "SELECT s.seq, s.body, s.mac, c.mac FROM snapshots s"
        " LEFT JOIN commits c ON c.seq = s.seq ORDER BY s.seq DESC LIMIT 1"
    )

    def __init__(
        self,
        connection: Any,
        key: bytes,
        database_errors: type[Exception] | tuple[type[Exception], ...] = sqlite3.Error,
    ) -> None:
        """Set the connection up (any with sqlite3's ``execute``), migrate, and start at commit
        0.
        """
        self._db = connection
        self._key = key
        self._errors = database_errors
        self._start()
        self._prepare()

    def begin(self) -> None:
        """Take the write lock."""
        self._run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        """Make everything since `begin` durable and let the lock go."""
        self._run("COMMIT")

    def rollback(self) -> None:
        """Forget everything since `begin`. Safe to call when nothing is open."""
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except self._errors:
            # Closed or broken: what was not committed is gone all the same.
            return

    def pick(self, numbers: Sequence[int]) -> list[Commit]:
        """Some commits by number, in order, each checked against the one before it; `head` stays
        where it is.
        """
        rows: list[tuple[Any, ...]] = []
        for begin in range(0, len(numbers), _PICKED):
            some = numbers[begin : begin + _PICKED]
            marks = ",".join("?" * len(some))
            rows += self._rows(_PICK.format(marks=marks), *some)
        return checked(self._key, rows)

    def is_current(self) -> bool:
        """True when `head` is the newest commit."""
        return not self._rows("SELECT 1 FROM commits WHERE seq > ? LIMIT 1", self.head.seq)

    def append_last(self, body: bytes) -> None:
        """Add one commit after `head` and end the turn; ``body`` is the canonical form of its
        entries.
        """
        if not self.append_next(body):
            raise head_gone(self.head)
        self.commit()

    def append_next(self, body: bytes) -> bool:
        """Add one commit right after `head`, durable at once outside `begin` and `commit`.

        ``body`` is the canonical form of its entries. False, and nothing added, if another process
        has taken its number, or if `head` itself is not in the journal any more.
        """
        seq = self.head.seq + 1
        mac = commit_mac(self._key, self.head, body)
        # One statement that returns no rows: one call into SQLite, durable when it comes back.
        if self.head == self.genesis:
            cursor = self._run(_FIRST, seq, body, mac)
        else:
            cursor = self._run(_NEXT, seq, body, self.head.seq, self.head.mac, mac)
        if not (cursor.rowcount if hasattr(cursor, "rowcount") else self._db.changes()):
            return False
        self.head = Head(seq, mac)
        return True

    def save_snapshot(self, body: bytes) -> None:
        """Keep the state at `head`, inside `begin` and `commit`; older snapshots go, but for a
        spare one.
        """
        mac = snapshot_mac(self._key, self.head, body)
        self._run(
            "INSERT OR REPLACE INTO snapshots (seq, body, mac) VALUES (?, ?, ?)",
            self.head.seq,
            body,
            mac,
        )
        self._run(
            "DELETE FROM snapshots WHERE seq NOT IN (SELECT seq FROM snapshots ORDER BY seq DESC "
            "LIMIT ?)",
            _SNAPSHOTS_KEPT,
        )

    def close(self) -> None:
        """Close the connection."""
        self._db.close()

    def _prepare(self) -> None:
        self._run(f"PRAGMA busy_timeout = {BUSY_MS}")
        try:
            application, version = (
                self._rows("PRAGMA application_id")[0][0],
                self._rows("PRAGMA user_version")[0][0],
            )
        except JournalUnavailable as error:
            if "not a database" in str(error.__cause__):
                raise JournalDamaged("NOT_A_LEDGER", "the file is not a ledger journal") from None
            raise
        if application != _APPLICATION and (
            application or version or self._rows("SELECT 1 FROM sqlite_master LIMIT 1")
        ):
            raise JournalDamaged("NOT_A_LEDGER", "the file is a database, but not a ledger journal")
        if version > len(_MIGRATIONS):
            raise JournalDamaged(
                "SCHEMA_TOO_NEW",
                f"the journal has schema {version}, this release knows {len(_MIGRATIONS)}: upgrade",
            )
        if version == len(_MIGRATIONS):
            self._check_schema()
        self._run("PRAGMA journal_mode = WAL")
        self._run("PRAGMA synchronous = FULL")
        if version < len(_MIGRATIONS):
            self._migrate()

    def _check_schema(self) -> None:
        """Our tables and nothing else: a trigger could swallow commits."""
        wanted = sorted(statement for step in _MIGRATIONS for statement in step)
        if sorted(str(row[0]) for row in self._rows("SELECT sql FROM sqlite_master")) != wanted:
            raise JournalDamaged(
                "SCHEMA_ALTERED", "the journal's tables are not as this release makes them"
            )

    def _migrate(self) -> None:
        self.begin()
        try:
            # Another process may have migrated between our look and our lock.
            version = self._rows("PRAGMA user_version")[0][0]
            for step in _MIGRATIONS[version:]:
                for statement in step:
                    self._run(statement)
            self._run(f"PRAGMA application_id = {_APPLICATION}")
            self._run(f"PRAGMA user_version = {len(_MIGRATIONS)}")
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def _to(self, _last: Head | None) -> Iterator[list[Entry]]:
        yield from self._followed(
            self._each(
                "SELECT seq, body, mac FROM commits WHERE seq > ? ORDER BY seq", self.head.seq
            )
        )

    def _each(self, statement: str, *values: object) -> Iterator[tuple[Any, ...]]:
        """The rows one by one: a journal may be longer than memory."""
        rows = iter(self._run(statement, *values))
        while True:
            try:
                row = next(rows, None)
            except self._errors as error:
                raise _failed(error) from error
            if row is None:
                return
            yield row

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        try:
            rows: list[tuple[Any, ...]] = self._db.execute(statement, values).fetchall()
        except self._errors as error:
            raise _failed(error) from error
        return rows

    def _run(self, statement: str, *values: object) -> Any:
        try:
            return self._db.execute(statement, values)
        except self._errors as error:
            raise _failed(error) from error


def _failed(error: Exception) -> JournalDamaged | JournalUnavailable:
    if any(phrase in str(error) for phrase in _DAMAGED):
        return JournalDamaged(
            "JOURNAL_DAMAGED",
            "the journal's file is damaged, and nothing was changed: put the newest copy back, or "
            "run `sage restore`",
        )
    return JournalUnavailable(
        "JOURNAL_UNAVAILABLE", f"the journal cannot be used now: {type(error).__name__}: {error}"
    )
