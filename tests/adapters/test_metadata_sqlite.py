"""The metadata store on SQLite: the suite, and what is particular to files."""

from __future__ import annotations

import pickle
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ptklib.errors import InvalidInput
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata, MetadataDamaged, MetadataUnavailable, tables
from ptkstore.metadata.database import database, schema
from ptkstore.metadata.database.database import Database
from tests.adapters.metadata_crowd import MetadataCrowd
from tests.adapters.metadata_suite import MetadataSuite, metadata

__all__ = ["metadata"]  # the suite's fixture


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(tmp_path / "meta.db")


class TestSqlite(MetadataSuite):
    """Everything any backend must do."""


class TestSqliteCrowd(MetadataCrowd):
    """The same, for many at once."""


def test_transactions_are_durable_and_checked(url: str) -> None:
    database = Database(url)
    pragmas = ("journal_mode", "synchronous", "foreign_keys")
    with database.write() as connection:
        assert [connection.exec_driver_sql(f"PRAGMA {one}").scalar() for one in pragmas] == [
            "wal",
            2,
            1,
        ]
    database.close()


def test_rows_that_refer_to_nothing_are_refused_by_the_database_too(url: str) -> None:
    Metadata.open(url).close()
    database = Database(url)
    with pytest.raises(sa.exc.IntegrityError), database.write() as connection:
        connection.execute(
            tables.plans.insert().values(stream="none", window=0, status="x", body="{}")
        )
    database.close()


def test_the_migrations_make_the_tables_of_the_code(url: str) -> None:
    from alembic.autogenerate import compare_metadata
    from alembic.migration import MigrationContext

    Metadata.open(url).close()
    database = Database(url)
    with database.read() as connection:
        options = {"version_table": schema.VERSION_TABLE, "compare_type": True}
        assert (
            compare_metadata(MigrationContext.configure(connection, opts=options), tables.METADATA)
            == []
        )
        made = sa.MetaData()
        made.reflect(connection)
        for table in tables.METADATA.sorted_tables:
            assert {key.target_fullname for key in table.foreign_keys} == {
                key.target_fullname for key in made.tables[table.name].foreign_keys
            }
    database.close()


def test_the_known_revisions_are_those_that_ship(url: str) -> None:
    from alembic.script import ScriptDirectory

    database = Database(url)
    with database.read() as connection:
        shipped = list(
            ScriptDirectory.from_config(schema.alembic_config(connection)).walk_revisions()
        )
    database.close()
    assert tuple(one.revision for one in reversed(shipped)) == schema.REVISIONS


def test_times_that_were_exact_are_made_coarse(url: str) -> None:
    with Metadata.open(url) as store, store.write_results("known") as tx:
        tx.streams.create("s", {}, at_ms=1)
        ptk = tx.ptks.create("p", "s", "k", {}, 0.5, 1, at_ms=60_000)
        tx.profiles.put(
            ptk.id, 1, 0.5, ["1"], {"made_ms": 60_001, "n": 7}, "measured", at_ms=60_001
        )
        tx.profiles.put(ptk.id, 1, 0.4, ["1"], {"n": 7}, "measured")
        done = tx.operations.start("k", "s", at_ms=119_999)
        tx.operations.end(done.id, "DONE", at_ms=120_001)
        tx.operations.start("k", "s")
    connection = sqlite3.connect(url)
    with connection:
        connection.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '0005'")
        # These came later.
        connection.execute("DROP TABLE spent")
        connection.execute("DROP TRIGGER audit_no_DELETE")
        connection.execute("DROP TABLE audit_segments")
        connection.execute("ALTER TABLE audit DROP COLUMN times")
        connection.execute("DROP TABLE witness")
        connection.execute("ALTER TABLE states DROP COLUMN verdict")
        connection.execute("ALTER TABLE ptks DROP COLUMN over")
        connection.execute("ALTER TABLE ptks DROP COLUMN epsilon")
    connection.close()
    with Metadata.open(url) as store, store.read() as tx:
        assert tx.ptks.named("p").over == "all"
        assert (tx.streams.get("s").created_ms, tx.ptks.named("p").created_ms) == (60_000, 60_000)
        found = tx.profiles.list(ptk.id)
        assert [(one.created_ms, one.samples) for one in found] == [
            (120_000, {"made_ms": 120_000, "n": 7}),
            (None, {"n": 7}),
        ]
        times = {(one.created_ms, one.ended_ms) for one in tx.operations.list()}
        assert times == {(120_000, 180_000), (None, None)}


