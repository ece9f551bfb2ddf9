"""The way into the server while 5,000 calls send their headers and never a message.

A server in a process of its own wants credentials. An operator lists streams and a probe asks for
its health, each on a connection of its own, in turns; p50 of both, first in peace and then beside
the silent calls, in pairs of rounds close together. Silent calls come on one connection without
credentials (they are refused at once), on one with a reader's token, on twenty with the same token,
and on one to the health service. The ratio is the median over the rounds.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from benchmarks.bars import Report, Say, at_least, at_most
from benchmarks.ingest import spec
from ptkstore import Store
from ptkstore.engine.access.tokens import make_token
from tests.rpc.silent import SilentConnection

SILENT = 5_000
ROUNDS = 5
CALLS = 200
# What is measured begins when the flood has been taken in.
SETTLE_SECONDS = 1.5
LIST = "/ptkstore.v1.StreamService/ListStreams"
CHECK = "/grpc.health.v1.Health/Check"
_ROOT = Path(__file__).parents[1]
# Name, connections, method, and whose token.
ATTACKS = (
    ("no credentials, one connection", 1, LIST, None),
    ("a token, one connection", 1, LIST, "reader"),
    ("a token, twenty connections", 20, LIST, "reader"),
    ("health, one connection", 1, CHECK, None),
)


def run(say: Say) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tokens = _prepared(Path(folder))
        address = stack.enter_context(_serving(Path(folder)))
        asks = stack.enter_context(_asking(address, tokens["operator"]))
        table = []
        for name, connections, method, whose in ATTACKS:
            say(f"{SILENT:,} silent calls: {name}, {ROUNDS} rounds")
            token = tokens[whose] if whose is not None else None
            rounds = [_round(address, asks, connections, method, token) for _ in range(ROUNDS)]
            for what in asks:
                ratio = statistics.median(beside[what] / quiet[what] for quiet, beside, _ in rounds)
                report.bars.append(
                    at_most(f"p50 of {what} beside silent calls ({name}) / p50 in peace", ratio, 3)
                )
            quiet = {what: statistics.median(one[0][what] for one in rounds) for what in asks}
            beside = {what: statistics.median(one[1][what] for one in rounds) for what in asks}
            answered = sum(one[2] for one in rounds) / (ROUNDS * len(asks) * CALLS)
            report.bars.append(
                at_least(f"part of the calls beside them that were answered ({name})", answered, 1)
            )
            table.append(
                {"silent": name}
                | {f"{what}_quiet_ms": round(1e3 * quiet[what], 2) for what in asks}
                | {f"{what}_ms": round(1e3 * beside[what], 2) for what in asks}
            )
        report.figures["p50"] = table
    return report


def _round(
    address: str,
    asks: dict[str, Callable[[], Any]],
    connections: int,
    method: str,
    token: str | None,
) -> tuple[dict[str, float], dict[str, float], int]:
    """p50 of each call in peace and beside silent calls, and how many of the latter were
    answered.
    """
    quiet, _ = _measured(asks)
    with ExitStack() as stack:
        silent = [stack.enter_context(SilentConnection(address)) for _ in range(connections)]
        for one in silent:
            one.call(method, SILENT // connections, token=token)
        time.sleep(SETTLE_SECONDS)
        beside, answered = _measured(asks)
    time.sleep(SETTLE_SECONDS)
    return quiet, beside, answered


def _measured(asks: dict[str, Callable[[], Any]]) -> tuple[dict[str, float], int]:
    seconds: dict[str, list[float]] = {what: [] for what in asks}
    answered = 0
    for _ in range(CALLS):
        for what, ask in asks.items():
            begin = time.perf_counter()
            try:
                ask()
                answered += 1
            except grpc.RpcError:
                pass  # counted by not being counted
            seconds[what].append(time.perf_counter() - begin)
    return {what: statistics.median(found) for what, found in seconds.items()}, answered


@contextmanager
def _asking(address: str, token: str) -> Iterator[dict[str, Callable[[], Any]]]:
    options: Sequence[tuple[str, Any]] = [("grpc.use_local_subchannel_pool", 1)]
    metadata = (("authorization", f"Bearer {token}"),)
    with (
        grpc.insecure_channel(address, options=options) as channel,
        grpc.insecure_channel(address, options=options) as probe,
    ):
        listing = channel.unary_unary(LIST)
        health = health_pb2_grpc.HealthStub(probe)
        yield {
            "operator": lambda: listing(b"", metadata=metadata, timeout=10),
            "health": lambda: health.Check(health_pb2.HealthCheckRequest(), timeout=10),
        }


def _prepared(path: Path) -> dict[str, str]:
    """A store with a stream, and the tokens of its callers."""
    with Store(path, workers=0) as store:
        store.create_stream(spec())
        parts = store.parts
        roles = ("operator", "reader")
        return {
            role: make_token(parts.metadata, role, roles=[role], now_ms=parts.now_ms())[0]
            for role in roles
        }


@contextmanager
def _serving(path: Path) -> Iterator[str]:
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
        "SAGE__AUTH__REQUIRED": "true",
        "SAGE__WORKERS__PROCESSES": "0",
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
            yield json.loads(text)["address"]
        finally:
            process.terminate()
