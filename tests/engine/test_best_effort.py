"""PTKs that state their epsilon: charged exactly that, never in the way of a target, trained on what is
left of a window; and their states tell their error.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from profiler.inverting import closed_form_error
from ptklib import registry
from ptklib.errors import InvalidInput, Refused
from ptklib.ledger.policy import Policy
from ptklib.privacy.costs import cost_from_json
from ptklib.ptks.statistics import Statistics
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.views import Registration
from ptkstore.engine.window import estimating
from tests.engine.small import DAY_MS, FIRST_MS, ROWS, config, day, open_store
from tests.engine.test_profiling import Plain

fork = get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
PURE = Policy(epsilon=1, delta=0)
MEAN = Statistics.from_json(config())


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = MappingProxyType(dict(registry.kinds()) | {"plain": Plain})
    monkeypatch.setattr(registry, "kinds", lambda: kinds)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(tmp_path, policy=PURE, profile_share="0.3") as made:
        yield made


def ask(store: Store, name: str, **goal: Any) -> Registration:
    return store.register(name, stream="rides", kind="statistics", config=config(), **goal)


def run(store: Store, number: int, rows: int = ROWS, told: Any = None) -> Any:
    """One window."""
    store.push("rides", day(number, rows), producer="p", seq=number)
    if told is not None:
        store._parts.observers.add(told)
    (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    return cycle


def spent_on(store: Store) -> list[str]:
    """What was charged in the first window beside its count."""
    lines = [line for line in store.charges("rides").charges if line.kind == "spend"]
    return [line.key for line in lines if line.key != "cycle-1/count"]


def charged(store: Store) -> Callable[[str, str], None]:
    """Keeps the losses at all tags of the window, as they are before its data is destroyed."""
    losses: list[tuple[Any, tuple[int, ...]]] = []

    def told(step: str, moment: str) -> None:
        if (step, moment) == ("published", "begins"):
            for name in store._parts.ledger.blocks("rides", retired=False):
                losses.extend(store._parts.ledger.block("rides", name).losses)

    told.losses = losses  # type: ignore[attr-defined]
    return told


def test_it_is_accepted_and_charged_what_it_states(store: Store) -> None:
    answer = ask(store, "rest", epsilon="0.3")
    assert (answer.status, answer.planned_epsilon, answer.planned_samples) == (
        "ACTIVE",
        "0.3",
        None,
    )
    view = store.ptk("rest")
    assert (view.target, view.epsilon, view.asked) == (None, "0.3", "best effort, epsilon 0.3")
    assert store.ptks() == [view]
    assert store.profile("rest").samples == (64,)
    (line,) = run(store, 0).trained
    assert (line.outcome, line.epsilon, line.validation) == ("PUBLISHED", "0.3", "")
    manifest = store.get_state("rest").manifest
    assert (manifest.target, manifest.minimum, manifest.epsilon) == (None, None, "0.3")
    assert manifest.cost.basic() == (Fraction(3, 10), Fraction(0))
    # All of the window beside the profile slice, but for the noise of its count.
    assert line.samples is not None
    assert line.samples > 0.65 * ROWS
    assert spent_on(store) == ["cycle-1/rest"]


def test_its_error_is_that_of_its_closed_form_and_the_largest_of_all_it_is_made_of(
    store: Store,
) -> None:
    ask(store, "rest", epsilon="0.3")
    ask(store, "alone", epsilon="0.3", over="last")
    ask(store, "some", epsilon="0.3", over="rolling:2")
    for number, rows in enumerate((2000, 6000, 6000)):
        run(store, number, rows)
    own = {
        name: [
            float(closed_form_error(MEAN, state.epsilon, state.samples or 0) or 1)
            for state in store.states(name)
        ]
        for name in ("rest", "alone", "some")
    }
    told = {name: [state.error for state in store.states(name)] for name in own}
    errors = {name: [one and one.at_most for one in told[name]] for name in told}
    first, second, third = own["rest"]
    assert first > second
    assert errors["rest"] == [first, first, first]
    assert errors["alone"] == own["alone"]
    rolled = own["some"]
    assert errors["some"] == [rolled[0], rolled[0], max(rolled[1:])]
    assert max(rolled[1:]) < rolled[0]
    newest = told["rest"][-1]
    assert newest is not None
    assert (newest.source, newest.confidence, newest.estimate) == ("closed form", "0.95", None)
    assert newest.text == f"at most {first:g}"
    assert third < first


def test_one_that_fits_nowhere_is_told_the_nearest_epsilon(store: Store) -> None:
    refused = ask(store, "rest", epsilon="0.9")
    assert refused.status == "REJECTED"
    (remedy,) = refused.remedies
    # E is 1, and the count takes 0.2 of it.
    assert (remedy.kind, remedy.ptk, remedy.value) == ("epsilon", "rest", "0.8")
    assert store.ptk("rest").remedies == refused.remedies
    assert ask(store, "rest", epsilon="0.8").status == "ACTIVE"


def test_its_quota_counts(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=PURE, quotas={"ptk:rest": "0.25"}) as store:
        (remedy,) = ask(store, "rest", epsilon="0.5").remedies
        assert remedy.value == "0.25"
        assert ask(store, "rest", epsilon=0.25).status == "ACTIVE"
        assert run(store, 0).trained[0].outcome == "PUBLISHED"


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        ({}, "TARGET_OR_EPSILON"),
        ({"target": 0.1, "epsilon": "0.3"}, "TARGET_OR_EPSILON"),
        ({"epsilon": "0"}, "AMOUNT_ZERO"),
        ({"epsilon": "a lot"}, "AMOUNT_NOT_A_NUMBER"),
        ({"epsilon": "1e-12"}, "SCALE_TOO_LARGE"),
    ],
)
def test_what_is_no_goal_is_refused(store: Store, goal: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        ask(store, "rest", **goal)
    assert caught.value.reason == reason
    added = AddedPtk(name="rest", stream="rides", kind="statistics", config=config(), **goal)
    with pytest.raises(InvalidInput) as caught:
        store.apply(Changes(add=(added,)))
    assert caught.value.reason == reason
    assert store.ptks() == []


def test_a_target_is_never_in_its_way(tmp_path: Path) -> None:
    """A PTK with a target is accepted as if there were no others, and in a window that is too small
    for both it is the one that trains.
    """
    with open_store(tmp_path, policy=PURE, n_max=2100) as store:
        # These leave no record that a large epsilon fits on.
        for number in range(8):
            assert ask(store, f"rest{number}", epsilon="0.75").status == "ACTIVE"
        answer = ask(store, "speed", target=0.06)
        assert answer.status == "ACTIVE"
        assert answer.planned_samples is not None
        assert answer.planned_samples > 2100 - 8 * 64
        assert store.what_if("rides", Changes()).current.total_samples is not None
        left = {
            line.ptk: line.reason for line in store.what_if("rides", Changes()).current.left_out
        }
        assert left
        assert set(left.values()) == {"OTHERS_FIRST"}
        cycle = run(store, 0)
        outcomes = {line.ptk: line.outcome for line in cycle.trained}
        assert outcomes["speed"] == "PUBLISHED"
        skipped = {name for name, outcome in outcomes.items() if outcome == "SKIPPED"}
        assert skipped == left.keys()
        assert cycle.status == "SHORT"
        assert "best effort" in cycle.shortfall
        # They were left out, so they come before the others of their kind in the next window.
        more = {line.ptk for line in run(store, 1).trained if line.outcome == "SKIPPED"}
        assert len(more) == len(skipped)
        assert more != skipped


def test_without_its_neighbours_a_target_is_planned_alike(tmp_path: Path) -> None:
    plans = {}
    for name, count in (("alone", 0), ("beside", 5)):
        with open_store(tmp_path / name, policy=PURE) as store:
            for number in range(count):
                ask(store, f"rest{number}", epsilon="0.7")
            plans[name] = ask(store, "speed", target=0.06)
    assert plans["alone"] == plans["beside"]


def test_where_the_stream_takes_the_minimum_only_best_effort_gets_the_rest(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=PURE, use="minimum") as store:
        answer = ask(store, "speed", target=0.2)
        ask(store, "rest", epsilon="0.2")
        lines = {line.ptk: line for line in run(store, 0).trained}
        plan = store.plan("rides")
        assert plan is not None
        speed, rest = lines["speed"], lines["rest"]
        assert rest.samples is not None
        assert answer.planned_samples is not None
        assert rest.samples > 0.8 * ROWS
        planned = {line.ptk: (line.epsilon, line.samples) for line in plan.lines}
        assert (speed.epsilon, speed.samples) == planned["speed"]
        assert planned["rest"] == ("0.2", 64)
        assert store.get_state("speed").manifest.minimum in (
            None,
            {"epsilon": speed.epsilon, "samples": speed.samples},
        )


def test_a_goal_can_be_changed_into_the_other(store: Store) -> None:
    ask(store, "speed", target=0.2)
    waits = store.register("plain", stream="rides", kind="plain", config={}, target=0.5)
    assert waits.status == "WAITING"
    assert store.update_target("plain", epsilon="0.25").status == "ACTIVE"
    assert store.update_target("speed", epsilon="0.9").status == "REJECTED"
    assert store.ptk("speed").target == 0.2
    assert store.update_target("speed", epsilon="0.4").status == "ACTIVE"
    assert (store.ptk("speed").target, store.ptk("speed").epsilon) == (None, "0.4")
    store.apply(Changes(retarget={"speed": 0.3}, best_effort={"plain": "0.1"}))
    assert [(one.target, one.epsilon) for one in store.ptks()] == [(0.3, None), (None, "0.1")]
    with pytest.raises(InvalidInput) as caught:
        store.apply(Changes(retarget={"speed": 0.3}, best_effort={"speed": "0.1"}))
    assert caught.value.reason == "CHANGE_INVALID"
    with pytest.raises(Refused) as refused:
        store.apply(Changes(best_effort={"speed": "0.95"}))
    assert refused.value.reason == "PLAN_INFEASIBLE"
    answer = store.what_if("rides", Changes(best_effort={"speed": "0.5"}))
    assert answer.token
    store.approve("rides", answer.token)
    assert store.ptk("speed").epsilon == "0.5"


def test_a_measured_kind_is_tested_on_records_that_nothing_touched(store: Store) -> None:
    store.register("plain", stream="rides", kind="plain", config={}, epsilon="0.3")
    told = charged(store)
    (line,) = run(store, 0, 20_000, told).trained
    assert (line.outcome, line.validation) == ("PUBLISHED", "ESTIMATED")
    state = store.get_state("plain")
    found, error = state.manifest.validation, state.manifest.error
    assert found is not None
    assert error is not None
    (view,) = store.states("plain")
    assert view.error is not None
    assert view.error.text == line.error
    assert (view.validation, view.error.source) == ("ESTIMATED", "test")
    # The truth, on records like those.
    loss = state.ptk.eval(state.arrays, day(7, 20_000).to_batches())
    assert view.error.at_least is not None
    assert view.error.at_least - 0.005 <= loss <= view.error.at_most + 0.005
    assert view.error.at_most - view.error.at_least < 0.06
    # What it cost is on its slice, and nothing else but the count of the window.
    privacy_filter, spec = store._parts.privacy_filter("rides"), store._parts.specs["rides"]
    costs = spec.count_release().cost, cost_from_json(found["cost"])
    paid = tuple(np.sum([privacy_filter.demand(cost) for cost in costs], axis=0).tolist())
    ranges = [(int(start), int(stop)) for start, stop in found["ranges"]]
    losses = {
        loss
        for tags, loss in told.losses  # type: ignore[attr-defined]
        for start, stop in ranges
        if tags.start < stop and start < tags.stop
    }
    assert losses == {paid}
    assert spent_on(store) == ["cycle-1/plain", "cycle-1/validate/1"]


def test_a_part_that_is_too_small_tells_no_error_and_is_not_charged(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimating, "_needed", lambda *_: 10**9)
    store.register("plain", stream="rides", kind="plain", config={}, epsilon="0.3")
    (line,) = run(store, 0).trained
    assert (line.validation, line.error) == ("NOT_TESTED", "")
    assert line.reason.startswith("TEST_TOO_SMALL: to tell the error takes about 1,000,000,000")
    manifest = store.get_state("plain").manifest
    assert manifest.error is None
    assert manifest.validation == {"verdict": "NOT_TESTED", "reason": line.reason}
    assert spent_on(store) == ["cycle-1/plain"]


def test_without_a_profile_slice_it_trains_all_the_same(tmp_path: Path) -> None:
    with open_store(tmp_path, policy=PURE, profile_share="0") as store:
        answer = store.register("plain", stream="rides", kind="plain", config={}, epsilon="0.3")
        assert answer.status == "ACTIVE"
        (line,) = run(store, 0).trained
        assert (line.outcome, line.reason) == ("PUBLISHED", "TEST_SLICE_USED")
        assert store.get_state("plain").manifest.error is None


def test_promises_and_best_effort_share_the_slice(store: Store) -> None:
    """Disjoint parts: neither test lies on the other's records."""
    for name in ("one", "two"):
        store.register(name, stream="rides", kind="plain", config={}, epsilon="0.2")
    run(store, 0, 20_000)
    ranges = []
    for name in ("one", "two"):
        validation = store.get_state(name).manifest.validation
        assert validation is not None
        assert validation["verdict"] == "ESTIMATED"
        ranges += [(int(start), int(stop)) for start, stop in validation["ranges"]]
    ranges.sort()
    assert all(left[1] <= right[0] for left, right in pairwise(ranges))


