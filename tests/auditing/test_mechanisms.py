"""Every mechanism is audited near its claim, and half of its noise or an unnoised lowest bit is
caught in each, by the command.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from ptklib.auditing.mechanisms import mechanism_subjects
from ptklib.auditing.running import EXCEEDS, HOLDS, audit
from ptklib.auditing.subject import Subject
from ptklib.auditing.tape import TAPPED
from ptklib.privacy.mechanisms import above_threshold, large_margin, release, selection
from ptkstore.engine.safekeeping import auditing
from tests.auditing.commanding import commanded
from tests.auditing.plants import plant_half_noise, plant_lowest_bit

NAMES = [one.name for one in mechanism_subjects()]
# Of the faults and for the claim itself; the large margin mechanism shows half of its noise only in
# many runs.
RUNS = {"wishart release": 3_000, "large margin": 40_000, "above threshold": 20_000}


def subject_of(name: str) -> Subject:
    return next(one for one in mechanism_subjects() if one.name == name)


@pytest.mark.parametrize("name", NAMES)
def test_a_right_mechanism_is_bounded_by_a_quarter_of_its_claim_or_more(name: str) -> None:
    (found,) = audit([subject_of(name)], runs=RUNS.get(name, 6_000))
    assert found.verdict == HOLDS, found


@pytest.mark.parametrize("plant", [plant_half_noise, plant_lowest_bit])
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_caught_by_the_command(
    name: str,
    plant: Callable[[pytest.MonkeyPatch], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    plant(monkeypatch)
    few = 3_000 if plant is plant_lowest_bit and name == "large margin" else RUNS.get(name, 6_000)
    found = commanded(monkeypatch, tmp_path, subject_of(name), "--runs", str(few), code=1)
    assert found["verdict"] == EXCEEDS, found
    assert found["runs_per_side"] == few


@pytest.mark.parametrize("plant", [plant_half_noise, plant_lowest_bit])
def test_a_planted_fault_is_caught_in_the_count_of_a_block(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(monkeypatch)
    subject = next(one for one in auditing.shipped_subjects() if one.name == "block count")
    found = commanded(monkeypatch, tmp_path, subject, "--runs", "6000", code=1)
    assert found["verdict"] == EXCEEDS, found


@pytest.mark.parametrize("name", ["laplace release", "noisy max"])
def test_the_command_finds_nothing_wrong_with_a_right_one(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Else the one above could not fail."""
    found = commanded(monkeypatch, tmp_path, subject_of(name), "--runs", "6000", code=0)
    assert found["verdict"] == HOLDS, found


def test_no_mechanism_is_left_out() -> None:
    modules = (above_threshold, large_margin, release, selection)
    named = {
        name
        for module in modules
        for name, one in inspect.getmembers(module, inspect.isclass)
        if one.__module__ == module.__name__ and (hasattr(one, "release") or hasattr(one, "start"))
    }
    words = {"".join(word.capitalize() for word in name.split()) for name in NAMES}
    assert named <= words, named - words
    # A training that releases by something else could not be recorded.
    assert named - {"AboveThreshold"} <= {one.__name__ for one in TAPPED}
