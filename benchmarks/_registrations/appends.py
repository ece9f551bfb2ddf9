"""Whether appends notice that somebody registers: their latencies in turns, with and without.

One server, in a process of its own, and one producer that pushes small batches, one after the
other. Beside it another process, in a session of its own as another machine would be, registers
without a pause. In *quiet* turns that process and those that plan for the server stand still
(SIGSTOP), and so does what is refined in the background, which would go on for a minute; in *busy*
turns they go on. Turns are a few dozen appends long and their order changes, so that what else the
machine does meets both alike. In *stranger* turns all is quiet but for a process that has nothing
to do with the server and computes, as nice as those that plan: what any neighbour costs, to read
the other figure by.

The latencies of all turns of a kind are put together before the percentiles are taken: those of one
turn would be two or three pushes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmarks.bars import Say
from benchmarks.rpc import served
from ptkstore import Store
from tests.engine import flights

__all__ = ["KINDS", "measured", "register_for_ever"]

KINDS = ("quiet", "busy", "stranger")
TURNS, APPENDS, ROWS = 40, 40, 200
_WARM = 100
_SETTLE_SECONDS = 0.2
_PAUSE_SECONDS = 0.002
_ROOT = Path(__file__).parents[2]
_REGISTER = "import sys; from benchmarks._registrations.appends import register_for_ever as run; run(sys.argv[1])"
_COMPUTE = "import os\nos.nice(10)\nwhile True:\n    sum(range(10**6))"


def measured(say: Say, turns: int = TURNS) -> dict[str, float]:
    """Percentiles of the latencies of each kind of turns, in ms, and how many registrations were
    answered meanwhile.
    """
    latencies: dict[str, list[float]] = {kind: [] for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        with Store(folder, workers=0) as store:
            store.create_stream(flights.spec(n_max=60_000))
        with (
            served(Path(folder)) as (address, server),
            _process(_REGISTER, address) as other,
            _process(_COMPUTE) as stranger,
            Store(address) as store,
        ):
            _stop([stranger.pid])
            table = flights.flights(0, ROWS)
            _pushed(store, table, _WARM)
            for turn in range(turns):
                say(f"appends, turn {turn + 1} of {turns}")
                for kind in KINDS[turn % 3 :] + KINDS[: turn % 3]:
                    planning = [other.pid, *_planning(server.pid)]
                    (_go_on if kind == "busy" else _stop)(planning)
                    (_go_on if kind == "stranger" else _stop)([stranger.pid])
                    time.sleep(_SETTLE_SECONDS)
                    latencies[kind] += _pushed(store, table, APPENDS)
            _go_on([other.pid, stranger.pid, *_planning(server.pid)])
            answered = len(store.ptks("flights"))
    found = {
        f"{kind}_p{share}_ms": float(np.percentile(ones, share)) * 1000
        for kind, ones in latencies.items()
        for share in (50, 90, 99)
    }
    return found | {"registrations": answered}


def register_for_ever(address: str) -> None:
    """The seven again and again; those that were accepted make room for the next time."""
    with Store(address) as store:
        turn = 0
        while True:
            names = []
            for name, kind, config, target in flights.PTKS:
                answer = store.register(
                    f"{name}-{turn}", stream="flights", kind=kind, config=config, target=target
                )
                names += [answer.name] if answer.status != "REJECTED" else []
            for name in names:
                store.deregister(name)
            turn += 1


def _pushed(store: Store, table: object, count: int) -> list[float]:
    """Seconds of each of so many pushes."""
    found = []
    for _ in range(count):
        begin = time.perf_counter()
        store.push("flights", table)
        found.append(time.perf_counter() - begin)
        time.sleep(_PAUSE_SECONDS)
    return found


@contextmanager
def _process(code: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=_ROOT,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _planning(pid: int) -> list[int]:
    """The processes that this one has started, and theirs."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for one in found for child in one.read_text().split()]
    return [*children, *(below for child in children for below in _planning(child))]


def _stop(pids: list[int]) -> None:
    _signal(pids, signal.SIGSTOP)


def _go_on(pids: list[int]) -> None:
    _signal(pids, signal.SIGCONT)


def _signal(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


if __name__ == "__main__":
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else TURNS
    print(
        json.dumps(
            {key: round(value, 2) for key, value in measured(lambda _: None, rounds).items()}
        )
    )
