"""Thousands of PTKs: what would help is found with few looks, is enough, and is little more than
what areas need.
"""

from __future__ import annotations

from dataclasses import replace

from allocator.admission.settling import settle_many
from allocator.plan import Plan
from allocator.problem import Option, Problem, PtkOptions
from allocator.remedies import remedies
from allocator.solving.solve import solve
from allocator.strip.solve import solve_strip
from allocator.verify import faults, least_possible
from ptklib.privacy.filters import make_filter
from tests.allocator.test_currency import offers, pure

MANY = 1000


def problem(n_max: int | None = None) -> Problem:
    ptks = tuple(
        PtkOptions(
            f"p{k}",
            tuple(
                Option(f"{d}", d, (40_000_000 + 37_000 * (k % 101)) // d)
                for d in (1000, 3000, 9000)
            ),
        )
        for k in range(MANY)
    )
    return Problem(1_000_000, n_max, ptks)


def test_what_would_help_many_is_enough_and_not_much_more_than_needed() -> None:
    bound = least_possible(problem())
    assert bound is not None
    few = problem(bound * 9 // 10)
    plan = solve(few, time_limit_seconds=0.2)
    assert plan.status == "INFEASIBLE"
    assert plan.explanation is not None
    found = {one.kind: one for one in plan.explanation.changes}
    assert set(found) == {"capacity", "n_max"}
    capacity, n_max = found["capacity"].value, found["n_max"].value
    assert isinstance(capacity, int)
    assert isinstance(n_max, int)
    for changed in (replace(few, capacity=capacity), replace(few, n_max=n_max)):
        helped = solve_strip(changed, gap=0.01)
        assert helped.total_samples is not None
        assert not faults(changed, helped)
    # What areas need, by themselves: less than that is proven to be too little.
    less = least_possible(replace(few, capacity=capacity * 98 // 100))
    assert less is not None
    assert few.n_max is not None
    assert less > few.n_max
    assert n_max <= 1.01 * bound


def test_many_take_few_looks() -> None:
    asked: list[int] = []

    def look(one: Problem) -> Plan:
        asked.append(one.capacity)
        return solve_strip(one, gap=0.01)

    bound = least_possible(problem())
    assert bound is not None
    assert {one.kind for one in remedies(problem(bound * 9 // 10), look, steps=3)} == {
        "capacity",
        "n_max",
    }
    assert len(asked) == 3 + 1 + 2


def test_many_that_no_coordinate_has_room_for_are_told_so_once() -> None:
    privacy_filter = make_filter("pure", 1, 0)
    ptks = offers(privacy_filter, pure, 3, ptks=MANY)
    free = settle_many(privacy_filter, (0, 0), ptks, seconds=0.2).plan.total_samples
    assert free is not None
    none = settle_many(privacy_filter, (0, 0), ptks, n_max=free // 2, seconds=0.2).plan
    assert none.status == "INFEASIBLE"
    assert none.explanation is not None
    assert none.explanation.changes
