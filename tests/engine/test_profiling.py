"""PTKs without a closed form wait for a window, are profiled on its profile slice, and are accepted
or not.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest

from benchmarks._profiler.ptks import Mean
from ptklib import registry
from ptklib.errors import Refused
from ptklib.ledger.slices import TAG_SPACE, TagRange
from ptklib.privacy.costs import cost_from_json
from ptklib.privacy.noise.source import TEST_NOISE_OPEN
from ptklib.ptk import Arrays, Batches, Tags, batches_of
from ptklib.testing.noise import SeededSource, planted_noise
from ptkstore import Store
from ptkstore.api.times import GRAIN_MS
from ptkstore.engine.profiles import profiling
from ptkstore.workers.processes import ProcessWorkers
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store
from tests.profiler.small import Planted

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
    label: int = 0

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
    monkeypatch.setattr(
        registry, "kinds", lambda: MappingProxyType(known | {"plain": Plain, "hopeless": Hopeless})
    )
    monkeypatch.setattr(profiling, "MEASURED", 2)


def store_with_day(path: Path, kind: str = "plain", *, rows: int = ROWS, **changes: Any) -> Store:
    store = open_store(path, **({"profile_share": SHARE, "block_seconds": 86_400} | changes))
    answer = store.register("speed", stream="rides", kind=kind, config={}, target=TARGET)
    assert (answer.status, answer.planned_epsilon) == ("WAITING", None)
    store.push("rides", day(0, rows), producer="p", seq=0)
    return store


def run(store: Store, *, days: int = 1, hook: Callable[[str, str], None] | None = None) -> Any:
    """The window, with a look into the book once profiles are done: afterwards the block is
    retired.
    """
    looked = []

    def on_step(step: str, moment: str) -> None:
        if hook is not None:
            hook(step, moment)
        if (step, moment) == ("profiled", "written"):
            check_book(store)
            looked.append(step)

    with store._parts.observers.watching(on_step):
        (cycle,) = store.run("rides", until_ms=FIRST_MS + days * DAY_MS)
    assert looked
    return cycle


def charges(store: Store) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The profile's charges: all that were reserved, and those that were spent."""
    history = list(store._parts.ledger.history())
    reserved = {
        entry["charge"]: entry
        for entry in history
        if entry["kind"] == "reserve" and "door:profile" in entry.get("contexts", ())
    }
    spent = [entry["charge"] for entry in history if entry["kind"] == "spend"]
    return list(reserved.values()), [reserved[one] for one in spent if one in reserved]


def stored(store: Store, name: str = "speed") -> dict[str, Any]:
    with store._parts.metadata.read() as tx:
        row = tx.ptks.named(name)
        found = tx.profiles.latest(row.id, row.config_version, row.target)
    assert found is not None
    return dict(found.samples)


def results(store: Store) -> list[dict[str, Any]]:
    return list(stored(store)["results"])


def check_book(store: Store) -> None:
    """Point by point: the window's count, and the charges that ran there, and nothing else."""
    parts = store._parts
    privacy_filter = parts.privacy_filter("rides")
    _, spent = charges(store)
    (block,) = parts.ledger.blocks("rides", retired=False)
    with parts.metadata.read() as tx:
        cycle = tx.cycles.list("rides")[-1].id
    spent = [entry for entry in spent if entry["key"].startswith(f"cycle-{cycle}/")]
    base = np.array(privacy_filter.demand(store.stream("rides").count_release().cost))
    losses = parts.ledger.block("rides", block).losses
    ends = {end for entry in spent for end in entry["slices"][0][1:]} | {
        tags.start for tags, _ in losses
    }
    for point in ends - {TAG_SPACE}:
        expected = base.copy()
        for entry in spent:
            ((_, start, stop),) = entry["slices"]
            if start <= point < stop:
                expected = expected + np.array(privacy_filter.demand(cost_from_json(entry["cost"])))
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
        assert (
            kinds.index("ptk.waiting") < kinds.index("ptk.accepted") < kinds.index("ptk.profiled")
        )
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
        assert {store._parts.ledger.fate(entry["charge"]) for entry in reserved} == {
            "SPENT",
            "RELEASED",
        }


