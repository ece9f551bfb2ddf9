"""Search over options for few PTKs: branch and bound over the linear program of
`allocator.strip.configurations`.

A node allows some options of every PTK. Its bound is the relaxation's; its plan comes from rounding
the shares to whole options and packing those. The PTK whose shares are most divided is split into
its cheaper and its dearer options. Best bound first, so the bound that is left when time runs out
is the bound of the whole search.

*Equal PTKs.* Of PTKs with the same options any plan has one like it in which they are sorted, the
first at the cheapest. Nodes keep to those: a PTK that may not have the cheaper options takes them
from those behind it, one that may not have the dearer ones from those before it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.configurations import Configurations, StripRelaxation
from allocator.strip.packing import Packed, pack
from allocator.strip.rounding import in_records
from allocator.table import Floats, Ints, OptionTable

__all__ = ["PackedOptions", "Search", "shortest", "sort_alike"]

# From so many PTKs on; tries begin 2^-10 above the bound.
_MANY = 1000
# A bound this much above a whole number is beyond it.
_MORE = 2e-6
# A relaxation is looked at after so many rounds, then half as many more, and so on: at its plan in
# parts, for whole ones.
_ROUNDS = 10
# Beyond so many PTKs the options of a plan are not solved for to the end.
_SHORT = 80
_NEAR = 10


@dataclass(frozen=True)
class PackedOptions:
    """A plan: the place of each PTK's option, and the packing."""

    choice: Ints
    packed: Packed


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
        configurations: Configurations | None = None,
    ) -> None:
        """With ``below`` any plan of fewer records is good enough and no other is of use: the
        search ends with the first, or with a bound of at least ``below``. ``configurations`` are
        those that another search has found.
        """
        self.table, self.best, self.bound = table, best, bound
        self._gap, self._below = gap, below
        self._cut = best.packed.total if below is None else min(below, best.packed.total)
        self.configurations = configurations or Configurations(table)
        self._alike = _alike(table)
        self._add(best)
        self._open: list[tuple[float, int, NDArray[np.bool_]]] = [
            (float(bound), 0, table.allowed(self._cut - 1))
        ]
        self._next: tuple[float, int, NDArray[np.bool_]] | None = None
        self._made, self._tried, self._settled = 0, set[bytes](), 1 << 62

    def run(self, effort: Effort) -> tuple[PackedOptions, int]:
        """The best plan and the best bound that are known when the search ends or nothing is left
        to spend.
        """
        while not (self._below is not None and self.best.packed.total < self._below):
            lowest = self._lowest()
            if self._cut <= lowest * (1 + self._gap) or self.done or effort.over:
                return self.best, min(lowest, self._cut)
            node, self._next = self._next, None
            self._visit(*(heapq.heappop(self._open) if node is None else node), effort)
        return self.best, self._lowest()

    def offer(self, better: PackedOptions) -> None:
        """Take note of a plan that was found elsewhere."""
        if better.packed.total < self.best.packed.total:
            self.best = better
            self._cut = min(self._cut, better.packed.total)
            self._add(better)

    def _add(self, packing: PackedOptions) -> None:
        for column in _columns(packing):
            self.configurations.add(column)

    @property
    def done(self) -> bool:
        """True when there is nothing left to look at."""
        return self._next is None and not self._open

    def _lowest(self) -> int:
        """No plan holds fewer records, or none of use does."""
        waiting = [*self._open[:1], *([self._next] if self._next is not None else [])]
        lowest = min((int(np.ceil(node[0] - 1e-6)) for node in waiting), default=self._cut)
        return max(self.bound, min(self._settled, lowest, self._cut))

    def _visit(self, known: float, number: int, allowed: NDArray[np.bool_], effort: Effort) -> None:
        table, configurations = self.table, self.configurations
        allowed = allowed & (table.samples <= self._cut - 1)
        if not allowed.any(axis=1).all():
            return
        relaxed: StripRelaxation | None = None
        rounds = _ROUNDS
        while relaxed is None or not relaxed.done:
            relaxed = configurations.relax(
                allowed,
                enough=self._cut - 1 + _MORE,
                effort=effort,
                rounds=rounds,
                start=None if relaxed is None else relaxed.prices,
            )
            known, rounds = max(known, relaxed.bound), rounds + rounds // 2
            if np.ceil(known - 1e-6) >= self._cut:
                return
            if effort.over:
                # Not done with this one: its configurations are kept for the next time. A plan from
                # a half-solved program would be luck, which more work might not have.
                heapq.heappush(self._open, (known, number, allowed))
                return
            self.best = _rounded(
                table, configurations, allowed, relaxed, self.best, self._tried, effort, self._cut
            )
            self._cut = min(self._cut, self.best.packed.total)
        own = known
        probed = configurations.probe(allowed, relaxed, effort)
        allowed = allowed & (np.ceil(probed - 1e-6) < self._cut)
        if not allowed.any(axis=1).all():
            return
        split = _split(relaxed, allowed, probed)
        if split is None:
            # Every PTK has one option: the relaxation is the plan, up to whole records, which this
            # search does not settle.
            self._settled = min(self._settled, int(np.ceil(own - 1e-6)))
            return
        self._branch(own, allowed, relaxed, probed, *split)

    def _branch(
        self,
        own: float,
        allowed: NDArray[np.bool_],
        relaxed: StripRelaxation,
        probed: Floats,
        ptk: int,
        place: int,
    ) -> None:
        """Two new nodes; the one with more of the fractional plan in it is next, so that the search
        goes down to whole plans before it comes back for the lowest bound.
        """
        shares = relaxed.shares[ptk] * allowed[ptk]
        lower = bool(shares[: place + 1].sum() * 2 >= shares.sum())
        for side in (lower, not lower):
            child = allowed.copy()
            child[ptk] &= (np.arange(self.table.width) <= place) == side
            self._made += 1
            node = (max(own, float(probed[ptk][child[ptk]].min())), self._made, child)
            sort_alike(child, self._alike[ptk])
            if side == lower:
                self._next = node
            else:
                heapq.heappush(self._open, node)


