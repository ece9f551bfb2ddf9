"""A restored store forgets what was spent, so it must not be able to spend it again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput, JournalDamaged, Refused
from ptklib.ledger.policy import Policy
from ptklib.ledger.state import Charge, Entry, LedgerState
from ptkstore import Store
from ptkstore.engine.head_guard import HeadGuard
from ptkstore.engine.parts import Parts
from ptkstore.engine.safekeeping import backup, restoring
from ptkstore.engine.safekeeping.backup import make_backup, read_backup
from ptkstore.engine.safekeeping.restoring import give_up_past, put_back_databases, put_back_states
from ptkstore.ledger import Ledger
from ptkstore.metadata import Metadata
from ptkstore.streams import StreamDamaged
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, config, day, open_store

KEY = "ledger.db.key"


@contextmanager
def parts_of(path: Path) -> Iterator[Parts]:
    parts = Parts.open(path, workers=0)
    yield parts
    parts.close()


def lived(path: Path, *, days: int = 1, **changes: Any) -> None:
    """A store that trained on some days, and has the records of one day more."""
    with open_store(path, **changes) as store:
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.1)
        for number in range(days):
            store.push("rides", day(number), seq=number)
            store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
        store.push("rides", day(days), seq=days)


def copied(path: Path, to: Path) -> Path:
    with parts_of(path) as parts:
        make_backup(parts, to)
    return to


def put_back(source: Path, path: Path, key: Path) -> None:
    """The backup in a new directory, with the key that was kept apart; the store is still shut."""
    path.mkdir()
    shutil.copy2(key, path / KEY)
    put_back_databases(source, path)
    with parts_of(path) as parts:
        put_back_states(source, parts)


def history(path: Path) -> list[Entry]:
    with Ledger.open(path / "ledger.db") as ledger:
        return list(ledger.history())


def charged(entries: list[Entry], after: int) -> set[str]:
    """The blocks that are charged by the entries after the first ``after``."""
    state, found = LedgerState(), set()
    for number, entry in enumerate(entries):
        state.evolve(entry)
        if number >= after and entry["kind"] == "reserve":
            found |= {block.name for block in state.blocks_of(Charge.from_json(entry))}
    return found


def twice(lost: Path, restored: Path, copy: Path) -> set[str]:
    """The blocks that both books charged after the copy was made: their records may have lost more
    than was promised.
    """
    shutil.copy2(lost / KEY, copy / KEY)
    common = history(copy)
    books = [history(lost), history(restored)]
    assert all(book[: len(common)] == common for book in books)
    first, second = (charged(book, len(common)) for book in books)
    assert first
    assert second
    return first & second


def test_what_was_spent_after_the_backup_is_never_spent_again(tmp_path: Path) -> None:
    lost, copy, path = tmp_path / "lost", tmp_path / "copy", tmp_path / "new"
    lived(lost)
    copied(lost, copy)
    with Store(lost, workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert [one.version for one in store.states("hour-speed")] == [1, 2]
    put_back(copy, path, lost / KEY)
    with parts_of(path) as parts:
        (told,) = give_up_past(parts, FIRST_MS + 2 * DAY_MS)
    assert (told.stream, told.goes_on_ms) == ("rides", FIRST_MS + 2 * DAY_MS)
    with Store(path, workers=0) as store:
        assert [one.version for one in store.states("hour-speed")] == [1]
        # The producer sends again what it had sent, under other numbers: its answers were lost,
        # too.
        store.push("rides", day(1), seq=100)
        assert store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS) == []
        (empty,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        assert empty.dp_records < 300
        store.push("rides", day(3), seq=101)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 4 * DAY_MS)
        assert cycle.trained[0].outcome == "PUBLISHED"
        assert abs(cycle.dp_records - 4000) < 300
        assert not [one for one in store.doctor() if one.level == "ERROR"]
    assert twice(lost, path, copy) == set()


def test_the_check_above_notices_a_restore_that_gives_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, copy, path = tmp_path / "lost", tmp_path / "copy", tmp_path / "new"
    lived(lost)
    copied(lost, copy)
    with Store(lost, workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    put_back(copy, path, lost / KEY)
    # What an operator might do by hand who knows no better.
    (path / "restoring").unlink()
    for name in ("streams", "keys"):
        (path / name / "rides").mkdir(parents=True)
    (path / "streams/rides/stream.json").write_bytes(
        (lost / "streams/rides/stream.json").read_bytes()
    )
    shutil.copy2(lost / "keys/rides/tags.key", path / "keys/rides/tags.key")
    with pytest.raises(JournalDamaged, match="WITNESS_MISSING"):
        Store(path, workers=0)
    monkeypatch.setattr(HeadGuard, "require_newest", lambda _self: None)
    monkeypatch.setattr(Parts, "_require_newest", lambda _self, _stream: None)
    with Store(path, workers=0) as store:
        store.push("rides", day(1), seq=100)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    assert len(twice(lost, path, copy)) == 2


def test_late_records_that_were_given_up_reach_no_block_whatever_the_rule_for_late_ones(
    tmp_path: Path,
) -> None:
    for late, taken in (("oldest_open", 4000), ("quarantine", 0)):
        path = tmp_path / late
        lived(path, late=late)
        with Store(path, workers=0) as store:
            store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
            store.push("rides", day(0), seq=100)
            (cycle,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
            assert abs(cycle.dp_records - taken) < 300
        with parts_of(path) as parts:
            give_up_past(parts, FIRST_MS + 3 * DAY_MS)
        with Store(path, workers=0) as store:
            store.push("rides", day(0), seq=101)
            # The first part of a day is one block, the others are of two.
            mixed = day(2).slice(0, 1500), day(2).slice(3000), day(3).slice(0, 2000)
            for number, frame in enumerate(mixed):
                store.push("rides", frame, seq=102 + number)
            (cycle,) = store.run("rides", until_ms=FIRST_MS + 4 * DAY_MS)
            assert abs(cycle.dp_records - 2000) < 300


def test_a_ledger_that_was_set_back_below_a_living_directory_is_noticed(tmp_path: Path) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    lived(path)
    copied(path, copy)
    with Store(path, workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        store.push("rides", day(2), seq=2)
    for name in ("meta.db", "ledger.db"):
        for old in path.glob(f"{name}-*"):
            old.unlink()
        shutil.copyfile(copy / name, path / name)
    with pytest.raises(JournalDamaged, match="HISTORY_CUT"):
        Store(path, workers=0)
    with parts_of(path) as parts:
        (told,) = give_up_past(parts, FIRST_MS)
    # The watermark that the directory knows is later than the moment that was given.
    assert told.goes_on_ms == FIRST_MS + 2 * DAY_MS
    assert not list(path.glob("streams/*/*.block"))
    assert [one.name for one in path.glob("keys/rides/*.key")] == ["tags.key"]
    with Store(path, workers=0) as store:
        assert all(one.retired for one in store.budget("rides").blocks)
        assert store.events()[-1].kind == "stream.restored"


def test_a_lost_directory_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    lived(path)
    for name in ("streams", "keys"):
        shutil.rmtree(path / name)
    with (
        Store(path, workers=0) as store,
        pytest.raises(StreamDamaged, match="STREAM_FILES_MISSING"),
    ):
        store.push("rides", day(1), seq=7)
    with parts_of(path) as parts:
        give_up_past(parts, FIRST_MS + 2 * DAY_MS)
    with Store(path, workers=0) as store:
        store.push("rides", day(2), seq=7)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 3 * DAY_MS)
        assert cycle.trained[0].outcome == "PUBLISHED"


@pytest.mark.parametrize("gone", ["keys", "block"])
def test_what_is_damaged_or_has_lost_its_keys_is_given_up_as_well(
    tmp_path: Path, gone: str
) -> None:
    path = tmp_path / "store"
    lived(path)
    if gone == "keys":
        shutil.rmtree(path / "keys")
    else:
        (block, *_) = sorted(path.glob("streams/rides/*.block"))
        block.write_bytes(bytes(reversed(block.read_bytes())))
    with parts_of(path) as parts:
        give_up_past(parts, FIRST_MS + 2 * DAY_MS)
    assert not list(path.glob("streams/*/*.block"))
    with Store(path, workers=0) as store:
        store.push("rides", day(2), seq=9)


def test_a_user_level_stream_ends(tmp_path: Path) -> None:
    path = tmp_path / "store"
    policy = Policy(unit="user", epsilon=1, delta="1e-6")
    with open_store(path, policy=policy, user_column="driver", records_per_user=1) as store:
        store.push("rides", day(0), seq=0)
    with parts_of(path) as parts:
        (told,) = give_up_past(parts, FIRST_MS + DAY_MS)
    assert told.goes_on_ms is None
    with Store(path, workers=0) as store, pytest.raises(Refused, match="STREAM_ENDED"):
        store.push("rides", day(5), seq=1)


def test_a_stream_that_the_copy_does_not_know_leaves_nothing_to_read(tmp_path: Path) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    open_store(path).close()
    copied(path, copy)
    with Store(path, workers=0) as store:
        later = store.stream("rides").as_json() | {"name": "later"}
        store.create_stream(type(store.stream("rides")).from_json(later))
        store.push("later", day(0), seq=0)
    for name in ("meta.db", "ledger.db"):
        for old in path.glob(f"{name}-*"):
            old.unlink()
        shutil.copyfile(copy / name, path / name)
    with parts_of(path) as parts:
        told = give_up_past(parts, FIRST_MS + DAY_MS)
    assert {one.stream for one in told} == {"later", "rides"}
    assert not list(path.glob("streams/later/*.block"))


@pytest.mark.parametrize("step", ["_retire", "_close_books", "end_restoring"])
def test_an_interrupted_restore_keeps_the_store_shut_until_it_is_done(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "store"
    lived(path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, parts_of(path) as parts:
        patch.setattr(parts.head_guard if step == "end_restoring" else restoring, step, die)
        with pytest.raises(KeyboardInterrupt):
            give_up_past(parts, FIRST_MS + 2 * DAY_MS)
    with pytest.raises(Refused, match="RESTORE_UNFINISHED"):
        Store(path, workers=0)
    with parts_of(path) as parts:
        give_up_past(parts, FIRST_MS + 2 * DAY_MS)
    with Store(path, workers=0) as store:
        assert all(one.retired for one in store.budget("rides").blocks)
        assert store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS) == []


def test_a_window_that_was_under_way_is_given_up_with_its_blocks(tmp_path: Path) -> None:
    """The copy is made when the blocks of the window are counted and nothing is trained: they live,
    and have budget left.
    """
    path, copy, new = tmp_path / "store", tmp_path / "copy", tmp_path / "new"
    lived(path)
    with Store(path, workers=0) as store:

        def copy_then(step: str, moment: str) -> None:
            if (step, moment) == ("sealed", "written"):
                make_backup(store.parts, copy)

        store.parts.observers.add(copy_then)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    put_back(copy, new, path / KEY)
    with parts_of(new) as parts:
        living = parts.ledger.blocks("rides", retired=False)
        assert len(living) == 2
        assert all(parts.ledger.left("rides", [block]) > 0 for block in living)
        (told,) = give_up_past(parts, FIRST_MS + 2 * DAY_MS)
        assert (told.blocks_retired, told.windows_lost) == (2, 1)
        assert parts.ledger.blocks("rides", retired=False) == []
    with Store(new, workers=0) as store:
        assert [one.status for one in store.cycles("rides")] == ["DONE", "GIVEN_UP"]
        assert store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS) == []


def test_raw_data_that_comes_back_after_the_restore_is_not_charged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody puts an old copy of the directory back as well, against the guide: the ledger itself
    refuses its blocks.
    """
    lost, copy, path = tmp_path / "lost", tmp_path / "copy", tmp_path / "new"
    lived(lost)
    copied(lost, copy)
    for name in ("streams", "keys"):
        shutil.copytree(lost / name, tmp_path / "old" / name)
    with Store(lost, workers=0) as store:
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    put_back(copy, path, lost / KEY)
    with parts_of(path) as parts:
        give_up_past(parts, FIRST_MS + 3 * DAY_MS)
    before = len(history(path))
    for name in ("streams", "keys"):
        shutil.rmtree(path / name)
        shutil.copytree(tmp_path / "old" / name, path / name)
    with Store(path, workers=0) as store, pytest.raises(StreamDamaged, match="STREAM_SET_BACK"):
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    monkeypatch.setattr(Parts, "_require_newest", lambda _self, _stream: None)
    with Store(path, workers=0) as store, pytest.raises(Refused, match="BLOCK_RETIRED"):
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
    assert charged(history(path), before) == set()


