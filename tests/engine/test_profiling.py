"""PTKs without a closed form wait for a window, are profiled on its profile slice, and are accepted or not."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest

from benchmarks._profiler.ptks import Mean
from ptklib import registry
from ptklib.ledger.slices import TAG_SPACE, TagRange
from ptklib.privacy.costs import cost_from_json
from ptklib.ptk import Arrays, Batches, Tags, batches_of
from ptkstore import Store
from ptkstore.engine import profiling
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

ROWS = 30_000
SHARE = "0.7"
# Not a binary fraction: what is promised must be the target all the same.
TARGET = 0.6

fork = get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

Floats = np.ndarray[Any, np.dtype[np.float64]]


def _speeds(batches: Batches) -> Iterator[Any]:
    import pyarrow as pa

    for one in batches_of(batches):
        speed = one.column("speed").to_numpy(zero_copy_only=False).astype(np.float64)
        yield pa.RecordBatch.from_pydict({"x": np.nan_to_num(speed) / 60})


@dataclass(frozen=True, kw_only=True)
class Plain(Mean):
    """The mean speed, without a closed form for its samples."""

    kind: ClassVar[str] = "plain"

    def columns(self) -> tuple[str, ...]:
        return ("speed",)

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        return super().train_dp(_speeds(batches), **options)

    def exact(self, batches: Batches) -> Arrays:
        return super().exact(_speeds(batches))

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        return super().loss(arrays, _speeds(batches))


@dataclass(frozen=True, kw_only=True)
class Hopeless(Plain):
    """Never gets better than 0.9."""

    kind: ClassVar[str] = "hopeless"
    tags: ClassVar[Tags] = Tags()

    def loss(self, arrays: Arrays, batches: Batches) -> Floats:
        return np.full_like(super().loss(arrays, batches), 0.9)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(registry.kinds())
    monkeypatch.setattr(registry, "kinds", lambda: MappingProxyType(known | {"plain": Plain, "hopeless": Hopeless}))
    monkeypatch.setattr(profiling, "MEASURED", 2)


def store_with_day(path: Path, kind: str = "plain", *, rows: int = ROWS, **changes: Any) -> Store:
    store = open_store(path, **({"profile_share": SHARE, "block_seconds": 86_400} | changes))
    answer = store.register("speed", stream="rides", kind=kind, config={}, target=TARGET)
    assert (answer.status, answer.planned_epsilon) == ("WAITING", None)
    store.push("rides", day(0, rows), producer="p", seq=0)
    return store


def run(store: Store) -> Any:
    """The window, with a look into the book once profiles are done: afterwards the block is retired."""
    looked = []

    def on_step(step: str, moment: str) -> None:
        if (step, moment) == ("profiled", "written"):
            check_book(store)
            looked.append(step)

    store._home.on_step = on_step
    (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
    store._home.on_step = lambda _step, _moment: None
    assert looked
    return cycle


def charges(store: Store) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The profile's charges: all that were reserved, and those that were spent."""
    history = list(store._home.ledger.history())
    reserved = {
        entry["charge"]: entry
        for entry in history
        if entry["kind"] == "reserve" and "door:profile" in entry.get("contexts", ())
    }
    spent = [entry["charge"] for entry in history if entry["kind"] == "spend"]
    return list(reserved.values()), [reserved[one] for one in spent if one in reserved]


def results(store: Store) -> list[dict[str, Any]]:
    with store._home.metadata.read() as tx:
        row = tx.ptks.named("speed")
        found = tx.profiles.latest(row.id, row.config_version, row.target)
    assert found is not None
    return list(found.samples["results"])


def check_book(store: Store) -> None:
    """Point by point: the window's count, and the charges that ran there, and nothing else."""
    home = store._home
    judge = home.judge("rides")
    _, spent = charges(store)
    (block,) = home.ledger.blocks("rides")
    base = np.array(judge.demand(store.stream("rides").count_release().cost))
    losses = home.ledger.block("rides", block).losses
    ends = {end for entry in spent for end in entry["slices"][0][1:]} | {tags.start for tags, _ in losses}
    for point in ends - {TAG_SPACE}:
        expected = base.copy()
        for entry in spent:
            ((_, start, stop),) = entry["slices"]
            if start <= point < stop:
                expected = expected + np.array(judge.demand(cost_from_json(entry["cost"])))
        (loss,) = [loss for tags, loss in losses if tags.start <= point < tags.stop]
        assert tuple(expected.tolist()) == tuple(loss), point


def test_it_waits_is_profiled_and_trains_in_the_same_window(tmp_path: Path) -> None:
    with store_with_day(tmp_path) as store:
        cycle = run(store)
        assert cycle.steps[:3] == ("sealed", "profiled", "planned")
        assert store.ptk("speed").status == "ACTIVE"
        assert [line.outcome for line in cycle.trained] == ["PUBLISHED"]
        measured = results(store)
        assert {one["status"] for one in measured} == {"REACHED"}
        kinds = [event.kind for event in store.events()]
        assert kinds.index("ptk.waiting") < kinds.index("ptk.accepted") < kinds.index("ptk.profiled")
        # The next window has its profile and is not profiled again.
        store.push("rides", day(1, 2000), producer="p", seq=1)
        before = len(charges(store)[0])
        store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert len(charges(store)[0]) == before


