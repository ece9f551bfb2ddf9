"""The engine is killed (SIGKILL) at every journalled step and at random moments; the next start
finishes the work.

Each run: a child process pushes two days of rides, acknowledging every batch to us, and runs both
windows. It is killed somewhere. Then the store is opened again, what was not acknowledged is pushed
again, and the windows are run to their end.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from ptkstore import Store
from ptkstore.engine.window.cycle import STEPS
from tests.engine.small import CANARY, DAY_MS, FIRST_MS, ROWS, config, day, open_store

NAMES = ("hour-speed", "hour-rides")
DAYS = 2
BATCHES = 4
POINTS = [
    *((step, moment) for step in STEPS for moment in ("begins", "worked", "written")),
    ("sealed", "added"),
    ("sealed", "counted"),
    ("train", "spent"),
    ("train", "stored"),
]
RANDOM_RUNS = 25

fork = get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def register(store: Store) -> None:
    known = {ptk.name for ptk in store.ptks()}
    asked: dict[str, Any] = {"stream": "rides", "kind": "statistics", "target": 0.15}
    for name, statistic, over in zip(NAMES, ("mean", "count"), ("all", "rolling:2"), strict=True):
        if name not in known:
            store.register(name, config=config(statistic), over=over, **asked)


def push(store: Store, batch: int) -> None:
    number, part = divmod(batch, BATCHES)
    rows = ROWS // BATCHES
    store.push("rides", day(number).slice(part * rows, rows), producer="p", seq=batch)


def live(path: Path, acks: Connection, point: tuple[str, str] | None, occurrence: int) -> None:
    """The child's life, from an empty directory to two windows done, unless it dies at the
    point.
    """
    seen = 0

    def on_step(step: str, moment: str) -> None:
        nonlocal seen
        if (step, moment) == point:
            seen += 1
            if seen == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)

    store = open_store(path)
    store._parts.observers.add(on_step)
    register(store)
    acks.send("ready")
    for batch in range(DAYS * BATCHES):
        push(store, batch)
        acks.send(batch)
        if batch % BATCHES == BATCHES - 1:
            store.run("rides", until_ms=FIRST_MS + (batch // BATCHES + 1) * DAY_MS)
    os._exit(0)


def spawn(
    path: Path, point: tuple[str, str] | None, occurrence: int, kill_after: float | None
) -> set[int]:
    """Run the child until it ends or is killed; the batches it acknowledged."""
    ours, theirs = fork.Pipe(duplex=False)
    child = fork.Process(target=live, args=(path, theirs, point, occurrence))
    child.start()
    theirs.close()
    if kill_after is not None:
        time.sleep(kill_after)
        child.kill()
    child.join(60)
    acked: set[int] = set()
    while True:
        try:
            message = ours.recv()
        except EOFError:
            break
        if message != "ready":
            acked.add(message)
    ours.close()
    if point is not None:
        assert child.exitcode == -signal.SIGKILL, "the point must be reached"
    return acked


def finish(path: Path, acked: set[int]) -> None:
    """Start again, push what was not acknowledged, run to the end, and check what must hold."""
    with open_store(path) as store:
        register(store)
        for batch in range(DAYS * BATCHES):
            if batch not in acked:
                push(store, batch)
        store.run("rides", until_ms=FIRST_MS + DAYS * DAY_MS)
        cycles = store.cycles("rides")
        assert len(cycles) == DAYS
        told = [
            event.body["window"]
            for event in store.events(limit=10_000)
            if event.kind == "window.short"
        ]
        assert sorted(told) == sorted(
            cycle.window for cycle in cycles if cycle.status == "SHORT"
        ), "once each"
        history = list(store._parts.ledger.history())
        keys = Counter(entry["key"] for entry in history if entry["kind"] == "reserve")
        assert max(keys.values()) == 1, "no charge is made twice"
        for cycle in cycles:
            outcomes = {line.outcome for line in cycle.trained}
            assert cycle.status == ("DONE" if outcomes == {"PUBLISHED"} else "SHORT"), cycle
            if cycle.dp_records == 0:
                # The count was charged and lost: it counts as 0, and nobody can train on nothing.
                assert outcomes == {"SKIPPED"}, cycle
                continue
            # Every record that was acknowledged before its window closed is in it.
            assert abs(cycle.dp_records - ROWS) < 200, cycle
            assert outcomes <= {"PUBLISHED", "TRAIN_LOST"}, cycle
        for name in NAMES:
            versions = store.states(name)
            assert [one.version for one in versions] == list(range(1, len(versions) + 1))
            for one in versions:
                state = store.get_state(f"{name}@v{one.version}")
                parts = [
                    store._parts.lake.get(digest)[0] for _, digest in state.manifest.parts or ()
                ]
                if parts:
                    totals = [safetensors.numpy.load(part)["totals"] for part in parts]
                    assert np.array_equal(sum(totals), state.arrays["totals"]), (
                        "all parts are there"
                    )
        published = sum(line.outcome == "PUBLISHED" for cycle in cycles for line in cycle.trained)
        assert published == sum(len(store.states(name)) for name in NAMES)
        wrong = [finding.what for finding in store.doctor([CANARY]) if finding.level == "ERROR"]
        # What a kill took from the newest window is said, and nothing else is wrong.
        assert wrong == (["windows of rides"] if cycles[-1].status == "SHORT" else [])
        assert {block.status for block in store.budget("rides").blocks} == {"expired"}


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point[0]}-{point[1]}")
def test_killed_at_a_journalled_step(tmp_path: Path, point: tuple[str, str]) -> None:
    for occurrence in (1, 2):
        path = tmp_path / str(occurrence)
        acked = spawn(path, point, occurrence, None)
        finish(path, acked)


@pytest.mark.parametrize("seed", range(RANDOM_RUNS))
def test_killed_at_a_random_moment(tmp_path: Path, seed: int) -> None:
    acked = spawn(tmp_path / "store", None, 1, random.Random(seed).uniform(0.02, 1.5))
    finish(tmp_path / "store", acked)


def test_a_run_that_is_not_killed_publishes_everything(tmp_path: Path) -> None:
    acked = spawn(tmp_path / "store", None, 1, None)
    assert acked == set(range(DAYS * BATCHES))
    with open_store(tmp_path / "store") as store:
        assert [len(store.states(name)) for name in NAMES] == [DAYS, DAYS]