def test_metadata_that_are_older_than_the_ledger_do_not_use_its_numbers_again(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "store", tmp_path / "copy"
    lived(path)
    copied(path, copy)
    with Store(path, workers=0) as store:
        for number in (1, 2, 3):
            store.push("rides", day(number), seq=number + 10)
            store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    for old in path.glob("meta.db*"):
        old.unlink()
    shutil.copyfile(copy / "meta.db", path / "meta.db")
    with parts_of(path) as parts:
        give_up_past(parts, FIRST_MS + 4 * DAY_MS)
    with Store(path, workers=0) as store:
        store.push("rides", day(4), seq=99)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 5 * DAY_MS)
        assert abs(cycle.dp_records - 4000) < 300
        assert cycle.trained[0].outcome == "PUBLISHED"


class TestBackups:
    def test_they_hold_neither_raw_data_nor_keys(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "store", tmp_path / "copy"
        lived(path)
        copied(path, copy)
        files = [one for one in copy.rglob("*") if one.is_file()]
        assert {one.name for one in files if one.parent == copy} == {
            "backup.json",
            "ledger.db",
            "meta.db",
        }
        secrets = [one.read_bytes() for one in path.rglob("*.key")]
        assert len(secrets) >= 3
        for one in files:
            body = one.read_bytes()
            assert CANARY.encode() not in body
            assert not any(secret in body for secret in secrets), one

    def test_the_ledger_is_never_older_than_the_metadata(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A window runs between any two copies; every state that is in the metadata has its charge
        in the ledger.
        """
        path, copy = tmp_path / "store", tmp_path / "copy"
        lived(path)
        copy_database = backup._copy_database
        with Store(path, workers=0) as store:
            number = 1

            def meanwhile(source: Path, target: Path) -> None:
                nonlocal number
                copy_database(source, target)
                store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
                number += 1
                store.push("rides", day(number), seq=number)

            monkeypatch.setattr(backup, "_copy_database", meanwhile)
            make_backup(store.parts, copy)
        shutil.copy2(path / KEY, copy / KEY)
        keys = [str(entry["key"]) for entry in history(copy) if "key" in entry]
        with Metadata.open(copy / "meta.db") as metadata, metadata.read() as tx:
            (ptk,) = tx.ptks.list("rides")
            cycles = [one.cycle for one in tx.states.list(ptk.id)]
        assert cycles == [1]
        trained = [key for key in keys if key.endswith("/hour-speed")]
        assert {f"cycle-{cycle}/hour-speed" for cycle in cycles} <= set(trained)
        assert len(trained) > len(cycles)

    def test_only_whole_ones_are_put_back_and_nothing_is_overwritten(self, tmp_path: Path) -> None:
        path, copy = tmp_path / "store", tmp_path / "copy"
        lived(path)
        copied(path, copy)
        assert read_backup(copy)[0].states == 1
        with parts_of(path) as parts, pytest.raises(InvalidInput, match="BACKUP_EXISTS"):
            make_backup(parts, copy)
        with pytest.raises(InvalidInput, match="STORE_EXISTS"):
            put_back_databases(copy, path)
        (copy / "ledger.db").unlink()
        with pytest.raises(InvalidInput, match="BACKUP_INVALID"):
            put_back_databases(copy, tmp_path / "new")
        (copy / "backup.json").unlink()
        with pytest.raises(InvalidInput, match="BACKUP_INVALID"):
            put_back_databases(copy, tmp_path / "new")
        assert not (tmp_path / "new").exists()
