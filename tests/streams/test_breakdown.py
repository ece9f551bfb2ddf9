"""A writer whose write failed finds out by itself what is durable, and goes on: nothing
acknowledged is lost or doubled.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ptkstore.streams import StreamUnavailable, StreamWriter
from ptkstore.streams.ingest import breakdown
from tests.streams import rides
from tests.streams.rides import BASE_MS, FIRST, HOUR_MS, SECOND, Store, batch


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It tries to recover whenever it is asked."""
    monkeypatch.setattr(breakdown, "RETRY_SECONDS", 0.0)


@contextmanager
def failing(name: str, monkeypatch: pytest.MonkeyPatch, after: int = 0) -> Iterator[None]:
    """An operation of the system that finds no room, from the so-manieth call on."""
    real: Callable[..., Any] = getattr(os, name)
    calls = [0]

    def full(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] > after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    with monkeypatch.context() as patch:
        patch.setattr(os, name, full)
        yield


def broken(writer: StreamWriter) -> bool:
    return writer.fault is not None


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(StreamUnavailable) as error:
        call()
    return error.value.reason


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("name", ["pwrite", "fdatasync"])
def test_it_goes_on_when_there_is_room_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str, after: int
) -> None:
    """Two blocks: with ``after`` the first of them is durable already, and is taken back with the
    second.
    """
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        again = batch([3, 4], hours=[0, 1])
        with failing(name, monkeypatch, after):
            assert (
                refused(lambda: writer.append(again, producer="p", seq=2)) == "STREAM_UNAVAILABLE"
            )
            assert (
                refused(lambda: writer.append(batch([9]), producer="q", seq=0))
                == "STREAM_UNAVAILABLE"
            )
            assert refused(writer.check) == "STREAM_UNAVAILABLE"
            assert broken(writer)
        assert not writer.append(again, producer="p", seq=2).duplicate
        assert writer.append(again, producer="p", seq=2).duplicate
        assert writer.append(batch([9, 9], hours=[0, 1]), producer="p", seq=1).duplicate
        assert not broken(writer)
        assert sorted(store.whos(store.seal_all(writer))) == [1, 2, 3, 4]


@pytest.mark.parametrize("name", ["pwrite", "fdatasync", "fsync"])
def test_expiry_that_finds_no_room_is_made_good(
    store: Store, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """What is noted after the note that failed is believed at the next start all the same."""
    with store.writer() as writer:
        writer.append(batch([1, 2, 3], hours=[0, 1, 2]), producer="p", seq=1)
        store.seal_all(writer, 2)
        with failing(name, monkeypatch):
            assert refused(lambda: writer.expire(FIRST)) == "STREAM_UNAVAILABLE"
            assert broken(writer)
        writer.expire(FIRST)
        writer.append(batch([4], hours=2), producer="p", seq=2)
        assert not broken(writer)
    with store.writer() as writer:
        assert not writer.dropped
        assert writer.sealed() == [SECOND]
        assert sorted(store.whos(store.seal_all(writer, 3)[1:])) == [3, 4]


def test_a_file_that_could_not_be_cut_is_cut_before_anything_is_believed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was written and not synced can be read back, which does not make it durable."""
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        with failing("fdatasync", monkeypatch), failing("ftruncate", monkeypatch):
            assert (
                refused(lambda: writer.append(batch([2]), producer="p", seq=2))
                == "STREAM_UNAVAILABLE"
            )
            assert refused(writer.check) == "STREAM_UNAVAILABLE"
        assert not writer.append(batch([2]), producer="p", seq=2).duplicate
    assert store.after_restart() == [1, 2]


def test_sealing_that_failed_is_finished(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        with failing("fdatasync", monkeypatch):
            assert refused(lambda: writer.seal_due(BASE_MS + 2 * HOUR_MS)) == "STREAM_UNAVAILABLE"
            assert refused(lambda: writer.seal_due(BASE_MS + 2 * HOUR_MS)) == "STREAM_UNAVAILABLE"
        writer.check()
        assert writer.sealed() == [FIRST, SECOND]
        assert sorted(store.whos([FIRST, SECOND])) == [1, 2]


def test_a_session_that_could_not_be_written_down_is_not_given_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writer() as writer:
        old = writer.begin(producer="p")
        with failing("fsync", monkeypatch):
            assert refused(lambda: writer.begin(producer="p")) == "STREAM_UNAVAILABLE"
        assert not writer.append(batch([1]), producer="p", seq=0, session=old).duplicate


@pytest.mark.parametrize("rounds", [30])
def test_trying_again_leaks_no_descriptors(
    store: Store, monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    with store.writer() as writer:
        writer.append(batch([1, 2], hours=[0, 1]), producer="p", seq=1)
        before = len(os.listdir("/proc/self/fd"))
        with failing("fdatasync", monkeypatch), failing("ftruncate", monkeypatch):
            for seq in range(2, rounds):
                assert refused(partial(writer.append, batch([seq]), producer="p", seq=seq))
        with failing("pread", monkeypatch):
            for _ in range(rounds):
                assert refused(writer.check)
        writer.check()
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_writer_stays_closed(store: Store) -> None:
    writer = store.writer()
    writer.close()
    assert refused(lambda: writer.append(batch([1]), producer="p", seq=1)) == "STREAM_CLOSED"
    assert refused(writer.check) == "STREAM_CLOSED"
    assert writer.fault is None


def test_another_writer_cannot_come_in_between(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store.writer() as writer, failing("fdatasync", monkeypatch):
        assert (
            refused(lambda: writer.append(batch([1]), producer="p", seq=1)) == "STREAM_UNAVAILABLE"
        )
        assert refused(store.writer) == "STREAM_LOCKED"


def test_one_that_cannot_be_opened_says_so_and_leaves_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with failing("fsync", monkeypatch):
        for _ in range(5):
            assert (
                refused(lambda: StreamWriter.open(tmp_path, rides.spec())) == "STREAM_UNAVAILABLE"
            )
    assert len(os.listdir("/proc/self/fd")) == before
    with StreamWriter.open(tmp_path, rides.spec()) as writer:
        assert not writer.append(batch([1]), producer="p", seq=1).duplicate


def test_the_log_hears_of_it_once_and_of_no_block(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with store.writer() as writer:
        with failing("fdatasync", monkeypatch):
            for seq in range(4):
                assert refused(partial(writer.append, batch([1]), producer="p", seq=seq))
        writer.check()
    assert caplog.messages == [
        "the writer of stream 'rides' stopped: STREAM_UNAVAILABLE (OSError ENOSPC)",
        "the writer of stream 'rides' works again",
    ]
