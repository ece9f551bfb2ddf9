"""What failed once is tried once more, alone; what fails twice has failed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.again import MOST, failed_before, main

STEADY = """
import pathlib
import pytest

SEEN = pathlib.Path(__file__).with_name("seen")

def test_right():
    pass

def test_unsteady():
    first = not SEEN.exists()
    SEEN.touch()
    assert not first
"""
WRONG = """
import pytest

@pytest.mark.parametrize("which", range({count}))
def test_wrong(which):
    assert which < 0
"""


def suite(folder: Path, **files: str) -> Path:
    (folder / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (folder / f"test_{name}.py").write_text(text)
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist"]
    subprocess.run(run, cwd=folder, check=False, capture_output=True)
    return folder


def test_a_test_that_passes_the_second_time_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    root = suite(tmp_path, steady=STEADY)
    assert failed_before(root) == ["test_steady.py::test_unsteady"]
    assert main(root) == 0
    assert (
        "UNSTEADY, failed and then passed: test_steady.py::test_unsteady" in capfd.readouterr().out
    )


def test_a_test_that_fails_twice_has_failed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(suite(tmp_path, steady=STEADY, wrong=WRONG.format(count=1))) == 1
    told = capfd.readouterr().out
    assert "FAILED twice" in told
    assert "UNSTEADY" not in told


def test_many_failures_are_not_tried_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(suite(tmp_path, wrong=WRONG.format(count=MOST + 1))) == 1
    assert f"{MOST + 1} tests failed, more than {MOST}: not tried" in capfd.readouterr().out


def test_without_a_failure_that_is_known_there_is_nothing_to_try(tmp_path: Path) -> None:
    """A run that ended early, say without a server, keeps none."""
    assert main(tmp_path) == 1
    assert main(suite(tmp_path, right="def test_right(): pass")) == 1
