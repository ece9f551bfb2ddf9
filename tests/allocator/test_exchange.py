"""PTKs that take another's place: who can, that nobody is lost, and that prices and searches which
use it stay right.
"""

from __future__ import annotations

import numpy as np
import pytest

from allocator.effort import Effort
from allocator.problem import Option, Problem, PtkOptions
from allocator.shelf.branching import branched
from allocator.shelf.columns import Columns
from allocator.shelf.exchange import Exchanges, exchanges_of, placed
from allocator.shelf.levels import Levels, groups_of, levels_of
from allocator.shelf.pricing import Pricing
from allocator.shelf.rounding import by_parts, refilled, whole
from allocator.shelf.subsets import best_cover
from allocator.table import table_of
from tests.allocator.families import FAMILIES, make


def levels(problem: Problem) -> Levels:
    table = table_of(problem)
    assert table is not None
    return levels_of(table)


def solved(here: Levels, *, units: int = 1024) -> Columns:
    columns = Columns(here, Pricing(here, most_units=units))
    columns.relax(enough=np.inf, effort=Effort(1e12))
    return columns


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_who_fits_is_who_demands_no_more_at_any_level(family: str) -> None:
    here = levels(make(family, 14, 8))
    found = exchanges_of(here)
    for a in range(14):
        for b in range(14):
            assert found.fits[a, b] == bool((here.needs[a] <= here.needs[b]).all())
    # What follows from the pairs is what fits, once each way for PTKs that are alike.
    reach = np.eye(14, dtype=bool)
    for a, b in found.pairs:
        assert found.fits[a, b]
    for _ in range(14):
        for a, b in found.pairs:
            reach[a] |= reach[b]
    assert (reach | reach.T)[found.fits].all()
    assert not (reach & ~found.fits).any()


def test_alike_ptks_stand_in_one_line() -> None:
    alike = tuple(PtkOptions(name, (Option("1", 3, 9),)) for name in "abcd")
    found = exchanges_of(levels(Problem(10, None, alike)))
    assert found.fits.all()
    assert found.pairs.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_everybody_finds_a_place_or_nobody_does() -> None:
    fits = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    # PTK 1 is there twice: one place of it is left to PTK 0.
    found = placed(fits, [np.array([1, 2]), np.array([1])])
    assert found is not None
    assert sorted(int(i) for one in found for i in one) == [0, 1, 2]
    assert placed(fits, [np.array([0, 1])]) is None
    assert placed(fits, [np.array([0, 2]), np.array([0])]) is None


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_exchanges_change_no_bound(family: str) -> None:
    here = levels(make(family, 11, 6))
    best = sum(here.cost(one) for one in best_cover(here, Effort(1e12)))
    with_them, without = solved(here), Columns(here, Pricing(here, most_units=1024))
    without.exchanges = Exchanges(np.eye(11, dtype=bool), np.zeros((0, 2), dtype=np.int64))
    without.relax(enough=np.inf, effort=Effort(1e12))
    assert with_them.bound == pytest.approx(without.bound, rel=2e-6)
    assert with_them.bound <= best


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_rounded_problems_have_bounds_that_hold(family: str) -> None:
    here = levels(make(family, 11, 2))
    best = sum(here.cost(one) for one in best_cover(here, Effort(1e12)))
    columns = Columns(here, Pricing(here, most_units=64, groups=groups_of(here.sizes, 1.05)))
    columns.relax(enough=np.inf, effort=Effort(1e9), gap=1e-3)
    before = columns.bound
    columns.tighten(gap=1e-3, effort=Effort(1e9))
    assert before <= columns.bound <= best
    assert columns.bound >= 0.9 * solved(here).bound


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_branching_finds_the_best_and_no_bound_above_it(family: str) -> None:
    for seed in range(3):
        here = levels(make(family, 11, seed))
        best = sum(here.cost(one) for one in best_cover(here, Effort(1e12)))
        columns = solved(here)
        found, bound = branched(columns, [np.array([i]) for i in range(11)], 0.0, Effort(2e9))
        held = sum(here.cost(one) for one in found)
        assert sorted(int(i) for one in found for i in one) == list(range(11))
        assert bound <= best <= held
        assert held <= 1.02 * best


def test_rounding_leaves_nobody_out() -> None:
    for family in ("powers", "heavy", "partition"):
        here = levels(make(family, 30, 1))
        columns = solved(here)
        for found in (
            by_parts(columns, Effort(1e12)),
            by_parts(columns, Effort(1e12), exchanges=False),
            whole(columns, Effort(1e12), below=1e12),
        ):
            assert found is not None
            assert sorted(int(i) for one in found for i in one) == list(range(30))
        free = np.arange(30) % 3 > 0
        members = refilled(columns, columns.members, free)
        assert not members[:, ~free].any()
        costs = [here.cost(np.flatnonzero(row)) for row in members if row.any()]
        before = [
            here.cost(np.flatnonzero(a))
            for a, b in zip(columns.members, members, strict=True)
            if b.any()
        ]
        assert all(new <= old for new, old in zip(costs, before, strict=True))
