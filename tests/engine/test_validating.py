"""New states of measured kinds are tested before they are published: on records that nothing that
made them had touched, charged before they are opened, once.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from fractions import Fraction
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from ptklib import registry
from ptklib.errors import Refused
from ptklib.privacy.costs import cost_from_json
from ptkstore import Store
from ptkstore.engine.profiles import profiling
from ptkstore.engine.window import trials
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store
from tests.engine.test_profiling import ROWS, SHARE, TARGET, Plain

fork = get_context("fork")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class Worse(Plain):
    """As good as `Plain` on what it is profiled on; once ``BAD`` is set, its losses are all 0.9."""

    kind = "worse"
    BAD = False

    def loss(self, arrays: Any, batches: Any) -> Any:
        losses = super().loss(arrays, batches)
        return np.full_like(losses, 0.9) if Worse.BAD else losses


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    known = dict(registry.kinds())
    kinds = MappingProxyType(known | {"plain": Plain, "worse": Worse})
    monkeypatch.setattr(registry, "kinds", lambda: kinds)
    monkeypatch.setattr(profiling, "MEASURED", 2)
    monkeypatch.setattr(Worse, "BAD", False)


def store_with(path: Path, kind: str, **changes: Any) -> Store:
    store = open_store(path, **({"profile_share": SHARE, "block_seconds": 86_400} | changes))
    if not store.ptks():
        store.register("speed", stream="rides", kind=kind, config={}, target=TARGET)
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.2)
    return store


def run(store: Store, number: int, hook: Callable[[str, str], None] | None = None) -> Any:
    """One window."""
    store.push("rides", day(number, ROWS), producer="p", seq=number)
    if hook is not None:
        store._parts.observers.add(hook)
    (cycle,) = store.run("rides", until_ms=FIRST_MS + (number + 1) * DAY_MS)
    return cycle


def test_a_good_state_is_validated_and_its_certificate_says_how(tmp_path: Path) -> None:
    with store_with(tmp_path, "plain") as store:
        cycle = run(store, 0)
        lines = {line.ptk: line for line in cycle.trained}
        assert lines["speed"].validation == "VALIDATED", lines
        # A closed form needs no test.
        assert lines["hour-speed"].validation == ""
        assert store.get_state("hour-speed").manifest.validation is None
        state = store.get_state("speed")
        found = state.manifest.validation
        assert found is not None
        assert (found["verdict"], found["attempt"], found["eta"]) == ("VALIDATED", 1, "1/20")
        assert found["evidence"] >= found["threshold"]
        assert found["test"]["target"] == "3/5"
        spent = cost_from_json(found["cost"]).basic()
        assert spent == (Fraction(found["test"]["epsilon"]), Fraction(0))
        (view,) = store.states("speed")
        assert (view.validation, view.digest) == ("VALIDATED", state.digest)
        assert not [one for one in store.doctor([]) if one.level == "ERROR"]


def test_a_test_touches_nothing_that_made_the_state_and_is_charged(tmp_path: Path) -> None:
    with store_with(tmp_path, "plain") as store:
        inside: list[Any] = []

        def on_step(step: str, moment: str) -> None:
            if (step, moment) == ("published", "begins"):
                (name,) = store._parts.ledger.blocks("rides", retired=False)
                inside.append(store._parts.ledger.block("rides", name))

        run(store, 0, on_step)
        found = store.get_state("speed").manifest.validation
        assert found is not None
        privacy_filter = store._parts.privacy_filter("rides")
        spec = store._parts.specs["rides"]
        costs = spec.count_release().cost, cost_from_json(found["cost"])
        paid = np.sum([privacy_filter.demand(cost) for cost in costs], axis=0).tolist()
        ranges = [(int(start), int(stop)) for start, stop in found["ranges"]]
        losses = {
            loss
            for tags, loss in inside[0].losses
            for start, stop in ranges
            if tags.start < stop and start < tags.stop
        }
        assert losses == {tuple(paid)}


def test_a_state_that_is_not_shown_is_there_and_given_to_nobody_who_does_not_ask(
    tmp_path: Path,
) -> None:
    with store_with(tmp_path, "worse") as store:
        run(store, 0)
        assert store.get_state("speed").manifest.version == 1
        Worse.BAD = True
        cycle = run(store, 1)
        assert {line.ptk: line.validation for line in cycle.trained}["speed"] == "NOT_SHOWN"
        assert store.get_state("speed").manifest.version == 1
        hidden = store.get_state("speed@v2")
        assert hidden.manifest.validation is not None
        assert hidden.manifest.validation["verdict"] == "NOT_SHOWN"
        assert [one.validation for one in store.states("speed")] == ["VALIDATED", "NOT_SHOWN"]
        kinds = [event.kind for event in store.events(limit=1000) if event.subject == "speed"]
        assert (kinds.count("ptk.state"), kinds.count("ptk.not_shown")) == (1, 1)
        # It is another attempt, with less of the confidence; and then the newest one is given again.
        Worse.BAD = False
        run(store, 2)
        newest = store.get_state("speed").manifest
        assert newest.version == 3
        assert newest.validation is not None
        assert newest.validation["attempt"] == 2
        assert newest.validation["test"]["eta"] == "1/120"


def test_where_no_version_was_shown_that_is_said(tmp_path: Path) -> None:
    with store_with(tmp_path, "worse") as store:

        def on_step(step: str, moment: str) -> None:
            if (step, moment) == ("validated", "begins"):
                Worse.BAD = True

        run(store, 0, on_step)
        with pytest.raises(Refused) as caught:
            store.get_state("speed")
        assert caught.value.reason == "STATE_NOT_SHOWN"
        assert store.get_state("speed@v1").manifest.version == 1


def test_a_test_that_would_fail_for_want_of_records_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What tests need is larger than any slice.
    monkeypatch.setattr(trials, "samples_needed", lambda **_: 10**9)
    with store_with(tmp_path, "plain") as store:
        cycle = run(store, 0)
        line = {one.ptk: one for one in cycle.trained}["speed"]
        assert line.validation == "NOT_TESTED"
        assert line.reason.startswith("TEST_TOO_SMALL: a test needs about 1,000,000,000 records")
        manifest = store.get_state("speed").manifest
        assert manifest.validation == {"verdict": "NOT_TESTED", "reason": line.reason}


def live(path: Path, moment: tuple[str, str]) -> None:
    with store_with(path, "plain") as store:

        def on_step(*told: str) -> None:
            if told == moment:
                os.kill(os.getpid(), signal.SIGKILL)

        run(store, 0, on_step)
    os._exit(0)


@pytest.mark.parametrize(
    ("moment", "verdict", "reason"),
    [
        (("validated", "begins"), "VALIDATED", ""),
        (("validate", "spent"), "NOT_TESTED", "VALIDATION_LOST"),
        (("validate", "stored"), "VALIDATED", ""),
        (("validated", "worked"), "VALIDATED", ""),
    ],
    ids=lambda one: "-".join(one) if isinstance(one, tuple) else one,
)
def test_a_kill_loses_neither_budget_nor_state(
    tmp_path: Path, moment: tuple[str, str], verdict: str, reason: str
) -> None:
    child = fork.Process(target=live, args=(tmp_path, moment))
    child.start()
    child.join(120)
    assert child.exitcode == -signal.SIGKILL, "the point must be reached"
    with store_with(tmp_path, "plain") as store:
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        (cycle,) = store.cycles("rides")
        line = {one.ptk: one for one in cycle.trained}["speed"]
        assert (line.outcome, line.validation, line.reason) == ("PUBLISHED", verdict, reason)
        found = store.get_state("speed").manifest.validation
        assert found is not None
        assert found["verdict"] == verdict
        # What was spent without a verdict is in the certificate too.
        assert "cost" in found


def test_best_effort_takes_next_to_nothing_of_what_promises_are_tested_on(tmp_path: Path) -> None:
    """Else it would be in their way: an eighth of what is left, and disjoint from the rest."""
    with store_with(tmp_path, "plain") as store:
        store.register("rest", stream="rides", kind="plain", config={}, epsilon="0.1")
        cycle = run(store, 0)
        told = {line.ptk: line.validation for line in cycle.trained}
        assert (told["speed"], told["rest"]) == ("VALIDATED", "ESTIMATED")
        held = {}
        for name in ("speed", "rest"):
            validation = store.get_state(name).manifest.validation
            assert validation is not None
            held[name] = [(int(start), int(stop)) for start, stop in validation["ranges"]]
        sizes = {name: sum(stop - start for start, stop in held[name]) for name in held}
        assert sizes["rest"] / sum(sizes.values()) == pytest.approx(float(trials.REST), rel=1e-3)
        assert max(stop for _, stop in held["speed"]) <= min(start for start, _ in held["rest"])
