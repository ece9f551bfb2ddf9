"""The service over loopback: Append beside a file, unary calls beside a bare echo.

*Append*: one producer sends a table of 15 columns, in batches of about 3 MB, from a process of its
own; the server is another process. Every acknowledged batch is checked, tagged, encrypted and on
the disk. The baseline, interleaved in the same run, writes the same Arrow batches to a file from
one thread, each of them on the disk (fdatasync) before the next. Beside it, as a figure: the same
without fdatasync, which is writing to memory. CPU is that of both processes together, over the
rows. Every round has a server and a store of its own, warmed by a few batches and removed
afterwards, as the file is: otherwise the page cache would grow under one of the two only.

*Unary*: the same client calls, in turns, a bare grpcio server in a process of its own that returns
64 bytes, and ours. p99 of the latencies of each, in milliseconds; the ratio is the median over the
rounds.

*Notified*: from publishing a state to one subscriber of the SDK, and to 1,000 of asyncio, beside a
bare Redis publish to as many connections (``_rpc/notified.py``). The bar is (p99 - 20 ms) / p99 of
the bare publish. 1,000 threads of the SDK in one process are shown as a figure.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pyarrow as pa

from benchmarks._rpc import notified
from benchmarks.bars import Report, Say, at_least, at_most
from benchmarks.ingest import batch, spec
from ptkstore import Store
from ptkstore.v1 import ptk_pb2, ptk_pb2_grpc, stream_pb2, stream_pb2_grpc

ROWS = 3_000_000
BATCH_ROWS = 32_768
ROUNDS = 5
WARM = 8
CALLS = 1500
# Sort of subscribers, how many, how often something is published, and whether it is a bar.
NOTIFIED = (("sdk", 1, 300, True), ("asyncio", 1000, 20, True), ("sdk", 1000, 10, False))
DAY_MS = 86_400_000
_ROOT = Path(__file__).parents[1]


def run(say: Say) -> Report:
    report = Report()
    say(f"{ROWS:,} rows in batches of {BATCH_ROWS:,}: {ROUNDS} rounds")
    appended = _appending()
    report.figures["append"] = [appended]
    report.bars += [
        at_least(
            "rows/s appended over gRPC / rows/s of writing the same Arrow batches durably to a "
            "file",
            appended["ratio"],
            0.2,
        ),
        at_most("CPU microseconds per row, producer and server together", appended["cpu_us"], 0.35),
    ]
    say(f"{CALLS:,} unary calls of each kind: {ROUNDS} rounds")
    table = _calling()
    report.figures["unary"] = table
    report.bars += [
        at_most(f"p99 of {row['call']} / p99 of a bare grpcio echo", row["ratio"], 3)
        for row in table
        if row["call"] != "echo"
    ]
    report.figures["notified"] = told = []
    for sort, subscribers, rounds, is_bar in NOTIFIED:
        say(f"publishing to {subscribers:,} subscribers ({sort}): {rounds} rounds")
        row = notified.compare(say, sort, subscribers, rounds)
        told.append(row)
        if not is_bar:
            continue
        beyond = round((row["p99_ms"] - 20) / row["bare_p99_ms"], 2)
        what = f"(p99 of publish to notified - 20 ms) / p99 of a bare Redis publish, {subscribers:,} subscribers"
        report.bars.append(at_most(what, max(0.0, beyond), 5))
    return report


def _appending() -> dict[str, Any]:
    one = batch(BATCH_ROWS)
    count = ROWS // BATCH_ROWS
    found = [_appended(one, count) for _ in range(ROUNDS)]
    rows = count * BATCH_ROWS
    seconds, cpu, bare, cached = (statistics.median(column) for column in zip(*found, strict=True))
    return {
        "rows_per_s": round(rows / seconds),
        "bare_rows_per_s": round(rows / bare),
        "ratio": round(statistics.median(bare / seconds for seconds, _, bare, _ in found), 3),
        "cached_rows_per_s": round(rows / cached),
        "ratio_to_cached": round(
            statistics.median(cached / seconds for seconds, _, _, cached in found), 3
        ),
        "cpu_us": round(cpu / rows * 1e6, 3),
        "bytes_per_row": round(one.nbytes / BATCH_ROWS, 1),
    }


def _appended(one: pa.RecordBatch, count: int) -> tuple[float, float, float, float]:
    """Seconds and CPU seconds of a push into a new store, seconds of the two files."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder) / "store") as (address, process),
    ):
        with Store(address) as store:
            store.create_stream(spec())
            store.push("rides", pa.Table.from_batches([one] * WARM), producer="warm")
        bare = _write(Path(folder) / "bare.arrow", one, count, durable=True)
        cached = _write(Path(folder) / "bare.arrow", one, count, durable=False)
        before = _cpu_seconds(process.pid)
        seconds, client_cpu = _push(address, "measured", count)
        return seconds, client_cpu + _cpu_seconds(process.pid) - before, bare, cached


