"""The rest of a window: given where the stream says so, charged as it is trained, never beyond the
promise at any point, and beside the plan of fewest samples, which it does not change.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.policy import Policy
from ptklib.ledger.slices import TAG_SPACE
from ptklib.ptks.statistics.ptk import Statistics
from ptkstore import Store
from ptkstore.api.changes import Changes
from ptkstore.api.goal import Goal
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.api.views import PlanView
from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.plans.registrations import unwritten
from ptkstore.engine.plans.surplus import Held, most_samples
from ptkstore.engine.room.memory import least_training_bytes
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store, spec

TARGETS = {"mean-1": 0.05, "count-1": 0.02, "mean-2": 0.08, "count-2": 0.01}
COMPOSITIONS = {
    "pure": (Policy(epsilon=1, delta=0, composition="pure"), "laplace"),
    "basic": (Policy(epsilon=1, delta="1e-6", composition="basic"), "laplace"),
    "renyi": (Policy(epsilon=1, delta="1e-6", composition="renyi"), "laplace"),
    "renyi, gaussian noise": (Policy(epsilon=1, delta="1e-6", composition="renyi"), "gaussian"),
    "gaussian": (Policy(epsilon=1, delta="1e-6", composition="gaussian"), "gaussian"),
}
ENOUGH = 9000


class Hungry(Statistics):
    """A kind that holds a kibibyte of every record."""

    def working_bytes(self, records: int) -> int:
        return super().working_bytes(records) + 1024 * records


def made(path: Path, policy: Policy, mechanism: str = "laplace", **changes: Any) -> Store:
    store = open_store(path, policy=policy, **changes)
    for name, target in TARGETS.items():
        body = config(name.split("-")[0]) | {"mechanism": mechanism}
        answer = store.register(name, stream="rides", kind="statistics", config=body, target=target)
        assert answer.status == "ACTIVE", answer
    return store


def run_day(store: Store, number: int, rows: int = ENOUGH) -> PlanView:
    store.push("rides", day(number, rows), producer="test", seq=number)
    store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    plan = store.plan("rides")
    assert plan is not None
    return plan


def charged(store: Store) -> dict[str, dict[str, Any]]:
    """What was charged for each PTK, in the only window."""
    return {
        entry["key"].split("/")[1]: entry
        for entry in store._parts.ledger.history()
        if "key" in entry
    }


@pytest.mark.parametrize("name", COMPOSITIONS)
def test_what_is_trained_is_what_is_charged_and_no_point_is_beyond_the_promise(
    tmp_path: Path, name: str
) -> None:
    with made(tmp_path, *COMPOSITIONS[name], count_epsilon="0.02") as store:
        plan = run_day(store, 0)
        (cycle,) = store.cycles("rides")
        assert plan.use == "surplus"
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
        assert plan.surplus_samples is not None
        assert plan.total_samples is not None
        assert plan.available_samples is not None
        assert plan.total_samples < plan.surplus_samples < plan.available_samples
        entries, minimum = charged(store), {line.ptk: line for line in plan.lines}
        for line in plan.surplus:
            tags = sum(stop - start for _, start, stop in entries[line.ptk]["slices"])
            assert abs(tags / TAG_SPACE * cycle.dp_records - line.samples) < 1e-3
            manifest = store.get_state(line.ptk).manifest
            assert (manifest.epsilon, manifest.samples) == (line.epsilon, line.samples)
            assert manifest.minimum == {
                "epsilon": minimum[line.ptk].epsilon,
                "samples": minimum[line.ptk].samples,
            }
            assert line.expected <= line.expected_minimum
        gain = plan.expected_gain
        assert gain is not None
        assert gain[1] < 0.7 * gain[0]
        privacy_filter = store._parts.privacy_filter("rides")
        nothing = np.zeros(privacy_filter.width, dtype=np.int64)
        for block in store.budget("rides").blocks:
            losses = [loss for _, loss in store._parts.ledger.block("rides", block.name).losses]
            assert privacy_filter.admits(np.array(losses, dtype=np.int64), nothing).all()


def test_the_plan_of_fewest_samples_is_the_same_with_and_without_the_surplus(
    tmp_path: Path,
) -> None:
    policy = Policy(epsilon=1, delta=0)
    plans = []
    for use in ("minimum", "surplus"):
        with made(tmp_path / use, policy, use=use) as store:
            plans.append(store.plan_now("rides"))
            assert not plans[-1].surplus
            run_day(store, 0)
            line = store.cycles("rides")[0].trained[0]
            planned = {one.ptk: one for one in plans[-1].lines}[line.ptk]
            trained_on_more = line.samples is not None and line.samples > planned.samples
            assert trained_on_more == (use == "surplus")
            assert (store.get_state(line.ptk).manifest.minimum is None) == (use == "minimum")
    assert [line.as_json() for line in plans[0].lines] == [
        line.as_json() for line in plans[1].lines
    ]
    assert plans[0].total_samples == plans[1].total_samples


def test_windows_of_about_the_same_size_give_the_same_epsilons(tmp_path: Path) -> None:
    with made(tmp_path, Policy(epsilon=1, delta=0)) as store:
        plans = [run_day(store, number, ENOUGH + 90 * number) for number in range(3)]
    epsilons = [{line.ptk: line.epsilon for line in plan.surplus} for plan in plans]
    assert epsilons[0] == epsilons[1] == epsilons[2]


def test_a_quota_of_training_is_obeyed(tmp_path: Path) -> None:
    policy, quotas = Policy(epsilon=1, delta=0), {"door:ptk": "0.7", "ptk:mean-1": "0.2"}
    with made(tmp_path, policy, quotas=quotas) as store:
        plan = run_day(store, 0, 4 * ENOUGH)
        (cycle,) = store.cycles("rides")
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
        given = {line.ptk: float(line.epsilon) for line in plan.surplus}
        assert given["mean-1"] <= 0.2
        assert sum(given.values()) <= 0.7


def test_a_composition_that_plans_cannot_count_in_is_refused_as_ever(tmp_path: Path) -> None:
    policy = Policy(epsilon=1, delta="1e-6", composition="strong")
    with open_store(tmp_path, policy=policy) as store, pytest.raises(InvalidInput) as refused:
        store.register(
            "mean", stream="rides", kind="statistics", config=config("mean"), target=0.05
        )
    assert refused.value.reason == "PLAN_COMPOSITION"


def test_the_use_of_a_stream_changes_from_the_next_window_on(tmp_path: Path) -> None:
    with made(tmp_path, Policy(epsilon=1, delta=0), use="minimum") as store:
        assert not run_day(store, 0).surplus
        store.apply(Changes(use={"rides": "surplus"}))
        assert store.stream("rides").use == "surplus"
        assert [one.kind for one in store.events()].count("stream.changed") == 1
        store.apply(Changes(use={"rides": "surplus"}))
        assert [one.kind for one in store.events()].count("stream.changed") == 1
        assert run_day(store, 1).surplus
    with Store(tmp_path, workers=0) as store:
        assert store.stream("rides").use == "surplus"
        with pytest.raises(Refused) as refused:
            store.apply(Changes(use={"walks": "minimum"}))
        assert refused.value.reason == "STREAM_UNKNOWN"


def test_a_what_if_shows_the_gain_and_its_token_changes_the_use(tmp_path: Path) -> None:
    with made(tmp_path, Policy(epsilon=1, delta=0), use="minimum") as store:
        run_day(store, 0)
        found = store.what_if("rides", Changes(use={"rides": "surplus"}))
        assert (found.current.use, found.proposed.use) == ("minimum", "surplus")
        assert found.current.expected_gain is None
        assert found.proposed.expected_gain is not None
        assert found.proposed.lines == found.current.lines
        stale = store.what_if("rides", Changes(use={"rides": "surplus"})).token
        store.approve("rides", found.token)
        assert store.stream("rides").use == "surplus"
        with pytest.raises(Refused) as refused:
            store.approve("rides", stale)
        assert refused.value.reason == "PLAN_STALE"


def test_another_process_plans_with_the_use_that_is_stored(tmp_path: Path) -> None:
    with made(tmp_path, Policy(epsilon=1, delta=0), use="minimum") as store:
        parts = store._parts
        assert parts.specs["rides"].use == "minimum"
        with parts.metadata.write() as tx:
            tx.streams.set_spec("rides", spec(policy=parts.specs["rides"].policy).as_json())
        assert run_day(store, 0).surplus


def test_a_stream_from_before_there_was_a_use_takes_the_minimum(tmp_path: Path) -> None:
    with made(tmp_path, Policy(epsilon=1, delta=0)) as store, store._parts.metadata.write() as tx:
        before = {
            name: one for name, one in store.stream("rides").as_json().items() if name != "use"
        }
        tx.streams.set_spec("rides", before)
    with Store(tmp_path, workers=0) as store:
        assert store.stream("rides").use == "minimum"
        assert not run_day(store, 0).surplus
    assert StreamSpec.from_json(before).use == "surplus"


def test_nobody_is_given_more_samples_than_its_worker_has_the_memory_for() -> None:
    stream = spec()
    row = unwritten("hungry", "rides", "statistics", config(), Goal(0.1))
    candidate = Candidate(row, Hungry.from_json(config()))
    held = Held(200_000, 2, memory_bytes=least_training_bytes(stream, candidate.ptk, 60_000))
    most = most_samples(stream, candidate, 20_000, 150_000, held)
    assert most is not None
    assert 20_000 <= most < 60_000
    roomy = Held(200_000, 2, memory_bytes=1 << 40)
    assert most_samples(stream, candidate, 20_000, 150_000, roomy) is None
    none = Held(200_000, 2, memory_bytes=1)
    assert most_samples(stream, candidate, 20_000, 150_000, none) == 20_000
