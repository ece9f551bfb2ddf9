"""The metadata store on PostgreSQL: the suite, and what is particular to a server."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa

from devtools.servers.cache import tell
from devtools.servers.postgres import Postgres, start_postgres
from ptklib.errors import InvalidInput
from ptkstore.metadata import (
    Metadata,
    MetadataConflict,
    MetadataDamaged,
    MetadataUnavailable,
    Transaction,
    tables,
)
from ptkstore.metadata.database import database, schema
from ptkstore.metadata.database.database import Database
from tests.adapters.metadata_crowd import MetadataCrowd
from tests.adapters.metadata_suite import MetadataSuite, metadata

__all__ = ["metadata"]  # the suite's fixture


@pytest.fixture
def url(postgres_url: str) -> str:
    return postgres_url


@pytest.fixture
def own_postgres(postgres: Postgres) -> Iterator[Postgres]:
    """A server that a test may kill.

    It depends on the other one, so that it is skipped where there is none.
    """
    mine = start_postgres(tell)
    yield mine
    mine.server.close()


class TestPostgresql(MetadataSuite):
    """Everything any backend must do."""


class TestPostgresqlCrowd(MetadataCrowd):
    """The same, for many at once."""


def test_a_server_tells_its_own_time_and_a_file_has_none(url: str, tmp_path: Path) -> None:
    with Metadata.open(url) as metadata, metadata.read() as tx:
        before = time.time()
        told = tx.clock_ms()
        assert told is not None
        assert before * 1000 - 1000 <= told <= time.time() * 1000 + 1000
    with Metadata.open(tmp_path / "meta.db") as metadata, metadata.read() as tx:
        assert tx.clock_ms() is None


def test_transactions_are_serializable_or_one_moment_and_durable(url: str) -> None:
    Metadata.open(url).close()
    store = Database(url)

    def shown(connection: sa.Connection, name: str) -> str:
        return str(connection.exec_driver_sql(f"SHOW {name}").scalar())

    for _ in range(2):  # the second time on a connection that was used before
        with store.write() as connection:
            assert shown(connection, "transaction_isolation") == "serializable"
            assert shown(connection, "transaction_read_only") == "off"
            assert shown(connection, "synchronous_commit") == "on"
        with store.read() as connection:
            assert shown(connection, "transaction_isolation") == "repeatable read"
            assert shown(connection, "transaction_read_only") == "on"
    store.close()


def test_a_writer_sees_what_was_committed_while_it_waited(url: str, metadata: Metadata) -> None:
    held, seen = threading.Event(), []

    def late() -> None:
        with Metadata.open(url) as other:
            held.set()
            with other.write() as tx:
                seen.append(tx.events.newest())

    with metadata.write() as tx:
        thread = threading.Thread(target=late)
        thread.start()
        assert held.wait(30)
        number = tx.events.add("a", "p", {})
        with psycopg.connect(url) as watcher:
            while not watcher.execute(
                "SELECT 1 FROM pg_locks WHERE locktype = 'relation' AND NOT granted"
            ).fetchone():
                assert thread.is_alive()
    thread.join(30)
    assert seen == [number]


class Intruder:
    """A writer that does not take our lock; it reads and writes what the transaction reads and
    writes.
    """

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url)
        self._connection.isolation_level = psycopg.IsolationLevel.SERIALIZABLE

    def write_skew(self, tx: Transaction, name: str) -> None:
        self._connection.execute("SELECT count(*) FROM streams")
        before = len(tx.streams.list())
        self._connection.execute("INSERT INTO streams (name, spec) VALUES (%s, '{}')", (name,))
        self._connection.commit()
        tx.streams.create(f"ours-{name}", {"before": before})

    def close(self) -> None:
        self._connection.close()


def test_a_writer_past_our_lock_is_a_conflict_and_transact_tries_again(
    url: str, metadata: Metadata
) -> None:
    intruder = Intruder(url)
    with pytest.raises(MetadataConflict, match="METADATA_CONFLICT"), metadata.write() as tx:
        intruder.write_skew(tx, "x")
    turns = []

    def work(tx: Transaction) -> int:
        turns.append(1)
        if len(turns) < 3:
            intruder.write_skew(tx, f"y{len(turns)}")
        return len(tx.streams.list())

    assert metadata.transact(work) == 4
    assert len(turns) == 3

    def hopeless(tx: Transaction) -> None:
        turns.append(1)
        intruder.write_skew(tx, f"z{len(turns)}")

    turns.clear()
    with pytest.raises(MetadataConflict):
        metadata.transact(hopeless)
    assert len(turns) == 5
    with metadata.read() as tx:
        assert not [one.name for one in tx.streams.list() if one.name.startswith("ours-")]
    intruder.close()


def test_names_are_sorted_by_code_points_whatever_the_database_does(
    url: str, metadata: Metadata
) -> None:
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name, collation_name FROM information_schema.columns"
            " WHERE table_schema = 'public' AND data_type = 'character varying' AND table_name <> "
            "%s",
            (schema.VERSION_TABLE,),
        ).fetchall()
    assert len(rows) > 15
    assert [row for row in rows if row[2] != "C"] == []


def test_the_migrations_make_the_tables_of_the_code(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    Metadata.open(url).close()
    store = Database(url)
    with store.read() as connection:
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), tables.METADATA)
            == []
        )
    store.close()


def test_rows_that_refer_to_nothing_are_refused_by_the_database_too(url: str) -> None:
    Metadata.open(url).close()
    store = Database(url)
    with pytest.raises(sa.exc.IntegrityError), store.write() as connection:
        connection.execute(
            tables.plans.insert().values(stream="none", window=0, status="x", body="{}")
        )
    store.close()


def test_a_newer_schema_and_a_database_of_somebody_else_are_refused_and_left_alone(
    url: str, postgres: Postgres
) -> None:
    Metadata.open(url).close()
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE sage_schema SET version_num = '9999'")
    with pytest.raises(MetadataDamaged, match="SCHEMA_TOO_NEW"):
        Metadata.open(url)
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT version_num FROM sage_schema").fetchone() == ("9999",)
    with postgres.database() as other:
        with psycopg.connect(other) as connection:
            connection.execute("CREATE TABLE precious (x int)")
        with pytest.raises(MetadataDamaged, match="NOT_METADATA"):
            Metadata.open(other)
        with psycopg.connect(other) as connection:
            rows = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
            ).fetchall()
        assert rows == [("precious",)]


def test_a_migration_that_dies_leaves_the_old_schema(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(connection: sa.Connection, *_: Any) -> None:
        upgrade(connection)
        assert connection.execute(sa.text("SELECT count(*) FROM streams")).scalar() == 0
        raise KeyboardInterrupt

    upgrade = schema._upgrade
    monkeypatch.setattr(schema, "_upgrade", die)
    with pytest.raises(KeyboardInterrupt):
        Metadata.open(url)
    with psycopg.connect(url) as connection:
        assert (
            connection.execute("SELECT 1 FROM pg_tables WHERE schemaname = 'public'").fetchall()
            == []
        )
    monkeypatch.undo()
    Metadata.open(url).close()


def test_many_open_a_new_store_at_once(url: str) -> None:
    start = threading.Barrier(4)

    def work(_: int) -> None:
        start.wait()
        Metadata.open(url).close()

    code = "import sys; from ptkstore.metadata import Metadata; Metadata.open(sys.argv[1]).close()"
    runs = [subprocess.Popen([sys.executable, "-W", "error", "-c", code, url]) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert [run.wait(60) for run in runs] == [0, 0]


def test_a_writer_that_waits_too_long_gives_up(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Metadata.open(url).close()
    monkeypatch.setattr(database, "BUSY_MS", 100)
    with Metadata.open(url) as ours, Metadata.open(url) as theirs:
        with (
            theirs.write(),
            pytest.raises(MetadataUnavailable, match="METADATA_UNAVAILABLE"),
            ours.write(),
        ):
            pass
        with ours.write() as tx:
            tx.streams.create("s", {})


def test_a_server_that_is_killed_and_started_again_keeps_what_was_committed(
    own_postgres: Postgres,
) -> None:
    with Metadata.open(own_postgres.url()) as metadata:
        with metadata.write() as tx:
            tx.streams.create("s", {})

        def lose(tx: Transaction) -> None:
            tx.streams.create("lost", {})
            own_postgres.server.kill()
            tx.streams.create("never", {})

        with pytest.raises(MetadataUnavailable):
            metadata.transact(lose)
        with (
            pytest.raises(MetadataUnavailable, match="METADATA_UNAVAILABLE") as refusal,
            metadata.read(),
        ):
            pass
        assert own_postgres.password not in str(refusal.value)
        own_postgres.server.start()
        with metadata.write() as tx:
            tx.streams.create("t", {})
        with metadata.read() as tx:
            assert [one.name for one in tx.streams.list()] == ["s", "t"]


def test_urls_that_cannot_work_say_so_without_telling_passwords(postgres: Postgres) -> None:
    wrong = postgres.url().replace(postgres.password, "wrong-secret")
    with pytest.raises(MetadataUnavailable, match="METADATA_UNAVAILABLE") as refusal:
        Metadata.open(wrong)
    assert "wrong-secret" not in str(refusal.value)


def test_a_missing_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InvalidInput, match="METADATA_URL_INVALID"):
        Metadata.open("postgresql://user@127.0.0.1:1/none")


def test_opening_a_store_of_this_release_needs_no_alembic(url: str) -> None:
    Metadata.open(url).close()
    code = (
        "import sys; from ptkstore.metadata import Metadata; assert 'psycopg' not in sys.modules;"
        "Metadata.open(sys.argv[1]).close(); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, url], check=True, timeout=60)