def live(path: Path) -> None:
    with open_store(path, policy=PURE, profile_share="0.3") as store:
        store.register("plain", stream="rides", kind="plain", config={}, epsilon="0.3")

        def on_step(*told: str) -> None:
            if told == ("validate", "spent"):
                os.kill(os.getpid(), signal.SIGKILL)

        run(store, 0, told=on_step)
    os._exit(0)


def test_a_test_that_was_lost_stays_spent_and_is_not_made_again(tmp_path: Path) -> None:
    child = fork.Process(target=live, args=(tmp_path,))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the point must be reached"
    with open_store(tmp_path) as store:
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (state,) = store.states("plain")
        assert (state.validation, state.validation_reason) == ("NOT_TESTED", "VALIDATION_LOST")
        assert state.error is None
        validation = store.get_state("plain").manifest.validation
        assert validation is not None
        assert "cost" in validation


def test_the_loss_of_a_constant_is_told_where_a_profile_knows_it(store: Store) -> None:
    """From a PTK of the same configuration that had a target; no look is made for it."""
    store.register("plain", stream="rides", kind="plain", config={}, target=0.5)
    store.register("rest", stream="rides", kind="plain", config={}, epsilon="0.2")
    with store._parts.journal.writing() as tx:
        row = tx.ptks.named("plain")
        body = {"constant": {"risk": 0.31, "error": 0.01}}
        tx.profiles.put(row.id, row.config_version, 0.5, ["1"], body, "other", at_ms=0)
    store.deregister("plain")
    run(store, 0, 20_000)
    (state,) = store.states("rest")
    assert state.error is not None
    assert state.error.constant == 0.31
    assert state.error.text.endswith("a constant 0.31")


def test_features_come_from_it_as_from_any(store: Store) -> None:
    ask(store, "rest", epsilon="0.3")
    run(store, 0)
    state = store.get_state("rest")
    table = pa.table({"hour": pa.array([3], pa.int32())})
    (speed,) = state.ptk.features(state.arrays, table).column(0).to_pylist()
    assert 0 <= speed <= 60


def test_users_with_many_records_cost_more_noise(tmp_path: Path) -> None:
    """At user level a record of the closed form is one of as many as a user may have."""
    user = {
        "policy": Policy(unit="user", epsilon=1, delta=0),
        "user_column": "driver",
        "records_per_user": 3,
    }
    with open_store(tmp_path, **user) as store:
        ask(store, "rest", epsilon="0.4")
        run(store, 0)
        (state,) = store.states("rest")
        assert state.error is not None
        errors = [
            closed_form_error(MEAN, state.epsilon, state.samples or 0, 0, units) for units in (1, 3)
        ]
        assert state.error.at_most == float(errors[1] or 1)
        assert errors[0] != errors[1]
