"""The list of what was acknowledged: after any life and any crash it says what was noted, but for
the last note at most.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptkstore.streams import StreamDamaged
from ptkstore.streams.blocks import acknowledged
from ptkstore.streams.blocks.acknowledged import Acknowledged, Extent, Known, forget, read_known
from ptkstore.streams.blocks.vault import Vault
from tests.streams.rides import BASE_MS, FIRST, HOUR_MS, Store, batch

TAGS = bytes(range(32))


@pytest.fixture
def vault(tmp_path: Path) -> Vault:
    made = Vault(tmp_path, "rides")
    made.prepare()
    return made


def begun(vault: Vault, tag_key: bytes = TAGS) -> Acknowledged:
    found = Acknowledged(vault, tag_key)
    found.known.sealed_before = found.known.sealed_before or 0
    found.begin()
    return found


def extent(number: int) -> Extent:
    return Extent(number, number.to_bytes(16, "big"))


def test_what_was_noted_is_read_again(vault: Vault) -> None:
    assert read_known(vault, TAGS) is None
    notes = begun(vault)
    notes.note({"a": extent(1), "b": extent(2)})
    notes.note({"a": extent(5)}, sealed_before=7)
    notes.destroying(["b"])
    # What is not closed is on its way to the disk, and can be read.
    assert read_known(vault, TAGS) == Known({"a": extent(5)}, {"b"}, 7)
    notes.destroyed()
    notes.close()
    again = Acknowledged(vault, TAGS)
    assert again.known == Known({"a": extent(5)}, {"b"}, 7), (
        "a destruction is finished by whoever comes next"
    )
    again.destroyed()
    again.begin()
    again.note({"b": extent(3)})
    again.close()
    assert read_known(vault, TAGS) == Known({"a": extent(5), "b": extent(3)}, set(), 7)


def test_it_does_not_grow_for_ever(vault: Vault, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acknowledged, "_LEAST_COMPACTED", 1 << 17)
    notes = begun(vault)
    sizes = set()
    for number in range(1, 8000):
        notes.note({f"block-{number % 7}": extent(number)})
        sizes.add((vault.files / "acknowledged").stat().st_size)
    assert max(sizes) <= (1 << 17) + (1 << 16)
    assert len(sizes) > 2
    notes.close()
    known = read_known(vault, TAGS)
    assert known is not None
    assert known.extents == {f"block-{number % 7}": extent(number) for number in range(7993, 8000)}


def test_a_destruction_is_noted_even_where_the_notes_are_put_together(
    vault: Vault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which note finds the file full is chance: it may be one that has to be there before files
    go.
    """
    monkeypatch.setattr(acknowledged, "_LEAST_COMPACTED", 1)
    monkeypatch.setattr(acknowledged, "_WASTE", 0)
    names = [f"block-{number}" for number in range(8000)]
    notes = begun(vault)
    notes.note({"a": extent(1), names[0]: extent(2)})
    notes.destroying(names)
    assert read_known(vault, TAGS) == Known({"a": extent(1)}, set(names), 0)


def test_a_note_that_was_cut_short_leaves_what_came_before(vault: Vault) -> None:
    path = vault.files / "acknowledged"
    notes = begun(vault)
    notes.note({"a": extent(1)})
    before = path.read_bytes()
    notes.note({"a": extent(2)})
    notes.close()
    after = path.read_bytes()
    changed = [place for place in range(len(after)) if before[place] != after[place]]
    for cut in range(changed[0], changed[-1] + 1):
        path.write_bytes(after[:cut] + before[cut:])
        known = read_known(vault, TAGS)
        assert known is not None
        assert known.extents == {"a": extent(1)}, cut


@pytest.mark.parametrize(
    "how", ["another key of tags", "another key", "gone", "empty", "shorter", "first record"]
)
def test_a_list_that_is_not_ours_is_damage(vault: Vault, how: str) -> None:
    begun(vault).close()
    path, key = vault.files / "acknowledged", vault.keys / "acknowledged"
    tags = bytes(32) if how == "another key of tags" else TAGS
    if how == "another key":
        key.write_bytes(bytes(32))
    elif how == "gone":
        path.unlink()
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "shorter":
        os.truncate(path, 1000)
    elif how == "first record":
        body = bytearray(path.read_bytes())
        body[10] ^= 1
        path.write_bytes(body)
    with pytest.raises(StreamDamaged, match="STREAM_DAMAGED"):
        read_known(vault, tags)
    forget(vault)
    assert read_known(vault, tags) is None


def test_a_crash_before_the_key_is_made_begins_again(vault: Vault) -> None:
    begun(vault).close()
    (vault.keys / "acknowledged").unlink()
    assert read_known(vault, TAGS) is None
    assert begun(vault).known == Known({}, set(), 0)


def test_a_stream_of_an_earlier_release_is_taken_as_it_is(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        writer.seal_due(BASE_MS + HOUR_MS)
        writer.append(batch([3], hours=1), producer="p", seq=2)
    vault = Vault(store.path, "rides")
    forget(vault)
    with store.writer() as writer:
        assert not writer.dropped
        assert set(writer._acknowledged.known.extents) == set(vault.blocks())
    assert store.after_restart() == [1, 2, 3]
    os.truncate(store.path / f"streams/rides/{FIRST}.block", 10)
    with pytest.raises(StreamDamaged, match="STREAM_DAMAGED"):
        store.writer()
