"""A process that stands still holds up the others for seconds, wherever it stopped, and writes
nothing of what it had begun.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from ptkstore.metadata import Metadata
from ptkstore.metadata.database.postgresql import HANG_MS

# Far from the 30 seconds that anybody waits for a lock, and from the 60 that readers may think.
PATIENCE_SECONDS = HANG_MS / 1000 + 7
STOPS = 25


@contextmanager
def writer(url: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.adapters.hanging_writer", url, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def metadata(postgres_url: str) -> Iterator[Metadata]:
    with Metadata.open(postgres_url) as opened:
        yield opened


def seconds_to_write(metadata: Metadata, number: int) -> float:
    begin = time.monotonic()
    with metadata.write() as tx:
        tx.events.add("written", "here", number)
    return time.monotonic() - begin


def by(metadata: Metadata, name: str) -> list[int]:
    with metadata.read() as tx:
        return [event.body for event in tx.events.after(0) if event.subject == name]


def test_who_hangs_in_its_transaction_loses_it(postgres_url: str, metadata: Metadata) -> None:
    with writer(postgres_url, "inside") as hanging:
        os.waitid(os.P_PID, hanging.pid, os.WSTOPPED | os.WNOWAIT)
        assert seconds_to_write(metadata, 0) < PATIENCE_SECONDS
        hanging.send_signal(signal.SIGCONT)
        told, _ = hanging.communicate(timeout=60)
        assert told == "METADATA_UNAVAILABLE\n"
    assert by(metadata, "hanging") == []


def test_nobody_waits_for_a_writer_that_is_stopped_anywhere(
    postgres_url: str, metadata: Metadata
) -> None:
    moments = random.Random(5)
    waits = []
    with writer(postgres_url) as hanging:
        for number in range(STOPS):
            time.sleep(moments.uniform(0.01, 0.06))
            hanging.send_signal(signal.SIGSTOP)
            waits.append(seconds_to_write(metadata, number))
            hanging.send_signal(signal.SIGCONT)
    assert max(waits) < PATIENCE_SECONDS, waits
    assert by(metadata, "here") == list(range(STOPS))
    theirs = by(metadata, "hanging")
    assert theirs == sorted(set(theirs)), "nothing twice"
