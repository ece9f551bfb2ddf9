"""Is there a strip plan within n_max? The first that is found, or the proof that there is none;
never the best.

Cheaper than `allocator.strip.solve` by far, for the answer is yes or no: options of least area and
of least worth to the best lower bound are packed at the length that is allowed, once each; bounds
that see heights (`allocator.strip.prices.dual_feasible`) rule most of the rest out; between them
the search of `allocator.strip.branching` ends with the first plan that is short enough, and cuts
off all that is not.

==========  ========================================================================================
FEASIBLE    a plan, not made shorter than it must be
INFEASIBLE  there is none: the explanation is the proof
REJECTED    none was found and none ruled out with the work that was allowed
==========  ========================================================================================
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.plan import Plan
from allocator.problem import Problem
from allocator.strip.area import area_bound
from allocator.strip.branching import PackedOptions, Search, shortest
from allocator.strip.building import as_plan, no_plan, nothing_asked, unsettled
from allocator.strip.heights import Heights
from allocator.strip.packing import Packed, pack
from allocator.strip.prices.dual_feasible import Least, least_within
from allocator.strip.whole_records import is_small, settled
from allocator.table import Ints, OptionTable, table_of, why_no_table
from allocator.verify import faults

__all__ = ["NAME", "AnyPlan", "any_plan", "packed_within"]

NAME = "strip"
# As in `allocator.strip.solve`: the linear program over PTKs up to so many, prices of heights for
# more.
_FEW = 80
_SOME = 300
# What a packing costs for each PTK, in steps.
_PACK = 4e4


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
        # True when more work on it would change nothing.
        self.ended = False

    def look(self, effort: Effort) -> Plan:
        """The answer so far, with so much more work."""
        if self._plan is None or (self._plan.status == "REJECTED" and not self.ended):
            self._plan = self._looked(effort)
            self.ended |= self._plan.status != "REJECTED"
        return self._plan

    @property
    def bound(self) -> int:
        """No plan holds fewer samples, as far as is known; counted up to n_max and one more."""
        return self._bound

    def _looked(self, effort: Effort) -> Plan:
        table = self._table
        if table is None:
            return no_plan(why_no_table(self.problem), NAME)
        if not len(table):
            return nothing_asked(NAME)
        most = self.problem.n_max if self.problem.n_max is not None else _serial(table)
        packed_options = None if self._quick else self._quickly(table, most, effort)
        if packed_options is None and self._bound <= most:
            packed_options = self._searched(table, most, effort)
        if packed_options is not None:
            plan = as_plan(table, packed_options, self._bound, NAME)
            wrong = faults(self.problem, plan)
            assert not wrong, wrong
            return plan
        if self._bound > most:
            return no_plan(
                f"every plan holds at least {self._bound} samples, and n_max is {most}", NAME
            )
        return unsettled(self.problem, None, self._bound, NAME)

    def _quickly(self, table: OptionTable, most: int, effort: Effort) -> PackedOptions | None:
        self._quick = True
        self._bound = area_bound(table)
        least = least_within(table.samples, table.demands, table.capacity, most)
        assert least is not None
        self._bound = max(self._bound, int(np.ceil(least.bound - 1e-6)))
        if self._bound > most:
            return None
        return packed_within(table.samples, table.demands, table.capacity, most, least, effort)

    def _searched(self, table: OptionTable, most: int, effort: Effort) -> PackedOptions | None:
        if effort.over:
            return None
        if self._search is None:
            if len(table) > _FEW:
                packed_options, self._bound = _by_heights(table, most, self._bound, effort)
                if (
                    packed_options is not None
                    or self._bound > most
                    or len(table) > _SOME
                    or effort.over
                ):
                    # Prices of heights say no more the second time.
                    self.ended = not effort.over
                    return packed_options
            start = _start(table, most, self._bound, effort)
            if start.packed.total <= most:
                return start
            self._search = Search(table, start, self._bound, gap=0.0, below=most + 1)
        best, self._bound = self._search.run(effort)
        if best.packed.total > most >= self._bound and is_small(table, most) and not effort.over:
            best, self._bound = settled(table, best, self._bound, effort, below=most + 1)
        return best if best.packed.total <= most else None


def packed_within(
    samples: Ints, demands: Ints, capacity: int, most: int, least: Least, effort: Effort
) -> PackedOptions | None:
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
            return PackedOptions(choice, packed)
        if effort.over:
            break
    return None


def _choices(
    samples: Ints, demands: Ints, capacity: int, most: int, least: Least
) -> Iterator[Ints]:
    """Least areas, what the best bound takes, and least areas of options that leave others room to
    stand beside them.
    """
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


def _packed(
    samples: Ints, demands: Ints, capacity: int, most: int, effort: Effort
) -> Packed | None:
    # A little slack for the sum of floats: whether it fits is what packing says.
    if float((samples * (demands / capacity if capacity else demands * 0.0)).sum()) > most * (
        1 + 1e-9
    ):
        return None
    effort.spend(_PACK * len(samples))
    packed = pack(most, samples, demands, capacity)
    if packed is None and int(demands.max()) * 4 > capacity:
        effort.spend(_PACK * len(samples))
        packed = pack(most, samples, demands, capacity, tight=True)
    return packed


def _start(table: OptionTable, most: int, bound: int, effort: Effort) -> PackedOptions:
    """A plan that is too long, for its configurations."""
    areas = np.where(table.allowed(most), table.samples.astype(np.float64) * table.demands, np.inf)
    choice = areas.argmin(axis=1)
    effort.spend(8 * _PACK * len(table))
    packed = shortest(table, choice, bound, _serial(table) + 1, steps=8)
    if packed is None:
        rows = np.arange(len(table))
        packed = Packed(table.samples[rows, choice], np.eye(len(table), dtype=bool))
    return PackedOptions(choice, packed)


def _serial(table: OptionTable) -> int:
    """One PTK after the other, each at its longest."""
    return sum(int(samples) for samples in table.samples.max(axis=1))


def _by_heights(
    table: OptionTable, most: int, bound: int, effort: Effort
) -> tuple[PackedOptions | None, int]:
    """Prices of heights: a better bound, and options to pack."""
    allowed: NDArray[np.bool_] = table.allowed(most)
    priced = Heights(table).relax(allowed, enough=most + 1, effort=effort)
    bound = max(bound, int(np.ceil(priced.bound - 1e-6)))
    if bound > most:
        return None, bound
    rows = np.arange(len(table))
    worth = np.where(allowed, table.samples * priced.prices, np.inf)
    for choice in (worth.argmin(axis=1), np.where(allowed, priced.shares, -1.0).argmax(axis=1)):
        packed = _packed(
            table.samples[rows, choice], table.demands[rows, choice], table.capacity, most, effort
        )
        if packed is not None:
            return PackedOptions(choice, packed), bound
    return None, bound
