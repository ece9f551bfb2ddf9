"""Every mechanism is audited near its claim, and half of its noise or an unnoised lowest bit is caught in each."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import pytest

from ptklib.auditing.mechanisms import mechanism_subjects
from ptklib.auditing.running import EXCEEDS, HOLDS, audit
from ptklib.auditing.tape import TAPPED
from ptklib.privacy.mechanisms import above_threshold, large_margin, release, selection
from tests.auditing.plants import plant_half_noise, plant_lowest_bit

NAMES = [one.name for one in mechanism_subjects()]
# Of the faults and for the claim itself; the large margin mechanism shows half of its noise only in many runs.
RUNS = {"wishart release": 3_000, "large margin": 40_000}


@pytest.mark.parametrize("name", NAMES)
def test_a_right_mechanism_is_bounded_by_a_quarter_of_its_claim_or_more(name: str) -> None:
    subject = next(one for one in mechanism_subjects() if one.name == name)
    (found,) = audit([subject], runs=RUNS.get(name, 6_000))
    assert found.verdict == HOLDS, found


@pytest.mark.parametrize("plant", [plant_half_noise, plant_lowest_bit])
@pytest.mark.parametrize("name", NAMES)
def test_a_planted_fault_is_caught(
    name: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    subject = next(one for one in mechanism_subjects() if one.name == name)
    few = 3_000 if plant is plant_lowest_bit and name == "large margin" else RUNS.get(name, 6_000)
    (found,) = audit([subject], runs=few)
    assert found.verdict == EXCEEDS, found


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
