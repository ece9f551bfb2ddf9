"""A PTK that is trained in a worker process can read its records and code, and nothing of the store."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from ptkstore import Store
from ptkstore.engine.safekeeping import doctor
from ptkstore.workers import confinement
from tests.engine.plugins import installed
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec

pytestmark = pytest.mark.skipif(not confinement.confinement(), reason="this system has no Landlock")

# Tries all sorts of things and tells by its failure or success which of them worked: 1 for each, in the noiseless total.
DEED = """
import glob, json, os, socket
store, port = self.path, int(self.path.rsplit("#", 1)[1])
store = store.rsplit("#", 1)[0]
tries = {
    "a key": lambda: open(glob.glob(store + "/keys/*/*.key")[0], "rb").read(),
    "a key by its name": lambda: open(store + "/keys/rides/tags.key", "rb").read(),
    "the ledger": lambda: open(store + "/ledger.db", "rb").read(),
    "the key of the ledger": lambda: open(store + "/ledger.db.key", "rb").read(),
    "the metadata": lambda: open(store + "/meta.db", "rb").read(),
    "the memory of the engine": lambda: open(f"/proc/{os.getppid()}/mem", "rb").read(1),
    "the variables of the engine": lambda: open(f"/proc/{os.getppid()}/environ", "rb").read(),
    "a password": lambda: os.environ["SAGE__METADATA__URL"],
    "a file in the store": lambda: open(store + "/streams/rides/note", "wb"),
    "a file elsewhere": lambda: open(store + "/../note", "wb"),
    "a file in /tmp": lambda: open("/tmp/sage-confinement-note", "wb"),
    "a connection": lambda: socket.create_connection(("127.0.0.1", port), 2),
    "a signal": lambda: os.kill(os.getppid(), 0),
    "code": lambda: open(json.__file__).read(),
    "an encrypted block": lambda: open(glob.glob(store + "/streams/rides/*.block")[0], "rb").read(),
}
worked = []
for name, one in tries.items():
    try:
        one()
        worked.append(name)
    except OSError:
        pass
    except LookupError:
        pass
print("canary: " + str(listed[0].to_pylist()[:3]))
os.write(2, b"canary on stderr")
# The only way out that is left: an answer. (Its training is not private, which nothing here can know.)
raise_at = {name: place for place, name in enumerate(tries)}
self.__dict__["told"] = sum(1 << raise_at[name] for name in worked)
"""
NAMES = (
    "a key",
    "a key by its name",
    "the ledger",
    "the key of the ledger",
    "the metadata",
    "the memory of the engine",
    "the variables of the engine",
    "a password",
    "a file in the store",
    "a file elsewhere",
    "a file in /tmp",
    "a connection",
    "a signal",
    "code",
    "an encrypted block",
)


def attempts(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a PTK could do in a worker process, by name."""
    monkeypatch.setenv("SAGE__METADATA__URL", "postgresql://sage:secret@127.0.0.1/none")
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        installed(path / "package", monkeypatch, DEED),
        Store(path / "store", workers=1) as store,
    ):
        store.create_stream(spec())
        there = f"{path / 'store'}#{server.getsockname()[1]}"
        bounds = {"column": "speed", "lower": 0.0, "upper": 60.0, "path": there}
        assert (
            store.register("spy", stream="rides", kind="other", config=bounds, target=0.2).status
            == "ACTIVE"
        )
        store.push("rides", day(0))
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert [line.outcome for line in cycle.trained] == ["PUBLISHED"], cycle.trained
        told = int(store.get_state("spy").arrays["count"][0])
    return [name for place, name in enumerate(NAMES) if told >> place & 1]


def test_a_ptk_can_read_neither_keys_nor_books_and_write_or_connect_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    worked = attempts(tmp_path, monkeypatch)
    allowed = {"code", "an encrypted block"}
    # What older systems cannot forbid.
    version = confinement.confinement()
    allowed |= {"a connection"} if version < 4 else set()
    allowed |= {"a signal"} if version < 6 else set()
    assert set(worked) <= allowed, worked
    assert {"code", "an encrypted block"} <= set(worked)
    assert not (tmp_path / "note").exists()
    # What it printed went nowhere.
    out, err = capfd.readouterr()
    assert "canary" not in out + err


def test_without_confinement_it_could(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So that the test above can fail: the same spy in a pool that knows of no store to be kept from.
    from ptkstore.engine import parts as parts_module
    from ptkstore.workers.processes import ProcessWorkers

    monkeypatch.setattr(
        parts_module,
        "ProcessWorkers",
        lambda workers, memory_bytes, _path: ProcessWorkers(workers, memory_bytes),
    )
    assert {"a key", "the ledger", "a file elsewhere", "a connection"} <= set(
        attempts(tmp_path, monkeypatch)
    )


def test_a_store_among_code_is_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # The directory of the store's directory is where modules are looked for, as it is for a script beside its store.
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside.py").write_text("")
    assert "a key" not in attempts(tmp_path, monkeypatch)


def test_workers_that_were_warm_before_there_was_a_stream_can_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Store("store", workers=1) as store:
        store.parts.workers.warm()
        store.create_stream(spec())
        store.register("speed", stream="rides", kind="statistics", config=config(), target=0.2)
        store.push("rides", day(0))
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert [line.outcome for line in cycle.trained] == ["PUBLISHED"]


def test_what_is_handed_over_holds_the_keys_of_open_blocks_alone(tmp_path: Path) -> None:
    from ptklib.ledger.slices import Slice, TagRange
    from ptklib.privacy.costs import PureCost
    from ptkstore.streams.reading.opened import spend_and_open

    blocks = ("2026-01-01T00:00Z", "2026-01-01T12:00Z")
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec())
        store.push("rides", day(0))
        parts = store.parts
        parts.writer("rides").seal_due(FIRST_MS + DAY_MS)
        parts.ledger.add_blocks("rides", blocks)
        grant = parts.ledger.reserve(
            "rides", [Slice(blocks[:1], TagRange.of_shares(0, 1))], PureCost(epsilon="0.1")
        )
        handed = spend_and_open(parts.path, spec(), [grant], parts.ledger).for_worker()
        assert list(handed.keys or {}) == [blocks[0]]
        assert sum(len(one.batch) for one in handed.read()) > 0
        key = next(iter((handed.keys or {}).values()))
        assert key.hex() not in repr(handed)
        assert repr(key) not in repr(handed)


def test_the_doctor_says_where_a_system_cannot_confine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "confinement", lambda: 0)
    for workers, wanted in ((0, []), (1, ["WARNING"])):
        with Store(tmp_path, workers=workers) as store:
            assert [one.level for one in store.doctor() if one.what == "workers"] == wanted
