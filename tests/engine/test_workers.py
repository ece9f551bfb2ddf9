"""Worker processes: the same states as in process, whatever the ranges; one that dies fails its
jobs and no others.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import safetensors.numpy

from ptkstore.streams.reading.opened import Tagged
from ptkstore.workers.processes import ProcessWorkers
from ptkstore.workers.protocol import TrainJob
from ptkstore.workers.train import train_each
from tests.workers.jobs import Planted, job


def test_every_job_sees_its_range_and_nothing_else() -> None:
    generator = np.random.default_rng(5)
    ends = [0, 1, 2**62, 2**63, 2**64 - 1, 2**64]
    tags = [generator.integers(0, 2**64, 500, dtype=np.uint64, endpoint=False) for _ in range(3)]
    tags[0][:5] = [0, 1, 2**62, 2**63, 2**64 - 1]
    zones = [generator.integers(0, 10, 500) for _ in tags]
    batches = [
        Tagged(pa.RecordBatch.from_pydict({"other": zone * 7, "zone": zone}), tag)
        for zone, tag in zip(zones, tags, strict=True)
    ]
    opener = Planted(tuple(batches))
    ranges = [(a, b) for a in ends for b in ends if a < b]
    found = list(train_each([job(f"{a}-{b}", a, b, opener=opener) for a, b in ranges]))
    for (start, stop), trained in zip(ranges, found, strict=True):
        assert trained.arrays is not None, trained
        totals = safetensors.numpy.load(trained.arrays)["totals"][:, 0]
        inside = [[start <= int(one) < stop for one in tag] for tag in tags]
        seen = np.concatenate(
            [zone[np.array(mask)] for zone, mask in zip(zones, inside, strict=True)]
        )
        wanted = np.bincount(seen, minlength=10)
        assert totals.tolist() == wanted.tolist()


def test_many_ranges_take_the_other_way_through() -> None:
    tags = np.arange(1000, dtype=np.uint64)
    batches = [
        Tagged(pa.RecordBatch.from_pydict({"zone": np.arange(1000) % 10}), tags[::-1].copy())
    ]
    opener = Planted(tuple(batches))
    ranges = [(10 * k, 10 * k + 10 * (k % 3 + 1)) for k in range(60)]
    found = list(train_each([job(str(a), a, b, opener=opener) for a, b in ranges]))
    for (start, stop), trained in zip(ranges, found, strict=True):
        assert trained.arrays is not None
        assert safetensors.numpy.load(trained.arrays)["totals"].sum() == stop - start


def test_a_job_may_have_several_ranges() -> None:
    tags = np.arange(100, dtype=np.uint64)
    batches = [Tagged(pa.RecordBatch.from_pydict({"zone": np.arange(100) // 10}), tags)]
    opener = Planted(tuple(batches))
    found = list(
        train_each(
            [job("a", 5, 12, 40, 41, 90, 100, opener=opener), job("b", 0, 100, opener=opener)]
        )
    )
    totals = [safetensors.numpy.load(one.arrays or b"")["totals"][:, 0].tolist() for one in found]
    assert totals == [[5, 2, 0, 0, 1, 0, 0, 0, 0, 10], [10] * 10]


def test_a_worker_that_dies_fails_its_jobs_and_is_replaced() -> None:
    pool = ProcessWorkers(2)
    try:
        pool.warm()
        os.kill(pool._processes[0]._child.pid, signal.SIGKILL)
        pool._processes[0]._child.wait()
        jobs = [job(name, 0, 2**64) for name in "abcd"]
        trained = {one.name: one for one in pool.train(jobs)}
        assert [trained[name].failure for name in "abcd"] == ["PTK_FAILED", ""] * 2
        assert trained["a"].logged == "the worker stopped"
        assert all(one.arrays is not None for one in pool.train(jobs))
    finally:
        pool.close()
    assert not pool._processes


def test_jobs_that_nobody_waited_for_do_not_come_back_later() -> None:
    pool = ProcessWorkers(2)
    try:
        first = pool.train([job(name, 0, 2**64) for name in "abcd"])
        next(first)
        first.close()  # type: ignore[attr-defined]
        assert sorted(one.name for one in pool.train([job(name, 0, 2**64) for name in "ef"])) == [
            "e",
            "f",
        ]
    finally:
        pool.close()


def test_a_failure_says_where_and_never_what() -> None:
    (failed,) = train_each(
        [TrainJob("a", "statistics", {"secret": 1}, "1", "0", ((0, 1),), 1, None)]
    )
    assert failed.arrays is None
    assert re.fullmatch(r"InvalidInput CONFIG_FIELDS at \w+\.py:\d+", failed.failure)


def test_a_script_without_a_guard_can_train(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from tests.workers.jobs import job\n"
        "from ptkstore.workers.processes import ProcessWorkers\n"
        "pool = ProcessWorkers(1)\n"
        "print([one.failure for one in pool.train([job('a', 0, 2**64)])])\n"
        "pool.close()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert (done.stdout, done.returncode) == ("['']\n", 0), done.stderr
