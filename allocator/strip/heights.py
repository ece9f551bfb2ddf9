"""The same relaxation for many PTKs: only heights count, not who has them.

PTKs whose options have the same demand are alike to a record, so a *pattern* says how many of each
height it carries. With a price p_h for a record at height h the dual is

    maximise sum_i s_i   subject to   s_i <= n_ij p_h(ij)  for all i and allowed j,   sum_h k_h p_h <= 1  for all patterns k.

It forgets that a PTK may stand in a pattern once only, which hardly matters where many PTKs share a
height, and it has as many rows as there are heights. *Certificate:* for any prices, if no pattern
is worth more than v, then sum_i min_j n_ij p_h(ij) / v is a lower bound on every plan with the
allowed options. Heights are rounded down to units (exactly where the demands have a large common
divisor); those below one part in `_FLAT` of the capacity are priced by area, with what a pattern
leaves free.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.table import Floats, Ints, OptionTable

__all__ = ["Heights", "Priced"]

_UNITS = 1024
_EXACT_UNITS = 2048
_FLAT = 64
_SAFE = 1e-9


@dataclass(frozen=True)
class Priced:
    """Certified ``bound``; the price of a record for each option; the share of each option in the
    fractional plan.
    """

    bound: float
    prices: Floats
    shares: Floats


class Heights:
    """Prices over the heights of one table; patterns serve every restriction of the options."""

    def __init__(self, table: OptionTable) -> None:
        """Sort the demands into heights."""
        self.table = table
        unit = gcd(table.capacity, *map(int, np.unique(table.demands))) or 1
        if table.capacity // unit <= _EXACT_UNITS:
            self._units = table.capacity // unit
            units = table.demands // unit
        else:
            self._units = _UNITS
            units = np.array(
                [[int(d) * _UNITS // table.capacity for d in row] for row in table.demands]
            )
        flat = units * _FLAT < self._units
        self._heights: Ints = np.unique(units[~flat])
        # The last place stands for area.
        self._class = np.where(flat, len(self._heights), np.searchsorted(self._heights, units))
        # Area in units of the capacity, rounded down by the float's error below.
        self._amount = np.where(flat, table.demands / table.capacity * self._units, 1.0)
        self._patterns: list[Floats] = []
        for height in self._heights:
            self._add_single(int(height))
        self._patterns.append(self._pattern(np.zeros(len(self._heights))))

    def relax(
        self, allowed: NDArray[np.bool_], *, enough: float, effort: Effort, rounds: int = 200
    ) -> Priced:
        """Solve with these options (each PTK has one at least)."""
        needs = self.table.samples.astype(np.float64) * self._amount
        bound, prices = 0.0, np.zeros(len(self._heights) + 1)
        shares = np.zeros(allowed.shape)
        while rounds > 0:
            rounds -= 1
            tentative, value, shares = self._master(allowed, needs)
            effort.spend(3e4 * allowed.size)
            worth, pattern = self._best(tentative)
            worth = max(worth, 1e-300)
            certified = float(
                np.where(allowed, needs * tentative[self._class], np.inf).min(axis=1).sum()
            )
            certified = certified / worth * (1 - _SAFE)
            if certified > bound:
                bound, prices = certified, tentative / worth
            if worth <= 1 + 1e-7 or value <= bound * (1 + 1e-6) or bound >= enough or effort.over:
                break
            self._patterns.append(pattern)
        return Priced(bound, prices[self._class] * self._amount, shares)

    def _add_single(self, height: int) -> None:
        counts = np.zeros(len(self._heights))
        counts[np.searchsorted(self._heights, height)] = self._units // height
        self._patterns.append(self._pattern(counts))

    def _pattern(self, counts: Floats) -> Floats:
        return np.append(counts, self._units - counts @ self._heights)

    def _master(self, allowed: NDArray[np.bool_], needs: Floats) -> tuple[Floats, float, Floats]:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array, hstack, vstack

        count, classes = len(self.table), len(self._heights) + 1
        ptk, option = np.nonzero(allowed)
        scale = np.where(allowed, needs, np.inf).min(axis=1)
        rows = np.arange(len(ptk))
        # Prices of PTKs in units of their least need, so that the numbers stay of one size.
        left = csr_array((np.ones(len(ptk)), (rows, ptk)), shape=(len(ptk), count))
        right = csr_array(
            (-needs[ptk, option] / scale[ptk], (rows, self._class[ptk, option])),
            shape=(len(ptk), classes),
        )
        patterns = np.array(self._patterns)
        bottom = hstack([csr_array((len(patterns), count)), csr_array(patterns)])
        matrix = vstack([hstack([left, right]), bottom]).tocsr()
        goal = np.concatenate([-scale / scale.sum(), np.zeros(classes)])
        limits = np.concatenate([np.zeros(len(ptk)), np.ones(len(patterns))])
        answer = linprog(goal, A_ub=matrix, b_ub=limits, bounds=(0, None), method="highs-ds")
        shares = np.zeros(allowed.shape)
        if answer.status != 0:
            return np.append(self._heights / self._units, 1 / self._units), 0.0, shares
        dual = -answer.ineqlin.marginals[: len(ptk)] * scale.sum()
        shares[ptk, option] = dual / scale[ptk]
        return answer.x[count:], -answer.fun * float(scale.sum()), shares

    def _best(self, prices: Floats) -> tuple[float, Floats]:
        """The pattern of most worth: an unbounded knapsack, height by height, along the multiples
        of the height.
        """
        units, slope = self._units, float(prices[-1])
        best = np.arange(units + 1) * slope
        pick = np.full(units + 1, -1, dtype=np.int64)
        for place, height in enumerate(self._heights):
            price, step = float(prices[place]), int(height)
            if price <= slope * step:
                continue
            rows = -(-(units + 1) // step)
            padded = np.full(rows * step, -np.inf)
            padded[: units + 1] = best
            ladder = padded.reshape(rows, step) - price * np.arange(rows)[:, None]
            top = np.maximum.accumulate(ladder, axis=0) + price * np.arange(rows)[:, None]
            better = top.reshape(-1)[: units + 1]
            taken = better > best + 1e-12
            pick[taken] = place
            best = np.where(taken, better, best)
        counts = np.zeros(len(self._heights))
        left = units
        guard = 0
        while left > 0 and pick[left] >= 0 and guard <= units:
            counts[pick[left]] += 1
            left -= int(self._heights[pick[left]])
            guard += 1
        return float(best[units]), self._pattern(counts)
