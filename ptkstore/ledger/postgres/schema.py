"""The tables of the journal in PostgreSQL: made, migrated and checked.

They live in the schema ``sage_ledger``, so that a ledger may share a database with the metadata.
Everything is checked at every start: a trigger could swallow commits, and a table that is not
logged is empty after a crash. Reasons: NOT_A_LEDGER, SCHEMA_TOO_NEW, SCHEMA_ALTERED, KEY_INVALID.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Any

from ptklib.errors import JournalDamaged

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

__all__ = ["has_ledger", "prepare"]

_LOCK = 0x534C4544  # "SLED": one maker of tables at a time

# Each step takes the schema from its index to the next; steps are never edited once released.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE sage_ledger.commits (seq bigint PRIMARY KEY, body bytea NOT NULL, mac bytea "
        "NOT NULL)",
        "CREATE TABLE sage_ledger.snapshots (seq bigint PRIMARY KEY, body bytea NOT NULL, mac "
        "bytea NOT NULL)",
        "CREATE TABLE sage_ledger.head"
        " (only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row), seq bigint NOT NULL, mac "
        "bytea NOT NULL)",
    ),
)
_VERSION = "CREATE TABLE sage_ledger.version (number integer NOT NULL, genesis bytea NOT NULL)"
_COLUMNS = {
    ("version", "number", "integer"),
    ("version", "genesis", "bytea"),
    ("head", "only_row", "boolean"),
    *(
        (table, name, kind)
        for table in ("commits", "snapshots", "head")
        for name, kind in (("seq", "bigint"),)
    ),
    *((table, "mac", "bytea") for table in ("commits", "snapshots", "head")),
    *((table, "body", "bytea") for table in ("commits", "snapshots")),
}


def has_ledger(connection: Connection) -> bool:
    """True when there is a journal in the database."""
    return "version" in _tables(connection)


def prepare(connection: Connection, genesis: bytes) -> None:
    """Make or migrate the tables in one transaction, and check them and the key."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        if not has_ledger(connection):
            _require_nothing(connection)
            connection.execute("CREATE SCHEMA IF NOT EXISTS sage_ledger")
            connection.execute(_VERSION)
            connection.execute("INSERT INTO sage_ledger.version VALUES (0, %s)", (genesis,))
        number = _version(connection, genesis)
        for step in _MIGRATIONS[number:]:
            for statement in step:
                connection.execute(statement)
        if number == 0:
            connection.execute("INSERT INTO sage_ledger.head (seq, mac) VALUES (0, %s)", (genesis,))
        if number < len(_MIGRATIONS):
            connection.execute("UPDATE sage_ledger.version SET number = %s", (len(_MIGRATIONS),))
        _check_tables(connection)


def _require_nothing(connection: Connection) -> None:
    if _tables(connection):
        raise JournalDamaged(
            "NOT_A_LEDGER", "the database has a schema sage_ledger, but no ledger journal in it"
        )


def _tables(connection: Connection) -> set[str]:
    # By a query, not by to_regclass: that one may answer from a cache of before we waited for our
    # turn.
    rows = connection.execute(
        "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
        "n.nspname = 'sage_ledger'"
    )
    return {str(row[0]) for row in rows}


def _version(connection: Connection, genesis: bytes) -> int:
    rows = connection.execute("SELECT number, genesis FROM sage_ledger.version").fetchall()
    if len(rows) != 1 or not isinstance(rows[0][1], bytes):
        raise JournalDamaged(
            "SCHEMA_ALTERED", "the journal's version is not as this release makes it"
        )
    number, kept = rows[0]
    if number > len(_MIGRATIONS):
        raise JournalDamaged(
            "SCHEMA_TOO_NEW",
            f"the journal has schema {number}, this release knows {len(_MIGRATIONS)}: upgrade",
        )
    if not hmac.compare_digest(kept, genesis):
        raise JournalDamaged(
            "KEY_INVALID",
            "the key is not the one of this journal: every server needs the key file of the first "
            "one",
        )
    return int(number)


def _check_tables(connection: Connection) -> None:
    """Our tables and nothing else, logged, with nothing that acts when they are written."""
    columns = connection.execute(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns"
        " WHERE table_schema = 'sage_ledger'"
    ).fetchall()
    odd = connection.execute(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'sage_ledger'::regnamespace AND ("
        " c.relkind NOT IN ('r', 'i') OR c.relpersistence <> 'p' OR c.relrowsecurity OR "
        "c.relhasrules OR c.relhassubclass"
        " OR EXISTS (SELECT 1 FROM pg_trigger t WHERE t.tgrelid = c.oid))"
    ).fetchall()
    if odd or set(columns) != {(*column, "NO") for column in _COLUMNS}:
        raise JournalDamaged(
            "SCHEMA_ALTERED", "the journal's tables are not as this release makes them"
        )
