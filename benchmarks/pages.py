"""Pages of a large store over loopback: the page at the end beside the first one, and the
milliseconds of each.

A store with 5,000 PTKs, 100,000 blocks, 1,000,000 charges, 200,000 events, 1,200 operations and two
plans is written straight into the ledger and the metadata, in commits of 1,000 charges. A server
serves it, and one client reads pages of 100 through the public API: the first page, the page in the
middle and the last page, in turns. A list that reads everything for every page, or skips to where
it goes on, is many times slower at the end; one that is read by key is not. The ratio is the median
over the rounds. A page of 1,000 operations is compared with one of 1,000 events.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.bars import Report, Say, at_most
from ptklib.ledger.commands import Command, Reserve, Retire
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import Slice
from ptklib.privacy.costs import PureCost
from ptkstore import Store
from ptkstore.api.columns import Column
from ptkstore.api.paging import PageRequest
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PartitionLine, PlanLine, PlanView, TrainedLine
from ptkstore.engine.budgets.charges import index_charges
from ptkstore.engine.steps.of_window import Sealed
from ptkstore.metadata.tables import blocks, ptk_configs, ptks
from ptkstore.server import Server
from ptkstore.settings import Settings

PTKS = 5_000
BLOCKS = 100_000
CHARGES_PER_BLOCK = 10
EVENTS = 200_000
ALIVE = 1_000
OPERATIONS = 1_200
SIZE = 100
ROUNDS = 15
STREAM = "rides"
BLOCK_MS = 3_600_000
DAY_MS = 24 * BLOCK_MS
CUTS = 400
_CONFIG = json.dumps(
    {
        "keys": [{"kind": "integers", "column": "hour", "first": 0, "last": 23}],
        "statistics": ["count"],
    }
)


def run(say: Say) -> Report:
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        say(
            f"{PTKS:,} PTKs, {BLOCKS:,} blocks, {BLOCKS * CHARGES_PER_BLOCK:,} charges, {EVENTS:,} "
            "events"
        )
        begin = time.perf_counter()
        with Store(folder, workers=0) as store:
            fill(store, say)
            settings = Settings(server={"address": "127.0.0.1:0"})  # type: ignore[arg-type]
            with Server(store, settings) as server, Store(server.address) as remote:
                report.figures["seconds to write"] = round(time.perf_counter() - begin, 1)
                say("reading")
                for name, first, middle, last in _reads(remote):
                    times = {"first": _Timer(first), "middle": _Timer(middle), "last": _Timer(last)}
                    for _ in range(ROUNDS):
                        for one in times.values():
                            one()
                    spent = {
                        place: statistics.median(one.seconds[1:]) for place, one in times.items()
                    }
                    report.bars.append(
                        at_most(
                            f"{name}: seconds of the last page / of the first",
                            spent["last"] / spent["first"],
                            3,
                        )
                    )
                    report.figures[f"{name}, ms"] = {
                        place: round(1000 * one, 2) for place, one in spent.items()
                    }
                wide = {
                    "operations": _Timer(lambda: remote.operations(limit=1000).operations),
                    "events": _Timer(lambda: remote.events(0, 1000)),
                }
                for _ in range(ROUNDS):
                    for one in wide.values():
                        one()
                took = {name: statistics.median(one.seconds[1:]) for name, one in wide.items()}
                # An operation has a cycle with its steps; one query for each of them is what takes
                # long.
                report.bars.append(
                    at_most(
                        "seconds of 1,000 operations / of 1,000 events",
                        took["operations"] / took["events"],
                        15,
                    )
                )
                report.figures["pages of 1,000, ms"] = {
                    name: round(1000 * one, 2) for name, one in took.items()
                }
                summary = _Timer(lambda: remote.budget_summary(STREAM))
                for _ in range(ROUNDS):
                    summary()
                report.figures["budget_summary, ms"] = round(
                    1000 * statistics.median(summary.seconds[1:]), 2
                )
    return report


class _Timer:
    """Calls something and keeps the seconds."""

    def __init__(self, act: Callable[[], Any]) -> None:
        self.act = act
        self.seconds: list[float] = []

    def __call__(self) -> None:
        begin = time.perf_counter()
        found = self.act()
        self.seconds.append(time.perf_counter() - begin)
        assert found


def _reads(
    remote: Store,
) -> list[tuple[str, Callable[[], Any], Callable[[], Any], Callable[[], Any]]]:
    def block(number: int) -> Callable[[], Any]:
        token = PageRequest(f"blocks {STREAM}", SIZE, "").token(f"b{number:06}") if number else ""
        return lambda: remote.blocks(STREAM, limit=SIZE, page_token=token).blocks

    charges = BLOCKS * CHARGES_PER_BLOCK

    def charge(number: int) -> Callable[[], Any]:
        token = PageRequest(f"charges {STREAM}", SIZE, "").token(number) if number else ""
        return lambda: remote.charges(STREAM, limit=SIZE, page_token=token).charges

    def event(number: int) -> Callable[[], Any]:
        return lambda: remote.events(number, SIZE)

    return [
        ("blocks", block(0), block(BLOCKS // 2), block(BLOCKS - SIZE - 1)),
        ("charges", charge(0), charge(charges // 2), charge(charges - SIZE)),
        ("events", event(0), event(EVENTS // 2), event(EVENTS - SIZE)),
    ]


def _apply(store: Store, commands: Sequence[Command]) -> None:
    """All of them in one commit."""
    store.parts.ledger._writer.submit(lambda turn: [turn.apply(one) for one in commands])


def fill(store: Store, say: Say) -> None:
    parts = store.parts
    store.create_stream(
        StreamSpec(
            name=STREAM,
            columns=(
                Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
                Column(name="hour", type="int32", lower=0, upper=23),
            ),
            time_column="at",
            policy=Policy(epsilon=1, delta="1e-6"),
            window_seconds=24 * 3600,
            block_seconds=3600,
        )
    )
    # A stream that has blocks has files.
    parts.writer(STREAM)
    names = [f"b{number:06}" for number in range(BLOCKS)]
    parts.ledger.add_blocks(STREAM, names)
    cost = PureCost(epsilon="0.01")
    asked = [
        Reserve(
            stream=STREAM,
            slices=(Slice((name,)),),
            cost=cost,
            expires_at_ms=2,
            contexts=("door:ptk", f"ptk:p{1 + (number * CHARGES_PER_BLOCK + place) % PTKS}"),
            key=f"cycle-{place}/{name}",
            spend_at_ms=1,
        )
        for number, name in enumerate(names)
        for place in range(CHARGES_PER_BLOCK)
    ]
    # Blocks are closed as time goes on: what the book keeps of quotas is of those that live.
    turn = 1000 // CHARGES_PER_BLOCK
    for begin in range(0, len(names), turn):
        _apply(store, asked[begin * CHARGES_PER_BLOCK : (begin + turn) * CHARGES_PER_BLOCK])
        old = tuple(names[max(0, begin - ALIVE) : max(0, min(begin + turn, len(names)) - ALIVE)])
        if old:
            _apply(store, [Retire(STREAM, old, "window expired")])
    say("indexing the charges")
    index_charges(parts)
    with parts.journal.writing() as tx:
        session = tx.blocks._session
        session.insert_plain(
            blocks,
            ("stream", "name", "start_ms", "end_ms", "window", "status", "dp_count"),
            [
                (
                    STREAM,
                    name,
                    place * BLOCK_MS,
                    (place + 1) * BLOCK_MS,
                    place // 24,
                    "expired",
                    4000,
                )
                for place, name in enumerate(names)
            ],
        )
        for number in range(1, PTKS + 1):
            values = {
                "kind": "statistics",
                "config_version": 1,
                "target": 0.3,
                "train_every": 1,
                "etag": 1,
            }
            session.insert(
                ptks, name=f"p{number}", stream=STREAM, status="ACTIVE", reason="", **values
            )
            session.insert(ptk_configs, ptk=number, config_version=1, config=_CONFIG)
        tx.events.add_all(
            ("ptk.state", f"p{number % PTKS + 1}", {"version": number}) for number in range(EVENTS)
        )
    say("cycles")
    add_cycles(store)
    add_operations(store)


def add_cycles(store: Store) -> None:
    """Two windows that ran, each with a plan for all PTKs and what became of them."""
    newest = BLOCKS * BLOCK_MS // DAY_MS
    for window in (newest - 1, newest):
        view = _plan(window)
        trained = {
            one.ptk: asdict(
                TrainedLine(one.ptk, "PUBLISHED", 1 + window - newest + 1, one.epsilon, one.samples)
            )
            for one in view.lines
        }
        with store.parts.journal.writing() as tx:
            cycle = tx.cycles.start(STREAM, window, at_ms=window * DAY_MS)
            body = {"view": view.as_json()}
            tx.plans.put(STREAM, window, body, view.status, at_ms=window * DAY_MS)
            steps = {
                "sealed": Sealed(blocks=(), dp_records=96_000).as_json(),
                "planned": body,
                "trained": trained,
                "expired": None,
            }
            tx.cycles.add_steps(cycle, steps, at_ms=window * DAY_MS)
            tx.cycles.finish(cycle, "DONE", at_ms=window * DAY_MS)


def add_operations(store: Store) -> None:
    """Windows that were closed one by one, each with a cycle of a few PTKs."""
    with store.parts.journal.writing() as tx:
        for window in range(OPERATIONS):
            line = asdict(TrainedLine("p1", "PUBLISHED", window + 1, "0.01", 3000))
            cycle = tx.cycles.start(STREAM, window, at_ms=window * DAY_MS)
            planned = {"view": {"status": "OPTIMAL"}}
            steps = {
                "sealed": Sealed(blocks=(), dp_records=96_000).as_json(),
                "planned": planned,
                "trained": {"p1": line},
                "expired": None,
            }
            tx.cycles.add_steps(cycle, steps, at_ms=window * DAY_MS)
            tx.cycles.finish(cycle, "DONE", at_ms=window * DAY_MS)
            row = tx.operations.start("CloseWindow", STREAM, at_ms=window * DAY_MS)
            tx.operations.add_windows(row.id, [window])
            tx.operations.end(row.id, "DONE", at_ms=window * DAY_MS)


def _plan(window: int) -> PlanView:
    """Every PTK spans three of so many partitions."""
    lines = tuple(
        PlanLine(
            f"p{k}",
            "0.01",
            3000 + k % 7,
            0.03,
            0.3,
            tuple(sorted((k + step) % CUTS for step in range(3))),
            0.025,
        )
        for k in range(1, PTKS + 1)
    )
    cuts = tuple(PartitionLine(1000, 3 * PTKS // CUTS, 0.95) for _ in range(CUTS))
    total = sum(one.samples for one in cuts)
    return PlanView(
        STREAM,
        window,
        "OPTIMAL",
        total,
        total,
        "strip",
        1.5,
        lines,
        lower_bound=total,
        gap=0.0,
        partitions=cuts,
    )
