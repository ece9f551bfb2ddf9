"""PTKs on trial: planned where a profile slice is too small to certify, published only when their own
test accepts, rejected when nothing there is helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest

from profiler.on_trial import largest_try
from ptklib import registry
from ptklib.errors import Refused
from ptklib.privacy.costs import Cost, cost_from_json
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Batches, Tags, batches_of
from ptkstore import Store
from ptkstore.engine.profiles import profiling
from ptkstore.engine.window import trials
from tests.engine.small import DAY_MS, FIRST_MS, day, open_store
from tests.engine.test_profiling import Plain

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

ROWS, SHARE = 20_000, "0.3"


@dataclass(frozen=True, kw_only=True)
class Slow(Plain):
    """Learns how many records there are; its loss falls with their square root, for all alike."""

    kind: ClassVar[str] = "slow"
    tags: ClassVar[Tags] = Tags()
    level: ClassVar[float] = 0.2
    slope: ClassVar[float] = 8.0

    def cost(self, epsilon: Any, delta: Any = 0, *, records_per_unit: int = 1) -> Cost:
        return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit).cost

    def train_dp(self, batches: Batches, **options: Any) -> Arrays:
        units = options.get("records_per_unit", 1)
        release = LaplaceRelease(epsilon=options["epsilon"], sensitivity=units)
        rows = sum(batch.num_rows for batch in batches_of(batches))
        count = int(release.release([rows], source=options.get("noise")).values[0])
        return {"f": np.array([float(max(1, count))])}

    def loss(self, arrays: Arrays, batches: Batches) -> Any:
        rows = sum(batch.num_rows for batch in batches_of(batches))
        risk = self.level + self.slope / np.sqrt(arrays["f"][0])
        return np.full(rows, min(1.0, risk))


@dataclass(frozen=True, kw_only=True)
class Flat(Slow):
    """Looks as if it would go on falling, and stops."""

    kind: ClassVar[str] = "flat"

    def loss(self, arrays: Arrays, batches: Batches) -> Any:
        return np.maximum(super().loss(arrays, batches), 0.42)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(registry.kinds())
    kinds = MappingProxyType(known | {"slow": Slow, "flat": Flat})
    monkeypatch.setattr(registry, "kinds", lambda: kinds)
    monkeypatch.setattr(profiling, "MEASURED", 1)


def store_with(path: Path, kind: str, target: float, **changes: Any) -> Store:
    fields = {"profile_share": SHARE, "block_seconds": 86_400, "count_epsilon": "0.02"}
    store = open_store(path, **(fields | changes))
    if not store.ptks():
        store.register("speed", stream="rides", kind=kind, config={}, target=target)
    return store


def run(
    store: Store, number: int, *, rows: int = ROWS, hook: Callable[[str, str], None] | None = None
) -> Any:
    """One window."""
    if number not in {cycle.window for cycle in store.cycles("rides")}:
        store.push("rides", day(number, rows), producer="p", seq=number)
    with store._parts.observers.watching(hook or (lambda *_: None)):
        (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    return cycle


def stored(store: Store) -> dict[str, Any]:
    with store._parts.metadata.read() as tx:
        row = tx.ptks.named("speed")
        last = tx.profiles.latest(row.id, row.config_version, row.target)
    assert last is not None
    return dict(last.samples)


def test_a_target_beyond_the_slice_is_published_within_two_windows(tmp_path: Path) -> None:
    with store_with(tmp_path, "slow", 0.33) as store:
        first = run(store, 0)
        view = store.ptk("speed")
        assert (view.status, "on trial" in view.reason) == ("ACTIVE", True), view.reason
        assert first.status == "DONE"
        assert stored(store)["certifies"] == "each state"
        assert "on trial" in store.profile("speed").reason
        second = run(store, 1)
        (line,) = second.trained
        assert (line.outcome, line.validation) == ("PUBLISHED", "VALIDATED")
        *_, test = stored(store)["tests"]
        assert test[3] >= 1
        assert test[2] == pytest.approx(0.2 + 8 / np.sqrt(line.samples), abs=0.01)
        said = store.get_state("speed").manifest.validation
        assert said is not None
        assert said["verdict"] == "VALIDATED"


def test_where_no_fresh_records_are_left_it_is_not_due(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with store_with(tmp_path, "slow", 0.33) as store:
        with monkeypatch.context() as patch:
            patch.setattr(trials, "_free", lambda *_: ())
            cycle = run(store, 0)
        assert stored(store)["certifies"] == "each state"
        # It would train for nothing. Nothing is missing, for the next window has a test for it.
        assert (cycle.status, cycle.trained) == ("DONE", ())
        (line,) = run(store, 1).trained
        assert line.validation == "VALIDATED"


def test_the_test_is_charged_apart_from_training_and_no_point_is_beyond_the_promise(
    tmp_path: Path,
) -> None:
    with store_with(tmp_path, "slow", 0.33) as store:
        run(store, 0)
        seen: dict[str, Any] = {}

        def on_step(step: str, moment: str) -> None:
            if (step, moment) != ("validated", "worked"):
                return
            history = [entry for entry in store._parts.ledger.history() if "contexts" in entry]
            doors = ("door:validate", "door:ptk")
            for door in doors:
                seen[door] = [entry for entry in history if door in entry["contexts"]]
            with store._parts.metadata.read() as tx:
                blocks = [block.name for block in tx.blocks.list("rides")][-1:]
            seen["peak"] = store._parts.ledger.peak("rides", blocks)

        run(store, 1, hook=on_step)
        test, training = seen["door:validate"][-1], seen["door:ptk"][-1]
        price: Any = cost_from_json(test["cost"])
        assert price.sensitivity / price.scale == Fraction(9, 10), "the highest there is room for"
        (tested,), trained = ranges(test), ranges(training)
        assert all(tested[1] <= start or stop <= tested[0] for start, stop in trained)
        privacy_filter = store._parts.privacy_filter("rides")
        peak = np.array([seen["peak"]], dtype=np.int64)
        assert privacy_filter.admits(peak, np.zeros(peak.shape[1], dtype=np.int64)).all()


def ranges(entry: dict[str, Any]) -> list[tuple[int, int]]:
    """The tags of a charge."""
    return [(int(start), int(stop)) for _, start, stop in entry["slices"]]


def test_a_state_that_is_not_shown_is_given_to_nobody_and_more_is_tried(tmp_path: Path) -> None:
    with store_with(tmp_path, "flat", 0.4, use="minimum") as store:
        run(store, 0)
        planned: list[int] = []
        for number in range(1, 8):
            if store.ptk("speed").status != "ACTIVE":
                break
            planned.append(store.profile("speed").samples[-1] or 0)
            (line,) = run(store, number).trained
            assert (line.outcome, line.validation) == ("PUBLISHED", "NOT_SHOWN")
            with pytest.raises(Refused):
                store.get_state("speed")
        most = largest_try(int(store.cycles("rides")[-1].dp_records * (1 - Fraction(SHARE))))
        assert planned == sorted(planned)
        assert planned[-1] == pytest.approx(most, rel=0.05)
        view = store.ptk("speed")
        assert (view.status, "tried in" in view.reason) == ("REJECTED", True), view.reason
        (event,) = [event for event in store.events() if event.kind == "ptk.rejected"]
        assert 0.42 < event.body["nearest_target"] < 0.5
        # What is proposed is taken, and kept.
        again = store.register(
            "speed", stream="rides", kind="flat", config={}, target=event.body["nearest_target"]
        )
        assert again.status == "WAITING"
        number = len(planned) + 1
        outcomes = [run(store, number + k).trained for k in range(2)]
        assert [line.validation for lines in outcomes for line in lines][-1] == "VALIDATED"


def test_without_a_test_there_is_no_version(tmp_path: Path) -> None:
    with store_with(tmp_path, "slow", 0.33, quotas={"door:validate": "0.001"}) as store:
        run(store, 0)
        (line,) = run(store, 1).trained
        assert (line.validation, line.reason) == ("NOT_SHOWN", "QUOTA_EXCEEDED")
        with pytest.raises(Refused):
            store.get_state("speed")
        assert "tests" not in stored(store), "nothing was said about the state"


def test_a_newcomer_leaves_room_for_the_test(tmp_path: Path) -> None:
    with store_with(tmp_path, "slow", 0.33) as store:
        run(store, 0)
        store.register("other", stream="rides", kind="slow", config={"label": 1}, target=0.9)
        cycle = run(store, 1)
        said = {line.ptk: line.validation for line in cycle.trained}
        assert said["speed"] == "VALIDATED"


def test_what_a_test_said_is_written_once_whatever_stops_the_window(tmp_path: Path) -> None:
    with store_with(tmp_path, "slow", 0.33) as store:
        run(store, 0)
        before = len(stored(store).get("tests", ()))

        def stop(step: str, moment: str) -> None:
            if (step, moment) == ("published", "worked"):
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            run(store, 1, hook=stop)
        assert len(stored(store).get("tests", ())) == before
    with store_with(tmp_path, "slow", 0.33) as store:
        (cycle,) = store.run("rides", until_ms=FIRST_MS + 2 * DAY_MS)
        assert [line.validation for line in cycle.trained] == ["VALIDATED"]
        assert len(stored(store)["tests"]) == before + 1


def test_much_more_data_gives_a_rejected_one_another_trial(tmp_path: Path) -> None:
    with store_with(tmp_path, "flat", 0.4) as store:
        for number in range(3):
            run(store, number)
        assert store.ptk("speed").status == "REJECTED"
        run(store, 3, rows=int(1.5 * ROWS))
        assert store.ptk("speed").status == "REJECTED"
        before = stored(store)["trainings"]
        run(store, 4, rows=3 * ROWS)
        assert "not reached before" in " ".join(
            str(event.body.get("reason")) for event in store.events() if event.kind == "ptk.waiting"
        )
        assert before > 0
