"""Ingest: durable rows per second, CPU per row, memory.

A table of 15 columns, appended by one thread in batches; every append is checked, tagged, encrypted
and durable before the next. Baseline, interleaved with it in the same run: the very bytes that the
appends left on the disk, written again by one thread, each frame in one piece to a file of its
block, one fdatasync per file and batch. That is as often as an append needs to be acknowledged, and
the run fails where the two counts differ. Making the files is on neither clock. Memory is measured
in a process of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks.bars import Report, Say, at_least, at_most
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.streams import StreamWriter
from ptkstore.streams.blocks.file import walk

ROWS = 2_000_000
BATCH_ROWS = (32_768, 65_536)
ROUNDS = 5
MEMORY_ROWS = 20_000_000
BASE_MS = 1_767_225_600_000
ZONES = tuple(f"zone-{k:03d}" for k in range(260))


def spec() -> StreamSpec:
    columns = [
        Column(name="pickup", type="timestamp[ms]", lower="2026-01-01"),
        Column(name="dropoff", type="timestamp[ms]", lower="2026-01-01", upper="2036-01-01"),
        Column(name="from_zone", type="dictionary", domain=ZONES),
        Column(name="to_zone", type="dictionary", domain=ZONES),
        Column(name="vendor", type="int32", lower=0, upper=10),
        Column(name="passengers", type="int64", lower=0, upper=9),
        Column(name="shared", type="bool"),
        Column(name="payment", type="int64", domain=(1, 2, 3, 4, 5, 6)),
        *(Column(name=f"amount_{k}", type="float64", lower=0, upper=500) for k in range(6)),
        Column(name="speed", type="float32", lower=0, upper=200),
    ]
    return StreamSpec(
        name="rides",
        columns=tuple(columns),
        time_column="pickup",
        window_seconds=86_400,
        block_seconds=3600,
    )


def batch(rows: int, hours: float = 1) -> pa.RecordBatch:
    """Rows of ``hours`` hours of event time, within the bounds."""
    random = np.random.default_rng(1)
    pickup = BASE_MS + random.integers(0, int(hours * 3_600_000), rows)
    zones = pa.array(ZONES)
    arrays = [
        pa.array(pickup, pa.timestamp("ms")),
        pa.array(pickup + random.integers(60_000, 3_600_000, rows), pa.timestamp("ms")),
        *(
            pa.DictionaryArray.from_arrays(
                pa.array(random.integers(0, len(ZONES), rows).astype("int16")), zones
            )
            for _ in range(2)
        ),
        pa.array(random.integers(0, 3, rows).astype("int32")),
        pa.array(random.integers(0, 7, rows)),
        pa.array(random.random(rows) < 0.5),
        pa.array(random.integers(1, 7, rows)),
        *(pa.array(random.random(rows) * 100) for _ in range(6)),
        pa.array((random.random(rows) * 60).astype("float32")),
    ]
    return pa.record_batch(arrays, names=[one.name for one in spec().columns])


def run(say: Say) -> Report:
    report = Report()
    table = []
    for rows in BATCH_ROWS:
        for what, hours in (("one block", 1.0), ("three blocks, unordered", 3.0)):
            say(f"{ROWS:,} rows in batches of {rows:,}, {what}: {ROUNDS} rounds")
            table.append(_compare(rows, hours, what))
    report.figures["ingest"] = table
    plain = [row for row in table if row["batch"] == "one block"]
    report.bars += [
        at_least(
            "rows/s appended / rows/s of writing the same encrypted bytes",
            min(row["ratio"] for row in plain),
            0.5,
        ),
        at_most("CPU microseconds per row appended", max(row["cpu_us"] for row in plain), 0.35),
    ]
    say(f"memory while {MEMORY_ROWS:,} rows are appended, in a process of its own")
    command = [sys.executable, "-c", "from benchmarks.ingest import memory; memory()"]
    told = json.loads(
        subprocess.run(
            command, check=True, capture_output=True, cwd=Path(__file__).parents[1]
        ).stdout
    )
    report.figures["memory"] = [told]
    report.bars.append(
        at_most(f"MB of memory beyond the start for {MEMORY_ROWS:,} rows", told["peak_mb"], 400)
    )
    return report


def _compare(rows: int, hours: float, what: str) -> dict[str, Any]:
    """Medians over interleaved rounds; the ratio is the median of the rounds' ratios."""
    one, count = batch(rows, hours), ROWS // rows
    found = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as bare_folder:
            with _counted_syncs() as syncs:
                seconds, cpu = _append(Path(folder), one, count, syncs)
            frames = _frames(Path(folder))
            with _counted_syncs() as bare_syncs:
                bare = _write(Path(bare_folder), frames, bare_syncs)
        assert len(frames) == count + 1
        assert syncs == bare_syncs, "either is durable after as many fdatasyncs"
        found.append((seconds, cpu, bare))
    seconds, cpu, bare = (statistics.median(column) for column in zip(*found, strict=True))
    return {
        "batch": what,
        "rows": rows,
        "rows_per_s": round(count * rows / seconds),
        "bare_rows_per_s": round(count * rows / bare),
        "ratio": round(statistics.median(bare / seconds for seconds, _, bare in found), 3),
        "cpu_us": round(cpu / (count * rows) * 1e6, 3),
        "bytes_per_row": round(
            sum(each.length for group in frames for each in group) / ((count + 1) * rows), 1
        ),
        "syncs_per_batch": syncs[0] / count,
    }


