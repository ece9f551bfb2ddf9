"""States over time as the docs print them: what forgets notices a change, what does not is exact."""

from __future__ import annotations

import pytest

from examples.over_time import DAYS, OVERS, main


def test_states_that_forget_notice_a_change(capsys: pytest.CaptureFixture[str]) -> None:
    main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[-len(OVERS) :] == list(OVERS)
    errors = {
        line.split()[1]: [float(word) for word in line.split()[-len(OVERS) :]] for line in lines[1:]
    }
    assert len(errors) == DAYS
    every, *forgetting = errors[str(DAYS)]
    # The step is 12 km/h: half of all days were before it.
    assert 4 < every < 8
    assert max(forgetting) < 3