def test_states_that_are_read_share_one_charge_of_the_ledger(tmp_path: Path) -> None:
    """The book is checked point by point by `run`: the price of one training on the whole piece,
    whatever the parts.
    """
    with store_with_day(tmp_path, rows=5 * ROWS) as store:
        run(store)
        _, spent = charges(store)
        keys = [entry["key"].split("/", 2)[2] for entry in spent]
        assert len(keys) == len(set(keys))
        found = results(store)
        read = [key for key in keys if "/read-" in key]
        assert len(read) == sum(len(one["readings"]) for one in found)
        states = [look[2] for one in found for look in one["looks"] + one["readings"]]
        assert stored(store)["trainings"] == sum(states)
        assert sum(states) > sum("/train-" in key or "/read-" in key for key in keys)


def test_a_target_that_cannot_be_reached_is_rejected_with_the_nearest(tmp_path: Path) -> None:
    with store_with_day(tmp_path, "hopeless") as store:
        cycle = run(store)
        assert cycle.trained == ()
        view = store.ptk("speed")
        assert (view.status, "NOT_REACHED" in view.reason) == ("REJECTED", True)
        (event,) = [one for one in store.events() if one.kind == "ptk.rejected"]
        nearest = event.body["nearest_target"]
        assert nearest is None or 0.9 < nearest < 1, "what its state keeps, with room for noise"


@pytest.mark.parametrize(
    ("changes", "rows", "reason"),
    [
        ({}, 150, "TOO_LITTLE_DATA"),
        ({"quotas": {"door:profile": "0.001"}}, ROWS, "REFUSED, QUOTA_EXCEEDED"),
    ],
)
def test_what_the_next_window_may_do_better_keeps_it_waiting(
    tmp_path: Path, changes: dict[str, Any], rows: int, reason: str
) -> None:
    with store_with_day(tmp_path, rows=rows, **changes) as store:
        run(store)
        view = store.ptk("speed")
        assert (view.status, reason in view.reason) == ("WAITING", True), view.reason
        assert charges(store) == ([], [])
        # It should have been profiled: that the window did less is said aloud.
        (cycle,) = store.cycles("rides")
        assert [(line.ptk, line.outcome, line.reason) for line in cycle.trained] == [
            ("speed", "NOT_PROFILED", reason.split(",")[0])
        ]
        assert (cycle.status, "speed" in cycle.shortfall) == ("SHORT", True)
        # And nobody is told of a profile that there is not.
        told = {event.kind: event.body for event in store.events()}
        assert "ptk.profiled" not in told
        assert told["ptk.not_profiled"]["status"] == reason.split(",")[0]
        assert str(told["ptk.not_profiled"]["reason"]).startswith(
            "no profile that it can train by: "
        )


def test_without_a_profile_slice_it_is_rejected_at_once(tmp_path: Path) -> None:
    with open_store(tmp_path, profile_share=0) as store:
        answer = store.register("speed", stream="rides", kind="plain", config={}, target=TARGET)
        assert (answer.status, "profile_share" in answer.reason) == ("REJECTED", True)


def test_a_closed_form_costs_nothing(tmp_path: Path) -> None:
    with open_store(tmp_path, profile_share=SHARE, block_seconds=86_400) as store:
        assert (
            store.register(
                "m", stream="rides", kind="statistics", config=config(), target=0.2
            ).status
            == "ACTIVE"
        )
        store.push("rides", day(0), producer="p", seq=0)
        run(store)
        assert charges(store) == ([], [])


