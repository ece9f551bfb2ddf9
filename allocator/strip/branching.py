"""Search over options for few PTKs: branch and bound over the linear program of
`allocator.strip.configurations`.

A node allows some options of every PTK. Its bound is the relaxation's; its plan comes from rounding
the shares to whole options and packing those. The PTK whose shares are most divided is split into
its cheaper and its dearer options. Best bound first, so the bound that is left when time runs out
is the bound of the whole search.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.configurations import Configurations, StripRelaxation
from allocator.strip.knapsack import CELLS
from allocator.strip.packing import Packed, pack
from allocator.table import Ints, OptionTable

__all__ = ["PackedOptions", "Search", "joined", "search", "shortest"]

# From so many PTKs on; tries begin 2^-10 above the bound.
_MANY = 1000
_NEAR = 10


@dataclass(frozen=True)
class PackedOptions:
    """A plan: the place of each PTK's option, and the packing."""

    choice: Ints
    packed: Packed


def search(
    table: OptionTable, best: PackedOptions, bound: int, *, gap: float, effort: Effort
) -> tuple[PackedOptions, int]:
    """A better plan if there is one, and the best bound known: until they meet within ``gap`` or
    nothing is left to spend.
    """
    return Search(table, best, bound, gap=gap).run(effort)


class Search:
    """A search that can be given more to spend: it goes on where it stopped."""

    def __init__(
        self,
        table: OptionTable,
        best: PackedOptions,
        bound: int,
        *,
        gap: float,
        below: int | None = None,
        cells: int = CELLS,
    ) -> None:
        """With ``below`` any plan of fewer records is good enough and no other is of use: the
        search ends with the first, or with a bound of at least ``below``. ``cells``: see
        `allocator.strip.knapsack`.
        """
        self.table, self.best, self.bound = table, best, bound
        self._gap, self._below = gap, below
        self._cut = best.packed.total if below is None else min(below, best.packed.total)
        self._configurations = Configurations(table, cells=cells)
        for column in _columns(best):
            self._configurations.add(column)
        self._open: list[tuple[float, int, NDArray[np.bool_]]] = [
            (float(bound), 0, table.allowed(self._cut - 1))
        ]
        self._made, self._tried, self._settled = 0, set[bytes](), 1 << 62

    def run(self, effort: Effort) -> tuple[PackedOptions, int]:
        """The best plan and the best bound that are known when the search ends or nothing is left
        to spend.
        """
        while self._open and not (self._below is not None and self.best.packed.total < self._below):
            lowest = max(self.bound, min(self._settled, int(np.ceil(self._open[0][0] - 1e-6))))
            if self._cut <= lowest * (1 + self._gap) or effort.over:
                return self.best, min(lowest, self._cut)
            self._visit(*heapq.heappop(self._open), effort)
        lowest = min((int(np.ceil(one[0] - 1e-6)) for one in self._open[:1]), default=self._cut)
        return self.best, max(self.bound, min(self._settled, lowest, self._cut))

    def _visit(self, known: float, number: int, allowed: NDArray[np.bool_], effort: Effort) -> None:
        table, configurations = self.table, self._configurations
        allowed = allowed & (table.samples <= self._cut - 1)
        if not allowed.any(axis=1).all():
            return
        relaxed = configurations.relax(allowed, enough=self._cut, effort=effort)
        own = max(known, relaxed.bound)
        if np.ceil(own - 1e-6) >= self._cut:
            return
        if self._below is not None and effort.over:
            # Not done with this one: its configurations are kept for the next time.
            heapq.heappush(self._open, (own, number, allowed))
            return
        self.best = _rounded(
            table, configurations, allowed, relaxed, self.best, self._tried, effort, self._cut
        )
        self._cut = min(self._cut, self.best.packed.total)
        probed = configurations.probe(allowed, relaxed, effort)
        allowed = allowed & (np.ceil(probed - 1e-6) < self._cut)
        if not allowed.any(axis=1).all():
            return
        split = _split(relaxed, allowed)
        if split is None:
            # Every PTK has one option: the relaxation is the plan, up to whole records, which this
            # search does not settle.
            self._settled = min(self._settled, int(np.ceil(own - 1e-6)))
            return
        ptk, place = split
        for lower in (True, False):
            child = allowed.copy()
            child[ptk] &= (np.arange(table.width) <= place) == lower
            self._made += 1
            heapq.heappush(
                self._open, (max(own, float(probed[ptk][child[ptk]].min())), self._made, child)
            )


