"""``sage plan solve``: a file in, a plan out, with no store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from allocator.plan import Plan
from allocator.problem import Problem
from allocator.verify import faults, faults_of_shelf
from tests.allocator.instances import taxi
from tests.cli.sage import call, sage

SMALL = {
    "capacity": 10,
    "n_max": None,
    "ptks": [
        {
            "id": name,
            "options": [
                {"level": "0.1", "demand": 5, "samples": 100},
                {"level": "1", "demand": 10, "samples": 10},
            ],
        }
        for name in "abc"
    ],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "problem.json").write_text(json.dumps(SMALL))
    (tmp_path / "taxi.json").write_text(json.dumps(taxi().as_json()))
    return tmp_path


def test_the_answer_is_the_plan_as_documented(folder: Path) -> None:
    body = sage("plan", "solve", "--input", "taxi.json", "--json", cwd=folder).json
    assert body["status"] == "OPTIMAL"
    assert (body["total_samples"], body["lower_bound"], body["gap"]) == (357_009, 357_009, 0.0)
    (partition,) = body["partitions"]
    assert set(partition) == {"samples", "demand", "members"}
    assert set(body["assignments"][0]) == {"id", "level", "demand", "samples", "partitions"}
    assert sum(one["demand"] for one in body["assignments"]) <= 10**9
    assert isinstance(body["seconds"], float)
    assert faults(taxi(), Plan.from_json(body)) == ()


@pytest.mark.parametrize("method", ["strip", "shelf", "fig4"])
@pytest.mark.parametrize("solver", ["cbc", "highs"])
def test_every_method_answers(folder: Path, method: str, solver: str) -> None:
    run = call(
        "plan", "solve", "--input", "problem.json", "--method", method, "--solver", solver, "--time-limit", "20",
        "--json", cwd=folder,
    )  # fmt: skip
    plan = Plan.from_json(run.json)
    assert (plan.status, plan.total_samples) == ("OPTIMAL", 30)
    assert (faults if method == "strip" else faults_of_shelf)(Problem.from_json(SMALL), plan) == ()


def test_equal_plans_are_equal_bytes_without_the_time(folder: Path) -> None:
    one, two = (
        sage(
            "plan",
            "solve",
            "--input",
            "problem.json",
            "--json",
            "--no-seconds",
            cwd=folder,
            OMP_NUM_THREADS=threads,
        )
        for threads in ("1", "4")
    )
    assert one.out == two.out
    assert one.json["seconds"] == 0.0


def test_people_get_tables_and_a_picture(folder: Path) -> None:
    run = call("plan", "solve", "--input", "problem.json", "--svg", "plan.svg", cwd=folder)
    assert run.out.startswith("OPTIMAL: 30 samples in")
    assert "ptk  level  demand  samples  partitions" in run.out
    assert (folder / "plan.svg").read_text().startswith("<svg")


def test_no_plan_is_said_with_what_would_help(folder: Path) -> None:
    (folder / "none.json").write_text(json.dumps({**SMALL, "n_max": 20}))
    run = call("plan", "solve", "--input", "none.json", cwd=folder, code=1)
    assert run.out.startswith("INFEASIBLE: There is no plan: ")
    assert "  or: Allow 30 samples to be held instead of 20." in run.out
    body = json.loads(
        call("plan", "solve", "--input", "none.json", "--json", cwd=folder, code=1).out
    )
    assert body["status"] == "INFEASIBLE"
    assert {one["kind"] for one in body["explanation"]["changes"]} >= {"n_max", "remove"}


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("{", (), "FILE_UNREADABLE"),
        ("[" * 100_000, (), "FILE_UNREADABLE"),
        ("[]", (), "PROBLEM_INVALID"),
        ('{"capacity": 1, "n_max": null, "ptks": [{"id": "a", "options": []}, {"id": "a", "options": []}]}', (),
         "PROBLEM_DUPLICATE_ID"),
        (json.dumps(SMALL), ("--method", "best"), "COMMAND_USAGE"),
        (json.dumps(SMALL), ("--time-limit", "-1"), "TIME_LIMIT_INVALID"),
        (json.dumps(SMALL), ("--svg", "no/such/folder.svg"), "FILE_UNWRITABLE"),
        (json.dumps(SMALL), ("--method", "fig4", "--solver", "gurobi"), "SOLVER_UNAVAILABLE"),
    ],
)  # fmt: skip
def test_what_is_wrong_has_a_reason(
    tmp_path: Path, text: str, more: tuple[str, ...], reason: str
) -> None:
    (tmp_path / "problem.json").write_text(text)
    run = call("plan", "solve", "--input", "problem.json", "--json", *more, cwd=tmp_path, code=2)
    assert run.error["reason"] == reason


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    run = call("plan", "solve", "--input", "nowhere.json", "--json", cwd=tmp_path, code=2)
    assert run.error["reason"] == "FILE_UNREADABLE"
