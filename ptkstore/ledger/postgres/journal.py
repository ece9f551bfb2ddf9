"""The journal in a PostgreSQL database, in a schema of its own, for several servers that share one
book.

The row of ``sage_ledger.head`` says which commit is the newest, and who writes holds it: `begin`
locks it, and a commit moves it on from exactly the commit its writer knows, in one statement. So
two servers never append to the same commit, and one that is behind appends nothing, reads what the
others wrote and decides again. Everything is READ COMMITTED: behind the lock each statement sees
all that was committed before. The truth is the chain of MACs in ``commits``; ``head`` only keeps
the turns.

A connection that breaks is replaced, but for a transaction, which is gone then, and for an append,
whose outcome is unknown: both are JOURNAL_UNAVAILABLE. A server that could lose what it has
answered is refused (JOURNAL_NOT_DURABLE). Other reasons: NOT_A_LEDGER, SCHEMA_TOO_NEW,
SCHEMA_ALTERED, KEY_INVALID, CHAIN_BROKEN, HISTORY_CUT, SNAPSHOT_INVALID, LEDGER_URL_INVALID.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ptklib.errors import InvalidInput, JournalDamaged, JournalUnavailable
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
from ptkstore.ledger.postgres.schema import has_ledger, prepare
from ptkstore.ledger.postgres.turns import NEXT, PAGE, Turns

if TYPE_CHECKING:
    import psycopg

__all__ = ["BUSY_MS", "HANG_MS", "Connect", "PostgresJournal", "connector"]

BUSY_MS = 30_000
# How long a server may say nothing in the middle of its turn.
HANG_MS = 3_000
Connect = Callable[[], "psycopg.Connection[tuple[Any, ...]]"]

_CONNECT_SECONDS = 10
_STATEMENT_MS = 60_000
# Who is not there any more is noticed by both ends of a connection.
_GONE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_KNOWS_TRANSACTION_TIMEOUT = 170_000
# A connection that was idle for so long is asked whether it is alive before something is trusted to
# it.
_IDLE_SECONDS = 1.0
_SNAPSHOTS_KEPT = 2
_DURABLE = {"on", "remote_apply"}
_NEXT = NEXT.format(
    **{name: f"%({name})s" for name in ("seq", "body", "mac", "before", "before_mac")}
)


def connector(url: str) -> Connect:
    """How to connect to a URL, with sessions that wait for a bounded time and answer only what is
    flushed.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise InvalidInput(
            "LEDGER_URL_INVALID", "PostgreSQL needs psycopg: pip install 'ptkstore[servers]'"
        ) from None
    try:
        # The form of a URL that names the driver is taken, too.
        parts = conninfo_to_dict("postgresql" + url[url.index("://") :])
    except (psycopg.ProgrammingError, ValueError):
        # The text may hold a password: it is not repeated.
        raise InvalidInput("LEDGER_URL_INVALID", "the URL of the ledger cannot be read") from None
    parts = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "sage-ledger",
        **_GONE,
        **parts,
    }

    def connect() -> psycopg.Connection[tuple[Any, ...]]:
        connection = psycopg.connect(**parts, autocommit=True)  # type: ignore[arg-type]
        try:
            _set_up(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    return connect


def _set_up(connection: psycopg.Connection[tuple[Any, ...]]) -> None:
    for name in ("fsync", "full_page_writes"):
        if _shown(connection, name) != "on":
            raise JournalUnavailable(
                "JOURNAL_NOT_DURABLE",
                f"the server runs with {name} off: a crash would lose charges that were granted",
            )
    if _shown(connection, "synchronous_commit") not in _DURABLE:
        connection.execute("SET synchronous_commit = on")
    connection.execute("SET default_transaction_isolation = 'read committed'")
    connection.execute(f"SET lock_timeout = {BUSY_MS}")
    # Commits are looked up by number; a plan that was made while the table was small would read it
    # whole for ever.
    connection.execute("SET enable_seqscan = off")
    connection.execute("SET enable_bitmapscan = off")
    connection.execute(f"SET statement_timeout = {_STATEMENT_MS}")
    # A server that stopped in the middle of its turn must not hold up the others: while it was to
    # speak, while it was being answered, or between two messages that it sends together, which has
    # a limit in newer releases alone.
    connection.execute(f"SET idle_in_transaction_session_timeout = {HANG_MS}")
    connection.execute(f"SET tcp_user_timeout = {HANG_MS}")
    if connection.info.server_version >= _KNOWS_TRANSACTION_TIMEOUT:
        connection.execute(f"SET transaction_timeout = {_STATEMENT_MS}")


def _shown(connection: psycopg.Connection[tuple[Any, ...]], name: str) -> str:
    row = connection.execute(f"SHOW {name}").fetchone()
    return str(row[0]) if row else ""


class PostgresJournal(ChainedJournal):
    """One open journal. Not thread-safe: its owner holds a lock."""

    _SNAPSHOTS = "SELECT seq, body FROM sage_ledger.snapshots"
    _NEWEST_SNAPSHOT = (
        "SELECT s.seq, s.body, s.mac, c.mac FROM sage_ledger.snapshots s"
        " LEFT JOIN sage_ledger.commits c ON c.seq = s.seq ORDER BY s.seq DESC LIMIT 1"
    )

    def __init__(self, connect: Connect, key_of: Callable[[bool], bytes]) -> None:
        """Connect, migrate, and start at commit 0.

        ``key_of(fresh)`` gives the key; fresh when there is no journal yet.
        """
        import psycopg

        self._errors: type[Exception] = psycopg.Error
        self._idle = psycopg.pq.TransactionStatus.IDLE
        self._connect = connect
        self._db: psycopg.Connection[tuple[Any, ...]] | None = None
        self._prepared: tuple[object, Turns] | None = None
        self._used = 0.0
        self._in_turn = False
        # What `begin` found after the commit of that number.
        self._found: tuple[int, list[tuple[Any, ...]]] | None = None
        self._closed = False
        try:
            connection = self._connection()
            self._key = key_of(not has_ledger(connection))
            self._start()
            prepare(connection, self.genesis.mac)
        except self._errors as error:
            self._drop()
            raise _unavailable(error) from error
        except BaseException:
            self._drop()
            raise

    def begin(self) -> None:
        """Take the write lock; tried again on a new connection, for nothing has happened yet."""
        for attempt in (1, 2):
            try:
                locked, added = self._turns().begin(self.head.seq)
                self._found = (self.head.seq, added)
            except self._errors as error:
                broken = self._broken()
                self.rollback()
                if attempt == 2 or not broken:
                    raise _unavailable(error) from error
            else:
                if not locked:
                    self.rollback()
                    raise JournalDamaged("HISTORY_CUT", "the journal's head is gone")
                self._in_turn = True
                return

    def commit(self) -> None:
        """Make everything since `begin` durable and let the lock go."""
        self._run("COMMIT")
        self._end_turn()

    def rollback(self) -> None:
        """Forget everything since `begin`. Safe to call when nothing is open."""
        self._end_turn()
        try:
            if self._db is not None and self._db.info.transaction_status != self._idle:
                self._db.execute("ROLLBACK")
        except self._errors:
            # Broken: what was not committed is gone all the same.
            self._drop()

    def pick(self, numbers: Sequence[int]) -> list[Commit]:
        """Some commits by number, in order, each checked against the one before it; `head` stays
        where it is.
        """
        rows = self._rows(
            "SELECT c.seq, c.body, c.mac, p.mac FROM sage_ledger.commits c LEFT JOIN "
            "sage_ledger.commits p"
            " ON p.seq = c.seq - 1 WHERE c.seq = ANY(%s) ORDER BY c.seq",
            list(numbers),
        )
        return checked(self._key, rows)

    def is_current(self) -> bool:
        """True when `head` is the newest commit."""
        if self._found is not None and self._found[0] == self.head.seq:
            return not self._found[1]
        return not self._rows(
            "SELECT 1 FROM sage_ledger.commits WHERE seq > %s LIMIT 1", self.head.seq
        )

    def append_last(self, body: bytes) -> None:
        """Add one commit after `head` and end the turn, without waiting in between."""
        mac = commit_mac(self._key, self.head, body)
        try:
            added = self._turns().append_last(self.head.seq + 1, body, mac, self.head.mac)
        except self._errors as error:
            raise _unavailable(error) from error
        self._end_turn()
        if not added:
            raise head_gone(self.head)
        self.head = Head(self.head.seq + 1, mac)

    def append_next(self, body: bytes) -> bool:
        """Add one commit right after `head`, durable at once outside `begin` and `commit`.

        ``body`` is the canonical form of its entries. False, and nothing added, if another server
        was faster, or if `head` itself is not in the journal any more.
        """
        mac = commit_mac(self._key, self.head, body)
        before = {"before": self.head.seq, "before_mac": self.head.mac}
        if not self._run(
            _NEXT, {"seq": self.head.seq + 1, "body": body, "mac": mac, **before}
        ).rowcount:
            return False
        self.head = Head(self.head.seq + 1, mac)
        return True

    def save_snapshot(self, body: bytes) -> None:
        """Keep the state at `head`, inside `begin` and `commit`; older snapshots go, but for a
        spare one.
        """
        mac = snapshot_mac(self._key, self.head, body)
        self._run(
            "INSERT INTO sage_ledger.snapshots (seq, body, mac) VALUES (%s, %s, %s)"
            " ON CONFLICT (seq) DO UPDATE SET body = excluded.body, mac = excluded.mac",
            (self.head.seq, body, mac),
        )
        self._run(
            "DELETE FROM sage_ledger.snapshots WHERE seq NOT IN"
            " (SELECT seq FROM sage_ledger.snapshots ORDER BY seq DESC LIMIT %s)",
            (_SNAPSHOTS_KEPT,),
        )

    def close(self) -> None:
        """Close the connection."""
        self._closed = True
        self._drop()

    def _to(self, last: Head | None) -> Iterator[list[Entry]]:
        bound = "" if last is None else f" AND seq <= {last.seq:d}"
        statement = f"SELECT seq, body, mac FROM sage_ledger.commits WHERE seq > %s{bound} ORDER BY seq LIMIT {PAGE}"  # noqa: S608
        page, self._found = self._found, None
        ahead = page[1] if page is not None and page[0] == self.head.seq and last is None else None
        while rows := self._rows(statement, self.head.seq) if ahead is None else ahead:
            # In a turn nobody else adds anything: a page that is not full is the last.
            ahead = [] if ahead is not None and len(ahead) < PAGE else None
            yield from self._followed(rows)

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """The connection, or a new one where it is broken; never inside a turn."""
        if self._closed:
            raise JournalUnavailable("LEDGER_CLOSED", "the ledger was closed: open it again")
        if (
            self._db is not None
            and not self._in_turn
            and time.monotonic() > self._used + _IDLE_SECONDS
        ):
            try:
                self._db.execute("SELECT 1")
            except self._errors:
                self._drop()
        if self._db is None or (self._db.closed and not self._in_turn):
            self._drop()
            self._db = self._connect()
        self._used = time.monotonic()
        return self._db

    def _turns(self) -> Turns:
        """What turns are taken with, on the connection of now."""
        connection = self._connection()
        if self._prepared is None or self._prepared[0] is not connection:
            self._prepared = connection, Turns(connection)
        return self._prepared[1]

    def _end_turn(self) -> None:
        self._in_turn = False
        self._found = None

    def _broken(self) -> bool:
        return self._db is None or bool(self._db.closed)

    def _drop(self) -> None:
        connection, self._db, self._prepared = self._db, None, None
        if connection is not None:
            connection.close()

    def _rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """What a query gives; asked again on a new connection, unless that would be outside of our
        turn.
        """
        try:
            return self._run(statement, values).fetchall()
        except JournalUnavailable:
            if self._in_turn or not self._broken():
                raise
            return self._run(statement, values).fetchall()

    def _run(self, statement: str, values: Any = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self._connection().execute(statement, values or None)
        except self._errors as error:
            raise _unavailable(error) from error


def _unavailable(error: Exception) -> JournalUnavailable:
    return JournalUnavailable(
        "JOURNAL_UNAVAILABLE", f"the journal cannot be used now: {type(error).__name__}: {error}"
    )
