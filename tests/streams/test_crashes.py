"""What a crash leaves behind: whole batches, all that were acknowledged, none twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ptkstore.streams import Ack, StreamDamaged
from ptkstore.streams.blocks.file import walk
from tests.streams.rides import (
    BASE_MS,
    FIRST,
    HOUR_MS,
    SECOND,
    THIRD,
    Store,
    append_together,
    batch,
)

ROOT = Path(__file__).parents[2]


def block(store: Store, name: str) -> Path:
    return store.path / "streams/rides" / f"{name}.block"


def notes(store: Store) -> Path:
    """What was acknowledged.

    As it was before an append, it tells of a crash before the append was answered.
    """
    return store.path / "streams/rides/acknowledged"


def starts(path: Path) -> list[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return [one.start for one in walk(descriptor)]
    finally:
        os.close(descriptor)


def test_a_tail_torn_at_any_byte_is_cut_off_and_can_be_sent_again(store: Store) -> None:
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        before = notes(store).read_bytes()
        writer.append(batch([2]), producer="p", seq=2)
    path = block(store, FIRST)
    whole, last = path.read_bytes(), starts(path)[-1]
    assert len(starts(path)) == 2
    for length in range(last, len(whole)):
        path.write_bytes(whole[:length])
        notes(store).write_bytes(before)
        with store.writer() as writer:
            assert writer.dropped == (length > last)
            assert path.stat().st_size == last
            if length % 97 == 0:
                assert not writer.append(batch([2]), producer="p", seq=2).duplicate
                assert writer.append(batch([1]), producer="p", seq=1).duplicate
    path.write_bytes(whole)
    notes(store).write_bytes(before)
    assert store.after_restart() == [1, 2]


def test_a_tail_with_holes_is_cut_off(store: Store) -> None:
    """A crash may leave the length and the end of a write without its middle."""
    with store.writer() as writer:
        writer.append(batch(range(1000, 1500)), producer="p", seq=1)
        before = notes(store).read_bytes()
        writer.append(batch(range(2000, 2500)), producer="p", seq=2)
    notes(store).write_bytes(before)
    path = block(store, FIRST)
    body = bytearray(path.read_bytes())
    middle = (starts(path)[-1] + len(body)) // 2
    body[middle : middle + 64] = bytes(64)
    path.write_bytes(body)
    assert store.after_restart() == list(range(1000, 1500))


@pytest.mark.parametrize("where", ["header", "length"])
def test_damage_in_front_of_what_was_promised_is_no_torn_tail(store: Store, where: str) -> None:
    with store.writer() as writer:
        for seq in range(4):
            writer.append(batch([seq]), producer="p", seq=seq)
    path = block(store, FIRST)
    body = bytearray(path.read_bytes())
    body[starts(path)[1] + (0 if where == "header" else 30)] ^= 1
    path.write_bytes(body)
    with pytest.raises(StreamDamaged) as error:
        store.writer()
    assert error.value.reason == "FRAME_DAMAGED"
    assert path.read_bytes() == bytes(body)


def test_damage_in_the_last_of_what_was_promised_is_no_torn_tail(store: Store) -> None:
    """The file is as long as it was and ends as it did; no later frame knows better: the note alone
    does.
    """
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        writer.append(batch(range(2000, 2500)), producer="p", seq=2)
    path = block(store, FIRST)
    body = bytearray(path.read_bytes())
    body[(starts(path)[-1] + len(body)) // 2] ^= 1
    path.write_bytes(body)
    with pytest.raises(StreamDamaged) as error:
        store.writer()
    assert error.value.reason == "STREAM_DAMAGED"
    assert path.read_bytes() == bytes(body)


@pytest.mark.parametrize(
    "lost", [[FIRST], [SECOND], [THIRD], [FIRST, SECOND], [SECOND, THIRD], [FIRST, SECOND, THIRD]]
)
def test_a_batch_that_is_there_in_part_is_not_there(store: Store, lost: list[str]) -> None:
    names = (FIRST, SECOND, THIRD)
    with store.writer() as writer:
        writer.append(batch([1, 2, 3], hours=[0, 1, 2]), producer="p", seq=1)
        lengths = {name: block(store, name).stat().st_size for name in names}
        before = notes(store).read_bytes()
        writer.append(batch([4, 5, 6], hours=[0, 1, 2]), producer="p", seq=2)
    notes(store).write_bytes(before)
    for name in lost:
        os.truncate(block(store, name), lengths[name] + 10)
    with store.writer() as writer:
        assert {name: block(store, name).stat().st_size for name in names} == lengths
        assert not writer.append(batch([4, 5, 6], hours=[0, 1, 2]), producer="p", seq=2).duplicate
        assert writer.append(batch([9]), producer="p", seq=1).duplicate
    assert store.after_restart() == [1, 2, 3, 4, 5, 6]


def test_batches_behind_an_incomplete_one_go_with_it(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group.

    A part of batch 2 is lost in the second block; 3 and 4 lie behind it in the first, 4 also in the
    third.
    """
    with store.writer() as writer:
        writer.append(batch([1]), producer="p", seq=1)
        before, noted = block(store, FIRST).stat().st_size, notes(store).read_bytes()
        group = {2: batch([2, 3], hours=[0, 1]), 3: batch([4]), 4: batch([5, 6], hours=[0, 2])}
        assert append_together(writer, group) == [Ack(False, BASE_MS)] * 3
    os.truncate(block(store, SECOND), 0)
    notes(store).write_bytes(noted)
    with store.writer():
        assert block(store, FIRST).stat().st_size == before
        assert block(store, THIRD).stat().st_size == 0
    assert store.after_restart() == [1]


