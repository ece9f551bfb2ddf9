"""Planning in a process of its own: the same answers, and it may die."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptkstore.engine.answering import Work, answer_of
from ptkstore.engine.planner import Planner
from ptkstore.engine.planning import Candidate
from ptkstore.engine.registrations import unwritten
from ptkstore.engine.turns import PlanContended
from tests.engine import flights

WORK = Work(2e8, 60.0)


@pytest.fixture
def planner() -> Iterator[Planner]:
    made = Planner()
    yield made
    made.close()


def candidates() -> list[Candidate]:
    asked = [(name, kind, config, target) for name, kind, config, target in flights.PTKS if kind != "clusters"]
    return [Candidate.of(unwritten(name, "flights", kind, config, target)) for name, kind, config, target in asked]


def pid(planner: Planner) -> int:
    process: Any = planner._process
    return int(process[1].pid)


def test_the_answers_are_the_same_and_it_may_die_between_them(planner: Planner) -> None:
    spec, (*others, last) = flights.spec(n_max=60_000), candidates()
    judge = spec.policy.filter()
    for newcomer in (others[0], last):
        expected = answer_of(spec, judge, others[1:], newcomer, WORK)
        assert planner.answer(spec, judge, others[1:], newcomer, WORK) == expected
        os.kill(pid(planner), signal.SIGKILL)
    first = answer_of(spec, judge, [], others[0], WORK)
    assert planner.answer(spec, judge, [], others[0], WORK) == first
    assert planner.answer(spec, judge, [], others[0], WORK) == first
    assert Path(f"/proc/{pid(planner)}").exists()


def test_refusals_come_back_as_they_are_and_after_the_end_nothing_is_planned(planner: Planner) -> None:
    spec = flights.spec(policy=Policy(epsilon=1, delta="1e-6", composition="strong"))
    with pytest.raises(InvalidInput) as refusal:
        planner.answer(spec, spec.policy.filter(), [], candidates()[0], WORK)
    assert refusal.value.reason == "PLAN_COMPOSITION"
    child = pid(planner)
    planner.close()
    assert not Path(f"/proc/{child}").exists()
    with pytest.raises(PlanContended):
        planner.answer(spec, spec.policy.filter(), [], candidates()[0], WORK)
    planner.close()
