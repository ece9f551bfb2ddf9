"""Parts of a store that are old, or gone, while others are not: the store stays shut, or the doctor
says so.

A store trains on a day, all its parts are copied, and it trains on two days more. Then parts are
replaced by their old copies, or deleted, in every combination of old and new parts, and each part
deleted beside new and beside old ones. Whatever is opened all the same gets its records again from
its producers and runs its windows: no block is charged in two books.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ptklib.errors import JournalDamaged, SageError
from ptklib.ledger.state import Charge, Entry, LedgerState
from ptkstore import LocalStore, Store
from ptkstore.engine.parts import Parts
from ptkstore.engine.safekeeping.restoring import give_up_past
from ptkstore.ledger import Ledger
from ptkstore.server import adapters_of
from ptkstore.server import open_store as open_settled
from ptkstore.settings import Settings
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store, spec

ROWS = 600
# What a person takes for one thing: a database with its journal, a folder, a file.
PARTS = {
    "ledger": ("ledger.db", "ledger.db-wal", "ledger.db-shm"),
    "head": ("ledger.head",),
    "metadata": ("meta.db", "meta.db-wal", "meta.db-shm"),
    "raw": ("streams", "keys"),
    "lake": ("lake",),
}
ALONE = {
    "streams": ("streams",),
    "keys": ("keys",),
    "key": ("ledger.db.key",),
    "vault": ("vault.ledger",),
}
EVERY = {**PARTS, **ALONE}

MIXED = [set(some) for size in range(1, len(PARTS)) for some in combinations(PARTS, size)]
HALVES = [
    {"streams"},
    {"keys"},
    {"ledger", "head", "streams"},
    {"ledger", "head", "metadata", "keys"},
]
DELETED = [*PARTS, *ALONE]


def cases() -> Iterator[tuple[str, frozenset[str], frozenset[str]]]:
    """(name, old parts, deleted parts)."""
    for old in (*MIXED, *HALVES):
        yield "old " + "+".join(sorted(old)), frozenset(old), frozenset()
    for gone in DELETED:
        yield f"{gone} deleted", frozenset(), frozenset({gone})
        yield f"all old, {gone} deleted", frozenset(PARTS), frozenset({gone})


CASES = list(cases())


def push(store: LocalStore, number: int, *, seq: int) -> None:
    store.push("rides", day(number, ROWS), producer="p", seq=seq)


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The store as it was after a day, and as it is after three; the records of one day more are in
    both.
    """
    path = tmp_path_factory.mktemp("rollback")
    old, new = path / "old", path / "new"
    with open_store(new) as store:
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.3)
        push(store, 0, seq=0)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        push(store, 1, seq=1)
    shutil.copytree(new, old)
    with Store(new, workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        push(store, 2, seq=2)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        assert cycle.trained[0].outcome == "PUBLISHED"
        push(store, 3, seq=3)
    return old, new


def replace(path: Path, source: Path | None, names: tuple[str, ...]) -> None:
    for name in names:
        target = path / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        if source is not None and (source / name).is_dir():
            shutil.copytree(source / name, target)
        elif source is not None and (source / name).exists():
            shutil.copy2(source / name, target)


def mixed(lives: tuple[Path, Path], path: Path, old: frozenset[str], gone: frozenset[str]) -> None:
    shutil.copytree(lives[1], path)
    for part in old:
        replace(path, lives[0], EVERY[part])
    for part in gone:
        replace(path, None, EVERY[part])


def history(path: Path, key: Path) -> list[Entry]:
    with Ledger.open(path / "ledger.db", key_path=key) as ledger:
        return list(ledger.history())


def charged(entries: list[Entry], after: int) -> set[str]:
    state, found = LedgerState(), set()
    for number, entry in enumerate(entries):
        state.evolve(entry)
        if number >= after and entry["kind"] == "reserve":
            found |= {block.name for block in state.blocks_of(Charge.from_json(entry))}
    return found


def charged_twice(lives: tuple[Path, Path], path: Path) -> set[str]:
    """Blocks that the book as it is charged after it had parted from the book as it was."""
    key = lives[1] / "ledger.db.key"
    new = history(lives[1], key)
    try:
        now = history(path, key)
    except JournalDamaged:
        # Another key: nothing in common.
        now = history(path, path / "ledger.db.key")
    common = next(
        (k for k, (a, b) in enumerate(zip(new, now, strict=False)) if a != b),
        min(len(new), len(now)),
    )
    return charged(new, common) & charged(now, common)


def go_on(path: Path) -> list[str]:
    """What is noticed: why the store is not opened, what the doctor finds, why a window does not
    run.
    """
    noticed = []
    try:
        with Store(path, workers=0) as store:
            noticed += [one.detail for one in store.doctor() if one.level == "ERROR"]
            # Their answers may be lost, so producers send again what they had sent, under other
            # numbers.
            for number in range(4):
                push(store, number, seq=100 + number)
            store.run("rides", until_ms=FIRST_MS + 4 * DAY_MS)
            noticed += [one.detail for one in store.doctor() if one.level == "ERROR"]
    except SageError as error:
        noticed.append(error.reason)
    return noticed


@pytest.mark.parametrize(
    ("old", "gone"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_what_is_old_or_gone_is_noticed_and_spends_nothing_twice(
    lives: tuple[Path, Path], tmp_path: Path, old: frozenset[str], gone: frozenset[str]
) -> None:
    path = tmp_path / "store"
    mixed(lives, path, old, gone)
    assert go_on(path)
    assert charged_twice(lives, path) == set()


@pytest.mark.parametrize(
    ("old", "reason"), [("ledger", "HISTORY_CUT"), ("metadata", "METADATA_SET_BACK")]
)
def test_a_book_that_was_set_back_alone_is_named_before_anything_else_is_asked(
    lives: tuple[Path, Path], tmp_path: Path, old: str, reason: str
) -> None:
    """Other checks would find something, too, later and in other words."""
    path = tmp_path / "store"
    mixed(lives, path, frozenset({old}), frozenset())
    with pytest.raises(SageError) as refusal:
        Store(path, workers=0)
    assert refusal.value.reason == reason


def test_a_store_whose_parts_are_all_new_goes_on(lives: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "store"
    mixed(lives, path, frozenset(), frozenset())
    assert go_on(path) == []


def test_the_check_above_notices_what_is_charged_twice(
    lives: tuple[Path, Path], tmp_path: Path
) -> None:
    """Everything old, which nothing in the store can tell: that is what `sage restore` must be
    told.
    """
    path = tmp_path / "store"
    mixed(lives, path, frozenset(PARTS), frozenset())
    assert go_on(path) == []
    assert len(charged_twice(lives, path)) == 4


class TestOnServers:
    """The ledger and the metadata in PostgreSQL, the lake in a bucket: what goes back is a database
    or the directory.
    """

    @pytest.fixture
    def sections(self, postgres_url: str, minio: Any, tmp_path: Path) -> dict[str, Any]:
        return {
            "metadata": {"url": postgres_url},
            "ledger": {"url": postgres_url, "key_file": tmp_path / "ledger.key"},
            "lake": {
                "endpoint": minio.endpoint,
                "bucket": "rollback-tests",
                "prefix": f"{tmp_path.name}/",
                "access_key": minio.access_key,
                "secret_key": minio.secret_key,
            },
            "workers": {"processes": 0},
        }

    @pytest.fixture
    def settings(self, sections: dict[str, Any]) -> Settings:
        return Settings(**sections)

    @pytest.fixture
    def path(self, settings: Settings, tmp_path: Path) -> Path:
        with open_settled(tmp_path / "store", settings) as store:
            store.create_stream(spec())
            store.register(
                "hour-speed", stream="rides", kind="statistics", config=config(), target=0.3
            )
            push(store, 0, seq=0)
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
        return tmp_path / "store"

    def test_two_servers_of_one_store_agree(self, path: Path, settings: Settings) -> None:
        with open_settled(path, settings) as one, open_settled(path, settings) as other:
            push(one, 1, seq=1)
            one.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            assert not [found for found in other.doctor() if found.level == "ERROR"]
        open_settled(path, settings).close()

    @pytest.mark.parametrize("table", ["sage_ledger", "public"])
    def test_a_database_that_was_emptied_is_noticed(
        self, path: Path, settings: Settings, postgres_url: str, table: str
    ) -> None:
        """The part of the ledger, or that of the metadata."""
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {table} CASCADE")
            if table == "public":
                connection.execute("CREATE SCHEMA public")
        with pytest.raises(SageError) as refusal:
            open_settled(path, settings)
        assert refusal.value.reason == (
            "HISTORY_CUT" if table == "sage_ledger" else "WITNESS_MISSING"
        )

    def test_a_ledger_that_went_back_with_the_directory_is_noticed_by_the_metadata_and_by_the_bucket(
        self, path: Path, settings: Settings, postgres_url: str, sections: dict[str, Any]
    ) -> None:
        old = path.with_name("old")
        shutil.copytree(path, old)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            (seq,) = connection.execute("SELECT max(seq) FROM sage_ledger.commits").fetchone() or (
                0,
            )
            (row,) = connection.execute("SELECT body FROM witness").fetchone() or ("",)
            with open_settled(path, settings) as store:
                push(store, 1, seq=1)
                store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            connection.execute("DELETE FROM sage_ledger.commits WHERE seq > %s", (seq,))
            connection.execute(
                "UPDATE sage_ledger.head SET seq = %s, mac = (SELECT mac FROM sage_ledger.commits "
                "WHERE seq = %s)",
                (seq, seq),
            )
            for place in ("metadata", "lake"):
                with pytest.raises(JournalDamaged, match="HISTORY_CUT") as refusal:
                    open_settled(old, settings)
                assert refusal.value.details["place"] == place
                # Then that goes back, too, and the bucket is alone.
                connection.execute("UPDATE witness SET body = %s, number = 100", (row,))

    def test_an_emptied_bucket_is_noticed(
        self, path: Path, settings: Settings, sections: dict[str, Any]
    ) -> None:
        moved = Settings(**{**sections, "lake": {**sections["lake"], "prefix": "elsewhere/"}})
        with pytest.raises(JournalDamaged, match="WITNESS_MISSING"):
            open_settled(path, moved)

    def test_a_restore_makes_the_lake_know_the_ledger_as_it_is(
        self, path: Path, settings: Settings
    ) -> None:
        (path / "ledger.head").unlink()
        with pytest.raises(JournalDamaged, match="WITNESS_MISSING"):
            open_settled(path, settings)
        parts = Parts.open(path, workers=0, adapters=adapters_of(path, settings))
        give_up_past(parts, FIRST_MS + DAY_MS)
        parts.close()
        with open_settled(path, settings) as store:
            assert not [found for found in store.doctor() if found.level == "ERROR"]
            push(store, 2, seq=5)
            (cycle,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)[-1:]
            assert cycle.trained[0].outcome == "PUBLISHED"
