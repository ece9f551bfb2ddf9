"""A plan never loses: not to a shelf plan, not to the plan in force, not to less time, and not to
less room.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.solving.solve import solve
from allocator.strip.completing import completed
from allocator.strip.packing import pack
from allocator.strip.solve import solve_strip
from allocator.table import table_of
from allocator.verify import faults
from tests.allocator.families import FAMILIES, make
from tests.allocator.hard import HARD, make_hard

FAMILIES_AND_SIZES = [
    *((make_hard, family, ptks) for family in sorted(HARD) for ptks in (13, 45, 110)),
    *((make, family, 30) for family in sorted(FAMILIES)),
]


def total(problem: Problem, plan: Plan) -> int:
    assert faults(problem, plan) == ()
    assert plan.total_samples is not None
    assert plan.lower_bound is not None
    assert plan.lower_bound <= plan.total_samples
    return plan.total_samples


@pytest.mark.parametrize(("maker", "family", "ptks"), FAMILIES_AND_SIZES)
def test_it_is_never_longer_with_more_time(maker, family: str, ptks: int) -> None:  # type: ignore[no-untyped-def]
    problem = maker(family, ptks, 3)
    plans = [solve(problem, time_limit_seconds=seconds) for seconds in (0.01, 0.1, 0.4, 1.2)]
    totals = [total(problem, plan) for plan in plans]
    assert totals == sorted(totals, reverse=True)
    bounds = [plan.lower_bound or 0 for plan in plans]
    assert bounds == sorted(bounds)
    # What one knows, the others do not deny.
    assert bounds[-1] <= totals[-1]


@pytest.mark.parametrize("family", sorted(HARD))
@pytest.mark.parametrize("ptks", [13, 60])
def test_it_is_never_longer_than_a_shelf_plan(family: str, ptks: int) -> None:
    problem = make_hard(family, ptks, 4)
    shelf = total(problem, solve(problem, method="shelf", time_limit_seconds=1.0))
    for seconds in (0.3, 1.0):
        assert total(problem, solve(problem, time_limit_seconds=seconds)) <= shelf


@pytest.mark.parametrize("family", sorted(HARD))
@pytest.mark.parametrize("method", ["strip", "shelf"])
def test_it_is_never_longer_than_the_plan_in_force(family: str, method: str) -> None:
    problem = make_hard(family, 30, 6)
    current = solve(problem, method=method, time_limit_seconds=1.0)
    held = total(problem, current)
    for roomier in (
        problem,
        replace(problem, capacity=problem.capacity + 1),
        replace(problem, capacity=problem.capacity * 6 // 5),
        replace(problem, n_max=held),
        replace(problem, n_max=held + 1),
        replace(problem, capacity=problem.capacity * 6 // 5, n_max=2 * held),
        replace(problem, ptks=problem.ptks[1:]),
    ):
        for form in ("strip", method):
            again = solve(roomier, method=form, time_limit_seconds=0.01, current=current)
            assert total(roomier, again) <= held


@pytest.mark.parametrize("family", sorted(HARD))
@pytest.mark.parametrize("ptks", [8, 40])
def test_more_room_is_never_a_longer_plan(family: str, ptks: int) -> None:
    """Larger capacities and larger n_max, each solved anew with the plan before at hand; without it
    the answer to a larger n_max is the same or the one that needs it.
    """
    problem = make_hard(family, ptks, 5)
    before: Plan | None = None
    for factor in (1.0, 1.01, 1.1, 1.5, 3.0):
        roomier = replace(problem, capacity=int(problem.capacity * factor))
        plan = solve(roomier, time_limit_seconds=0.2, current=before)
        if before is not None:
            assert total(roomier, plan) <= (before.total_samples or 0)
            assert (plan.lower_bound or 0) <= (before.total_samples or 0)
        before = plan
    free = total(problem, solve(problem, time_limit_seconds=0.2))
    found = [
        solve(replace(problem, n_max=n_max), time_limit_seconds=0.2, remedy=False).total_samples
        for n_max in (free, free + 1, free * 5 // 4, free * 4)
    ]
    for n_max, one in zip((free, free + 1, free * 5 // 4, free * 4), found, strict=True):
        assert one is None or one <= n_max
        assert n_max < free * 5 // 4 or one is not None


@pytest.mark.parametrize("family", sorted(HARD))
def test_small_problems_need_no_plan_at_hand(family: str) -> None:
    """Proven plans are as short as can be, so more room never makes a fresh one longer."""
    problem = make_hard(family, 6, 7)
    totals = [
        total(one, solve(one, time_limit_seconds=4.0))
        for one in (
            replace(problem, capacity=int(problem.capacity * factor))
            for factor in (1.0, 1.02, 1.2, 2.0)
        )
    ]
    assert all(after <= before for before, after in pairwise(totals))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_packed_set_by_set_is_a_plan(seed: int) -> None:
    """Whatever the heights: everybody has all samples, no record carries too much."""
    generator = np.random.default_rng(seed)
    for _ in range(40):
        count = int(generator.integers(1, 40))
        capacity = int(generator.choice([7, 100, 10**9]))
        low = int(generator.choice([1, max(1, capacity // 5)]))
        demands = generator.integers(low, capacity + 1, count).astype(np.int64)
        samples = generator.integers(1, 10**6, count).astype(np.int64)
        packed = completed(samples, demands, capacity, Effort(1e12))
        assert completed(samples, demands, capacity, Effort(0)) is None
        if packed is None:
            continue
        assert (packed.members @ demands <= capacity).all()
        assert (packed.widths @ packed.members >= samples).all()
        assert (packed.widths > 0).all()


def test_who_shares_with_whom_is_found_where_levelling_wastes_room() -> None:
    problem = make_hard("subset-sum", 300, 0)
    table = table_of(problem)
    assert table is not None
    samples, demands = table.samples[:, 0], table.demands[:, 0]
    packed = completed(samples, demands, table.capacity, Effort(1e12))
    assert packed is not None
    assert pack(packed.total * 101 // 100, samples, demands, table.capacity) is None
    plan = solve_strip(problem, effort=Effort(0))
    again = solve_strip(problem, effort=Effort(4e8))
    assert (again.gap or 0) < 0.01 < (plan.gap or 0)
