"""Validators tell no more than they cost, and half of the noise or an unnoised lowest bit is caught
at every stake, not at those alone whose worst record happens to be odd.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

from ptklib.auditing.running import EXCEEDS, HOLDS, audit
from ptklib.auditing.validators import (
    RELEASES,
    STAKES,
    interval_subject,
    release_subject,
    validator_subject,
    validator_subjects,
)
from tests.auditing.commanding import commanded
from tests.auditing.plants import plant_half_noise, plant_lowest_bit

NAMES = [one.name for one in validator_subjects()]
RUNS = 3_000


@pytest.mark.parametrize("name", NAMES)
def test_a_right_validator_is_bounded_by_a_quarter_of_its_claim_or_more(name: str) -> None:
    subject = next(one for one in validator_subjects() if one.name == name)
    (found,) = audit([subject], runs=RUNS)
    assert found.verdict == HOLDS, found


@pytest.mark.parametrize("stake", STAKES, ids=float)
def test_an_unnoised_lowest_bit_is_caught_at_every_stake(
    stake: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_lowest_bit(monkeypatch)
    (found,) = audit([validator_subject("planted", stake)], runs=1_000)
    assert found.verdict == EXCEEDS, found


def test_an_unnoised_lowest_bit_of_an_interval_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_lowest_bit(monkeypatch)
    (found,) = audit([interval_subject("planted")], runs=1_000)
    assert found.verdict == EXCEEDS, found


@pytest.mark.parametrize("name", sorted(RELEASES))
def test_an_unnoised_lowest_bit_of_what_else_is_released_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_lowest_bit(monkeypatch)
    (found,) = audit([release_subject(name)], runs=1_000)
    assert found.verdict == EXCEEDS, found


@pytest.mark.parametrize("name", sorted(RELEASES))
def test_half_of_the_noise_of_what_else_is_released_is_caught(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_half_noise(monkeypatch)
    (found,) = audit([release_subject(name)], runs=2 * RUNS)
    assert found.verdict == EXCEEDS, found


@pytest.mark.parametrize("place", [0, 2])
def test_half_of_the_noise_is_caught_by_the_command(
    place: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant_half_noise(monkeypatch)
    subject = validator_subjects()[place]
    found = commanded(monkeypatch, tmp_path, subject, "--runs", str(RUNS), code=1)
    assert found["verdict"] == EXCEEDS, found
