"""The linear program over configurations: the fewest records when PTKs may be cut over options and
over records.

A configuration is a set of PTKs, each at one of its options, that a record can carry together. With
w_c records in configuration c and x_ij the share of PTK i that is served by option j:

    minimise sum_c w_c   subject to   sum_{c has (i, j)} w_c >= n_ij x_ij  for all i, j,   sum_j x_ij = 1,   w, x >= 0.

Its dual has one price s_i for each PTK and one constraint for each configuration: maximise sum_i
s_i subject to sum_{(i, j) in c} s_i / n_ij <= 1. It is solved by cutting planes: the configuration
that is most violated is a knapsack (`allocator.strip.knapsack`). *Certificate:* for any prices, if
no configuration is worth more than v, then prices / v are feasible, and sum_i s_i / v is a lower
bound on every plan that uses the allowed options (Farley). It holds before convergence, whatever
the linear solver did.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.knapsack import CELLS, Knapsack
from allocator.table import Floats, Ints, OptionTable

__all__ = ["Configurations", "StripRelaxation"]

# Rounding in the linear solver and in sums of prices is far below this; bounds are lowered by it.
_SAFE = 1e-9
_CONVERGED = 1e-6
_SMOOTHING = 0.7
# Configurations remembered for each PTK before the idle half is dropped.
_KEPT = 8
# Members of the best configuration that are left out in turn, for more of its kind, where there are
# many PTKs.
_VARIED = 5


@dataclass(frozen=True)
class StripRelaxation:
    """A solved relaxation:

    ``bound`` is certified; the rest describes a fractional plan of ``value`` records.
    """

    bound: float
    value: float
    shares: Floats  # by PTK and option
    widths: Floats  # of the configurations with records in them
    columns: Ints  # those configurations: by PTK the place of the option, or -1
    prices: Floats  # feasible ones, by PTK, that give the bound; in units of its fewest samples


class Configurations:
    """The configurations found so far for one table.

    They serve every restriction of the options.
    """

    def __init__(self, table: OptionTable, *, cells: int = CELLS) -> None:
        """Start without any; ``cells`` is how finely demands are counted
        (`allocator.strip.knapsack`).
        """
        self.table = table
        self.knapsack = Knapsack(table, cells=cells)
        self._least = table.samples.min(axis=1).astype(np.float64)
        self._ratios = self._least[:, None] / table.samples
        self._columns: list[Ints] = []
        self._known: set[bytes] = set()

    def add(self, column: Ints) -> bool:
        """Remember a configuration; False when it is known."""
        key = _key(column)
        if key in self._known:
            return False
        self._known.add(key)
        self._columns.append(column)
        return True

    def relax(
        self, allowed: NDArray[np.bool_], *, enough: float, effort: Effort, rounds: int = 400
    ) -> StripRelaxation:
        """Solve with these options (each PTK has one at least).

        Stops when the bound reaches ``enough``.
        """
        ratios = np.where(allowed, self._ratios, 0.0)
        # A PTK by itself is a configuration too: a price is at most the fewest samples that it may
        # have.
        own = (
            np.where(allowed, self.table.samples, np.iinfo(np.int64).max).min(axis=1) / self._least
        )
        bound, best_prices = 0.0, own / len(own)
        while True:
            prices, widths, alone = self._master(ratios, own, effort)
            value = float((prices * self._least).sum())
            rounds -= 1
            if value <= bound * (1 + _CONVERGED) or bound >= enough or rounds < 0 or effort.over:
                break
            found = False
            for at in (_SMOOTHING * best_prices + (1 - _SMOOTHING) * prices, prices):
                worth = at[:, None] * ratios
                found |= self._price(worth, prices[:, None] * ratios, effort)
                effort.spend(self.knapsack.cells)
                most = max(self.knapsack.bound(worth), 1e-300)
                certified = float((at * self._least).sum()) / most * (1 - _SAFE)
                if certified > bound:
                    bound, best_prices = certified, at / most
                if found:
                    break
            if not found:
                break
        used, lengths = self._used(widths, alone, allowed)
        shares = np.zeros(self.table.samples.shape)
        for column, width in zip(used, lengths, strict=True):
            inside = np.flatnonzero(column >= 0)
            shares[inside, column[inside]] += width / self.table.samples[inside, column[inside]]
        return StripRelaxation(bound, value, shares, lengths, used, best_prices)

    def probe(self, allowed: NDArray[np.bool_], relaxed: StripRelaxation, effort: Effort) -> Floats:
        """For each option a bound on the plans that use it.

        With i held to option j its other options need no price, so that of i may rise until the
        fullest record with (i, j) on it is paid for: to n_ij times what the others leave of 1.
        """
        worth = np.where(allowed, self._ratios, 0.0) * relaxed.prices[:, None]
        found = np.where(allowed, relaxed.bound, np.inf)
        for i in np.flatnonzero(allowed.sum(axis=1) > 1):
            if effort.over:
                # For the others the bound of all plans is theirs too.
                break
            effort.spend(self.knapsack.cells)
            price = np.maximum(0.0, 1 - self.knapsack.rooms(worth, int(i))) * self.table.samples[i]
            held = relaxed.bound - float(relaxed.prices[i] * self._least[i]) + price
            found[i] = np.where(allowed[i], np.maximum(relaxed.bound, held * (1 - _SAFE)), np.inf)
        return found

    def _price(self, worth: Floats, violated_at: Floats, effort: Effort) -> bool:
        """Add the configuration of most worth, some that do without one of its dearest members, and
        disjoint ones.

        True when one of them cuts the prices off.
        """
        first = self._best(worth, effort)
        inside = np.flatnonzero(first >= 0)
        if not len(inside):
            return False
        price = self._cuts(first, violated_at)
        dearest = inside[np.argsort(-worth[inside, first[inside]], kind="stable")]
        for out in (*dearest[: min(_VARIED, len(self.table) // 10), None], inside):
            less = worth.copy()
            less[out] = 0.0
            price |= self._cuts(self._best(less, effort), violated_at)
        return price

    def _best(self, worth: Floats, effort: Effort) -> Ints:
        effort.spend(self.knapsack.cells)
        return self.knapsack.best(worth)[1]

    def _cuts(self, column: Ints, violated_at: Floats) -> bool:
        """Remember a configuration if it cuts these prices off and is new."""
        inside = np.flatnonzero(column >= 0)
        return float(violated_at[inside, column[inside]].sum()) > 1 + _CONVERGED and self.add(
            column
        )

    def _master(self, ratios: Floats, own: Floats, effort: Effort) -> tuple[Floats, Floats, Floats]:
        from scipy.optimize import linprog
        from scipy.sparse import csr_array

        effort.spend(4e6 + 200.0 * len(self._columns) * len(own))
        goal = -self._least / self._least.max()
        if self._columns:
            columns = np.array(self._columns)
            rows, ptks = np.nonzero(columns >= 0)
            values = ratios[ptks, columns[rows, ptks]]
            matrix = csr_array((values, (rows, ptks)), shape=columns.shape)
            answer = linprog(
                goal,
                A_ub=matrix,
                b_ub=np.ones(len(columns)),
                bounds=np.column_stack([0 * own, own]),
                method="highs-ds",
            )
            if answer.status == 0:
                scale = self._least.max()
                widths = -answer.ineqlin.marginals * scale
                if len(columns) > _KEPT * len(own) + 200:
                    widths = self._forget(answer.ineqlin.residual, widths)
                return answer.x, widths, -answer.upper.marginals * scale * own
        return own, np.zeros(len(self._columns)), own * self._least

    def _forget(self, slack: Floats, widths: Floats) -> Floats:
        """Drop the half of the configurations that is farthest from use; the widths of those that
        stay.
        """
        stay = np.sort(
            np.argsort(np.where(widths > 0, -1.0, slack), kind="stable")[: (len(slack) + 1) // 2]
        )
        self._columns = [self._columns[k] for k in stay]
        self._known = {_key(column) for column in self._columns}
        return widths[stay]

    def _used(
        self, widths: Floats, alone: Floats, allowed: NDArray[np.bool_]
    ) -> tuple[Ints, Floats]:
        """The configurations with records, without PTKs at options that are not allowed; single
        PTKs last.
        """
        count = len(self.table)
        most = max(float(self._least.max()), 1.0)
        chosen = [place for place, width in enumerate(widths) if width > 1e-9 * most]
        used = [self._columns[place].copy() for place in chosen]
        places = np.arange(count)
        for column in used:
            column[(column >= 0) & ~allowed[places, np.maximum(column, 0)]] = -1
        singles = [i for i in range(count) if alone[i] > 1e-9 * most]
        fewest = np.where(allowed, self.table.samples, np.iinfo(np.int64).max).argmin(axis=1)
        for i in singles:
            column = np.full(count, -1, dtype=np.int64)
            column[i] = fewest[i]
            used.append(column)
        lengths = [widths[place] for place in chosen] + [alone[i] for i in singles]
        shape = (len(used), count)
        return np.array(used, dtype=np.int64).reshape(shape), np.array(lengths, dtype=np.float64)


def _key(column: Ints) -> bytes:
    return column.astype(np.int16).tobytes()
