"""The training with a price, as it prints itself."""

from __future__ import annotations

import re

import pytest

from examples.income import main


def test_models_beat_the_majority_and_costs_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    printed = capsys.readouterr().out
    (majority,) = map(float, re.findall(r"everybody is <=50K: ([\d.]+) right", printed))
    rights = [float(found) for found in re.findall(r"logistic: ([\d.]+) right", printed)]
    spent = [float(found) for found in re.findall(r"so far: epsilon ([\d.]+)", printed)]
    assert len(rights) == len(spent) == 2
    assert rights[1] > majority + 0.02
    # Two looks, one estimate and one model; then another model.
    assert 0.1 < spent[0] < 0.05 + 0.05 + 0.1 + 0.1 + 1e-6
    assert 0.8 < spent[1] < 0.3 + 0.8 + 1e-6
    (most,) = map(float, re.findall(r"capital gains are at most (\d+)", printed))
    assert 4_000 < most < 40_000
