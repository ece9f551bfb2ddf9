"""Planning holds no transaction: appends and windows go on, decisions rest on what is still so,
answers come in time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from allocator.effort import Effort
from allocator.problem import Problem
from ptklib.ledger.policy import Policy
from ptkstore import Store
from ptkstore.api.changes import AddedPtk, Changes
from ptkstore.api.goal import Goal
from ptkstore.api.views import Registration
from ptkstore.engine import turns
from ptkstore.engine.plans import answering, deciding, registrations
from ptkstore.engine.plans.answering import FIRST, AnswerEffort
from ptkstore.engine.plans.refining import refine
from ptkstore.engine.profiles import profiling
from ptkstore.engine.turns import PlanContended
from ptkstore.metadata import Metadata, Transaction
from tests.engine import flights
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store, spec

# So few records that the last of the flights' PTKs does not fit.
TIGHT = 60_000
HARDLY = AnswerEffort(1.0, 60.0)


def hardly(spec: Any, privacy_filter: Any, others: Any, newcomer: Any) -> Registration:
    return answering.answer_of(spec, privacy_filter, others, newcomer, HARDLY)


class Watch:
    """Which threads have a transaction open, and whether any of them planned meanwhile."""

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        self.planned, self.faults = 0, 0

    def around(self, real: Callable[[Metadata], Any]) -> Callable[[Metadata], Any]:
        @contextmanager
        def watched(metadata: Metadata) -> Iterator[Transaction]:
            me = threading.get_ident()
            with real(metadata) as tx:
                self.open[me] = self.open.get(me, 0) + 1
                try:
                    yield tx
                finally:
                    self.open[me] -= 1

        return watched

    def plan(self) -> None:
        self.planned += 1
        self.faults += self.open.get(threading.get_ident(), 0) > 0


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Every problem that anybody poses to the allocator is looked at."""
    found = Watch()
    monkeypatch.setattr(Metadata, "read", found.around(Metadata.read))
    monkeypatch.setattr(Metadata, "write", found.around(Metadata.write))
    checked = Problem.__post_init__

    def posed(problem: Problem) -> None:
        found.plan()
        checked(problem)

    monkeypatch.setattr(Problem, "__post_init__", posed)
    return found


def flights_store(path: Path, n_max: int = TIGHT) -> Store:
    store = Store(path, workers=0)
    store.create_stream(flights.spec(n_max=n_max))
    return store


def register(
    store: Store, name: str, kind: str, body: dict[str, Any], target: float
) -> Registration:
    return store.register(
        name, stream=store.streams()[0].name, kind=kind, config=body, target=target
    )


