from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from allocator.problem import MAX_OPTIONS, MAX_PTKS, Option, Problem, PtkOptions
from ptklib.errors import InvalidInput
from tests.allocator.instances import problems

TEXT = (
    '{"capacity": 1000000, "n_max": null, '
    '"ptks": [{"id": "a", "options": [{"level": "0.01", "demand": 10000, "samples": 3005}]}]}'
)


def test_the_json_form_is_as_documented() -> None:
    problem = Problem(1_000_000, None, (PtkOptions("a", (Option("0.01", 10_000, 3005),)),))
    assert json.dumps(problem.as_json()) == TEXT
    assert Problem.from_json(json.loads(TEXT)) == problem


@given(problems())
def test_the_json_form_reads_back(problem: Problem) -> None:
    assert Problem.from_json(json.loads(json.dumps(problem.as_json()))) == problem


def _changed(path: list[Any], value: Any) -> Any:
    body = json.loads(TEXT)
    inner = body
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = value
    return body


OPTION = ["ptks", 0, "options", 0]
A, B = {"level": "1", "demand": 1, "samples": 1}, {"level": "1", "demand": 2, "samples": 2}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (None, "PROBLEM_INVALID"),
        ([], "PROBLEM_INVALID"),
        ({}, "PROBLEM_INVALID"),
        (_changed(["extra"], 1), "PROBLEM_INVALID"),
        (_changed(["capacity"], -1), "PROBLEM_INVALID"),
        (_changed(["capacity"], 1.5), "PROBLEM_INVALID"),
        (_changed(["capacity"], True), "PROBLEM_INVALID"),
        (_changed(["capacity"], 1 << 62), "PROBLEM_INVALID"),
        (_changed(["n_max"], 0), "PROBLEM_INVALID"),
        (_changed(["n_max"], "9"), "PROBLEM_INVALID"),
        (_changed(["ptks"], {}), "PROBLEM_INVALID"),
        (_changed(["ptks", 0], 3), "PROBLEM_INVALID"),
        (_changed(["ptks", 0, "id"], ""), "PROBLEM_INVALID"),
        (_changed(["ptks", 0, "id"], "a\nb"), "PROBLEM_INVALID"),
        (_changed(["ptks", 0, "options"], None), "PROBLEM_INVALID"),
        (_changed([*OPTION, "level"], 0.01), "PROBLEM_INVALID"),
        (_changed([*OPTION, "demand"], -1), "PROBLEM_INVALID"),
        (_changed([*OPTION, "samples"], 0), "PROBLEM_INVALID"),
        (_changed([*OPTION, "samples"], None), "PROBLEM_INVALID"),
        (_changed([*OPTION, "samples"], 10**14 + 1), "PROBLEM_INVALID"),
        (_changed([*OPTION, "more"], 1), "PROBLEM_INVALID"),
        (_changed(["ptks", 0, "options"], [A, B]), "PROBLEM_DUPLICATE_LEVEL"),
        (
            _changed(["ptks"], [{"id": "a", "options": [A]}, {"id": "a", "options": []}]),
            "PROBLEM_DUPLICATE_ID",
        ),
        (
            _changed(["ptks"], [{"id": str(i), "options": []} for i in range(MAX_PTKS + 1)]),
            "PROBLEM_TOO_LARGE",
        ),
        (
            _changed(
                ["ptks", 0, "options"], [{**A, "level": str(i)} for i in range(MAX_OPTIONS + 1)]
            ),
            "PROBLEM_TOO_LARGE",
        ),
    ],
)
def test_bad_problems_are_refused_with_their_reason(body: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Problem.from_json(body)
    assert caught.value.reason == reason


def test_values_are_checked_at_construction_too() -> None:
    with pytest.raises(InvalidInput, match="PROBLEM_INVALID"):
        PtkOptions("a", [Option("1", 1, 1)])  # type: ignore[arg-type]
