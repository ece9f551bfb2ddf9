"""The linear program over the columns that are known, solved again and again as columns are added.

    minimise sum_c w_c + sum_i own_i u_i   subject to   sum_c a_ci w_c + u_i >= needs_i,   w, u >= 0

A simplex method that goes on from the last basis: new columns leave it feasible, so a few exchanges
are all that is needed where a solver that begins anew takes hundreds. Its answers are suggestions
(the certificate is made from prices, whatever they are), so it stops when nothing is to be gained
beyond rounding, or after more exchanges than such programs take.

The inverse of the basis is kept as a whole: there are as many rows as PTKs. Sums are made in a
fixed order, without libraries that share them out among threads. Equal needs are told apart by a
trace, so that no exchange is in vain; the answer is for the needs as they are.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from allocator.effort import Effort
from allocator.table import Floats, Ints

__all__ = ["Covering"]

_GAIN = 1e-9
_PIVOT = 1e-9
_TRACE = 1e-7
# Exchanges after which the inverse is made anew, and for each row and column the most of them.
_FRESH = 150
_MOST = 40


class Covering:
    """Columns, and the basis of the last answer."""

    def __init__(self, needs: Floats, own: Floats) -> None:
        """Without columns everybody is alone; all ``needs`` are positive."""
        self._scale = float(needs.max())
        self._needs, self._own = needs / self._scale, own
        count = len(needs)
        self._traced = self._needs * (1 + _TRACE * ((np.arange(count) * 0.618034) % 1.0))
        self._places: list[Ints] = []
        self._values: list[Floats] = []
        # Numbers of basic columns: from 0 those added, -1 - i the PTK i alone, -1 - count - i what
        # it has too much.
        self._basis: Ints = -1 - np.arange(count)
        self._inverse = np.eye(count)
        self._prices = own.copy()
        self._amounts = self._traced.copy()
        self._since = 0

    def add(self, places: Ints, values: Floats) -> None:
        """One more column: ``values`` at these ``places``, 0 elsewhere."""
        self._places.append(places)
        self._values.append(values)

    @property
    def columns(self) -> int:
        """How many columns were added."""
        return len(self._places)

    def worth(self, prices: Floats) -> Floats:
        """What the columns are worth at these prices."""
        return np.asarray(self._matrix() @ prices)

    def solve(self, effort: Effort) -> tuple[Floats, Floats, Floats]:
        """Prices of PTKs, amounts of columns, and amounts of PTKs alone."""
        count = len(self._needs)
        matrix = self._matrix()
        # How long a step along each column is, compared with the beginning: the columns, PTKs alone,
        # and what they have too much.
        lengths = np.ones(matrix.shape[0] + 2 * count)
        for _ in range(_MOST * (count + 50)):
            gains = self._gains(matrix)
            worth = np.where(gains < -_GAIN, gains * gains / lengths, 0.0)
            place = int(worth.argmax())
            effort.spend(3e4 + 3.0 * matrix.nnz + 1.5 * count * count)
            if worth[place] <= 0:
                break
            leaving = self._exchange(self._number(place, matrix.shape[0]), float(gains[place]))
            if leaving is None:
                break
            row = self._inverse[leaving]
            steps = np.concatenate([matrix @ row, row, -row])
            np.maximum(lengths, steps * steps * lengths[place], out=lengths)
            if self._since >= _FRESH and not self._renew():
                break
        amounts = np.maximum((self._inverse * self._needs).sum(axis=1), 0.0) * self._scale
        widths, alone = np.zeros(len(self._places)), np.zeros(count)
        for number, amount in zip(self._basis.tolist(), amounts.tolist(), strict=True):
            if number >= 0:
                widths[number] = amount
            elif number >= -count:
                alone[-1 - number] = amount * self._own[-1 - number]
        return np.clip(self._prices, 0.0, self._own), widths, alone

    def _matrix(self) -> csr_array:
        lengths = [len(places) for places in self._places]
        shape = (len(lengths), len(self._needs))
        if not lengths:
            return csr_array(shape)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        return csr_array(
            (np.concatenate(self._values), np.concatenate(self._places), ends), shape=shape
        )

    def _gains(self, matrix: csr_array) -> Floats:
        """What a unit of each column costs beyond what it is worth."""
        return np.concatenate([1.0 - matrix @ self._prices, self._own - self._prices, self._prices])

    def _number(self, place: int, columns: int) -> int:
        return place if place < columns else columns - 1 - place

    def _moved(self, number: int) -> Floats:
        """The column in terms of the basis."""
        if number < 0:
            count = len(self._needs)
            alone = number >= -count
            place = -1 - number if alone else -1 - count - number
            return np.asarray(self._inverse[:, place] * (1.0 if alone else -1.0))
        places, values = self._places[number], self._values[number]
        return np.asarray((self._inverse[:, places] * values).sum(axis=1))

    def _exchange(self, entering: int, gain: float) -> int | None:
        """Into the basis with it; the row of who leaves, or None where that fails for rounding."""
        moved = self._moved(entering)
        falling = np.flatnonzero(moved > _PIVOT)
        if not len(falling):
            return None
        ratios = self._amounts[falling] / moved[falling]
        least = float(ratios.min())
        # Of those that are all but equal the one that is divided by most.
        ties = falling[ratios <= least + 1e-12]
        leaving = int(ties[moved[ties].argmax()])
        step = max(0.0, float(self._amounts[leaving] / moved[leaving]))
        self._eliminate(leaving, moved)
        self._amounts = np.maximum(self._amounts - step * moved, 0.0)
        self._amounts[leaving] = step
        self._basis[leaving] = entering
        self._prices = self._prices + gain * self._inverse[leaving]
        self._since += 1
        return leaving

    def _renew(self) -> bool:
        """The inverse, amounts and prices from the basis alone; False where it has none."""
        count = len(self._needs)
        numbers = self._basis.tolist()
        self._inverse, self._since = np.eye(count), 0
        basis, free = self._basis.copy(), np.ones(count, dtype=bool)
        for number in numbers:
            moved = self._moved(number)
            row = int(np.where(free, np.abs(moved), -1.0).argmax())
            if abs(moved[row]) <= _PIVOT:
                return False
            self._eliminate(row, moved)
            basis[row], free[row] = number, False
        self._basis = basis
        self._amounts = np.maximum((self._inverse * self._traced).sum(axis=1), 0.0)
        costs = np.zeros(count)
        for row, number in enumerate(basis.tolist()):
            if number >= 0:
                costs[row] = 1.0
            elif number >= -count:
                costs[row] = self._own[-1 - number]
        self._prices = np.asarray((costs[:, None] * self._inverse).sum(axis=0))
        return True

    def _eliminate(self, row: int, moved: Floats) -> None:
        """The inverse with the column ``moved`` in this row of the basis."""
        pivot = self._inverse[row] / moved[row]
        others = np.flatnonzero(moved)
        self._inverse[others] -= moved[others, None] * pivot
        self._inverse[row] = pivot