def test_nobody_plans_in_a_transaction(tmp_path: Path, watch: Watch) -> None:
    with open_store(tmp_path, policy=Policy(epsilon=1, delta="1e-6", composition="renyi")) as store:
        assert register(store, "a", "statistics", config(), 0.1).status == "ACTIVE"
        assert register(store, "sharp", "statistics", config(), 1e-6).status == "REJECTED"
        assert store.update_target("a", 0.12).status == "ACTIVE"
        assert store.update_target("a", 1e-6).status == "REJECTED"
        assert store.update_config("a", config("count")).status == "ACTIVE"
        new = AddedPtk(name="b", kind="statistics", config=config(), target=0.2)
        store.approve("rides", store.what_if("rides", Changes(add=(new,))).token)
        store.push("rides", day(0), producer="test", seq=0)
        (cycle,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert {line.outcome for line in cycle.trained} == {"PUBLISHED"}
    assert watch.planned > 10
    assert watch.faults == 0


def test_a_profile_is_planned_before_it_is_written(
    tmp_path: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    clusters = {
        "values": [{"kind": "bounded", "column": "speed", "lower": 0.0, "upper": 60.0}],
        "clusters": 2,
    }
    asked: list[Any] = []
    real = answering.answer_of

    def answer(*arguments: Any) -> Registration:
        asked.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(profiling, "answer_of", answer)
    with open_store(
        tmp_path, policy=Policy(epsilon=8, delta="1e-6"), count_epsilon="0.2", profile_share="0.5"
    ) as store:
        assert register(store, "groups", "clusters", clusters, 0.9).status == "WAITING"
        store.push("rides", day(0, 20_000), producer="test", seq=0)
        store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert store.ptk("groups").status in ("ACTIVE", "REJECTED")
    assert len(asked) == 1
    assert watch.planned > 0
    assert watch.faults == 0


def test_appends_go_on_while_somebody_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planning, enough = threading.Event(), threading.Event()
    real = answering.answer_of

    def slow(*arguments: Any) -> Registration:
        planning.set()
        assert enough.wait(60)
        return real(*arguments)

    monkeypatch.setattr(registrations, "answer_of", slow)
    with open_store(tmp_path) as store, ThreadPoolExecutor(1) as pool:
        answer = pool.submit(register, store, "a", "statistics", config(), 0.1)
        assert planning.wait(60)
        try:
            assert store.push("rides", day(0, 100), producer="test", seq=0) is not None
            with store.parts.metadata.write() as tx:
                tx.events.add("test.wrote", "rides", {}, at_ms=0)
        finally:
            enough.set()
        assert answer.result().status == "ACTIVE"


def test_every_answer_keeps_within_its_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flights that once took minutes.

    Work is counted: what it takes in seconds, `benchmarks.registrations` says.
    """
    spent: list[Effort] = []
    real = AnswerEffort.effort

    def counted(work: AnswerEffort) -> Effort:
        spent.append(real(replace(work, clock=lambda: 0.0)))
        return spent[-1]

    monkeypatch.setattr(AnswerEffort, "effort", counted)
    with flights_store(tmp_path) as store:
        answers = {one[0]: register(store, *one) for one in flights.PTKS}
    *fitting, last = answers.values()
    assert {one.status for one in fitting} == {"ACTIVE", "WAITING"}
    assert last.status == "REJECTED"
    assert last.nearest_target is not None
    # The tightest that minutes of work find is 0.061.
    assert 0.061 <= last.nearest_target <= 0.1
    assert any(one.startswith("Hold up to") for one in last.changes)
    assert max(one.spent for one in spent) <= 1.1 * FIRST.steps


def test_what_could_not_be_settled_says_so_and_is_settled_in_the_background(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flights_store(tmp_path, n_max=49_000) as store:
        for one in flights.PTKS[:-1]:
            register(store, *one)
        name, kind, body, _ = flights.PTKS[-1]
        monkeypatch.setattr(registrations, "answer_of", hardly)
        first = register(store, name, kind, body, 0.17)
        assert (first.status, first.refining) == ("REJECTED", True)
        assert "not settled" in first.reason
        assert "background" in first.reason
        assert store.ptk(name).refining
        # No plan for it in any window before it is accepted with one.
        assert name not in {line.ptk for line in store.plan_now("flights").lines}
        assert refine(store.parts) == 1
        after = store.ptk(name)
        assert (after.status, after.refining) == ("ACTIVE", False)
        assert name in {line.ptk for line in store.plan_now("flights").lines}
        assert [one.kind for one in store.events(limit=1000) if one.subject == name] == [
            "ptk.rejected",
            "ptk.accepted",
        ]
        assert refine(store.parts) == 0


def test_what_does_not_fit_is_refined_once_and_keeps_the_better_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flights_store(tmp_path) as store:
        for one in flights.PTKS[:-1]:
            register(store, *one)
        monkeypatch.setattr(registrations, "answer_of", hardly)
        first = register(store, *flights.PTKS[-1])
        assert (first.status, first.refining) == ("REJECTED", True)
        assert refine(store.parts, work=AnswerEffort(2e9, 60.0, final=True)) == 1
        after = store.ptk(first.name)
        assert (after.status, after.refining) == ("REJECTED", False)
        assert after.nearest_target is not None
        assert first.nearest_target is None or after.nearest_target <= first.nearest_target
        assert refine(store.parts) == 0


def test_a_change_that_was_not_settled_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with flights_store(tmp_path, n_max=49_000) as store:
        for one in flights.PTKS[:-1]:
            register(store, *one)
        name, kind, body, _ = flights.PTKS[-1]
        assert register(store, name, kind, body, 0.4).status == "ACTIVE"
        monkeypatch.setattr(registrations, "answer_of", hardly)
        answer = store.update_target(name, 0.17)
        assert (answer.status, answer.refining) == ("REJECTED", False)
        assert "not settled" in answer.reason
        assert (store.ptk(name).status, store.ptk(name).target) == ("ACTIVE", 0.4)


@pytest.fixture(params=["sqlite", "postgresql"])
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[list[Metadata]]:
    """The metadata of one store as two servers have it open."""
    where: Any = tmp_path / "meta.db"
    if request.param == "postgresql":
        where = request.getfixturevalue("postgres_url")
    found = [Metadata.open(where) for _ in range(2)]
    yield found
    for one in found:
        one.close()


# Each needs most of the budget on most of the records: one fits, two do not.
ALONE = spec(policy=Policy(epsilon=1, delta=0), n_max=2000)


def ask(metadata: Metadata, name: str) -> Registration:
    return registrations.register(
        metadata,
        ALONE,
        ALONE.policy.filter(),
        name,
        kind="statistics",
        config=config(),
        goal=Goal(0.064),
        train_every=1,
        now_ms=0,
    )


def test_of_two_who_plan_on_one_snapshot_the_later_plans_once_more(
    places: list[Metadata], monkeypatch: pytest.MonkeyPatch
) -> None:
    with places[0].write() as tx:
        tx.streams.create(ALONE.name, ALONE.as_json(), at_ms=0)
    together, planned = threading.Barrier(2), list[str]()
    real = answering.answer_of

    def answer(*arguments: Any) -> Registration:
        found = real(*arguments)
        planned.append(found.status)
        if len(planned) <= 2:
            together.wait(60)
        return found

    monkeypatch.setattr(registrations, "answer_of", answer)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, one, f"p{k}") for k, one in enumerate(places)]
        answers = [one.result() for one in asked]
    assert sorted(one.status for one in answers) == ["ACTIVE", "REJECTED"]
    assert planned == ["ACTIVE", "ACTIVE", "REJECTED"]
    with places[0].read() as tx:
        assert tx.ptks.count_by_status(ALONE.name) == {"ACTIVE": 1, "REJECTED": 1}


def test_what_is_overtaken_again_and_again_is_told_so(
    places: list[Metadata], monkeypatch: pytest.MonkeyPatch
) -> None:
    with places[0].write() as tx:
        tx.streams.create(ALONE.name, ALONE.as_json(), at_ms=0)
        other = tx.ptks.create("other", ALONE.name, "statistics", config(), 0.5, 1)
        tx.ptks.set_status(other.id, "ACTIVE")
    tries: list[Any] = []
    real = answering.answer_of

    def answer(*arguments: Any) -> Registration:
        with places[1].write() as tx:
            tries.append(
                tx.ptks.update_target(
                    other.id, 0.51 + 0.01 * len(tries), etag=tx.ptks.get(other.id).etag
                )
            )
        return real(*arguments)

    monkeypatch.setattr(registrations, "answer_of", answer)
    with pytest.raises(PlanContended) as refusal:
        ask(places[0], "mine")
    assert refusal.value.reason == "PLAN_CONTENDED"
    assert len(tries) == deciding.TRIES
    with places[0].read() as tx:
        assert tx.ptks.etag_of("mine") is None


def test_in_one_process_decisions_take_turns_and_nobody_waits_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(tmp_path) as store:
        with turns.turn(store.parts.metadata, "rides"):
            monkeypatch.setattr(turns, "WAIT_SECONDS", 0.01)
            with ThreadPoolExecutor(1) as pool, pytest.raises(PlanContended):
                pool.submit(register, store, "a", "statistics", config(), 0.1).result()
        with ThreadPoolExecutor(8) as pool:
            monkeypatch.setattr(turns, "WAIT_SECONDS", 60.0)
            asked = [
                pool.submit(register, store, f"p{k}", "statistics", config(), 0.2)
                for k in range(16)
            ]
            assert {one.result().status for one in asked} == {"ACTIVE"}