def test_another_target_is_profiled_anew_and_two_ptks_do_not_meet(tmp_path: Path) -> None:
    with store_with_day(tmp_path, rows=2 * ROWS) as store:
        store.register("other", stream="rides", kind="plain", config={"label": 1}, target=TARGET)
        run(store)
        assert {store.ptk(name).status for name in ("speed", "other")} == {"ACTIVE"}
        _, spent = charges(store)
        ranges: dict[str, list[tuple[int, int]]] = {}
        for entry in spent:
            ((_, start, stop),) = entry["slices"]
            ranges.setdefault(entry["contexts"][1], []).append((start, stop))
        ends = {
            name: (min(found)[0], max(stop for _, stop in found)) for name, found in ranges.items()
        }
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
        store._parts.observers.add(on_step)
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
        assert "RESERVED" not in {store._parts.ledger.fate(entry["charge"]) for entry in reserved}
        view = store.ptk("speed")
        assert view.status in ("ACTIVE", "WAITING")
        with store._parts.metadata.read() as tx:
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
        assert some.samples[0] is None, "below all levels of the stream"
        assert some.samples[1] is not None, "in proportion below the lowest that was measured"


@dataclass(frozen=True)
class PlantedInWorkers(Planted):
    """Noise by name, also in worker processes: they end with the store."""

    def source(self, name: str) -> SeededSource:
        if not TEST_NOISE_OPEN.get():
            TEST_NOISE_OPEN.set(True)
        return super().source(name)


