from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams import BlockRefused, StreamDamaged, StreamWriter
from ptkstore.streams.blocks.vault import Vault
from tests.streams import rides
from tests.streams.rides import BASE_MS, FIRST, HOUR_MS, SECOND, Store, batch

CANARY = "canary-5f1c9a7e-in-the-mine"
NUMBER = 727_374_757_677


def everything(path: Path) -> bytes:
    """All bytes and names below a directory."""
    files = [one for one in sorted(path.rglob("*")) if one.is_file()]
    return b"".join(str(one).encode() + b"\0" + one.read_bytes() for one in files)


@pytest.mark.parametrize(
    "spec",
    [rides.spec(), rides.spec(late="quarantine"), rides.user_spec()],
    ids=["event", "late", "user"],
)
def test_nothing_is_ever_on_disk_in_clear(tmp_path: Path, spec: StreamSpec) -> None:
    store = Store(tmp_path, spec)
    clear = batch([NUMBER], note=CANARY).serialize().to_pybytes()
    needles = [
        CANARY.encode(),
        CANARY[:9].encode(),
        NUMBER.to_bytes(8, "little"),
        str(NUMBER).encode(),
    ]
    assert all(one in clear + str(NUMBER).encode() for one in needles), "the search would find them"
    with store.ledger, store.writer() as writer:
        writer.append(batch([NUMBER] * 3, note=CANARY, hours=[0, 1, 2]), producer="p", seq=1)
        for hours in range(1, 4):
            assert not any(one in everything(tmp_path) for one in needles)
            writer.seal_due(BASE_MS + hours * HOUR_MS)
            writer.append(batch([NUMBER], note=CANARY), producer="p", seq=1 + hours)
        assert NUMBER in store.whos(writer.sealed())
        assert not any(one in everything(tmp_path) for one in needles)


def test_keys_and_files_are_for_the_owner_only(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
    for one in [*(store.path / "keys").rglob("*"), *(store.path / "streams/rides").rglob("*")]:
        assert not stat.S_IMODE(one.stat().st_mode) & 0o077, one


def test_every_block_has_its_own_key(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
    keys = [one.read_bytes() for one in (store.path / "keys/rides").glob("*.key")]
    assert len(set(keys)) == 3
    assert all(len(one) == 32 for one in keys)


def test_expiry_leaves_nothing_that_could_open_a_kept_copy(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        store.seal_all(writer, 2)
        path, key_path = (
            store.path / f"streams/rides/{FIRST}.block",
            store.path / f"keys/rides/{FIRST}.key",
        )
        copy, key = path.read_bytes(), key_path.read_bytes()
        writer.expire(FIRST)
        assert key not in everything(store.path)
        assert copy not in everything(store.path)
        assert writer.sealed() == [SECOND]
        # Somebody kept the file. No key of the store opens it.
        path.write_bytes(copy)
        for other in (store.path / "keys/rides").glob("*.key"):
            key_path.write_bytes(other.read_bytes())
            key_path.chmod(0o600)
            with pytest.raises(StreamDamaged) as error:
                store.whos([FIRST])
            assert error.value.reason == "FRAME_DAMAGED"


def test_the_key_is_overwritten_before_it_is_unlinked(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        store.seal_all(writer, 1)
        # A second name for the same file shows what was in it when the first was removed.
        other = store.path / "kept"
        os.link(store.path / f"keys/rides/{FIRST}.key", other)
        writer.expire(FIRST)
        assert other.read_bytes() == bytes(32)


LEFT = ("nothing yet", "key overwritten", "key gone", "file gone")


def leave(store: Store, left: str) -> None:
    leave_in(
        store.path / f"streams/rides/{FIRST}.block", store.path / f"keys/rides/{FIRST}.key", left
    )


def leave_in(path: Path, key_path: Path, left: str) -> None:
    if left == "key overwritten":
        key_path.write_bytes(bytes(32))
    elif left == "key gone":
        key_path.unlink()
    elif left == "file gone":
        path.unlink()


@pytest.mark.parametrize("left", LEFT)
def test_expiry_that_was_interrupted_is_finished_at_the_next_start(
    store: Store, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_vault: Vault, *_blocks: str) -> None:
        leave(store, left)
        raise KeyboardInterrupt

    path, key_path = (
        store.path / f"streams/rides/{FIRST}.block",
        store.path / f"keys/rides/{FIRST}.key",
    )
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        store.seal_all(writer, 2)
        with monkeypatch.context() as patch:
            patch.setattr(Vault, "destroy", killed)
            with pytest.raises(KeyboardInterrupt):
                writer.expire(FIRST)
    if left != "nothing yet":
        with pytest.raises(BlockRefused) as error:
            store.whos([FIRST])
        assert error.value.reason == "BLOCK_EXPIRED"
    with store.writer() as writer:
        assert not path.exists()
        assert not key_path.exists()
        assert writer.sealed() == [SECOND]


@pytest.mark.parametrize("hours", [0, 2], ids=["open", "sealed"])
@pytest.mark.parametrize("left", LEFT[1:])
def test_what_is_lost_without_a_note_of_its_destruction_stops_the_writer(
    store: Store, left: str, hours: int
) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        store.seal_all(writer, hours)
    leave(store, left)
    before = everything(store.path)
    with pytest.raises(StreamDamaged) as error:
        store.writer()
    assert error.value.reason == "STREAM_DAMAGED"
    assert everything(store.path) == before, "nothing was deleted or cut"


def test_a_key_directory_that_is_not_there_deletes_nothing(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
    keys = store.path / "keys"
    keys.rename(store.path / "unmounted")
    with pytest.raises(StreamDamaged) as error:
        store.writer()
    assert error.value.reason == "STREAM_KEYS_MISSING"
    for one in sorted(keys.rglob("*"), reverse=True):
        one.unlink() if one.is_file() else one.rmdir()
    keys.rmdir()
    (store.path / "unmounted").rename(keys)
    assert store.after_restart() == [1]


def test_a_key_left_without_a_file_is_not_used(tmp_path: Path) -> None:
    vault = Vault(tmp_path, "rides")
    vault.prepare()
    vault.make_key(FIRST)
    before = (tmp_path / f"keys/rides/{FIRST}.key").read_bytes()
    vault.make_key(FIRST)
    assert (tmp_path / f"keys/rides/{FIRST}.key").read_bytes() != before
    vault.collect()
    assert not (tmp_path / f"keys/rides/{FIRST}.key").exists()


@pytest.mark.parametrize("left", LEFT)
def test_only_what_cannot_be_opened_is_collected(tmp_path: Path, left: str) -> None:
    vault = Vault(tmp_path, "rides")
    vault.prepare()
    for block in (FIRST, SECOND):
        vault.make_key(block)
        vault.make_empty([block])
    path, key_path = vault.path(FIRST), vault.keys / f"{FIRST}.key"
    leave_in(path, key_path, left)
    assert vault.collect() == (left in ("key overwritten", "key gone"))
    kept = left == "nothing yet"
    assert (vault.holds(FIRST), path.exists(), key_path.exists()) == (kept, kept, kept)
    assert vault.holds(SECOND)
    assert vault.path(SECOND).exists()


def test_progress_that_is_damaged_stops_the_writer(store: Store) -> None:
    with store.writer() as writer:
        store.seal_all(writer, 1)
    (store.path / "streams/rides/progress.json").write_bytes(b'{"oldest_open": "x"}')
    with pytest.raises(StreamDamaged) as error:
        StreamWriter.open(store.path, store.spec)
    assert error.value.reason == "STREAM_DAMAGED"
