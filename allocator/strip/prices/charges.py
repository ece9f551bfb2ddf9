"""What every plan pays for its options, and the cheapest choice of options.

Let p_ij be the price of a record for PTK i at option j, so that no set of options that a record can
carry, of every PTK at most one, costs more than 1. A plan of N records in which PTK i takes option
j(i) pays at most 1 for each of its records, and n_ij p_ij for every PTK in all: sum_i c_ij(i) <= N
with c = n p. Such a table c is a *charge*. Areas are one (p = d / D), rounded areas are more
(`allocator.strip.prices.dual_feasible`), and the linear program of configurations gives the ones
that matter.

*The cheapest choice* is an integer program: one option for each PTK, and the largest of all charges
as low as can be. It is small (a row for each charge), so HiGHS settles it in milliseconds where a
search over linear programs takes minutes; what its search leaves as bound, lowered by more than its
tolerances, is a lower bound on every plan.

*Equal PTKs.* OptionCharges of PTKs with the same options are averaged over them: exchanging them
gives charges as well, and the average of charges is one. Then only their number at each option
counts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.effort import Effort
from allocator.strip.prices.dual_feasible import heights
from allocator.table import Floats, Ints, OptionTable

__all__ = ["Cheapest", "OptionCharges"]

# Steps of roundings of areas.
_STEPS = 40
_NODES = 2000
# Plans are about as long as a tenth of a unit of the integer program: with larger numbers HiGHS
# repairs choices that are a millionth off, and says so on the standard output.
_UNIT = 10.0
_SAFE = 1e-9
_TOLERANCES = 1e-6


@dataclass(frozen=True)
class Cheapest:
    """No plan of use is below ``bound``. ``choice`` is None where none pays less than was asked, or
    (not ``settled``) none was found.
    """

    bound: float
    choice: Ints | None
    settled: bool


class OptionCharges:
    """The charges known for one table, and choices that are ruled out."""

    def __init__(self, table: OptionTable) -> None:
        """Begin with areas."""
        self.table, self._kinds = table, _kinds(table)
        self._sizes = np.bincount(self._kinds)
        self._first = np.unique(self._kinds, return_index=True)[1]
        self._rows: list[Floats] = []
        self._never: list[Ints] = []
        if table.capacity:
            inside = table.allowed(int(table.samples.max()))
            for prices in heights(table.demands, table.capacity, inside, steps=_STEPS):
                self.add(prices)
        else:
            self.add(np.zeros(table.samples.shape))

    @property
    def all_differ(self) -> bool:
        """True when no two PTKs have the same options."""
        return len(self._sizes) == len(self.table)

    def add(self, prices: Floats) -> None:
        """One more charge, from feasible ``prices`` by PTK and option."""
        charge = self.table.samples * prices * (1 - _SAFE)
        sums = np.zeros((len(self._sizes), self.table.width))
        np.add.at(sums, self._kinds, charge)
        self._rows.append(sums / self._sizes[:, None])

    def rule_out(self, choice: Ints) -> None:
        """Never choose this again; only where all PTKs differ."""
        self._never.append(choice.copy())

    def paid(self, choice: Ints) -> float:
        """The largest charge for this choice: no plan that makes it is shorter."""
        return max(float(row[self._kinds, choice].sum()) for row in self._rows)

    def cheapest(
        self, allowed: NDArray[np.bool_], *, below: int, low: float, gap: float, effort: Effort
    ) -> Cheapest:
        """The choice of allowed options that pays least, if that is less than ``below``, within a
        relative ``gap``; ``low`` is a bound that is known.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csr_array

        kinds, options = np.nonzero(allowed[self._first])
        count, unit = len(kinds), _UNIT * below
        paid = np.array([row[kinds, options] for row in self._rows]) / unit
        effort.spend(5e6 + 1e3 * paid.size)
        chosen = csr_array(
            (np.ones(count), (kinds, np.arange(count))), shape=(len(self._sizes), count + 1)
        )
        rows = [
            LinearConstraint(chosen, self._sizes, self._sizes),
            LinearConstraint(csr_array(np.hstack([paid, -np.ones((len(paid), 1))])), -np.inf, 0),
        ]
        if self._never:
            ruled = np.array([choice[self._first][kinds] == options for choice in self._never])
            most = len(self._sizes) - 1
            rows.append(
                LinearConstraint(
                    csr_array(np.hstack([ruled, np.zeros((len(ruled), 1))])), -np.inf, most
                )
            )
        answer = milp(
            np.append(np.zeros(count), 1.0),
            constraints=rows,
            integrality=np.append(np.ones(count), 0.0),
            bounds=Bounds(
                np.append(np.zeros(count), low / unit),
                np.append(self._sizes[kinds], (below - 1 + 1e-6) / unit),
            ),
            options={
                "node_limit": _NODES,
                "mip_rel_gap": gap,
                "presolve": False,
                **effort.time_limit,
            },
        )
        if answer.status == 2:
            return Cheapest(float(below), None, True)
        effort.spend(1e6 * float(answer.mip_node_count or 0))
        bound = low
        if answer.mip_dual_bound is not None and np.isfinite(answer.mip_dual_bound):
            bound = max(low, float(answer.mip_dual_bound) * unit - _TOLERANCES * below)
        if answer.x is None:
            return Cheapest(bound, None, False)
        return Cheapest(
            bound, self._spread(np.rint(answer.x[:count]), kinds, options), answer.status == 0
        )

    def _spread(self, counts: Floats, kinds: Ints, options: Ints) -> Ints:
        """The option of every PTK: of equal ones the first have the cheapest."""
        choice = np.zeros(len(self.table), dtype=np.int64)
        for kind in range(len(self._sizes)):
            inside = kinds == kind
            places = np.repeat(options[inside], counts[inside].astype(np.int64))
            choice[self._kinds == kind] = places
        return choice


def _kinds(table: OptionTable) -> Ints:
    """The same number for PTKs with the same options."""
    numbers: dict[tuple[tuple[int, int], ...], int] = {}
    keys = (tuple((option.demand, option.samples) for option in row) for row in table.rows)
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
