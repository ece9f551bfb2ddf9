"""Plans made shorter by moving a few PTKs to other options at a time.

The search of `allocator.strip.branching` proves; it comes late to plans in which several PTKs are
not where the relaxation puts them. Here the options of the best plan are changed for one PTK, for
two and for three. What a choice of options comes to is the linear program of configurations with
those alone, which is nearly always what a plan of whole records comes to as well. Changes to options
of least area come first.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from allocator.effort import Effort
from allocator.strip.branching import PackedOptions
from allocator.strip.configurations import Configurations
from allocator.strip.rounding import in_records
from allocator.table import Ints, OptionTable

__all__ = ["OptionMoves"]

# Of the changes of one and two PTKs the most promising are tried.
_SINGLE = 60
_PAIRS = 300
# Changes of three PTKs are made of so many of the most promising changes of one.
_THREES = 14
_MORE = 2e-6


class OptionMoves:
    """Tries that go on where they stopped; nothing is tried twice."""

    def __init__(self, table: OptionTable, configurations: Configurations) -> None:
        """Share the configurations of a search."""
        self.table = table
        self._configurations = configurations
        self._tried = set[bytes]()

    def better(self, best: PackedOptions, effort: Effort) -> PackedOptions:
        """The best plan that is found until there is nothing left to try or to spend."""
        while not effort.over:
            packing = self._one_better(best, effort)
            if packing is None:
                break
            best = packing
        return best

    def _one_better(self, best: PackedOptions, effort: Effort) -> PackedOptions | None:
        cut = best.packed.total
        for choice in self._changes(best.choice, cut):
            if effort.over:
                return None
            key = choice.tobytes()
            if key in self._tried:
                continue
            self._tried.add(key)
            packing = self._tried_out(choice, cut, effort)
            if packing is not None:
                return packing
        return None

    def _tried_out(self, choice: Ints, cut: int, effort: Effort) -> PackedOptions | None:
        rows = np.arange(len(self.table))
        samples, demands = self.table.samples[rows, choice], self.table.demands[rows, choice]
        effort.spend(1e4 * len(rows))
        area = float((samples * (demands / max(1, self.table.capacity))).sum())
        if int(samples.max()) >= cut or area > cut - 1 + _MORE:
            return None
        only = np.zeros(self.table.samples.shape, dtype=bool)
        only[rows, choice] = True
        fixed = self._configurations.relax(only, enough=cut - 1 + _MORE, effort=effort)
        if np.ceil(fixed.bound - 1e-6) >= cut or effort.over:
            return None
        packed = in_records(self.table, choice, self._configurations, fixed, effort)
        if packed is None or packed.total >= cut or effort.over:
            return None
        return PackedOptions(choice, packed)

    def _changes(self, choice: Ints, cut: int) -> Iterator[Ints]:
        areas = self.table.samples.astype(np.float64) * self.table.demands
        now = areas[np.arange(len(choice)), choice]
        singles = sorted(
            (float(areas[i, j] - now[i]), i, j)
            for i in range(len(choice))
            for j in range(int(self.table.lengths[i]))
            if j != choice[i] and self.table.samples[i, j] < cut
        )
        singles = singles[:_SINGLE]
        for _, i, j in singles:
            yield _moved(choice, ((i, j),))
        pairs = sorted(
            (move[0] + other[0], move[1:], other[1:])
            for move, other in combinations(singles, 2)
            if move[1] != other[1]
        )
        for _, move, other in pairs[:_PAIRS]:
            yield _moved(choice, (move, other))
        for three in combinations(singles[:_THREES], 3):
            if len({i for _, i, _ in three}) == len(three):
                yield _moved(choice, tuple((i, j) for _, i, j in three))


def _moved(choice: Ints, moves: tuple[tuple[int, int], ...]) -> Ints:
    changed = choice.copy()
    for i, j in moves:
        changed[i] = j
    return changed
