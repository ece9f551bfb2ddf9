"""The JSON forms refuse what is not as documented, with a reason."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from allocator.scheduling.problem.singles import Singles
from allocator.scheduling.solve import read, solve
from ptklib.errors import InvalidInput

SINGLE: dict[str, Any] = {
    "blocks": [{"id": "a", "budget": 10, "arrives": 0}, {"id": 2, "budget": 5}],
    "queries": [{"id": 1, "cost": 5, "limit": 2}],
    "significance": [[5], [0]],
}
WINDOWS: dict[str, Any] = {
    "blocks": [{"id": 0, "capacity": 10, "arrives_s": 0}, {"id": 1, "capacity": 10}],
    "tasks": [{"id": "t", "time_s": 1.5, "first": 0, "last": 1, "demand": 3}],
    "timeout_s": 10,
}


def test_good_forms_are_read_and_written() -> None:
    problem = read(SINGLE)
    assert isinstance(problem, Singles)
    again = read(problem.as_json())
    assert isinstance(again, Singles)
    assert again.as_json() == problem.as_json()
    read(WINDOWS)


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("SCHEDULE_INVALID", lambda form: form.pop("queries")),
        ("SCHEDULE_INVALID", lambda form: form.update(more=1)),
        ("SCHEDULE_INVALID", lambda form: form.update(blocks={})),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(budget=-1)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(budget=1.5)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(budget=True)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(budget=1 << 62)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(arrives=None)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(id="")),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(id=None)),
        ("SCHEDULE_DUPLICATE_ID", lambda form: form["blocks"][0].update(id=2)),
        ("SCHEDULE_INVALID", lambda form: form["queries"][0].pop("limit")),
        ("SCHEDULE_INVALID", lambda form: form["queries"][0].update(cost="5")),
        ("SCHEDULE_INVALID", lambda form: form["significance"].pop()),
        ("SCHEDULE_INVALID", lambda form: form["significance"][0].append(1)),
        ("SCHEDULE_INVALID", lambda form: form["significance"][0].__setitem__(0, -1)),
        ("SCHEDULE_INVALID", lambda form: form["significance"][0].__setitem__(0, 0.5)),
        ("SCHEDULE_INVALID", lambda form: form["significance"][0].__setitem__(0, True)),
        ("SCHEDULE_INVALID", lambda form: form["significance"][0].__setitem__(0, 10**30)),
        ("SCHEDULE_INVALID", lambda form: form["significance"].__setitem__(0, 3)),
        ("SCHEDULE_INVALID", lambda form: form.update(outlook={"ratios": [2, 1]})),
        ("SCHEDULE_INVALID", lambda form: form.update(outlook={"ratios": [0, float("nan")]})),
        ("SCHEDULE_INVALID", lambda form: form.update(outlook={"queries": -1})),
    ],
)
def test_bad_single_forms_are_refused(
    reason: str, change: Callable[[dict[str, Any]], object]
) -> None:
    form = copy.deepcopy(SINGLE)
    change(form)
    with pytest.raises(InvalidInput) as caught:
        read(form)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("reason", "change"),
    [
        ("SCHEDULE_INVALID", lambda form: form.update(timeout_s=-1)),
        ("SCHEDULE_INVALID", lambda form: form.update(timeout_s="1")),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(time_s=float("inf"))),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(first=2)),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(first=1, last=0)),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(first=True)),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(demand=[1, 2])),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(demand=[])),
        ("SCHEDULE_INVALID", lambda form: form["tasks"][0].update(demand=-3)),
        ("SCHEDULE_INVALID", lambda form: form["blocks"][0].update(capacity=[1, 2, 3])),
        ("SCHEDULE_DUPLICATE_ID", lambda form: form["tasks"].append(form["tasks"][0])),
        ("SCHEDULE_DUPLICATE_ID", lambda form: form["blocks"][0].update(id=1)),
    ],
)
def test_bad_window_forms_are_refused(
    reason: str, change: Callable[[dict[str, Any]], object]
) -> None:
    form = copy.deepcopy(WINDOWS)
    change(form)
    if reason == "SCHEDULE_INVALID" and form["blocks"][0]["capacity"] == [1, 2, 3]:
        form["blocks"][1]["capacity"] = [1, 2]
    with pytest.raises(InvalidInput) as caught:
        read(form)
    assert caught.value.reason == reason


@pytest.mark.parametrize("form", [None, [], 3, "x", {}])
def test_what_is_no_object_is_refused(form: object) -> None:
    with pytest.raises(InvalidInput, match="must be an object"):
        read(form)


@pytest.mark.parametrize("form", [SINGLE, WINDOWS])
def test_unknown_policies_and_limits_are_refused(form: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        solve(read(form), policy="best", clock=lambda: 0.0)
    assert caught.value.reason == "SCHEDULE_POLICY"
    for limit in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InvalidInput) as caught:
            solve(read(form), time_limit_seconds=limit, clock=lambda: 0.0)
        assert caught.value.reason == "SCHEDULE_LIMIT"