def shortest(
    table: OptionTable, choice: Ints, least: int, below: int, *, steps: int = 24
) -> Packed | None:
    """The shortest packing of these options that levelling finds on fewer than ``below`` records.

    Thousands of PTKs are packed slowly and nearly always close to the bound: for them the next
    tries are not far above it.
    """
    rows = np.arange(len(table))
    samples, demands = table.samples[rows, choice], table.demands[rows, choice]
    low, high, found = max(least, int(samples.max())) - 1, below, None
    tall = int(demands.max()) * 4 > table.capacity
    # The first try is the bound itself: it is met more often than not.
    probe, far = low + 1, max(1, low >> _NEAR) if len(table) >= _MANY else below
    while high - low > 1 and steps > 0:
        steps -= 1
        packed = pack(probe, samples, demands, table.capacity)
        if packed is None and tall:
            packed = pack(probe, samples, demands, table.capacity, tight=True)
        if packed is None:
            low = probe
        else:
            high, found = packed.total, packed
        probe = (low + high) // 2
        if found is None:
            probe, far = min(probe, low + far), 4 * far
    return found


def joined(table: OptionTable, choice: Ints, relaxed: StripRelaxation) -> Packed:
    """Whole records for a fractional plan with one option per PTK: what rounding down leaves is
    packed at the end.
    """
    rows = np.arange(len(table))
    samples, demands = table.samples[rows, choice], table.demands[rows, choice]
    widths = np.floor(relaxed.widths + 1e-6).astype(np.int64)
    members = relaxed.columns >= 0
    left = np.maximum(samples - widths @ members, 0)
    if left.any():
        length = max(
            int(left.max()), -(-int(sum(map(int, left * 1.0 * demands / table.capacity))) // 1)
        )
        rest = None
        while rest is None:
            rest = pack(length, left[left > 0], demands[left > 0], table.capacity)
            length += max(1, length // 8)
        wide = np.zeros((len(rest.widths), len(table)), dtype=bool)
        wide[:, left > 0] = rest.members
        widths, members = np.concatenate([widths, rest.widths]), np.concatenate([members, wide])
    kept = widths > 0
    return Packed(widths[kept], members[kept])


def _rounded(
    table: OptionTable,
    configurations: Configurations,
    allowed: NDArray[np.bool_],
    relaxed: StripRelaxation,
    best: PackedOptions,
    tried: set[bytes],
    effort: Effort,
    cut: int,
) -> PackedOptions:
    """The best, or one of fewer than ``cut`` records."""
    choice = np.where(allowed, relaxed.shares, -1.0).argmax(axis=1)
    key = choice.tobytes()
    if key in tried:
        return best
    tried.add(key)
    packed = shortest(table, choice, int(relaxed.bound), cut, steps=10)
    if packed is not None:
        best, cut = PackedOptions(choice, packed), packed.total
    only = np.zeros_like(allowed)
    only[np.arange(len(table)), choice] = True
    fixed = configurations.relax(only, enough=cut, effort=effort)
    if fixed.value < cut - 1:
        packed = joined(table, choice, fixed)
        if packed.total < cut:
            best = PackedOptions(choice, packed)
    return best


def _split(relaxed: StripRelaxation, allowed: NDArray[np.bool_]) -> tuple[int, int] | None:
    """The PTK to split and the last of its cheaper options; None when no PTK has two options
    left.
    """
    several = allowed.sum(axis=1) > 1
    if not several.any():
        return None
    shares = np.where(allowed, relaxed.shares, 0.0)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    divided = np.where(several, 1 - shares.max(axis=1), -1.0)
    ptk = int(divided.argmax())
    places = np.flatnonzero(allowed[ptk])
    passed = np.cumsum(shares[ptk, places])
    # As even as possible, with something on both sides.
    cut = int(np.abs(passed[:-1] - 0.5).argmin())
    return ptk, int(places[cut])


def _columns(found: PackedOptions) -> list[Ints]:
    return [np.where(row, found.choice, -1) for row in found.packed.members]
