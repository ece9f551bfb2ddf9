"""A lake in a directory: the suite, damage on disk, and a crash between any two file operations."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptkstore import private_files
from ptkstore.lake import (
    DirectoryLake,
    LakeUnavailable,
    StateDamaged,
    StateMissing,
    digest_of,
    directory,
)
from tests.adapters.lake_suite import LakeSuite

ROOT = Path(__file__).parents[2]
OPERATIONS = {"close", "fsync", "mkdir", "open", "replace", "unlink", "utime", "write"}


@pytest.fixture
def lake(tmp_path: Path) -> DirectoryLake:
    return DirectoryLake(tmp_path / "lake")


class TestDirectory(LakeSuite):
    """Everything any backend must do."""


class Killed(BaseException):
    """Stands for kill -9."""


class DyingOs:
    """``os`` until ``alive`` file operations were done; from then on every one fails, as nothing
    can be done when dead.
    """

    def __init__(self, alive: int) -> None:
        self.alive = alive
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(os, name)
        if name not in OPERATIONS:
            return found

        def operation(*arguments: Any, **named: Any) -> Any:
            if len(self.done) >= self.alive:
                if name == "close":
                    os.close(*arguments)  # the system closes the files of the dead
                raise Killed
            self.done.append(name)
            if name == "write":
                arguments = (arguments[0], bytes(arguments[1])[:3])
            return found(*arguments, **named)

        return operation


def files(path: Path, suffix: str) -> list[Path]:
    return sorted((path / "lake" / "sha256").rglob("*" + suffix))


def replace_os(monkeypatch: pytest.MonkeyPatch, instead: Any) -> None:
    """For everything that the lake does to its files."""
    for module in (directory, private_files):
        monkeypatch.setattr(module, "os", instead)


def operations_of_a_put(path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lake = DirectoryLake(path)
    counting = DyingOs(10**9)
    replace_os(monkeypatch, counting)
    lake.put(b"arrays!", b"{1}")
    monkeypatch.undo()
    return counting.done


def test_a_put_syncs_before_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = [
        one
        for one in operations_of_a_put(tmp_path, monkeypatch)
        if one in {"fsync", "replace", "mkdir"}
    ]
    # the new directory; the two files; the arrays, the manifest and their directory
    assert done == ["mkdir", "fsync", "fsync", "fsync", "replace", "replace", "fsync"]


@pytest.mark.parametrize("suffix", [".safetensors", ".json"])
def test_half_a_state_is_not_there_and_can_be_put_again(tmp_path: Path, suffix: str) -> None:
    """Both names go to the disk with one sync of the directory: a cut of the power may keep either
    alone.
    """
    arrays, manifest = b"arrays!", b"{1}"
    lake = DirectoryLake(tmp_path / "lake")
    digest = lake.put(arrays, manifest)
    for path in files(tmp_path, suffix):
        path.unlink()
    assert not lake.exists(digest)
    assert lake.list() == ()
    with pytest.raises((StateMissing, StateDamaged)):
        lake.get(digest)
    assert lake.put(arrays, manifest) == digest
    assert lake.get(digest) == (arrays, manifest)


def test_a_put_killed_anywhere_shows_nothing_or_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays, manifest = b"arrays!", b"{1}"
    digest = digest_of(arrays, manifest)
    total = len(operations_of_a_put(tmp_path / "count", monkeypatch))
    seen = set()
    for alive in range(total):
        path = tmp_path / str(alive)
        lake = DirectoryLake(path / "lake")
        other = lake.put(b"other", b"{}")
        replace_os(monkeypatch, DyingOs(alive))
        with pytest.raises(Killed):
            lake.put(arrays, manifest)
        monkeypatch.undo()
        lake = DirectoryLake(path / "lake")
        there = lake.exists(digest)
        seen.add(there)
        assert set(lake.list()) == ({other, digest} if there else {other}), alive
        if there:
            assert lake.get(digest) == (arrays, manifest), alive
        else:
            with pytest.raises(StateMissing):
                lake.get(digest)
        assert lake.put(arrays, manifest) == digest, alive
        assert lake.get(digest) == (arrays, manifest), alive
        assert lake.delete_unreferenced([other, digest], grace_seconds=-1) == (), alive
        assert list((path / "lake" / "tmp").iterdir()) == [], alive
    assert total > 15
    assert seen == {False, True}


def test_a_sweep_killed_anywhere_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive, finished = 0, False
    while not finished:
        lake = DirectoryLake(tmp_path / str(alive) / "lake")
        kept, gone = lake.put(b"kept", b"{}"), lake.put(b"gone", b"{}")
        replace_os(monkeypatch, DyingOs(alive))
        try:
            lake.delete_unreferenced([kept], grace_seconds=-1)
            finished = True
        except Killed:
            pass
        monkeypatch.undo()
        if lake.exists(gone):
            assert lake.get(gone) == (b"gone", b"{}"), alive
        else:
            with pytest.raises(StateMissing):
                lake.get(gone)
        lake.delete_unreferenced([kept], grace_seconds=-1)
        assert lake.list() == (kept,)
        assert [path.stem for path in files(tmp_path / str(alive), ".*")] == [kept, kept]
        alive += 1
    assert alive > 5


def test_a_full_disk_leaves_nothing_behind(
    lake: DirectoryLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    full_os = DyingOs(10**9)
    full_os.__dict__["write"] = full
    replace_os(monkeypatch, full_os)
    with pytest.raises(LakeUnavailable, match="No space left"):
        lake.put(b"a", b"{}")
    monkeypatch.undo()
    assert list((tmp_path / "lake" / "tmp").iterdir()) == []
    assert lake.list() == ()


@pytest.mark.parametrize("suffix", [".json", ".safetensors"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "grow"])
def test_wrong_bytes_are_never_returned_and_a_put_mends_them(
    lake: DirectoryLake, tmp_path: Path, suffix: str, damage: str
) -> None:
    digest = lake.put(b"arrays", b"manifest")
    (path,) = files(tmp_path, suffix)
    data = path.read_bytes()
    flipped = bytes([data[0] ^ 1]) + data[1:]
    path.write_bytes(
        {"flip": flipped, "cut": data[:-1], "empty": b"", "grow": data + b"\0"}[damage]
    )
    with pytest.raises(StateDamaged, match="STATE_DAMAGED"):
        lake.get(digest)
    assert lake.put(b"arrays", b"manifest") == digest
    assert lake.get(digest) == (b"arrays", b"manifest")


def test_arrays_that_are_gone_are_damage_and_a_state_under_a_wrong_name_too(
    lake: DirectoryLake, tmp_path: Path
) -> None:
    digest, other = lake.put(b"arrays", b"manifest"), lake.put(b"other", b"manifest")
    for suffix in (".json", ".safetensors"):
        right, wrong = (
            next(path for path in files(tmp_path, suffix) if path.stem == one)
            for one in (digest, other)
        )
        wrong.write_bytes(right.read_bytes())
    with pytest.raises(StateDamaged):
        lake.get(other)
    next(path for path in files(tmp_path, ".safetensors") if path.stem == digest).unlink()
    with pytest.raises(StateDamaged):
        lake.get(digest)
    assert not lake.exists(digest)
    assert digest not in lake.list()


def test_putting_again_makes_a_state_young(lake: DirectoryLake, tmp_path: Path) -> None:
    again, old = lake.put(b"again", b"{}"), lake.put(b"old", b"{}")
    for path in (tmp_path / "lake" / "sha256").rglob("*.*"):
        os.utime(path, (1, 1))
    lake.put(b"again", b"{}")
    assert lake.delete_unreferenced([]) == (old,)
    assert lake.list() == (again,)


def test_the_layout_is_as_stated(lake: DirectoryLake, tmp_path: Path) -> None:
    digest = lake.put(b"arrays", b"manifest")
    place = tmp_path / "lake" / "sha256" / digest[:2]
    assert (place / f"{digest}.safetensors").read_bytes() == b"arrays"
    assert (place / f"{digest}.json").read_bytes() == b"manifest"


def test_a_lake_where_none_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeUnavailable, match="LAKE_UNAVAILABLE"):
        DirectoryLake(tmp_path / "file")


def test_two_processes_put_while_a_third_sweeps(lake: DirectoryLake, tmp_path: Path) -> None:
    code = (
        "import sys; from ptkstore.lake import DirectoryLake\n"
        "lake = DirectoryLake(sys.argv[1])\n"
        "for n in range(60):\n"
        "    arrays = bytes([n % 5]) * 100_000\n"
        "    lake.put(arrays, b'{}')\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "lake")]
    writers = [subprocess.Popen(command, cwd=ROOT) for _ in range(2)]
    try:
        sweeps = 0
        while any(writer.poll() is None for writer in writers):
            # With no grace at all: a sweep still never takes away what a put is just writing.
            lake.delete_unreferenced([], grace_seconds=-1)
            sweeps += 1
        assert [writer.wait(60) for writer in writers] == [0, 0]
        assert sweeps > 0
    finally:
        for writer in writers:
            writer.kill()
            writer.wait()
    lake.delete_unreferenced([], grace_seconds=-1)
    assert [path for path in (tmp_path / "lake").rglob("*") if path.is_file()] == []
