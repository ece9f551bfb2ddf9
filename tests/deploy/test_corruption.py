"""Every file of a store, damaged in every way a disk knows: it is noticed, or nothing is lost by
it.

Noticed: the store is not opened, the doctor has an ERROR, or what needs the file is refused, each
with a reason of ours; an error that is not ours fails the test. Harmless: all records are counted
in their windows, the ledger goes on from what it was, and every state can be read. Which damage may
be harmless is listed; all other must be noticed.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ptklib.errors import SageError
from ptklib.ledger.policy import Policy
from ptklib.ledger.state import Entry
from ptkstore import Store
from ptkstore.ledger import Ledger
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

ROWS = 1200
SEALED, OPEN = 2, 3


def _flip(place: float) -> Callable[[bytes], bytes]:
    def flipped(body: bytes) -> bytes:
        changed = bytearray(body)
        changed[min(len(body) - 1, int(len(body) * place))] ^= 1
        return bytes(changed)

    return flipped


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "first byte": _flip(0),
    "middle byte": _flip(0.5),
    "last byte": _flip(1),
    "cut to half": lambda body: body[: len(body) // 2],
    "cut to nothing": lambda _body: b"",
}
WAYS = (*KINDS, "deleted", "older")


def newest(path: Path, pattern: str) -> Path:
    return sorted(path.glob(pattern))[-1]


def of_day(number: int) -> str:
    return f"2026-01-0{number + 1}T00:00Z"


PARTS: dict[str, Callable[[Path], Path]] = {
    "open block": lambda path: path / f"streams/rides/{of_day(OPEN)}.block",
    "key of an open block": lambda path: path / f"keys/rides/{of_day(OPEN)}.key",
    "sealed block": lambda path: path / f"streams/rides/{of_day(SEALED)}.block",
    "key of a sealed block": lambda path: path / f"keys/rides/{of_day(SEALED)}.key",
    "acknowledged": lambda path: path / "streams/rides/acknowledged",
    "key of acknowledged": lambda path: path / "keys/rides/acknowledged",
    "progress": lambda path: path / "streams/rides/progress.json",
    "specification": lambda path: path / "streams/rides/stream.json",
    "key of tags": lambda path: path / "keys/rides/tags.key",
    "metadata": lambda path: path / "meta.db",
    "ledger": lambda path: path / "ledger.db",
    "key of the ledger": lambda path: path / "ledger.db.key",
    "witness of the directory": lambda path: path / "ledger.head",
    "witness of the raw data": lambda path: path / "streams/.ledger.head",
    "witness of the lake": lambda path: newest(path, "lake/witness/*.json"),
    "binding": lambda path: path / "vault.ledger",
    "manifest of a state": lambda path: newest(path, "lake/sha256/*/*.json"),
    "arrays of a state": lambda path: newest(path, "lake/sha256/*/*.safetensors"),
}
# Never changed once they are made: an old copy is what is there.
SAME = {
    "key of an open block",
    "key of a sealed block",
    "key of acknowledged",
    "specification",
    "key of tags",
    "key of the ledger",
    "binding",
    "manifest of a state",
    "arrays of a state",
}
HARMLESS = {
    # The list is whole up to a record that may be the newest, or its key is gone and it is made
    # anew from what is there.
    ("acknowledged", "last byte"),
    ("acknowledged", "middle byte"),
    ("acknowledged", "older"),
    ("key of acknowledged", "deleted"),
    # The metadata has it, too, and it is written anew.
    *(("specification", way) for way in ("middle byte", "deleted")),
    # SQLite has bytes that nobody reads; a bit of a text is another text, which neither records nor
    # budget depend on.
    *((part, way) for part in ("metadata", "ledger") for way in ("middle byte", "last byte")),
    *((part, "older") for part in SAME),
}


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store with two windows done, one that is sealed and not counted, and one that is open; and
    as it was before.
    """
    path = tmp_path_factory.mktemp("corruption")
    old, new = path / "old", path / "new"
    with open_store(new, block_seconds=86_400) as store:
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.3)
        for number in range(4):
            store.push("rides", day(number, ROWS).slice(0, ROWS // 2), seq=number)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
    shutil.copytree(new, old)
    with Store(new, workers=0) as store:
        for number in range(1, 4):
            store.push("rides", day(number, ROWS).slice(ROWS // 2), seq=10 + number)
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        store.push("rides", day(2, ROWS).slice(0, 100), seq=20)
        store.push("rides", day(3, ROWS).slice(0, 100), seq=21)
        store.parts.writer("rides").seal_due(FIRST_MS + 3 * DAY_MS)
        store.push("rides", day(3, ROWS).slice(0, 100), seq=22)
    return old, new


def damage(lives: tuple[Path, Path], path: Path, part: str, way: str) -> None:
    shutil.copytree(lives[1], path)
    file = PARTS[part](path)
    assert file.exists()
    if way == "deleted":
        file.unlink()
    elif way == "older":
        before = lives[0] / file.relative_to(path)
        if not before.exists():
            before = PARTS[part](lives[0])
        if part not in SAME:
            assert before.read_bytes() != file.read_bytes()
        shutil.copy2(before, file)
    else:
        file.write_bytes(KINDS[way](file.read_bytes()))


def history(path: Path) -> list[Entry]:
    with Ledger.open(path / "ledger.db") as ledger:
        return list(ledger.history())


def notice(path: Path) -> list[str]:
    """Open, examine, count what is sealed and what was open, and read every state: what was wrong
    on the way.
    """
    found = []
    try:
        with Store(path, workers=0) as store:
            found += [one.detail for one in store.doctor() if one.level == "ERROR"]
            cycles = [
                cycle
                for number in (3, 4)
                for cycle in store.run("rides", until_ms=FIRST_MS + number * DAY_MS)
            ]
            for version in (1, 2):
                store.get_state(f"hour-speed@v{version}")
            if not found:
                assert [
                    abs(one.dp_records - rows) < 90
                    for one, rows in zip(cycles, (1300, 1400), strict=True)
                ] == [True] * 2
    except SageError as error:
        found.append(f"{error.reason}: {error.message}")
    return found


CASES = [(part, way) for part in PARTS for way in WAYS]


@pytest.mark.parametrize(("part", "way"), CASES, ids=lambda value: str(value).replace(" ", "-"))
def test_damage_is_noticed_or_harmless(
    lives: tuple[Path, Path], tmp_path: Path, part: str, way: str
) -> None:
    path = tmp_path / "store"
    damage(lives, path, part, way)
    found = notice(path)
    if not found:
        assert (part, way) in HARMLESS
        book = history(lives[1])
        assert history(path)[: len(book)] == book


def test_there_are_more_than_a_hundred_cases() -> None:
    assert len(CASES) > 100
    assert len([case for case in CASES if case not in HARMLESS]) > 100


def test_without_damage_nothing_is_noticed(lives: tuple[Path, Path], tmp_path: Path) -> None:
    shutil.copytree(lives[1], tmp_path / "store")
    assert notice(tmp_path / "store") == []


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A stream of users who joined in four batches; and as it was after the first."""
    path = tmp_path_factory.mktemp("users")
    old, new = path / "old", path / "new"
    policy = Policy(unit="user", epsilon=1, delta="1e-6")
    changes = {
        "policy": policy,
        "user_column": "driver",
        "records_per_user": 1,
        "block_seconds": 86_400,
    }
    with open_store(new, **changes) as store:
        store.push("rides", day(0, ROWS).slice(0, 100), seq=0)
    shutil.copytree(new, old)
    with Store(new, workers=0) as store:
        for number in range(1, 4):
            store.push("rides", day(0, ROWS).slice(100 * number, 100), seq=number)
    return old, new


class TestUsers:
    """At user level: who has joined must not be forgotten, or they would join, and be charged,
    twice.
    """

    MEMBERS: ClassVar[dict[str, Callable[[Path], Path]]] = {
        "members": lambda path: newest(path, "streams/rides/members-*.log"),
        "witness of members": lambda path: path / "keys/rides/members.witness",
    }
    # The second half of the log is room for what is to come. Of the two slots of the witness one is
    # enough; where it is the older one, whole records behind its end are taken all the same.
    MAY_BE_HARMLESS: ClassVar[set[tuple[str, str]]] = {
        *(("members", way) for way in ("middle byte", "last byte", "cut to half")),
        *(("witness of members", way) for way in (*KINDS, "older") if way != "cut to nothing"),
    }

    @pytest.mark.parametrize("part", ["members", "witness of members"])
    @pytest.mark.parametrize("way", WAYS)
    def test_nobody_joins_twice(
        self, users: tuple[Path, Path], tmp_path: Path, part: str, way: str
    ) -> None:
        path = tmp_path / "store"
        shutil.copytree(users[1], path)
        file = self.MEMBERS[part](path)
        if way == "deleted":
            file.unlink()
        elif way == "older":
            shutil.copy2(self.MEMBERS[part](users[0]), file)
        else:
            file.write_bytes(KINDS[way](file.read_bytes()))
        found = []
        try:
            with Store(path, workers=0) as store:
                found += [one.detail for one in store.doctor() if one.level == "ERROR"]
                # The same users a day later: all are known, so none of these records reaches a
                # block of that day.
                store.push("rides", _a_day_later(day(0, ROWS).slice(0, 400)), seq=9)
                if not found:
                    assert not (path / "streams/rides/users-2026-01-02T00:00Z.block").stat().st_size
        except SageError as error:
            found.append(error.reason)
        assert found or (part, way) in self.MAY_BE_HARMLESS


def _a_day_later(rows: pa.Table) -> pa.Table:
    later = pc.add(rows["at"].cast(pa.int64()), DAY_MS).cast(pa.timestamp("ms"))
    return rows.set_column(0, "at", later)
