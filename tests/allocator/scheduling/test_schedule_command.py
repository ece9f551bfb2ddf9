"""``sage schedule solve``: a file in, decisions out, with no store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from allocator.scheduling.verify import faults
from benchmarks._scheduling.families import drawn
from benchmarks._scheduling.traces import mice_and_elephants
from tests.cli.sage import call, sage

FIELDS = [
    "policy", "value", "upper_bound", "gap", "assignment", "seconds", "seconds_per_decision",
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    single = drawn("uniform", 1, blocks=6, queries=40)
    windows = mice_and_elephants(1, length=30.0)
    (tmp_path / "single.json").write_text(json.dumps(single))
    (tmp_path / "windows.json").write_text(json.dumps(windows))
    (tmp_path / "bad.json").write_text(json.dumps({**single, "significance": []}))
    return tmp_path


@pytest.mark.parametrize("name", ["single", "windows"])
@pytest.mark.parametrize("policy", ["default", "fcfs", "dpf", "dpack", "optimal"])
def test_the_answer_is_as_documented(folder: Path, name: str, policy: str) -> None:
    form: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    body = call(
        "schedule", "solve", "--input", f"{name}.json", "--policy", policy, "--json", cwd=folder
    ).json
    assert list(body) == FIELDS
    assert faults(form, body) == ()
    assert body["policy"] == {
        ("default", "single"): "forecast",
        ("default", "windows"): "rolling",
    }.get((policy, name), policy)


def test_a_process_prints_one_document(folder: Path) -> None:
    body = sage("schedule", "solve", "--input", "single.json", "--policy", "optimal",
                "--time-limit", "5", "--json", cwd=folder).json  # fmt: skip
    assert body["gap"] < 0.05


def test_people_read_a_table(folder: Path) -> None:
    run = call("schedule", "solve", "--input", "windows.json", cwd=folder)
    assert run.code == 0
    assert "rolling: value" in run.out


def test_what_is_wrong_is_said(folder: Path) -> None:
    run = call("schedule", "solve", "--input", "bad.json", "--json", cwd=folder, code=2)
    assert run.code == 2
    assert "SCHEDULE_INVALID" in run.err
    run = call("schedule", "solve", "--input", "single.json", "--policy", "x", cwd=folder, code=2)
    assert run.code == 2
    assert "SCHEDULE_POLICY" in run.err
    assert call("schedule", "solve", "--input", "none.json", cwd=folder, code=2).code == 2
