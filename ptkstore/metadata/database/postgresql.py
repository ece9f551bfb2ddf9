"""PostgreSQL under the metadata: how to connect, and how the two transactions begin.

A writer begins a SERIALIZABLE transaction and, before anything else, locks the table of the
schema's version in it. LOCK is the one statement that waits and takes no snapshot: the transaction
sees the database as it is when its turn has come, not as it was when it began to wait. Writers of
ours never conflict, therefore; SERIALIZABLE stands against writers that are not ours. Every commit
is flushed before it is answered, whatever the server's default.

The turn belongs to the transaction, and the transaction to a process that goes on: one that stands
still in it (a machine that swaps, a process that was stopped) loses it after `HANG_MS`, wherever it
stopped, and the others go on. It finds its transaction gone when it wakes up. Connecting is tried a
few times: nothing has happened by then.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from ptklib.errors import InvalidInput
from ptkstore.backoff import Backoff

__all__ = [
    "ATTEMPTS",
    "CONFLICTS",
    "HANG_MS",
    "connected",
    "make_engine",
    "migrating",
    "reading",
    "writing",
]

ATTEMPTS = 5
# Serialization failure and deadlock: the transaction was taken back as a whole.
CONFLICTS = frozenset({"40001", "40P01"})
_BACKOFF = Backoff(first_seconds=0.075, longest_seconds=2.0)
# How long a writer may say nothing in the middle of its transaction.
HANG_MS = 3_000
_CONNECT_SECONDS = 10
_STATEMENT_MS = 60_000
# Connections that nobody has used for so long are those of a server that hangs: the pool would have
# closed them.
_IDLE_SESSION_MS = 3_600_000
_KNOWS_IDLE_SESSIONS = 140_000
_KNOWS_TRANSACTION_TIMEOUT = (17,)
# Who is not there any more is noticed by both ends of a connection.
_GONE = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
_MAKERS_LOCK = 0x53414745  # "SAGE": one maker of tables at a time
_TURN = (
    f"SET LOCAL idle_in_transaction_session_timeout = {HANG_MS};"
    # Conflicts with itself, with nothing that reads or writes rows.
    " LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE"
)


def make_engine(url: sa.URL, busy_ms: int) -> sa.Engine:
    """An engine whose sessions wait at most ``busy_ms`` for a lock.

    METADATA_URL_INVALID where psycopg is missing.
    """
    arguments: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, **_GONE}
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    try:
        engine = sa.create_engine(
            url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=arguments
        )
    except ImportError:
        raise InvalidInput(
            "METADATA_URL_INVALID", "PostgreSQL needs psycopg: pip install 'ptkstore[servers]'"
        ) from None
    settings: dict[str, int | str] = {
        "lock_timeout": busy_ms,
        "synchronous_commit": "on",
        "statement_timeout": _STATEMENT_MS,
        # Readers hold nobody up; they may think between two questions.
        "idle_in_transaction_session_timeout": 2 * busy_ms,
        # For a process that stopped while it was being answered: the answer cannot be sent.
        "tcp_user_timeout": HANG_MS,
    }

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            for name, value in settings.items():
                cursor.execute(f"SET {name} = {value}")
            if connection.info.server_version >= _KNOWS_IDLE_SESSIONS:
                cursor.execute(f"SET idle_session_timeout = {_IDLE_SESSION_MS}")
        connection.commit()

    return engine


@contextmanager
def connected(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection, tried a few times while the server is away or starts."""
    with _patiently(engine.connect) as connection:
        yield connection


@contextmanager
def reading(connection: sa.Connection) -> Iterator[sa.Connection]:
    """One moment of the database."""
    options = connection.execution_options(
        isolation_level="REPEATABLE READ", postgresql_readonly=True
    )
    with options.begin():
        yield options


@contextmanager
def writing(connection: sa.Connection, table: str) -> Iterator[sa.Connection]:
    """The only writer of ours, in a SERIALIZABLE transaction; ``table`` is the one that writers
    lock.
    """
    options = connection.execution_options(isolation_level="SERIALIZABLE")
    with options.begin():
        turn = _TURN.format(table=table)
        if (options.dialect.server_version_info or ()) >= _KNOWS_TRANSACTION_TIMEOUT:
            # From here on: for whoever stops where PostgreSQL counts no idle time, as behind
            # messages sent together.
            turn += f"; SET LOCAL transaction_timeout = {_STATEMENT_MS}"
        options.execution_options(no_parameters=True).exec_driver_sql(turn)
        yield options


@contextmanager
def migrating(connection: sa.Connection, table: str) -> Iterator[sa.Connection]:
    """The only writer of ours, for as long as making tables takes; the one that writers lock may
    not be there yet.

    READ COMMITTED: behind both locks each statement sees what those before us have made.
    """
    options = connection.execution_options(isolation_level="READ COMMITTED")
    with options.begin():
        options.execute(sa.select(sa.func.pg_advisory_xact_lock(_MAKERS_LOCK)))
        # Making an index of a large table is one statement, and what is worked out between two may
        # take a while.
        options.exec_driver_sql("SET LOCAL statement_timeout = 0")
        options.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")
        if sa.inspect(options).has_table(table):
            options.exec_driver_sql(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")
        yield options


def _patiently(connect: Any) -> sa.Connection:
    for attempt in range(1, ATTEMPTS):
        try:
            connection: sa.Connection = connect()
            return connection
        except exc.OperationalError:
            time.sleep(_BACKOFF.seconds(attempt))
    last: sa.Connection = connect()
    return last
