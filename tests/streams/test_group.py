"""How many files a process may hold open has no say in what is taken."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from ptkstore.streams import Ack
from tests.streams import rides
from tests.streams.rides import BASE_MS, Store, batch

BLOCKS = 200


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    """Let this process open so many files beyond those it has."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(one) for one in os.listdir("/proc/self/fd")}
    # The limit is on numbers, and the smallest that are free are taken first.
    numbers = (number for number in range(hard) if number not in used)
    resource.setrlimit(resource.RLIMIT_NOFILE, (next(islice(numbers, more, None)), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("unit", ["event", "user"])
def test_a_batch_of_many_blocks_needs_few_descriptors(tmp_path: Path, unit: str) -> None:
    store = Store(tmp_path, rides.spec() if unit == "event" else rides.user_spec())
    with store.ledger, store.writer() as writer:
        with few_descriptors(100):
            for seq in (1, 2):
                sent = batch(range(BLOCKS), hours=[float(k) for k in range(BLOCKS)])
                assert writer.append(sent, producer="p", seq=seq) == Ack(False, BASE_MS)
        blocks = store.seal_all(writer, BLOCKS)
        assert [store.whos([one]) for one in blocks[:5]] == [[k, k] for k in range(5)]