class TestWorkers:
    def test_any_number_of_workers_gives_the_same_profile(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(profiling, "NOISE", PlantedInWorkers(3))

        def stop(step: str, moment: str) -> None:
            if (step, moment) == ("profiled", "begins"):
                raise KeyboardInterrupt

        # Tags and the DP count of the window are random: all three go on from where these are
        # drawn.
        with (
            store_with_day(tmp_path / "sealed", rows=5 * ROWS) as store,
            pytest.raises(KeyboardInterrupt),
        ):
            run(store, hook=stop)
        found = []
        for workers in (0, 1, 2):
            shutil.copytree(tmp_path / "sealed", tmp_path / str(workers))
            with Store(tmp_path / str(workers), workers=workers) as store, planted_noise():
                run(store)
                state = store.get_state("speed@v0")
                found.append(
                    (results(store), {name: array.tolist() for name, array in state.arrays.items()})
                )
        assert found[0] == found[1] == found[2]
        assert {one["status"] for one in found[0][0]} == {"REACHED"}

    def test_a_worker_that_dies_costs_what_ran_and_leaves_the_ptk_waiting(
        self, tmp_path: Path
    ) -> None:
        store_with_day(tmp_path).close()
        with Store(tmp_path, workers=1) as store:

            def kill(step: str, moment: str) -> None:
                if (step, moment) == ("profile", "spent"):
                    store._parts.workers.warm()
                    pool = store._parts.workers
                    assert isinstance(pool, ProcessWorkers)
                    (process,) = pool._processes
                    process._child.kill()
                    process._child.wait()

            run(store, hook=kill)
            view = store.ptk("speed")
            assert (view.status, view.reason) == ("WAITING", "profile: FAILED, PROFILE_LOST")
            reserved, spent = charges(store)
            assert spent
            with store._parts.metadata.read() as tx:
                steps = tx.cycles.steps(tx.cycles.list("rides")[-1].id)
            lost = [step.body for step in steps if step.step.count(":") == 2]
            assert [body["reason"] for body in lost] == ["PROFILE_LOST"] * len(lost)
            assert lost[0]["charged"], "the level is lost, and charged"
            assert len({entry["key"] for entry in reserved}) == len(reserved), "nothing twice"
            assert {store._parts.ledger.fate(entry["charge"]) for entry in reserved} == {
                "SPENT",
                "RELEASED",
            }
            # The next window measures it, and accepts it.
            store.push("rides", day(1, ROWS), producer="p", seq=1)
            run(store, days=2)
            assert store.profile("speed").source == "measured"
            assert "ptk.accepted" in [event.kind for event in store.events(limit=1000)]


class TestCancel:
    @pytest.mark.parametrize("how", ["retired", "another target"])
    def test_a_ptk_that_changes_is_charged_no_further(self, tmp_path: Path, how: str) -> None:
        with store_with_day(tmp_path) as store:

            def change(step: str, moment: str) -> None:
                if (step, moment) == ("profile", "level"):
                    if how == "retired":
                        store.deregister("speed")
                    else:
                        store.update_target("speed", 0.7)

            run(store, hook=change)
            reserved, spent = charges(store)
            assert {entry["key"].split("/")[2] for entry in spent} == {"level 0.6"}, (
                "the highest level alone"
            )
            assert {store._parts.ledger.fate(entry["charge"]) for entry in reserved} == {
                "SPENT",
                "RELEASED",
            }
            assert store.ptk("speed").status == ("RETIRED" if how == "retired" else "WAITING")

    def test_an_interrupt_gives_back_what_did_not_run(self, tmp_path: Path) -> None:
        def interrupt(step: str, moment: str) -> None:
            if (step, moment) == ("profile", "level"):
                raise KeyboardInterrupt

        with store_with_day(tmp_path) as store:
            with pytest.raises(KeyboardInterrupt):
                run(store, hook=interrupt)
            reserved, _ = charges(store)
            assert {store._parts.ledger.fate(entry["charge"]) for entry in reserved} == {
                "SPENT",
                "RELEASED",
            }
            run(store)
            assert store.ptk("speed").status == "ACTIVE", "the level that was written is known"


class TestWitness:
    def test_it_is_version_0_and_certified(self, tmp_path: Path) -> None:
        with store_with_day(tmp_path) as store:
            with pytest.raises(Refused, match="no version 0") as caught:
                store.get_state("speed@v0")
            assert caught.value.reason == "STATE_UNKNOWN"
            run(store)
            state = store.get_state("speed@v0")
            measured = {one["level"]: one for one in store.profile("speed").measured}
            assert set(stored(store)["witnesses"]) == set(measured)
            told = measured[state.manifest.epsilon]
            assert (state.manifest.version, state.manifest.samples) == (0, told["size"])
            assert state.manifest.cost == Plain().cost(state.manifest.epsilon)
            assert store.get_state("speed").manifest.version == 1, "training goes on from 1"
            assert Plain().eval(state.arrays, day(7, 2000).to_batches()) <= TARGET, (
                "what a witness promises"
            )


class TestAgain:
    def test_a_fork_with_a_looser_target_costs_nothing(self, tmp_path: Path) -> None:
        with store_with_day(tmp_path) as store:
            run(store)
            before = len(charges(store)[0])
            store.register("fork", stream="rides", kind="plain", config={}, target=0.7)
            store.register("tight", stream="rides", kind="plain", config={}, target=0.5)
            store.push("rides", day(1, ROWS), producer="p", seq=1)
            run(store, days=2)
            assert store.ptk("fork").status == "ACTIVE"
            names = {entry["contexts"][1] for entry in charges(store)[0][before:]}
            assert names == {"ptk:tight"}, "a witness says nothing of tighter targets"
            body = stored(store, "fork")
            assert (body["trainings"], body["made_ms"]) == (0, stored(store)["made_ms"])
            assert {one["reason"] for one in body["results"]} == {"reused"}
            assert store.get_state("fork@v0").arrays["f"] is not None

    def test_a_stream_that_grows_is_profiled_again(self, tmp_path: Path) -> None:
        with store_with_day(tmp_path, rows=ROWS) as store:
            run(store)
            profiled = []
            for number in (1, 2, 3, 4):
                store.push("rides", day(number, 3 * ROWS), producer="p", seq=number)
                cycle = run(store, days=number + 1)
                with store._parts.metadata.read() as tx:
                    step = tx.cycles.step(tx.cycles.list("rides")[-1].id, "profiled:list")
                assert step is not None
                assert cycle.dp_records > 2 * ROWS
                profiled.append(step.body["why"])
            assert profiled == [[], [], ["RECORDS_DRIFTED"], []]

    def test_a_rejection_is_looked_at_again_when_there_is_much_more_data(
        self, tmp_path: Path
    ) -> None:
        with store_with_day(tmp_path, "hopeless", rows=10_000) as store:
            run(store)
            assert store.ptk("speed").status == "REJECTED"
            for number, rows, again in ((1, 12_000, False), (2, 30_000, True)):
                before = len(charges(store)[1])
                store.push("rides", day(number, rows), producer="p", seq=number)
                run(store, days=number + 1)
                assert (len(charges(store)[1]) > before) is again
            assert store.ptk("speed").status == "REJECTED", "it is hopeless"
            reasons = [one.body["reason"] for one in store.events() if one.kind == "ptk.waiting"]
            assert any("more data" in reason for reason in reasons)

    @pytest.mark.parametrize(("rows", "status"), [(ROWS, "ACTIVE"), (150, "WAITING")])
    def test_a_profile_of_the_older_rule_is_renewed_or_not_trusted(
        self, tmp_path: Path, rows: int, status: str
    ) -> None:
        with store_with_day(tmp_path) as store:
            run(store)
            with store._parts.metadata.read() as tx:
                row = tx.ptks.named("speed")
                last = tx.profiles.latest(row.id, row.config_version, row.target)
            assert last is not None
            body = {name: one for name, one in last.samples.items() if name != "certifies"}
            with store._parts.journal.writing() as tx:
                tx.profiles.put(
                    row.id, row.config_version, row.target, last.levels, body, last.source, at_ms=1
                )
            assert "older rule" in store.profile("speed").reason
            store.push("rides", day(1, rows), producer="p", seq=1)
            cycle = run(store, days=2)
            view = store.ptk("speed")
            assert view.status == status, view.reason
            assert ("PUBLISHED" in [line.outcome for line in cycle.trained]) is (rows == ROWS)
            if rows == ROWS:
                assert stored(store)["certifies"] == "retraining"
                assert store.profile("speed").reason == ""
            else:
                assert "older rule" in view.reason

    def test_one_can_ask_for_a_new_one(self, tmp_path: Path) -> None:
        with store_with_day(tmp_path) as store:
            store.register("m", stream="rides", kind="statistics", config=config(), target=0.2)
            run(store)
            old = store.profile("speed")
            asked = store.renew_profile("speed")
            assert (asked.samples, asked.made_ms) == (old.samples, old.made_ms), (
                "the old one counts until then"
            )
            assert "measured again" in asked.reason
            assert store.ptk("speed").status == "ACTIVE"
            before = len(charges(store)[1])
            store.push("rides", day(1, ROWS), producer="p", seq=1)
            store.parts.clock = lambda: time.time() + GRAIN_MS / 1000
            run(store, days=2)
            assert len(charges(store)[1]) > before, "measured, not reused"
            new = store.profile("speed")
            assert new.made_ms is not None
            assert old.made_ms is not None
            assert new.made_ms > old.made_ms
            assert new.made_ms % GRAIN_MS == old.made_ms % GRAIN_MS == 0
            assert new.reason == ""
            assert store.renew_profile("m").source == "analytic"
            store.deregister("speed")
            with pytest.raises(Refused) as caught:
                store.renew_profile("speed")
            assert caught.value.reason == "PTK_RETIRED"

    def test_a_rejected_one_may_ask_again(self, tmp_path: Path) -> None:
        with store_with_day(tmp_path, "hopeless") as store:
            run(store)
            store.renew_profile("speed")
            assert store.ptk("speed").status == "WAITING"
