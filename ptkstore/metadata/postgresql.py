"""PostgreSQL under the metadata: how to connect, and how the two transactions begin.

A writer first takes a lock that belongs to its session, and only then begins its SERIALIZABLE transaction: a transaction sees
the database as it was at its first query, so whoever begins and then waits for a lock works on the past. Writers of ours
never conflict, therefore; SERIALIZABLE stands against writers that are not ours. Every commit is flushed before it is answered,
whatever the server's default. Connecting and taking the lock is tried a few times: nothing has happened by then.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, exc

from ptklib.errors import InvalidInput

__all__ = ["ATTEMPTS", "CONFLICTS", "connected", "make_engine", "reading", "writing"]

ATTEMPTS = 5
# Serialization failure and deadlock: the transaction was taken back as a whole.
CONFLICTS = frozenset({"40001", "40P01"})
_FIRST_DELAY_SECONDS = 0.05
_CONNECT_SECONDS = 10
_WRITERS_LOCK = 0x53414745  # "SAGE"; one per database


def make_engine(url: sa.URL, busy_ms: int) -> sa.Engine:
    """An engine whose sessions wait at most ``busy_ms`` for a lock. METADATA_URL_INVALID where psycopg is missing."""
    arguments: dict[str, Any] = {} if "connect_timeout" in url.query else {"connect_timeout": _CONNECT_SECONDS}
    try:
        engine = sa.create_engine(url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, connect_args=arguments)
    except ImportError:
        raise InvalidInput(
            "METADATA_URL_INVALID", "PostgreSQL needs psycopg: pip install 'ptkstore[servers]'"
        ) from None

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SET lock_timeout = {busy_ms}")
            cursor.execute("SET synchronous_commit = on")
            # A writer that stopped in the middle of its transaction must not hold up the others for ever.
            cursor.execute(f"SET idle_in_transaction_session_timeout = {2 * busy_ms}")
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
    options = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    with options.begin():
        yield options


@contextmanager
def writing(connection: sa.Connection) -> Iterator[sa.Connection]:
    """The only writer of ours, in a SERIALIZABLE transaction."""
    connection.execution_options(isolation_level="AUTOCOMMIT")
    connection.execute(sa.select(sa.func.pg_advisory_lock(_WRITERS_LOCK)))
    connection.commit()
    try:
        connection.execution_options(isolation_level="SERIALIZABLE")
        with connection.begin():
            yield connection
    finally:
        _unlock(connection)


def _unlock(connection: sa.Connection) -> None:
    try:
        connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.execute(sa.select(sa.func.pg_advisory_unlock(_WRITERS_LOCK)))
        connection.commit()
    except exc.SQLAlchemyError:
        # The session is broken; when it ends, the lock ends with it.
        connection.invalidate()


def _patiently(connect: Any) -> sa.Connection:
    delay = _FIRST_DELAY_SECONDS
    for _ in range(ATTEMPTS - 1):
        try:
            found: sa.Connection = connect()
            return found
        except exc.OperationalError:
            time.sleep(delay * random.uniform(0.5, 1.5))  # noqa: S311
            delay *= 2
    last: sa.Connection = connect()
    return last