def _push(address: str, producer: str, count: int) -> tuple[float, float]:
    """Wall and CPU seconds of a producer in a process of its own, from its first batch to its last
    acknowledgement.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_produce, args=(address, producer, count, theirs))
    child.start()
    seconds, cpu = ours.recv()
    child.join()
    return seconds, cpu


def _produce(address: str, producer: str, count: int, out: Any) -> None:
    """Frames are made beforehand; turning them into Arrow IPC is on the clock, as it is for the
    file.
    """
    one = batch(BATCH_ROWS)
    table = pa.Table.from_batches([one] * count)
    with Store(address) as store:
        store.stream("rides")
        begin, cpu = time.perf_counter(), time.process_time()
        store.push("rides", table, producer=producer, seq=0)
        out.send((time.perf_counter() - begin, time.process_time() - cpu))


def _write(path: Path, one: pa.RecordBatch, count: int, *, durable: bool) -> float:
    """Seconds of writing the batches to one file."""
    begin = time.perf_counter()
    with path.open("wb", 0) as file, pa.ipc.new_file(file, one.schema) as writer:
        for _ in range(count):
            writer.write_batch(one)
            if durable:
                os.fdatasync(file.fileno())
    seconds = time.perf_counter() - begin
    path.unlink()
    return seconds


def _calling() -> list[dict[str, Any]]:
    with (
        tempfile.TemporaryDirectory() as folder,
        served(Path(folder)) as (address, _),
        _echo() as echo_address,
    ):
        with Store(address) as store:
            _prepare(store)
        with (
            grpc.insecure_channel(address) as channel,
            grpc.insecure_channel(echo_address) as echo_channel,
        ):
            ptks = ptk_pb2_grpc.PtkServiceStub(channel)
            streams = stream_pb2_grpc.StreamServiceStub(channel)
            bare = echo_channel.unary_unary("/bench.Echo/Echo")
            calls: dict[str, Callable[[], Any]] = {
                "echo": lambda: bare(b"x" * 64),
                "GetState": lambda: ptks.GetState(ptk_pb2.GetStateRequest(name="busy")),
                "GetPtk": lambda: ptks.GetPtk(ptk_pb2.GetPtkRequest(name="busy")),
                "GetStream": lambda: streams.GetStream(stream_pb2.GetStreamRequest(name="rides")),
            }
            rounds = [
                {name: _latencies(call) for name, call in calls.items()} for _ in range(ROUNDS)
            ]
    table = []
    for name in calls:
        p99 = [float(np.percentile(one[name], 99)) for one in rounds]
        p50 = [float(np.percentile(one[name], 50)) for one in rounds]
        echo = [float(np.percentile(one["echo"], 99)) for one in rounds]
        table.append(
            {
                "call": name,
                "p50_ms": round(statistics.median(p50) * 1e3, 3),
                "p99_ms": round(statistics.median(p99) * 1e3, 3),
                "ratio": round(
                    statistics.median(ours / bare for ours, bare in zip(p99, echo, strict=True)), 2
                ),
            }
        )
    return table


def _latencies(call: Callable[[], Any]) -> list[float]:
    found = []
    for _ in range(CALLS):
        begin = time.perf_counter()
        call()
        found.append(time.perf_counter() - begin)
    return found


def _prepare(store: Store) -> None:
    """A PTK with one small state."""
    store.create_stream(spec())
    begins = 1_767_225_600_000
    config = {
        "keys": [{"kind": "integers", "column": "passengers", "first": 0, "last": 9}],
        "statistics": ["count"],
    }
    store.register("busy", stream="rides", kind="statistics", config=config, target=0.5)
    store.push("rides", pa.table(batch(BATCH_ROWS)))
    store.run("rides", until_ms=begins + DAY_MS)
    assert store.get_state("busy").manifest.version == 1


@contextmanager
def served(path: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``sage serve`` in a process of its own."""
    command = [
        sys.executable,
        "-c",
        "from ptkstore.cli import main; main()",
        "serve",
        "--json",
        "--store",
        str(path),
    ]
    ours = {
        "SAGE__SERVER__ADDRESS": "127.0.0.1:0",
        "SAGE__WORKERS__PROCESSES": "0",
        "SAGE__SERVER__CALLS_PER_SECOND": "0",
    }
    with subprocess.Popen(
        command,
        cwd=_ROOT,
        env=os.environ | ours,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            text += process.stdout.readline()
        try:
            yield json.loads(text)["address"], process
        finally:
            process.terminate()


@contextmanager
def _echo() -> Iterator[str]:
    """A bare grpcio server in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve_echo, args=(theirs,))
    child.start()
    try:
        yield f"127.0.0.1:{ours.recv()}"
    finally:
        ours.send(None)
        child.join()


def _serve_echo(pipe: Any) -> None:
    server = grpc.server(ThreadPoolExecutor(16))
    handler = grpc.unary_unary_rpc_method_handler(lambda request, _context: request)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("bench.Echo", {"Echo": handler}),)
    )
    pipe.send(server.add_insecure_port("127.0.0.1:0"))
    server.start()
    pipe.recv()
    server.stop(None)


def _cpu_seconds(pid: int) -> float:
    """User and system time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
