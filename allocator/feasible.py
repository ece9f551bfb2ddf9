"""Is there a strip plan within n_max? The first that is found, or the proof that there is none; never the best.

Cheaper than `allocator.strip` by far, for the answer is yes or no: options of least area and of least worth to the best lower
bound are packed at the length that is allowed, once each; bounds that see heights (`allocator.dual_feasible`) rule most of the
rest out; between them the search of `allocator.branching` ends with the first plan that is short enough, and cuts off
all that is not.

==========  =====================================================================================================
FEASIBLE    a plan, not made shorter than it must be
INFEASIBLE  there is none: the explanation is the proof
REJECTED    none was found and none ruled out with the work that was allowed
==========  =====================================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from allocator.area import area_bound
from allocator.branching import Found, Search, shortest
from allocator.building import as_plan, no_plan, nothing_asked, unsettled
from allocator.dual_feasible import Least, least_within
from allocator.effort import Effort
from allocator.fluid import Packed, pack
from allocator.heights import Heights
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.table import Ints, Table, table_of, why_no_table
from allocator.verify import faults
from allocator.whole_records import is_small, settled

__all__ = ["NAME", "AnyPlan", "any_plan", "packed_within"]

NAME = "strip"
# As in `allocator.strip`: the linear program over PTKs up to so many, prices of heights for more.
_FEW = 80
_SOME = 300
# What a packing costs for each PTK, in steps.
_PACK = 4e4
# Demands are counted less finely than for the shortest plan: that decides nothing but the closest cases.
_CELLS = 400_000


def any_plan(problem: Problem, *, effort: Effort) -> Plan:
    """A strip plan within n_max (any at all where there is no n_max)."""
    return AnyPlan(problem).look(effort)


class AnyPlan:
    """The question whether a problem has a plan; work on it can be continued."""

    def __init__(self, problem: Problem) -> None:
        """Look at nothing yet."""
        self.problem = problem
        self._table = table_of(problem)
        self._plan: Plan | None = None
        self._bound = 0
        self._search: Search | None = None
        self._quick = False

    def look(self, effort: Effort) -> Plan:
        """The answer so far, with so much more work."""
        if self._plan is None or self._plan.status == "REJECTED":
            self._plan = self._looked(effort)
        return self._plan

    def _looked(self, effort: Effort) -> Plan:
        table = self._table
        if table is None:
            return no_plan(why_no_table(self.problem), NAME)
        if not len(table):
            return nothing_asked(NAME)
        most = self.problem.n_max if self.problem.n_max is not None else _serial(table)
        found = None if self._quick else self._quickly(table, most, effort)
        if found is None and self._bound <= most:
            found = self._searched(table, most, effort)
        if found is not None:
            plan = as_plan(table, found, self._bound, NAME)
            wrong = faults(self.problem, plan)
            assert not wrong, wrong
            return plan
        if self._bound > most:
            return no_plan(f"every plan holds at least {self._bound} samples, and n_max is {most}", NAME)
        return unsettled(self.problem, None, self._bound, NAME)

    def _quickly(self, table: Table, most: int, effort: Effort) -> Found | None:
        self._quick = True
        self._bound = area_bound(table)
        least = least_within(table.samples, table.demands, table.capacity, most)
        assert least is not None
        self._bound = max(self._bound, int(np.ceil(least.bound - 1e-6)))
        if self._bound > most:
            return None
        return packed_within(table.samples, table.demands, table.capacity, most, least, effort)

    def _searched(self, table: Table, most: int, effort: Effort) -> Found | None:
        if effort.over:
            return None
        if self._search is None:
            if len(table) > _FEW:
                found, self._bound = _by_heights(table, most, self._bound, effort)
                if found is not None or self._bound > most or len(table) > _SOME or effort.over:
                    return found
            start = _start(table, most, self._bound, effort)
            if start.packed.total <= most:
                return start
            self._search = Search(table, start, self._bound, gap=0.0, below=most + 1, cells=_CELLS)
        best, self._bound = self._search.run(effort)
        if best.packed.total > most >= self._bound and is_small(table, most) and not effort.over:
            best, self._bound = settled(table, best, self._bound, effort, below=most + 1)
        return best if best.packed.total <= most else None


def packed_within(samples: Ints, demands: Ints, capacity: int, most: int, least: Least, effort: Effort) -> Found | None:
    """The quick ways alone: some choices of options, packed on ``most`` records."""
    rows = np.arange(len(samples))
    tried = set[bytes]()
    for choice in _choices(samples, demands, capacity, most, least):
        key = choice.tobytes()
        if key in tried:
            continue
        tried.add(key)
        packed = _packed(samples[rows, choice], demands[rows, choice], capacity, most, effort)
        if packed is not None:
            return Found(choice, packed)
        if effort.over:
            break
    return None


def _choices(samples: Ints, demands: Ints, capacity: int, most: int, least: Least) -> Iterator[Ints]:
    """Least areas, what the best bound takes, and least areas of options that leave others room to stand beside them."""
    allowed = (samples <= most) & (demands <= capacity)
    areas = np.where(allowed, samples.astype(np.float64) * demands, np.inf)
    yield areas.argmin(axis=1)
    yield least.choice
    for part in (2, 3, 4):
        low = np.where(demands * part <= capacity, areas, np.inf)
        yield np.where(np.isfinite(low.min(axis=1)), low.argmin(axis=1), areas.argmin(axis=1))
    for share in (0.75, 0.5, 0.25):
        short = np.where(samples <= most * share, areas, np.inf)
        yield np.where(np.isfinite(short.min(axis=1)), short.argmin(axis=1), areas.argmin(axis=1))


def _packed(samples: Ints, demands: Ints, capacity: int, most: int, effort: Effort) -> Packed | None:
    # A little slack for the sum of floats: whether it fits is what packing says.
    if float((samples * (demands / capacity if capacity else demands * 0.0)).sum()) > most * (1 + 1e-9):
        return None
    effort.spend(_PACK * len(samples))
    packed = pack(most, samples, demands, capacity)
    if packed is None and int(demands.max()) * 4 > capacity:
        effort.spend(_PACK * len(samples))
        packed = pack(most, samples, demands, capacity, tight=True)
    return packed


def _start(table: Table, most: int, bound: int, effort: Effort) -> Found:
    """A plan that is too long, for its configurations."""
    areas = np.where(table.allowed(most), table.samples.astype(np.float64) * table.demands, np.inf)
    choice = areas.argmin(axis=1)
    effort.spend(8 * _PACK * len(table))
    packed = shortest(table, choice, bound, _serial(table) + 1, steps=8)
    if packed is None:
        rows = np.arange(len(table))
        packed = Packed(table.samples[rows, choice], np.eye(len(table), dtype=bool))
    return Found(choice, packed)


def _serial(table: Table) -> int:
    """One PTK after the other, each at its longest."""
    return sum(int(one) for one in table.samples.max(axis=1))


def _by_heights(table: Table, most: int, bound: int, effort: Effort) -> tuple[Found | None, int]:
    """Prices of heights: a better bound, and options to pack."""
    allowed: NDArray[np.bool_] = table.allowed(most)
    priced = Heights(table).relax(allowed, enough=most + 1, effort=effort)
    bound = max(bound, int(np.ceil(priced.bound - 1e-6)))
    if bound > most:
        return None, bound
    rows = np.arange(len(table))
    worth = np.where(allowed, table.samples * priced.prices, np.inf)
    for choice in (worth.argmin(axis=1), np.where(allowed, priced.shares, -1.0).argmax(axis=1)):
        packed = _packed(table.samples[rows, choice], table.demands[rows, choice], table.capacity, most, effort)
        if packed is not None:
            return Found(choice, packed), bound
    return None, bound
