"""One engine per kind of database, and the two transactions everything else is written in.

``write`` transactions run one at a time, across threads and processes, from their first statement;
so a repository may look and then insert, with no upsert of any dialect. ``read`` transactions see
one moment and wait for nobody. This file is the only one that knows dialects. SQLite: WAL,
synchronous=FULL, foreign keys on, BEGIN IMMEDIATE. PostgreSQL: see ``postgresql``.

Reasons: METADATA_UNAVAILABLE, METADATA_DAMAGED, METADATA_CONFLICT, METADATA_CLOSED,
METADATA_URL_INVALID, NOT_METADATA, TRANSACTION_NESTED, VALUE_INVALID.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from ptklib.errors import InvalidInput
from ptkstore.metadata.database import postgresql
from ptkstore.metadata.errors import MetadataConflict, MetadataDamaged, MetadataUnavailable
from ptkstore.private_files import make_private

__all__ = ["BUSY_MS", "VERSION_TABLE", "Database"]

BUSY_MS = 30_000
# Says which schema the database has; writers on PostgreSQL take turns at it.
VERSION_TABLE = "sage_schema"
# Classes of SQLSTATE that say "not now": connection, transaction state, rollback, resources,
# operator, system.
_NOT_NOW = ("08", "25", "40", "53", "55", "57", "58")
_BEGIN = "sage_begin"
# What SQLite says of a file that was cut or changed.
_DAMAGED = ("malformed", "no such table", "no such column", "unsupported file format", "corrupt")


class Database:
    """An engine with serialised writers. Thread-safe. After a fork, open again."""

    def __init__(self, url_or_path: str | Path) -> None:
        """Connect once, to fail now rather than later."""
        self._url = _url(url_or_path)
        self._writer = threading.Lock()
        self._writing: int | None = None
        self._closed = False
        if self._url.get_backend_name() == "sqlite":
            make_private(Path(str(self._url.database)))
            self._engine = _sqlite(self._url)
        else:
            self._engine = postgresql.make_engine(self._url, BUSY_MS)
        try:
            with self.read():
                pass
        except BaseException:
            self._engine.dispose()
            raise

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """One moment of the database; never waits for writers."""
        self._check_open()
        if self._engine.dialect.name == "postgresql":
            with (
                _translated(),
                postgresql.connected(self._engine) as plain,
                postgresql.reading(plain) as connection,
            ):
                yield connection
            return
        with _translated(), self._engine.connect() as plain:
            connection = plain.execution_options(**{_BEGIN: "BEGIN"})
            with connection.begin():
                yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """The only writer until it ends: everything or nothing, durable when the block is left
        without an exception.
        """
        with self._alone(postgresql.writing) as connection:
            yield connection

    @contextmanager
    def migrate(self) -> Iterator[sa.Connection]:
        """As `write`, for making the tables: there may be none yet, and it may take long."""
        with self._alone(postgresql.migrating) as connection:
            yield connection

    @contextmanager
    def _alone(
        self, begin: Callable[[sa.Connection, str], AbstractContextManager[sa.Connection]]
    ) -> Iterator[sa.Connection]:
        """The only writer; on a PostgreSQL as ``begin`` opens its transaction."""
        self._check_open()
        if self._engine.dialect.name == "postgresql":
            with (
                self._turn(),
                _translated(),
                postgresql.connected(self._engine) as plain,
                begin(plain, VERSION_TABLE) as connection,
            ):
                yield connection
            return
        with self._written() as connection:
            yield connection

    def check(self) -> str:
        """Of SQLite: the first fault of its tables and indexes, or nothing."""
        if self._engine.dialect.name != "sqlite":
            return ""
        with self.read() as connection:
            fault = str(connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar())
        return "" if fault == "ok" else fault

    def close(self) -> None:
        """Let the connections go; further use is METADATA_CLOSED. Safe to call twice."""
        self._closed = True
        self._engine.dispose()

    def _check_open(self) -> None:
        if self._closed:
            raise MetadataUnavailable(
                "METADATA_CLOSED", "the metadata store was closed: open it again"
            )

    @contextmanager
    def _written(self) -> Iterator[sa.Connection]:
        with self._turn(), _translated(), self._engine.connect() as plain:
            connection = plain.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
            with connection.begin():
                yield connection

    @contextmanager
    def _turn(self) -> Iterator[None]:
        # Threads queue here, because SQLite's busy handler polls and lets late comers overtake.
        if self._writing == threading.get_ident():
            raise InvalidInput(
                "TRANSACTION_NESTED", "this thread is writing already: use that transaction"
            )
        if not self._writer.acquire(timeout=BUSY_MS / 1000):
            raise MetadataUnavailable(
                "METADATA_UNAVAILABLE", f"another thread has been writing for {BUSY_MS} ms"
            )
        try:
            self._writing = threading.get_ident()
            yield
        finally:
            self._writing = None
            self._writer.release()


def _url(url_or_path: str | Path) -> sa.URL:
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return sa.URL.create("sqlite", database=str(Path(url_or_path).absolute()))
    try:
        url = sa.make_url(url_or_path)
    except exc.ArgumentError:
        # The text may hold a password: it is not repeated.
        raise InvalidInput("METADATA_URL_INVALID", "the metadata URL cannot be read") from None
    if url.get_backend_name() not in {"sqlite", "postgresql"} or url.database in {
        None,
        "",
        ":memory:",
    }:
        raise InvalidInput(
            "METADATA_URL_INVALID",
            "metadata lives in a SQLite file or a PostgreSQL database, got "
            f"{url.render_as_string(hide_password=True)}",
        )
    return url


def _sqlite(url: sa.URL) -> sa.Engine:
    engine = sa.create_engine(
        url, connect_args={"timeout": BUSY_MS / 1000, "check_same_thread": False}
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # transactions are ours
        connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN, "BEGIN"))

    return engine


def _use_wal(connection: Any) -> None:
    """Change to WAL once; SQLite does not wait for others here, so we do."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
            if mode != "wal":
                (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except Exception as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        else:
            if mode == "wal":
                return
            if time.monotonic() > deadline:
                raise MetadataUnavailable(
                    "METADATA_UNAVAILABLE", "this file system cannot hold a SQLite WAL"
                )
        time.sleep(0.01)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (exc.DBAPIError, exc.TimeoutError) as error:
        cause = getattr(error, "orig", None) or error
        if "not a database" in str(cause):
            raise MetadataDamaged("NOT_METADATA", "the file is not a metadata store") from None
        if any(phrase in str(cause) for phrase in _DAMAGED):
            raise MetadataDamaged(
                "METADATA_DAMAGED",
                "the metadata's file is damaged, and nothing was changed: put the newest copy "
                "back, or run `sage restore`",
            ) from None
        state = getattr(cause, "sqlstate", None) or ""
        if state in postgresql.CONFLICTS:
            raise MetadataConflict(
                "METADATA_CONFLICT",
                f"the database took the transaction back: {type(cause).__name__}",
            ) from error
        if isinstance(error, exc.DataError) and not state:
            # The driver itself refused it: PostgreSQL has no text with NUL. Its words quote the
            # value.
            raise InvalidInput(
                "VALUE_INVALID", "a name or text must not have NUL characters"
            ) from None
        not_now = isinstance(error, exc.OperationalError | exc.TimeoutError | exc.InterfaceError)
        if not_now or state.startswith(_NOT_NOW):
            raise MetadataUnavailable(
                "METADATA_UNAVAILABLE",
                f"the metadata store cannot be used now: {type(cause).__name__}: {cause}",
            ) from error
        raise
