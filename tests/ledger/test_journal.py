"""The durable file: what an intruder without the key can do to it, and what an upgrade does."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ptklib.errors import JournalDamaged, JournalUnavailable
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice
from ptklib.ledger.snapshot import dump, load
from ptklib.privacy.costs import PureCost
from ptkstore.ledger import Ledger
from ptkstore.ledger.journals import sqlite as journal
from ptkstore.ledger.journals.sqlite import Journal, connect

KEY = bytes(32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "ledger.db"
    with Ledger.open(path) as ledger:
        ledger.create_stream("s", Policy(epsilon=1, delta=0))
        ledger.add_blocks("s", ["a", "b"])
        ledger.charge("s", [Slice(("a",))], PureCost(epsilon="0.5"))
        ledger.snapshot()
        ledger.charge("s", [Slice(("a",))], PureCost(epsilon="0.4"))
        ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.3"))
    return path


def edit(path: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(path)
    with connection:
        assert connection.execute(statement, values).rowcount > 0
    connection.close()


def database_of(ledger: Ledger) -> sqlite3.Connection:
    kept = ledger._writer.journal
    assert isinstance(kept, Journal)
    found: sqlite3.Connection = kept._db
    return found


def damage(path: Path, known: journal.Head | None = None) -> str:
    with pytest.raises(JournalDamaged) as refusal, Ledger.open(path) as ledger:
        ledger.verify(known)
    return refusal.value.reason


TAMPERINGS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a smaller demand": (
        lambda path: edit(
            path, "UPDATE commits SET body = replace(body, '400000000', '100000000') WHERE seq = 4"
        ),
        "CHAIN_BROKEN",
    ),
    "a smaller demand before the snapshot": (
        lambda path: edit(
            path, "UPDATE commits SET body = replace(body, '500000000', '100000000') WHERE seq = 3"
        ),
        "CHAIN_BROKEN",
    ),
    "a commit taken out": (
        lambda path: edit(path, "DELETE FROM commits WHERE seq = 4"),
        "CHAIN_BROKEN",
    ),
    "an old commit taken out": (
        lambda path: edit(path, "DELETE FROM commits WHERE seq = 2"),
        "CHAIN_BROKEN",
    ),
    "a commit copied to the end": (
        lambda path: edit(
            path, "INSERT INTO commits SELECT 6, body, mac FROM commits WHERE seq = 5"
        ),
        "CHAIN_BROKEN",
    ),
    "an invented commit": (
        lambda path: edit(
            path,
            "INSERT INTO commits VALUES (6, ?, ?)",
            b'[{"charge":0,"kind":"release"}]',
            bytes(32),
        ),
        "CHAIN_BROKEN",
    ),
    "two commits swapped": (
        lambda path: edit(
            path,
            "UPDATE commits SET body = (SELECT body FROM commits AS o WHERE o.seq = 9 - "
            "commits.seq) WHERE seq IN (4, 5)",
        ),
        "CHAIN_BROKEN",
    ),
    "a commit of a later number": (
        lambda path: edit(path, "UPDATE commits SET seq = 6 WHERE seq = 5"),
        "CHAIN_BROKEN",
    ),
    "an emptied snapshot": (
        lambda path: edit(path, "UPDATE snapshots SET body = zeroblob(100)"),
        "SNAPSHOT_INVALID",
    ),
    "a snapshot moved forward": (
        lambda path: edit(path, "UPDATE snapshots SET seq = 5"),
        "SNAPSHOT_INVALID",
    ),
    "everything but the snapshot removed": (
        lambda path: edit(path, "DELETE FROM commits"),
        "SNAPSHOT_INVALID",
    ),
}


@pytest.mark.parametrize(("tamper", "reason"), list(TAMPERINGS.values()), ids=list(TAMPERINGS))
def test_tampering_without_the_key_is_noticed(
    path: Path, tamper: Callable[[Path], None], reason: str
) -> None:
    tamper(path)
    assert damage(path) == reason


def test_a_commit_of_another_history_under_the_same_key_does_not_fit(
    path: Path, tmp_path: Path
) -> None:
    """Two copies go on differently; a commit of the one in the place of the other's is signed, and
    of the right number.
    """
    other = tmp_path / "other.db"
    shutil.copy(path, other)
    shutil.copy(path.with_name(path.name + ".key"), other.with_name(other.name + ".key"))
    for place, epsilon in ((path, "0.2"), (other, "0.01")):
        with Ledger.open(place) as ledger:
            ledger.charge("s", [Slice(("b",))], PureCost(epsilon=epsilon))
            ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.1"))
    database = sqlite3.connect(other)
    (cheaper,) = database.execute("SELECT body, mac FROM commits WHERE seq = 6").fetchall()
    database.close()
    edit(path, "UPDATE commits SET body = ?, mac = ? WHERE seq = 6", *cheaper)
    assert damage(path) == "CHAIN_BROKEN"


def test_a_snapshot_of_another_ledger_is_not_even_loaded(path: Path, tmp_path: Path) -> None:
    """It is a state, and a cheaper one: without its MAC the ledger would go on from there."""
    with Ledger.open(tmp_path / "other.db") as other:
        other.create_stream("s", Policy(epsilon=1, delta=0))
        other.add_blocks("s", ["a", "b"])
        other.charge("s", [Slice(("a",))], PureCost(epsilon="0.01"))
        other.snapshot()
    database = sqlite3.connect(tmp_path / "other.db")
    (cheaper,) = database.execute("SELECT body FROM snapshots").fetchall()
    database.close()
    edit(path, "UPDATE snapshots SET body = ?", *cheaper)
    with pytest.raises(JournalDamaged) as refusal:
        Ledger.open(path).close()
    assert refusal.value.reason == "SNAPSHOT_INVALID"


def test_a_snapshot_that_differs_is_noticed_even_when_signed(path: Path) -> None:
    key = path.with_name(path.name + ".key").read_bytes()
    forger = Journal(connect(path), key)
    body = forger.newest_snapshot()
    assert body is not None
    state = load(body)
    state.streams["s"].by_name["a"].loss.rows[:] = 0
    forger.begin()
    forger.save_snapshot(dump(state))
    forger.commit()
    forger.close()
    assert damage(path) == "SNAPSHOT_INVALID"


def test_memory_that_differs_from_the_journal_is_noticed(path: Path) -> None:
    with Ledger.open(path) as ledger:
        ledger.verify()
        with ledger._writer.quiet() as state:
            state.streams["s"].by_name["b"].loss.rows[:] = 0
        with pytest.raises(JournalDamaged) as refusal:
            ledger.verify()
    assert refusal.value.reason == "REPLAY_DIFFERS"


def test_a_sound_journal_verifies_and_says_what_it_saw(path: Path) -> None:
    with Ledger.open(path) as ledger:
        found = ledger.verify(ledger.head)
        assert (found.commits, found.entries, found.snapshots) == (5, 5, 1)
        assert found.head == ledger.head
        assert found.digest == ledger.digest()


def test_a_journal_that_was_cut_is_noticed_by_a_head_kept_elsewhere(path: Path) -> None:
    with Ledger.open(path) as ledger:
        known = ledger.head
    edit(path, "DELETE FROM commits WHERE seq = 5")
    with Ledger.open(path) as ledger:
        ledger.verify()  # a shorter chain is a valid chain
    assert damage(path, known) == "HISTORY_CUT"


def test_a_commit_beyond_the_policy_is_noticed_even_when_signed(path: Path) -> None:
    key = path.with_name(path.name + ".key").read_bytes()
    with Ledger.open(path) as ledger:
        *_, reserve = ledger.history()
    forger = Journal(connect(path), key)
    list(forger.read())
    forger.begin()
    forger.append([reserve | {"charge": 3, "demand": [900_000_000, 0]}])
    forger.commit()
    forger.close()
    assert damage(path) == "POLICY_EXCEEDED"


def test_a_missing_open_or_wrong_key_stops_the_ledger(path: Path) -> None:
    key_path = path.with_name(path.name + ".key")
    key = key_path.read_bytes()
    key_path.chmod(0o644)
    assert damage(path) == "KEY_INVALID"
    key_path.chmod(0o600)
    key_path.write_bytes(key[:-1])
    assert damage(path) == "KEY_INVALID"
    key_path.write_bytes(bytes(32))
    assert damage(path) in ("CHAIN_BROKEN", "SNAPSHOT_INVALID")
    key_path.unlink()
    assert damage(path) == "KEY_MISSING"
    assert not key_path.exists(), "a journal must never get a new key"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text(
        "hello, this is no database at all, but it is long enough to have a header" * 10
    )
    (tmp_path / "text.db.key").write_bytes(KEY)
    (tmp_path / "text.db.key").chmod(0o600)
    assert damage(tmp_path / "text.db") == "NOT_A_LEDGER"
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE precious (x)")
    other.close()
    (tmp_path / "other.db.key").write_bytes(KEY)
    (tmp_path / "other.db.key").chmod(0o600)
    before = (tmp_path / "other.db").read_bytes()
    assert damage(tmp_path / "other.db") == "NOT_A_LEDGER"
    assert (tmp_path / "other.db").read_bytes() == before


def test_an_older_schema_is_migrated_and_a_newer_one_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = path.with_name("old.db")
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_MIGRATIONS", journal._MIGRATIONS[:1])
        Journal(connect(old), KEY).close()
    with sqlite3.connect(old) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert [row[0] for row in connection.execute("SELECT name FROM sqlite_master")] == [
            "commits"
        ]
    connection.close()
    migrated = Journal(connect(old), KEY)
    migrated.begin()
    migrated.append([{"kind": "blocks"}])
    migrated.save_snapshot(b"x")
    migrated.commit()
    migrated.close()
    with sqlite3.connect(old) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(journal._MIGRATIONS),)
    connection.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    assert damage(path) == "SCHEMA_TOO_NEW"


def test_it_is_durable_by_default(path: Path) -> None:
    with Ledger.open(path) as ledger:
        database = database_of(ledger)
        assert database.execute("PRAGMA synchronous").fetchone() == (2,)
        assert database.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_journal_that_cannot_be_written_grants_nothing_and_recovers(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(path) as ledger:
        before = ledger.digest()
        database_of(ledger).execute("PRAGMA busy_timeout = 50")
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalUnavailable) as refusal:
            ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.1"))
        assert refusal.value.reason == "JOURNAL_UNAVAILABLE"
        blocker.execute("ROLLBACK")
        blocker.close()
        assert ledger.digest() == before
        # A commit that fails leaves nothing behind, in memory or on disk.
        with monkeypatch.context() as patch:
            patch.setattr(
                Journal, "append_next", lambda self, *_: self._run("SELECT no_such_function()")
            )
            with pytest.raises(JournalUnavailable):
                ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.1"))
        assert ledger.digest() == before
        ledger.charge("s", [Slice(("b",))], PureCost(epsilon="0.7"))
        assert ledger.verify().head == ledger.head
    with pytest.raises(JournalUnavailable) as refusal:
        ledger.left("s", ["a"])
    assert refusal.value.reason == "LEDGER_CLOSED"
