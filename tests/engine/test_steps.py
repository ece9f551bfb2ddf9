"""The steps of a window are written as ever and read as they were ever written."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from profiler.measuring.results import NOT_REACHED, LevelResult
from ptkstore.api.views import TrainedLine
from ptkstore.engine.steps.assigned import Assigned
from ptkstore.engine.steps.of_ptks import (
    ProfiledLevel,
    ProfiledPtk,
    ProfileList,
    TrainedPtk,
    ValidatedPtk,
    ValidationList,
)
from ptkstore.engine.steps.of_window import (
    STEPS,
    Done,
    Expired,
    Notified,
    Planned,
    Profiled,
    Published,
    Reserved,
    Sealed,
    Trained,
    Validated,
)
from ptkstore.engine.steps.step import Step
from ptkstore.metadata import rows
from ptkstore.metadata.tables import steps
from tests.engine.small import DAY_MS, FIRST_MS, config, day, open_store

LINE = {
    "ptk": "p",
    "outcome": "PUBLISHED",
    "version": 3,
    "epsilon": "0.5",
    "samples": 900,
    "reason": "",
}
ASSIGNED: dict[str, Any] = {
    "ptk": 1,
    "name": "p",
    "kind": "statistics",
    "config": {"keys": []},
    "epsilon": "0.5",
    "delta": "0",
    "samples": 900,
    "target": 0.1,
    "ranges": [["0", "18446744073709551616"]],
    "previous": None,
    "previous_oldest": None,
    "version": 1,
}
PLAN: dict[str, Any] = {
    "plan": {"lines": []},
    "coordinate": 0,
    "capacity": 10,
    "view": {"status": "ADOPTED"},
    "assigned": [ASSIGNED | {"memory_bytes": 7}],
    "due": ["p", "q"],
    "left_out": {"q": "WINDOW_TOO_SMALL"},
    "left_out_since": {"q": 4},
}
LEVEL = LevelResult(Fraction(1, 2), NOT_REACHED, charged=("0.5/train-1",), reason="no")

VERDICT = {"ptk": "p", "verdict": "NOT_SHOWN", "digest": "a" * 64, "reason": ""}

# What stores hold today.
BODIES: list[tuple[type[Step], Any]] = [
    (Sealed, {"blocks": ["a", "b"], "dp_records": 40, "count_lost": True}),
    (ProfileList, {"ptks": [1, 2], "why": ["NEW", "ASKED"]}),
    (ProfiledPtk, {"ptk": "p", "status": "REACHED", "trainings": 5}),
    (ProfiledLevel, LEVEL.as_json()),
    (ProfiledLevel, LEVEL.as_json() | {"witness": "a" * 64}),
    (Profiled, {}),
    (Profiled, {"p": {"ptk": "p", "status": "REACHED", "trainings": 5}}),
    (Planned, PLAN),
    (Reserved, {"reserved": True}),
    (Reserved, {"reserved": False, "reason": "BUDGET_EXCEEDED"}),
    (TrainedPtk, LINE | {"digest": "a" * 64}),
    (TrainedPtk, LINE | {"outcome": "SKIPPED", "version": None, "reason": "NOT_IN_PLAN"}),
    (Trained, {"p": LINE | {"digest": "a" * 64}}),
    (ValidationList, {"trials": {"p": {"records": 4}}, "untested": {"q": "TEST_SLICE_USED"}}),
    (ValidatedPtk, VERDICT),
    (Validated, {"p": VERDICT}),
    (Published, {"p": 3}),
    (Notified, None),
    (Expired, {"expired": ["a", "b"]}),
]


@pytest.mark.parametrize(("kind", "body"), BODIES, ids=lambda one: getattr(one, "__name__", ""))
def test_a_body_is_read_and_written_as_it_is(kind: type[Step], body: Any) -> None:
    stored = json.loads(json.dumps(body))
    step = kind.from_json(stored)
    assert json.loads(json.dumps(step.as_json())) == stored
    assert kind.from_json(step.as_json()) == step


def test_bodies_of_earlier_versions_mean_what_they_meant() -> None:
    assert Sealed.from_json({"blocks": ["a"], "dp_records": 4}) == Sealed(("a",), 4)
    earlier = {
        key: value
        for key, value in PLAN.items()
        if key not in ("left_out", "left_out_since", "capacity")
    }
    planned = Planned.from_json(earlier | {"assigned": [ASSIGNED]})
    assert (planned.left_out, planned.left_out_since, planned.capacity) == ({}, {}, None)
    assert planned.assigned[0].memory_bytes is None
    assert planned.assigned[0].ranges == ((0, 2**64),)
    assert Profiled.from_json(None) == Profiled()
    assert TrainedPtk.from_json({"ptk": "p", "outcome": "SKIPPED"}).line == TrainedLine(
        "p", "SKIPPED"
    )


def test_every_step_is_told_of_what_is_done() -> None:
    bodies = {kind.STEP: body for kind, body in BODIES if kind in STEPS}
    written = [
        rows.StepRow(k, 1, name, body, None) for k, (name, body) in enumerate(bodies.items())
    ]
    done = Done.of(written)
    assert done.names == tuple(bodies)
    assert done.sealed == Sealed(("a", "b"), 40, count_lost=True)
    assert done.view == {"status": "ADOPTED"}
    assert [(line.ptk, line.validation) for line in done.lines()] == [("p", "NOT_SHOWN")]
    assert Done.of(()) == Done()


@pytest.mark.parametrize("last", ["sealed", "planned", "reserved", "trained"])
def test_a_half_done_cycle_of_an_earlier_version_goes_on(tmp_path: Path, last: str) -> None:
    """Bodies without what came later, in a store that was left after one of the steps."""

    class Gone(Exception):
        pass

    def leave(step: str, moment: str) -> None:
        if (step, moment) == (last, "written"):
            raise Gone

    with open_store(tmp_path) as store:
        store.register("hour-speed", stream="rides", kind="statistics", config=config(), target=0.1)
        store.push("rides", day(0), producer="p", seq=0)
        store.parts.observers.add(leave)
        with pytest.raises(Gone):
            store.run("rides", until_ms=FIRST_MS + DAY_MS)
        later = {"count_lost", "left_out", "left_out_since", "capacity", "memory_bytes"}
        with store.parts.journal.writing() as tx:
            (cycle,) = tx.cycles.unfinished("rides")
            for step in tx.cycles.steps(cycle.id):
                body = step.body
                if isinstance(body, dict):
                    body = {key: value for key, value in body.items() if key not in later}
                    for ptk in body.get("assigned", ()):
                        ptk.pop("memory_bytes", None)
                earlier = steps.update().where(steps.c.id == step.id)
                tx.session.execute(earlier.values(body=json.dumps(body)))
    with open_store(tmp_path) as store:
        (done,) = store.run("rides", until_ms=FIRST_MS + DAY_MS)
        assert (done.status, [line.outcome for line in done.trained]) == ("DONE", ["PUBLISHED"])
        assert store.ptk("hour-speed").latest_version == 1


def test_an_assigned_ptk_keeps_its_tags() -> None:
    assigned = Assigned.from_json(ASSIGNED)
    assert assigned.ranges[0][1] == 2**64
    assert assigned.as_json()["ranges"] == [["0", str(2**64)]]