def _alike(table: OptionTable) -> list[Ints]:
    """For every PTK those with the same options, itself among them, in order."""
    rows: dict[bytes, list[int]] = {}
    keys = [
        np.column_stack([demands, samples]).tobytes()
        for demands, samples in zip(table.demands, table.samples, strict=True)
    ]
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    return [np.array(rows[key], dtype=np.int64) for key in keys]


def sort_alike(allowed: NDArray[np.bool_], alike: Ints) -> None:
    """Of PTKs with the same options leave each what it may have when they are sorted."""
    for before, ptk in pairwise(alike.tolist()):
        allowed[ptk] &= np.logical_or.accumulate(allowed[before])
    for behind, ptk in pairwise(alike[::-1].tolist()):
        allowed[ptk] &= np.logical_or.accumulate(allowed[behind, ::-1])[::-1]


def shortest(
    table: OptionTable, choice: Ints, least: int, below: int, *, steps: int = 24
) -> Packed | None:
    """The shortest packing of these options that levelling finds on fewer than ``below`` records.

    Thousands of PTKs are packed slowly and nearly always close to the bound: for them the next
    tries are not far above it.
    """
    rows = np.arange(len(table))
    samples, demands = table.samples[rows, choice], table.demands[rows, choice]
    low, high, best = max(least, int(samples.max())) - 1, below, None
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
            high, best = packed.total, packed
        probe = (low + high) // 2
        if best is None:
            probe, far = min(probe, low + far), 4 * far
    return best


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
    if (allowed.sum(axis=1) == 1).all():
        # The relaxation is of these options alone already.
        if relaxed.value < cut and key + bytes([relaxed.done]) not in tried:
            tried.add(key + bytes([relaxed.done]) if relaxed.done else key)
            packed = in_records(table, choice, configurations, relaxed, effort)
            if packed is not None and packed.total < cut and not effort.over:
                best = PackedOptions(choice, packed)
        return best
    if key in tried:
        return best
    tried.add(key)
    packed = shortest(table, choice, int(relaxed.bound), cut, steps=10)
    if packed is not None:
        best, cut = PackedOptions(choice, packed), packed.total
    only = np.zeros_like(allowed)
    only[np.arange(len(table)), choice] = True
    # With many PTKs the first rounds say most, and what they leave is a plan in parts as well.
    rounds = 400 if len(table) <= _SHORT else _ROUNDS
    fixed = configurations.relax(only, enough=cut - 1 + _MORE, effort=effort, rounds=rounds)
    if fixed.value < cut and np.ceil(fixed.bound - 1e-6) < cut and not effort.over:
        packed = in_records(table, choice, configurations, fixed, effort)
        if packed is not None and packed.total < cut:
            best = PackedOptions(choice, packed)
    return best


def _split(
    relaxed: StripRelaxation, allowed: NDArray[np.bool_], probed: Floats
) -> tuple[int, int] | None:
    """The PTK to split and the last of its cheaper options; None when no PTK has two options
    left.

    The PTK for which both sides are known to be longest, counted by what probing says; where that
    says nothing, the one whose shares are most divided, weighed by what it fills.
    """
    several = allowed.sum(axis=1) > 1
    if not several.any():
        return None
    shares = np.where(allowed, relaxed.shares, 0.0)
    shares = shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-12)
    best, split = (-1.0, -1.0), (0, 0)
    for ptk in np.flatnonzero(several):
        places = np.flatnonzero(allowed[ptk])
        passed = np.cumsum(shares[ptk, places])
        # As even as possible, with something on both sides.
        cut = int(np.abs(passed[:-1] - 0.5).argmin())
        rise = min(
            float(probed[ptk, places[: cut + 1]].min()), float(probed[ptk, places[cut + 1 :]].min())
        )
        divided = float(1 - shares[ptk].max()) * float(relaxed.prices[ptk] * relaxed.least[ptk])
        score = (rise - relaxed.bound, divided)
        if score > best:
            best, split = score, (int(ptk), int(places[cut]))
    return split


def _columns(packing: PackedOptions) -> list[Ints]:
    return [np.where(row, packing.choice, -1) for row in packing.packed.members]