def test_a_newer_schema_is_refused_and_left_alone(url: str) -> None:
    Metadata.open(url).close()
    connection = sqlite3.connect(url)
    with connection:
        connection.execute(f"UPDATE {schema.VERSION_TABLE} SET version_num = '9999'")
    with pytest.raises(MetadataDamaged, match="SCHEMA_TOO_NEW"):
        Metadata.open(url)
    assert connection.execute(f"SELECT version_num FROM {schema.VERSION_TABLE}").fetchone() == (
        "9999",
    )
    connection.close()


def test_files_of_somebody_else_are_refused_and_left_alone(tmp_path: Path) -> None:
    Ledger.open(tmp_path / "ledger.db").close()
    (tmp_path / "text.db").write_text("not a database, but long enough to be looked at\n" * 100)
    for name in ("ledger.db", "text.db"):
        before = (tmp_path / name).read_bytes()
        with pytest.raises(MetadataDamaged, match="NOT_METADATA"):
            Metadata.open(tmp_path / name)
        assert (tmp_path / name).read_bytes() == before


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
    assert sqlite3.connect(url).execute("SELECT * FROM sqlite_master").fetchall() == []
    monkeypatch.undo()
    Metadata.open(url).close()


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    paths = [
        tmp_path / name for name in ("one.db", "two.db", "one.db", "two.db", "one.db", "two.db")
    ]
    start = threading.Barrier(len(paths))

    def work(path: Path) -> None:
        start.wait()
        Metadata.open(path).close()

    with ThreadPoolExecutor(len(paths)) as pool:
        list(pool.map(work, paths))
    code = "import sys; from ptkstore.metadata import Metadata; Metadata.open(sys.argv[1]).close()"
    runs = [
        subprocess.Popen([sys.executable, "-W", "error", "-c", code, tmp_path / "three.db"])
        for _ in range(3)
    ]
    assert [run.wait(60) for run in runs] == [0, 0, 0]


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://user:secret@host/db",
        "://",
        "postgresql://user:secret@host",
    ],
)
def test_urls_that_are_refused_without_telling_passwords(url: str) -> None:
    with pytest.raises(InvalidInput, match="METADATA_URL_INVALID") as refusal:
        Metadata.open(url)
    assert "secret" not in str(refusal.value)


def test_a_path_and_its_url_are_one_store(tmp_path: Path) -> None:
    with Metadata.open(tmp_path / "m%20 ü?.db") as store, store.write() as tx:
        tx.streams.create("s", {})
    assert (tmp_path / "m%20 ü?.db").exists()
    with Metadata.open(f"sqlite:///{tmp_path}/plain.db") as store, store.write() as tx:
        tx.streams.create("s", {})
    with Metadata.open(str(tmp_path / "plain.db")) as store, store.read() as tx:
        assert tx.streams.get("s").spec == {}


def test_a_store_that_cannot_be_reached_or_is_locked_says_so(
    tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(MetadataUnavailable, match="METADATA_UNAVAILABLE"):
        Metadata.open(tmp_path / "missing" / "meta.db")
    Metadata.open(url).close()
    monkeypatch.setattr(database, "BUSY_MS", 50)
    other = sqlite3.connect(url, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with Metadata.open(url) as store:
        with (
            pytest.raises(MetadataUnavailable, match="METADATA_UNAVAILABLE") as refusal,
            store.write(),
        ):
            pass
        assert pickle.loads(pickle.dumps(refusal.value)).reason == "METADATA_UNAVAILABLE"
        other.execute("ROLLBACK")
        with store.write() as tx:
            tx.streams.create("s", {})
        hold, held = threading.Event(), threading.Event()

        def occupy() -> None:
            with store.write():
                held.set()
                hold.wait(30)

        thread = threading.Thread(target=occupy)
        thread.start()
        assert held.wait(30)
        with pytest.raises(MetadataUnavailable, match="another thread"), store.write():
            pass
        hold.set()
        thread.join()
    other.close()


def test_opening_a_store_of_this_release_needs_no_alembic(url: str) -> None:
    Metadata.open(url).close()
    code = (
        "import sys; from ptkstore.metadata import Metadata; assert 'alembic' not in sys.modules;"
        "Metadata.open(sys.argv[1]).close(); assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code, url], check=True, timeout=60)
