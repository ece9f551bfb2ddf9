"""sage.yaml: what is wrong in it is told with the line, before anything is done."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptkstore.cli.project.declaration import Project
from ptkstore.cli.project.templates import templates

GOOD = """\
streams:
  - name: rides
    time_column: at
    policy: {epsilon: 1, delta: "1e-6"}
    columns:
      - {name: at, type: "timestamp[ms]", lower: 2026-01-01}
      - {name: speed, type: float64, lower: 0, upper: 80}
ptks:
  - name: hour-speed
    stream: rides
    kind: statistics
    target: 0.05
    config:
      keys:
        - {kind: time_part, column: at, part: hour}
      statistics: [mean]
      value: speed
      lower: 0
      upper: 80
"""


def read(tmp_path: Path, text: str) -> Project:
    path = tmp_path / "sage.yaml"
    path.write_text(text)
    return Project.read(path)


def test_a_project_is_read(tmp_path: Path) -> None:
    project = read(tmp_path, GOOD)
    assert [one.name for one in project.streams] == ["rides"]
    assert project.streams[0].begins_ms == 1_767_225_600_000
    (ptk,) = project.ptks
    assert (ptk.name, ptk.stream, ptk.kind, ptk.target, ptk.train_every) == (
        "hour-speed",
        "rides",
        "statistics",
        0.05,
        1,
    )
    # In its full form, so that it can be compared with what a store has.
    assert ptk.config["mechanism"] == "laplace"


@pytest.mark.parametrize("text", ["{}", "streams:\nptks:\n", "streams: []\nptks: []\n"])
def test_an_empty_project_is_a_project(tmp_path: Path, text: str) -> None:
    project = read(tmp_path, text)
    assert project.streams == ()
    assert project.ptks == ()


@pytest.mark.parametrize("template", templates())
def test_templates_are_good_projects(template: str) -> None:
    path = files("ptkstore").joinpath("templates", template, "sage.yaml")
    project = Project.read(Path(str(path)))
    assert project.streams
    assert project.ptks


@pytest.mark.parametrize(
    ("old", "new", "reason", "line", "words"),
    [
        ("ptks:", "ptk:", "PROJECT_KEY_UNKNOWN", 8, "did you mean 'ptks'?"),
        (
            "    time_column",
            "    tme_column",
            "PROJECT_KEY_UNKNOWN",
            3,
            "did you mean 'time_column'?",
        ),
        ("{epsilon: 1,", "{epsilom: 1,", "PROJECT_KEY_UNKNOWN", 4, "a policy has no 'epsilom'"),
        ("float64, lower", "float64, lowest", "PROJECT_KEY_UNKNOWN", 7, "a column has no 'lowest'"),
        ("    target", "    traget", "PROJECT_KEY_UNKNOWN", 12, "did you mean 'target'?"),
        (
            "      value:",
            "      valve:",
            "PROJECT_KEY_UNKNOWN",
            17,
            "statistics config has no 'valve'",
        ),
        ("    kind: statistics\n", "", "PROJECT_INVALID", 9, "a PTK must have kind"),
        ("target: 0.05", "target: much", "PROJECT_INVALID", 12, "target must be a number"),
        ("target: 0.05", "target: true", "PROJECT_INVALID", 12, "target must be a number"),
        ("    target: 0.05\n", "", "TARGET_OR_EPSILON", 9, "got neither"),
        ("target: 0.05", "target: 0.05\n    epsilon: 0.3", "TARGET_OR_EPSILON", 12, "got both"),
        ("target: 0.05", "epsilon: -1", "AMOUNT_NEGATIVE", 12, "must not be negative"),
        ("target: 0.05", "target: 0.05\n    train_every: 0", "PROJECT_INVALID", 13, "train_every"),
        (
            "target: 0.05",
            "target: 0.05\n    over: {rolling: 0}",
            "OVER_INVALID",
            13,
            "over must be",
        ),
        ("target: 0.05", "target: 0.05\n    over: often", "OVER_INVALID", 13, "over must be"),
        ("name: hour-speed", "name: 7", "PROJECT_INVALID", 9, "name must be text"),
        ("ptks:", "ptks: []\nx:", "PROJECT_KEY_UNKNOWN", 9, "the file has no 'x'"),
        (
            "  - name: rides",
            "  - rides\n  - name: rides",
            "PROJECT_INVALID",
            2,
            "a stream must have keys",
        ),
        ("kind: statistics", "kind: statistic", "PTK_KIND_UNKNOWN", 11, "kind must be one of"),
        ("[mean]", "[median]", "CONFIG_INVALID", 16, "must be one of 'count'"),
        ("      upper: 80\n", "", "CONFIG_INVALID", 17, "given together"),
        ("time_part, column", "time_part, colum", "CONFIG_FIELDS", 15, "unknown ['colum']"),
        ("time_column: at", "time_column: speed", "SPEC_INVALID", 3, "a timestamp"),
        ("lower: 0, upper: 80}", "lower: 0}", "COLUMN_INVALID", 7, "'speed'"),
        (
            "time_column: at",
            "time_column: at\n    window_seconds: 0",
            "SPEC_INVALID",
            4,
            "window_seconds",
        ),
        ("epsilon: 1,", "epsilon: -1,", "AMOUNT_NEGATIVE", 4, "epsilon"),
        ("type: float64", "type: floot", "COLUMN_INVALID", 7, "floot"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    tmp_path: Path, old: str, new: str, reason: str, line: int, words: str
) -> None:
    assert GOOD.count(old) >= 1
    with pytest.raises(InvalidInput) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    assert (caught.value.reason, caught.value.details["line"]) == (reason, line), (
        caught.value.message
    )
    assert f"sage.yaml line {line}: " in caught.value.message
    assert words in caught.value.message


@pytest.mark.parametrize(("name", "line"), [("streams", 8), ("ptks", 20)])
def test_a_name_is_declared_once(tmp_path: Path, name: str, line: int) -> None:
    blocks = GOOD.split("ptks:\n")
    blocks = [blocks[0].removeprefix("streams:\n"), blocks[1]]
    twice = [
        block * (2 if name == one else 1)
        for one, block in zip(("streams", "ptks"), blocks, strict=True)
    ]
    with pytest.raises(InvalidInput, match="declared twice") as caught:
        read(tmp_path, f"streams:\n{twice[0]}ptks:\n{twice[1]}")
    assert caught.value.details["line"] == line


def test_a_project_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="PROJECT_MISSING"):
        Project.read(tmp_path / "sage.yaml")


@pytest.mark.parametrize("text", ["", "- a\n", "streams: x\n", "ptks: {a: 1}\n"])
def test_the_outermost_form(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match="PROJECT_INVALID"):
        read(tmp_path, text)


def faults_of(error: InvalidInput) -> list[dict[str, Any]]:
    faults = error.details["errors"]
    assert isinstance(faults, list)
    return faults


def test_everything_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    text = (
        GOOD.replace("time_column", "tme_column")
        .replace("epsilon: 1,", "epsilom: 1,")
        .replace("float64", "floot")
        .replace("target: 0.05", "target: much\n    train_every: 0\n    over: often")
        .replace("value: speed", "valve: speed")
    )
    with pytest.raises(InvalidInput, match="PROJECT_FAULTS") as caught:
        read(tmp_path, text)
    told = [(error["line"], error["reason"]) for error in faults_of(caught.value)]
    assert told == [
        (3, "PROJECT_KEY_UNKNOWN"),
        (4, "PROJECT_KEY_UNKNOWN"),
        (7, "COLUMN_INVALID"),
        (12, "PROJECT_INVALID"),
        (13, "PROJECT_INVALID"),
        (14, "OVER_INVALID"),
        (19, "PROJECT_KEY_UNKNOWN"),
    ]
    lines = caught.value.message.splitlines()
    assert lines[-1] == "7 errors, and nothing was done: mend them all"
    assert all("sage.yaml line" in line and line.endswith("]") for line in lines[:-1])


def test_what_is_wrong_in_one_stream_hides_nothing_of_a_ptk(tmp_path: Path) -> None:
    text = GOOD.replace("time_column: at", "time_column: speed").replace("[mean]", "[median]")
    with pytest.raises(InvalidInput, match="PROJECT_FAULTS") as caught:
        read(tmp_path, text)
    assert [error["reason"] for error in faults_of(caught.value)] == [
        "SPEC_INVALID",
        "CONFIG_INVALID",
    ]
