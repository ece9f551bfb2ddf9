"""Beginning early changes when the disk works, never what is promised."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from ptkstore.streams import StreamUnavailable
from ptkstore.streams.blocks import file as block_file
from ptkstore.streams.blocks import frames, writeback
from ptkstore.streams.blocks.writeback import start_writeback
from tests.streams.rides import FIRST, Store, batch

PIECE = 4096


@pytest.fixture
def short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (frames, block_file):
        monkeypatch.setattr(module, "PIECE_BYTES", PIECE)


def answering(number: int) -> Any:
    def call(*_: int) -> int:
        ctypes.set_errno(number)
        return -1 if number else 0

    return call


def noting(name: str, done: list[tuple[str, str]]) -> Any:
    """The function of `os`, which also notes the file that it was called for."""
    real = getattr(os, name)

    def call(descriptor: int, *rest: Any) -> Any:
        done.append((name, os.readlink(f"/proc/self/fd/{descriptor}")))
        return real(descriptor, *rest)

    return call


def test_a_range_is_started_and_the_file_is_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10_000)
    descriptor = os.open(path, os.O_RDWR)
    start_writeback(descriptor, 0, 10_000)
    os.close(descriptor)
    assert path.read_bytes() == b"x" * 10_000
    if writeback._sync_file_range is not None:
        with pytest.raises(OSError, match="Bad file descriptor"):
            start_writeback(descriptor, 0, 10_000)


@pytest.mark.parametrize(
    "call", [None, *(answering(one) for one in (errno.ENOSYS, errno.EPERM, errno.EINVAL))]
)
def test_where_it_is_unknown_nothing_happens(
    store: Store, monkeypatch: pytest.MonkeyPatch, call: Any
) -> None:
    monkeypatch.setattr(writeback, "_sync_file_range", call)
    with store.writer() as writer:
        writer.append(batch([1, 2, 3], hours=[0, 1, 2]), producer="p", seq=1)
    assert store.after_restart() == [1, 2, 3]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_to_begin_stops_the_writer(
    store: Store, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        with monkeypatch.context() as patch:
            patch.setattr(writeback, "_sync_file_range", answering(number))
            with pytest.raises(StreamUnavailable):
                writer.append(batch([2, 3], hours=[0, 1]), producer="p", seq=2)
        with pytest.raises(StreamUnavailable):
            writer.append(batch([4]), producer="p", seq=3)
    with store.writer() as writer:
        assert not writer.append(batch([2, 3], hours=[0, 1]), producer="p", seq=2).duplicate
    assert store.after_restart() == [1, 2, 3]


@pytest.mark.usefixtures("short_pieces")
def test_every_file_is_synced_after_its_last_write_and_before_the_answer(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        done: list[tuple[str, str]] = []
        for name in ("pwrite", "fdatasync"):
            monkeypatch.setattr(os, name, noting(name, done))
        count = 2000
        writer.append(batch(range(count), hours=[k % 2 for k in range(count)]), producer="p", seq=2)
        blocks = {path for _, path in done if path.endswith(".block")}
        for path in blocks:
            calls = [name for name, where in done if where == path]
            assert len(calls) > 4
            assert calls == ["pwrite"] * (len(calls) - 1) + ["fdatasync"]
        assert len(blocks) == 2
        # What was acknowledged is noted after everything else.
        assert done[-1][1].endswith("acknowledged")
        assert [where for _, where in done].count(done[-1][1]) == 1


@pytest.mark.usefixtures("short_pieces")
def test_a_crash_between_the_pieces_of_a_frame_leaves_what_was_acknowledged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The directory as it is whenever the disk was told to begin, with every page written by
    then.
    """
    copies: list[Path] = []

    def copied(*_: int) -> int:
        copies.append(store.path / f"copy-{len(copies)}")
        for folder in ("streams", "keys"):
            shutil.copytree(store.path / folder, copies[-1] / folder)
        return 0

    with store.writer() as writer:
        writer.append(batch(range(100)), producer="p", seq=1)
        monkeypatch.setattr(writeback, "_sync_file_range", copied)
        writer.append(batch(range(100, 1000)), producer="p", seq=2)
    monkeypatch.undo()
    # The last is made when the batch is whole and noted.
    copies.pop()
    assert len(copies) > 3
    whole = (store.path / f"streams/rides/{FIRST}.block").stat().st_size
    for copy in copies:
        again = Store(copy, store.spec)
        assert 0 < (copy / f"streams/rides/{FIRST}.block").stat().st_size < whole
        with again.ledger:
            with again.writer() as writer:
                assert writer.append(batch([1]), producer="p", seq=1).duplicate
                assert not writer.append(batch(range(100, 1000)), producer="p", seq=2).duplicate
            assert again.after_restart() == list(range(1000))
