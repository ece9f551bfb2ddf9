"""A shelf plan with a limit of seconds and no other: steps have no end then, the clock has."""

from __future__ import annotations

import itertools

import pytest

from allocator.solving.solve import solve
from allocator.verify import faults
from tests.allocator.hard import HARD, make_hard


@pytest.mark.parametrize("family", HARD)
@pytest.mark.parametrize("ptks", [13, 25])
def test_every_hard_family_has_one(family: str, ptks: int) -> None:
    problem = make_hard(family, ptks, 0)
    # Each look at the clock is a millisecond: the same work on every machine.
    looks = itertools.count()
    plan = solve(problem, method="shelf", time_limit_seconds=0.2, clock=lambda: next(looks) / 1000)
    assert plan.total_samples is not None
    assert faults(problem, plan) == ()
