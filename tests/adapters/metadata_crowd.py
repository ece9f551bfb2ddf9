"""What every metadata store must do for many threads and processes, and when one of them is killed.

Like `MetadataSuite`.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ptklib.errors import Refused
from ptkstore.metadata import Metadata
from tests.adapters.metadata_suite import DIGEST, new_ptk
from tests.adapters.metadata_writer import write, written

ROOT = Path(__file__).parents[2]


def spawn_writer(url: str, name: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.adapters.metadata_writer", url, name, str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


class MetadataCrowd:
    """The contract of `Metadata` under concurrency and crashes, on any database."""

    def test_many_threads_lose_no_update(self, metadata: Metadata) -> None:
        with metadata.write() as tx:
            ptk = new_ptk(tx).id
        start = threading.Barrier(8)

        def work(worker: int) -> None:
            start.wait()
            for number in range(5):
                while True:
                    with metadata.read() as tx:
                        seen = tx.ptks.get(ptk)
                    try:
                        with metadata.write_results("known") as tx:
                            tx.ptks.update_config(
                                ptk, seen.config | {f"{worker}.{number}": 1}, etag=seen.etag
                            )
                            cycle = tx.cycles.start("s", worker * 5 + number)
                            tx.states.add(ptk, None, DIGEST, {}, 0, 0, cycle=cycle)
                        break
                    except Refused as refusal:
                        if refusal.reason != "ETAG_STALE":
                            raise

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        with metadata.read() as tx:
            found = tx.ptks.get(ptk)
            assert len(found.config) == 1 + 40
            assert (found.config_version, found.etag) == (41, 41)
            assert [state.version for state in tx.states.list(ptk)] == list(range(1, 41))

    def test_processes_write_together_and_ids_grow_with_the_commits(
        self, url: str, metadata: Metadata
    ) -> None:
        count = 40
        writers = [spawn_writer(url, name, count) for name in ("a", "b")]
        seen: list[int] = []
        try:
            for number in range(count):
                write(metadata, "c", number)
                with metadata.read() as tx:
                    # Whoever read up to an id must never meet a smaller one later.
                    seen.extend(event.id for event in tx.events.after(seen[-1] if seen else 0))
            assert [writer.wait(60) for writer in writers] == [0, 0]
        finally:
            for writer in writers:
                writer.kill()
                writer.communicate()
        with metadata.read() as tx:
            seen.extend(event.id for event in tx.events.after(seen[-1]))
            assert seen == [event.id for event in tx.events.after(0)]
        events, plans = written(metadata)
        assert events == plans == {name: list(range(count)) for name in "abc"}

    @pytest.mark.parametrize("acknowledged", [1, 7, 30])
    def test_a_killed_writer_leaves_whole_transactions(
        self, url: str, metadata: Metadata, acknowledged: int
    ) -> None:
        writer = spawn_writer(url, "victim", 10**6)
        assert writer.stdout is not None
        for _ in range(acknowledged):
            last = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        rest, _ = writer.communicate()
        last = max([last, *(int(line) for line in rest.split("\n")[:-1])])
        write(metadata, "survivor", 0)
        events, plans = written(metadata)
        assert events == plans
        assert events["survivor"] == [0]
        # Everything acknowledged is there, and at most the one transaction in flight besides.
        assert events["victim"] in (list(range(last + 1)), list(range(last + 2)))