@contextmanager
def _counted_syncs() -> Iterator[list[int]]:
    """How often fdatasync was called meanwhile, in a list of one."""
    calls, real = [0], os.fdatasync

    def counted(descriptor: int) -> None:
        calls[0] += 1
        real(descriptor)

    with patch.object(os, "fdatasync", counted):
        yield calls


def _append(folder: Path, one: pa.RecordBatch, count: int, syncs: list[int]) -> tuple[float, float]:
    """Wall and CPU seconds of ``count`` appends, after one that makes the files, and their syncs."""
    with StreamWriter.open(folder, spec()) as writer:
        writer.append(one, producer="bench", seq=0)
        syncs[0] = 0
        begin, cpu = time.perf_counter(), time.process_time()
        for seq in range(1, count + 1):
            writer.append(one, producer="bench", seq=seq)
        told = time.perf_counter() - begin, time.process_time() - cpu
        during = syncs[0]
    # Those of closing belong to no append.
    syncs[0] = during
    return told


class _Bytes(NamedTuple):
    """Where the bytes of a frame lie."""

    path: Path
    start: int
    length: int


def _frames(folder: Path) -> list[list[_Bytes]]:
    """The frames of every batch that was appended, by seq."""
    found: dict[int, list[_Bytes]] = defaultdict(list)
    for path in sorted(folder.glob("streams/rides/*.block")):
        with path.open("rb") as file:
            for start, frame in walk(file.fileno()):
                found[frame.header.seq].append(_Bytes(path, start, frame.stop - start))
    return [found[seq] for seq in sorted(found)]


def _write(folder: Path, frames: list[list[_Bytes]], syncs: list[int]) -> float:
    """Seconds of writing the same bytes to as many files, every batch durable before the next,
    after one that makes the files.

    Each batch is read just before, off the clock and always into the same memory: like a ciphertext
    that was made a moment ago, it is in the cache.
    """
    seconds = 0.0
    buffer = memoryview(bytearray(max(sum(one.length for one in group) for group in frames)))
    with ExitStack() as stack:
        paths = {one.path for group in frames for one in group}
        sources = {path: stack.enter_context(path.open("rb", 0)).fileno() for path in paths}
        targets = {
            path: stack.enter_context((folder / path.name).open("wb", 0)).fileno() for path in paths
        }
        for place, group in enumerate(frames):
            bodies, at = [], 0
            for path, start, length in group:
                body = buffer[at : at + length]
                assert os.preadv(sources[path], [body], start) == length
                bodies.append((targets[path], body))
                at += length
            begin = time.perf_counter()
            for target, body in bodies:
                assert os.write(target, body) == len(body)
            for target, _ in bodies:
                os.fdatasync(target)
            if place:
                seconds += time.perf_counter() - begin
            else:
                syncs[0] = 0
    return seconds


def memory() -> None:
    """Append many rows and print how much the peak of resident memory grew.

    From /proc, because the ``ru_maxrss`` of a child starts at that of its parent.
    """
    rows = BATCH_ROWS[0]
    one = batch(rows)
    before = _resident_kb("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    with tempfile.TemporaryDirectory() as folder, StreamWriter.open(folder, spec()) as writer:
        begin = time.perf_counter()
        for seq in range(-(-MEMORY_ROWS // rows)):
            writer.append(one, producer="bench", seq=seq)
        seconds = time.perf_counter() - begin
    peak_mb = round((_resident_kb("VmHWM") - before) / 1024, 1)
    print(
        json.dumps(
            {"rows": MEMORY_ROWS, "peak_mb": peak_mb, "rows_per_s": round(MEMORY_ROWS / seconds)}
        )
    )


def _resident_kb(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))
