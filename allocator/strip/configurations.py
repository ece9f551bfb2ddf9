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
from allocator.strip.covering import Covering
from allocator.strip.prices.sets import STATES, Sets
from allocator.table import Floats, Ints, OptionTable

__all__ = ["Configurations", "StripRelaxation"]

# Rounding in the linear solver and in sums of prices is far below this; bounds are lowered by it.
_SAFE = 1e-9
_CONVERGED = 1e-6
_SMOOTHING = 0.7
# Configurations remembered for each PTK before the idle half is dropped.
_KEPT = 8
# Disjoint sets looked for in every round; of each a few variants, quickly.
_DISJOINT = 6
_SOME_SETS = 4
_SOME_STATES = 200
# Units in which probes count demands.
# One below a multiple of the numbers from 2 to 10.
_FINE = 7559
# Partial sets kept at a time where fewer leave the bound open.
_MOST_STATES = 64 * STATES


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
    least: Floats  # those fewest samples
    done: bool  # False when rounds or work ran out


class Configurations:
    """The configurations found so far for one table.

    They serve every restriction of the options.
    """

    def __init__(self, table: OptionTable) -> None:
        """Start without any."""
        self.table = table
        self.sets = Sets(table)
        self.fine = Sets(table, units=_FINE)
        self._least = table.samples.min(axis=1).astype(np.float64)
        self._ratios = self._least[:, None] / table.samples
        # In records of full capacity.
        self._areas = table.samples * (table.demands / max(1, table.capacity))
        self._columns: list[Ints] = []
        self._most = _KEPT * len(table) + 200
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
        self,
        allowed: NDArray[np.bool_],
        *,
        enough: float,
        effort: Effort,
        rounds: int = 400,
        start: Floats | None = None,
        least: float = 0.0,
        close: float = _CONVERGED,
    ) -> StripRelaxation:
        """Solve with these options (each PTK has one at least).

        Stops when the bound reaches ``enough``, when the value is ``close`` to the bound or to
        ``least`` (a bound that is known from elsewhere), or after so many ``rounds``; ``start`` are
        the prices of a relaxation to go on from.
        """
        ratios, states = np.where(allowed, self._ratios, 0.0), STATES
        # A PTK by itself is a configuration too: a price is at most the fewest samples that it may
        # have.
        own = (
            np.where(allowed, self.table.samples, np.iinfo(np.int64).max).min(axis=1) / self._least
        )
        # Areas are feasible prices, and often nearly the best.
        areas = np.where(allowed, self._areas, np.inf).min(axis=1)
        best_prices, done = np.minimum(areas / self._least, own) if start is None else start, True
        bound = float((best_prices * self._least).sum()) * (1 - _SAFE)
        program = Covering(self._least, own)
        prices, widths = own, np.zeros(0)
        while True:
            if len(self._columns) > 3 * self._most:
                self._forget(1.0 - program.worth(prices), widths)
                program = Covering(self._least, own)
            self._given(program, ratios)
            prices, widths, alone = program.solve(effort)
            value = float((prices * self._least).sum())
            rounds -= 1
            if value <= max(bound, least) * (1 + close) or bound >= enough:
                break
            if rounds < 0 or effort.over:
                done = False
                break
            cutting = False
            for at in (_SMOOTHING * best_prices + (1 - _SMOOTHING) * prices, prices):
                worthy = self.sets.best(at[:, None] * ratios, 1.0, effort, states=states)
                certified = float((at * self._least).sum()) / worthy.most * (1 - _SAFE)
                if certified > bound:
                    bound, best_prices = certified, at / worthy.most
                for column in worthy.sets:
                    cutting |= self._cuts(column, prices[:, None] * ratios)
                if cutting:
                    self._others(
                        worthy.sets[0], at[:, None] * ratios, prices[:, None] * ratios, effort
                    )
                    break
            if not cutting:
                if states >= _MOST_STATES or worthy.sets or worthy.most <= 1 + _CONVERGED:
                    break
                # Nothing cuts, and too many partial sets were left out to say that nothing does.
                states *= 4
        used, lengths = self._used(widths, alone, allowed)
        if len(self._columns) > self._most:
            self._forget(1.0 - program.worth(prices), widths)
        shares = np.zeros(self.table.samples.shape)
        for column, width in zip(used, lengths, strict=True):
            inside = np.flatnonzero(column >= 0)
            shares[inside, column[inside]] += width / self.table.samples[inside, column[inside]]
        return StripRelaxation(bound, value, shares, lengths, used, best_prices, self._least, done)

    def serving(self, choice: Ints) -> NDArray[np.bool_]:
        """Whom the known configurations serve when every PTK takes this option; those that another
        one contains may be among them.
        """
        return np.unique(np.array(self._columns, dtype=np.int64) == choice, axis=0)

    def probe(self, allowed: NDArray[np.bool_], relaxed: StripRelaxation, effort: Effort) -> Floats:
        """For each option a bound on the plans that use it.

        With i held to option j its other options need no price, so that of i may rise until the
        fullest record with (i, j) on it is paid for: to n_ij times what the others leave of 1.
        """
        worth = np.where(allowed, self._ratios, 0.0) * relaxed.prices[:, None]
        bounds = np.where(allowed, relaxed.bound, np.inf)
        several = np.flatnonzero(allowed.sum(axis=1) > 1)
        if not len(several) or effort.over:
            return bounds
        room = np.maximum(0.0, 1 - self.fine.rooms(worth, several, effort))
        own = relaxed.prices[several] * self._least[several]
        held = relaxed.bound - own[:, None] + room * self.table.samples[several]
        # Prices and rooms are sums of a few numbers of the size of 1.
        held -= _SAFE * (relaxed.bound + self.table.samples[several])
        bounds[several] = np.where(allowed[several], np.maximum(relaxed.bound, held), np.inf)
        return bounds

    def _others(self, first: Ints, worth: Floats, violated_at: Floats, effort: Effort) -> None:
        """Add sets of PTKs that are in none of those before them: the plan needs sets for all."""
        left = worth.copy()
        column = first
        for _ in range(_DISJOINT):
            left[column >= 0] = 0.0
            most, column = self.sets.quick(left, effort)
            if most <= 1 or not self._cuts(column, violated_at):
                break

    def _cuts(self, column: Ints, violated_at: Floats) -> bool:
        """Remember a configuration if it cuts these prices off and is new."""
        inside = np.flatnonzero(column >= 0)
        return float(violated_at[inside, column[inside]].sum()) > 1 + _CONVERGED and self.add(
            column
        )

    def _given(self, program: Covering, ratios: Floats) -> None:
        """Give the program the columns that it does not have yet."""
        for column in self._columns[program.columns :]:
            inside = np.flatnonzero(column >= 0)
            program.add(inside, ratios[inside, column[inside]])

    def _forget(self, slack: Floats, widths: Floats) -> None:
        """Drop the half of the configurations that is farthest from use."""
        stay = np.sort(
            np.argsort(np.where(widths > 0, -1.0, slack), kind="stable")[: (len(slack) + 1) // 2]
        )
        self._columns = [self._columns[k] for k in stay]
        self._known = {_key(column) for column in self._columns}

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
