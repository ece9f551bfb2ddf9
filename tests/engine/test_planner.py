"""Planning in a process of its own: the same answers, and it may die."""

from __future__ import annotations

import os
import platform
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptkstore.api.goal import Goal
from ptkstore.engine.plans.answering import AnswerEffort, answer_of
from ptkstore.engine.plans.planner import BACKGROUND, SERVED, Planner
from ptkstore.engine.plans.planning import Candidate
from ptkstore.engine.plans.registrations import unwritten
from ptkstore.engine.turns import PlanContended
from tests.engine import flights

WORK = AnswerEffort(2e8, 60.0)


@pytest.fixture
def planner() -> Iterator[Planner]:
    made = Planner()
    yield made
    made.close()


def candidates() -> list[Candidate]:
    asked = [
        (name, kind, config, target)
        for name, kind, config, target in flights.PTKS
        if kind != "clusters"
    ]
    return [
        Candidate.of(unwritten(name, "flights", kind, config, Goal(target)))
        for name, kind, config, target in asked
    ]


def pid(planner: Planner) -> int:
    return planner._idle[-1].child.pid


def test_the_answers_are_the_same_and_it_may_die_between_them(planner: Planner) -> None:
    spec, (*others, last) = flights.spec(n_max=60_000), candidates()
    privacy_filter = spec.policy.filter()
    for newcomer in (others[0], last):
        expected = answer_of(spec, privacy_filter, others[1:], newcomer, WORK)
        assert planner.ask(answer_of, spec, privacy_filter, others[1:], newcomer, WORK) == expected
        os.kill(pid(planner), signal.SIGKILL)
    first = answer_of(spec, privacy_filter, [], others[0], WORK)
    assert planner.ask(answer_of, spec, privacy_filter, [], others[0], WORK) == first
    assert planner.ask(answer_of, spec, privacy_filter, [], others[0], WORK) == first
    assert Path(f"/proc/{pid(planner)}").exists()


def test_refusals_come_back_as_they_are_and_after_the_end_nothing_is_planned(
    planner: Planner,
) -> None:
    spec = flights.spec(policy=Policy(epsilon=1, delta="1e-6", composition="strong"))
    with pytest.raises(InvalidInput) as refusal:
        planner.ask(answer_of, spec, spec.policy.filter(), [], candidates()[0], WORK)
    assert refusal.value.reason == "PLAN_COMPOSITION"
    child = pid(planner)
    planner.close()
    assert not Path(f"/proc/{child}").exists()
    with pytest.raises(PlanContended):
        planner.ask(answer_of, spec, spec.policy.filter(), [], candidates()[0], WORK)
    planner.close()


def dies() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def breaks() -> None:
    raise ZeroDivisionError("a text that nobody needs")


class Standing(NamedTuple):
    pid: int
    session: int
    nice: int
    policy: int
    cores: int
    of_the_session: str
    turn: str


def standing() -> Standing:
    """Where the process itself stands."""
    group = Path("/proc/self/autogroup")
    told = group.read_text().rpartition(" ")[2].strip() if group.exists() else ""
    cores = len(os.sched_getaffinity(0))
    stated = Path("/proc/self/sched")
    lines = stated.read_text().splitlines() if stated.exists() else []
    turns = [line for line in lines if "se.slice" in line]
    return Standing(
        os.getpid(),
        os.getsid(0),
        os.nice(0),
        os.sched_getscheduler(0),
        cores,
        told,
        turns[0].rpartition(" ")[2] if turns else "",
    )


def test_what_ends_its_process_is_not_tried_here(planner: Planner) -> None:
    for _ in range(2):
        with pytest.raises(PlanContended):
            planner.ask(dies)
    assert planner.ask(standing).pid != os.getpid()


def test_a_defect_is_told_by_type_and_place_and_met_by_who_asked(
    planner: Planner, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ZeroDivisionError):
        planner.ask(breaks)
    assert "breaks failed: ZeroDivisionError at test_planner.py" in caplog.text
    assert "nobody needs" not in caplog.text
    assert planner.ask(standing).pid == pid(planner)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot keep processes to some cores"
)
@pytest.mark.parametrize("place", [SERVED, BACKGROUND])
def test_it_stands_behind_those_who_are_served(place: str) -> None:
    planner = Planner(place=place)
    try:
        found = planner.ask(standing)
    finally:
        planner.close()
    ours = standing()
    assert found.session == found.pid
    assert found.nice == min(19, ours.nice + (19 if place == BACKGROUND else 10))
    assert found.policy == (os.SCHED_IDLE if place == BACKGROUND else os.SCHED_OTHER)
    assert found.cores == ours.cores - ours.cores // 2
    if tuple(int(part) for part in platform.release().split(".")[:2]) >= (6, 12):
        assert found.turn in ("", "100000")
    # Nothing where the kernel does not share time among sessions. What is told of our own session
    # may be nothing all the same: the first one of a machine has no such number.
    assert found.of_the_session in ("", "19" if place == BACKGROUND else "10")


def test_several_questions_are_worked_on_at_once_and_no_more(tmp_path: Path) -> None:
    several = Planner(most=2)
    try:
        with ThreadPoolExecutor(2) as pool:
            pids = {
                one.result()
                for one in [pool.submit(several.ask, meet, str(tmp_path), k) for k in range(2)]
            }
        assert len(pids) == 2
        with ThreadPoolExecutor(4) as pool:
            again = [pool.submit(several.ask, standing) for _ in range(8)]
            assert {one.result().pid for one in again} <= pids
    finally:
        several.close()


def meet(folder: str, number: int) -> int:
    """Return when the other one is there as well."""
    Path(folder, str(number)).touch()
    while len(list(Path(folder).iterdir())) < 2:
        time.sleep(0.01)
    return os.getpid()