@pytest.mark.parametrize("stop_after", range(8))
def test_sealing_that_was_interrupted_is_finished(
    store: Store, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.writer()
    writer.append(batch([1, 2], hours=[0, 2]), producer="p", seq=1)
    calls = [0]
    real = {name: getattr(os, name) for name in ("fsync", "fdatasync")}

    def dying(name: str):  # type: ignore[no-untyped-def]
        def sync(descriptor: int) -> None:
            calls[0] += 1
            if calls[0] > stop_after:
                raise KeyboardInterrupt
            real[name](descriptor)

        return sync

    with monkeypatch.context() as patch:
        for name in real:
            patch.setattr(os, name, dying(name))
        with pytest.raises(KeyboardInterrupt):
            writer.seal_due(BASE_MS + 3 * HOUR_MS)
    writer.close()
    with store.writer() as writer:
        writer.seal_due(BASE_MS + 3 * HOUR_MS)
        assert writer.sealed() == [FIRST, SECOND, THIRD]
        assert store.whos([FIRST, SECOND, THIRD]) == [1, 2]


_PRODUCER = """
import sys
from tests.streams import rides
from ptkstore.streams import StreamWriter
first = int(sys.argv[2])
with StreamWriter.open(sys.argv[1], rides.spec()) as writer:
    for seq in range(first, first + 100_000):
        answer = writer.append(rides.batch([3 * seq, 3 * seq + 1, 3 * seq + 2], hours=[0, 1, 2]), producer="p", seq=seq)
        print(seq, int(answer.duplicate), flush=True)
"""


def killed_after(store: Store, first: int, answers: int) -> list[tuple[int, int]]:
    """Produce from ``first`` on in a process that is killed after some answers; all (seq,
    duplicate) that it gave.
    """
    command = [sys.executable, "-c", _PRODUCER, str(store.path), str(first)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(answers)]
        process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
    pairs = [line.split() for line in lines if line.endswith("\n")]
    return [(int(seq), int(duplicate)) for seq, duplicate in pairs]


def test_kill_9_loses_no_acknowledged_batch_and_doubles_none(store: Store) -> None:
    durable = 0
    for round_number in range(6):
        # The producer sends the last batch again, as one that died with its answer in flight would.
        first = max(durable - 1, 0)
        answers = killed_after(store, first, 10 + 7 * round_number)
        assert [seq for seq, _ in answers] == list(range(first, first + len(answers)))
        assert [duplicate for _, duplicate in answers] == [int(seq < durable) for seq, _ in answers]
        copy = Store(_copy(store, f"copy-{round_number}"), store.spec)
        with copy.ledger:
            found = copy.after_restart()
        assert found == list(range(len(found))), "each record once"
        assert len(found) % 3 == 0, "no batch in part"
        durable = len(found) // 3
        # One more batch than was answered may be durable: the one whose answer was in flight.
        assert durable - 1 - answers[-1][0] in (0, 1)


def _copy(store: Store, name: str) -> Path:
    for folder in ("streams", "keys"):
        shutil.copytree(store.path / folder, store.path / name / folder)
    return store.path / name
