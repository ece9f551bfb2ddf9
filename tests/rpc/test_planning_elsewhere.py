"""A server plans and tries out nothing in its own interpreter: that is for those it serves."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from allocator.problem import Problem
from ptklib.errors import SageError
from ptklib.ptks.statistics import Statistics
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.engine.plans.planning import closed_form
from ptkstore.metadata import Metadata, Transaction
from ptkstore.server import Server
from tests.engine.small import DAY_MS, FIRST_MS, config, day, spec
from tests.rpc.small import serving


class Worked:
    """What was worked out in this process: problems that were posed, PTKs that were trained."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.problems = self.trainings = 0
        checked, trained = Problem.__post_init__, Statistics.train_dp

        def posed(problem: Problem) -> None:
            self.problems += 1
            checked(problem)

        def train(*arguments: Any, **named: Any) -> Any:
            self.trainings += 1
            return trained(*arguments, **named)

        monkeypatch.setattr(Problem, "__post_init__", posed)
        monkeypatch.setattr(Statistics, "train_dp", train)


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> Worked:
    return Worked(monkeypatch)


def children(server: Server) -> list[int]:
    planners = (server._planner, server._other_planner)
    return [one.child.pid for planner in planners for one in planner._idle]


def test_a_server_works_nothing_out_itself(tmp_path: Path, worked: Worked) -> None:
    with serving(tmp_path) as (server, _), Store(server.address) as store:
        store.create_stream(spec())
        assert (
            store.register(
                "a", stream="rides", kind="statistics", config=config(), target=0.1
            ).status
            == "ACTIVE"
        )
        sharp = store.register(
            "sharp", stream="rides", kind="statistics", config=config(), target=1e-6
        )
        assert sharp.status == "REJECTED"
        assert store.update_target("a", 0.12).status == "ACTIVE"
        assert store.update_config("a", config("count")).status == "ACTIVE"
        assert store.plan_now("rides").lines
        new = AddedPtk(name="b", kind="statistics", config=config(), target=0.2)
        asked = store.what_if("rides", Changes(add=(new,)))
        assert {line.ptk for line in asked.proposed.lines} == {"a", "b"}
        assert {line.ptk for line in store.approve("rides", asked.token).lines} == {"a", "b"}
        assert worked.trainings == 0
        store.push("rides", day(0), producer="test", seq=0)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
        # Those of the window: a store without worker processes trains here.
        assert (worked.problems, worked.trainings) == (0, 2)
        # Nor does it plan once the processes are gone.
        for pid in children(server):
            os.kill(pid, signal.SIGKILL)
        assert store.update_target("a", 0.15).status == "ACTIVE"
        assert store.plan_now("rides").lines
        assert (worked.problems, worked.trainings) == (0, 2)


def test_a_store_without_a_server_does(tmp_path: Path, worked: Worked) -> None:
    with serving(tmp_path) as (server, store):
        store.create_stream(spec())
    server.stop()
    with Store(tmp_path, workers=0) as again:
        again.register("a", stream="rides", kind="statistics", config=config(), target=0.1)
        assert again.plan_now("rides").lines
    assert worked.problems > 0
    assert worked.trainings == 1


def test_what_is_wrong_with_a_ptk_is_told_as_before(tmp_path: Path) -> None:
    with serving(tmp_path) as (server, _), Store(server.address) as store:
        store.create_stream(spec())
        for kind, body, reason in (
            ("statistics", {**config(), "value": "nowhere"}, "COLUMN_UNKNOWN"),
            ("statistics", {**config(), "lower": "x"}, "CONFIG_INVALID"),
            ("nothing", {}, "PTK_KIND_UNKNOWN"),
        ):
            with pytest.raises(SageError) as refusal:
                store.register("a", stream="rides", kind=kind, config=body, target=0.1)
            assert refusal.value.reason == reason
            with pytest.raises(SageError) as refusal:
                store.what_if(
                    "rides", Changes(add=(AddedPtk(name="a", kind=kind, config=body, target=0.1),))
                )
            assert refusal.value.reason == reason


def test_nothing_is_tried_out_or_worked_out_in_a_transaction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, faults, calls = [0], [0], [0]

    def around(real: Any) -> Any:
        @contextmanager
        def watched(metadata: Metadata) -> Iterator[Transaction]:
            with real(metadata) as tx:
                opened[0] += 1
                try:
                    yield tx
                finally:
                    opened[0] -= 1

        return watched

    def looked(real: Any) -> Any:
        def watched(*arguments: Any, **named: Any) -> Any:
            calls[0] += 1
            faults[0] += opened[0] > 0
            return real(*arguments, **named)

        return watched

    monkeypatch.setattr(Metadata, "write", around(Metadata.write))
    monkeypatch.setattr(Statistics, "train_dp", looked(Statistics.train_dp))
    monkeypatch.setattr(Statistics, "analytic_profile", looked(Statistics.analytic_profile))
    with Store(tmp_path, workers=0) as store:
        store.create_stream(spec(profile_share="0.2"))
        store.register("a", stream="rides", kind="statistics", config=config(), target=0.4)
        new = AddedPtk(name="b", kind="statistics", config=config("count"), target=0.45)
        asked = store.what_if("rides", Changes(add=(new,), retarget={"a": 0.42}))
        store.approve("rides", asked.token)
        closed_form.cache_clear()
        store.push("rides", day(0), producer="test", seq=0)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
    assert calls[0] > 5
    assert faults[0] == 0
