"""Best effort as the docs print it: each state tells an error, and the truth is where it says."""

from __future__ import annotations

import re

import pytest

from examples.best_effort import PTKS, main


def test_every_state_of_best_effort_tells_its_error(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()[1:]}
    assert lines.keys() == PTKS.keys()
    assert "keeps its target" in lines["hour-speed"]
    (most,) = re.findall(r"at most ([\d.]+)", lines["zone-fare"])
    assert 0.001 < float(most) < 0.01
    for name in ("fare-forest", "ride-clusters"):
        (found,) = re.findall(r"\(([\d.]+) to ([\d.]+)\); truth ([\d.]+)", lines[name])
        low, high, truth = map(float, found)
        # Another day's rides, and an interval that may be wrong: a little room beside it.
        assert low - 0.005 <= truth <= high + 0.005
        assert high - low < 0.05
