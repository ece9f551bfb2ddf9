"""Looks, readings and lower tests tell no more than their charges say, and what they tell is what
was released.
"""

from __future__ import annotations

import pytest

from profiler.auditing import profiler_subjects
from ptklib.auditing.running import HOLDS, audit

NAMES = ("profiler look", "profiler reading", "profiler training and lower test")


@pytest.mark.parametrize("name", NAMES)
def test_a_step_of_the_profiler_stays_within_its_charge(name: str) -> None:
    subject = next(one for one in profiler_subjects() if one.name == name)
    (found,) = audit([subject], runs=2_000)
    assert found.verdict == HOLDS, found