def test_the_ledger_shows_exactly_what_ran(tmp_path: Path) -> None:
    with store_with_day(tmp_path) as store:
        run(store)
        reserved, spent = charges(store)
        ran = [name for one in results(store) for name in one["charged"]]
        assert sorted(entry["key"].split("/", 2)[2] for entry in spent) == sorted(ran)
        assert len(spent) < len(reserved), "the worst case was reserved"
        assert {store._home.ledger.fate(entry["charge"]) for entry in reserved} == {"SPENT", "RELEASED"}


def test_a_target_that_cannot_be_reached_is_rejected_with_the_nearest(tmp_path: Path) -> None:
    with store_with_day(tmp_path, "hopeless") as store:
        cycle = run(store)
        assert cycle.trained == ()
        view = store.ptk("speed")
        assert (view.status, "NOT_REACHED" in view.reason) == ("REJECTED", True)
        (event,) = [one for one in store.events() if one.kind == "ptk.rejected"]
        assert event.body["nearest_target"] is None, "a loss of 0.9 passes at no target"


@pytest.mark.parametrize(
    ("changes", "rows", "reason"),
    [({}, 500, "TOO_LITTLE_DATA"), ({"quotas": {"door:profile": "0.001"}}, ROWS, "REFUSED, QUOTA_EXCEEDED")],
)
def test_what_the_next_window_may_do_better_keeps_it_waiting(
    tmp_path: Path, changes: dict[str, Any], rows: int, reason: str
) -> None:
    with store_with_day(tmp_path, rows=rows, **changes) as store:
        run(store)
        view = store.ptk("speed")
        assert (view.status, reason in view.reason) == ("WAITING", True), view.reason
        assert charges(store) == ([], [])


def test_without_a_profile_slice_it_is_rejected_at_once(tmp_path: Path) -> None:
    with open_store(tmp_path, profile_share=0) as store:
        answer = store.register("speed", stream="rides", kind="plain", config={}, target=TARGET)
        assert (answer.status, "profile_share" in answer.reason) == ("REJECTED", True)


def test_a_closed_form_costs_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path, profile_share=SHARE, block_seconds=86_400) as store:
        assert store.register("m", stream="rides", kind="statistics", config=config(), target=0.2).status == "ACTIVE"
        store.push("rides", day(0), producer="p", seq=0)
        run(store)
        assert charges(store) == ([], [])


def test_another_target_is_profiled_anew_and_two_ptks_do_not_meet(tmp_path: Path) -> None:
    with store_with_day(tmp_path, rows=2 * ROWS) as store:
        store.register("other", stream="rides", kind="plain", config={}, target=TARGET)
        run(store)
        assert {store.ptk(name).status for name in ("speed", "other")} == {"ACTIVE"}
        _, spent = charges(store)
        ranges: dict[str, list[tuple[int, int]]] = {}
        for entry in spent:
            ((_, start, stop),) = entry["slices"]
            ranges.setdefault(entry["contexts"][1], []).append((start, stop))
        ends = {name: (min(found)[0], max(stop for _, stop in found)) for name, found in ranges.items()}
        assert ends["ptk:speed"][1] <= ends["ptk:other"][0]
        assert ends["ptk:other"][1] <= TagRange.of_shares(0, SHARE).stop
        assert store.update_target("speed", 0.45).status == "WAITING"
        assert store.ptk("speed").status == "WAITING"


@pytest.mark.parametrize(
    ("point", "occurrence"),
    [("reserved", 1), ("spent", 1), ("spent", 2), ("level", 1), ("spent", 4), ("level", 2)],
)
def test_killed_in_a_profile(tmp_path: Path, point: str, occurrence: int) -> None:
    def live() -> None:
        seen = 0

        def on_step(step: str, moment: str) -> None:
            nonlocal seen
            if (step, moment) == ("profile", point):
                seen += 1
                if seen == occurrence:
                    os.kill(os.getpid(), signal.SIGKILL)

        store = store_with_day(tmp_path)
        store._home.on_step = on_step
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        os._exit(0)

    child = fork.Process(target=live)
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the point must be reached"
    with open_store(tmp_path) as store:
        run(store)
        reserved, spent = charges(store)
        keys = [entry["key"] for entry in reserved]
        assert len(keys) == len(set(keys)), "no charge is made twice"
        assert "RESERVED" not in {store._home.ledger.fate(entry["charge"]) for entry in reserved}
        view = store.ptk("speed")
        assert view.status in ("ACTIVE", "WAITING")
        with store._home.metadata.read() as tx:
            (cycle,) = tx.cycles.list("rides")
            steps = {one.step: one.body for one in tx.cycles.steps(cycle.id)}
        assert set(steps["profiled"]) == {"speed"}
        if point == "reserved":
            assert view.status == "ACTIVE", "nothing was lost"
        if view.status == "WAITING":
            assert "PROFILE_LOST" in view.reason
        assert len(spent) >= (1 if point != "reserved" else 0)


def test_a_profile_is_shown_before_and_after(tmp_path: Path) -> None:
    with store_with_day(tmp_path) as store:
        before = store.profile("speed")
        assert (before.source, before.status, set(before.samples)) == ("none", "WAITING", {None})
        assert (before.needed_records or 0) > 1000
        run(store)
        after = store.profile("speed")
        assert (after.source, after.promised, after.confidence) == ("measured", "0.6", "0.95")
        assert after.trainings >= 3
        assert len(after.measured) == 2
        some = store.profile("speed", ["0.005", "0.05", "1"])
        assert some.levels == ("0.005", "0.05", "1")
        assert some.samples[0] is None, "nothing is known below the lowest level"
        assert some.samples[1] is not None
