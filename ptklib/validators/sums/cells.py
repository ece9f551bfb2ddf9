"""The shares of the cells of a histogram, with how far from those of the world any of them may be.

**Proof notes.** *Unit:* one record. *Neighbours:* add or remove one. *Sensitivity:* a record is in one cell,
which is public (`cell` numbers from 0; what has none is in the last): L1 and L2 norm 1. *Cost:* that of
one release of the noise, however many cells there are. *Validity:* N is the sum of all noisy counts, and
the estimate of a share e = c/N, c its noisy count. Of eta, half is for the noise: |Z| <= z of each of k cells,
and |n - N| <= w of the number of records (k draws: the smaller of k z and Chernoff's bound of their sum). Then the share of
the sample is within (z + e w)/(N - w) of e. Half is for the sample: that share has a kl of at
most ln(4k/eta)/n from the true one, in all cells at once (`told.divergence_bounds`).

Reasons: TOLERANCE_INVALID, CELLS_INVALID, ETA_INVALID, NOISE_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.validators.enough import least_records
from ptklib.validators.noises import Noise, noise_of
from ptklib.validators.sums.told import (
    SumVerdict,
    divergence_bounds,
    tolerance_exact,
)
from ptklib.validators.verdict import eta_exact

__all__ = ["HistogramTest"]

_MOST_CELLS = 10**6
_ROUND = 1e-9


@dataclass(frozen=True, init=False)
class HistogramTest:
    """Shares that are told with noise, and ACCEPTed where the absolute error of each is at most
    ``tolerance``, but for a chance of ``eta`` that one is not.
    """

    tolerance: Fraction
    noise: Noise
    eta: Fraction
    cells: int
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        tolerance: Number,
        eta: Number,
        cells: int,
        epsilon: Number | None = None,
        noise: Noise | None = None,
    ) -> None:
        """Check the parameters; fix the price."""
        if type(cells) is not int or not 2 <= cells <= _MOST_CELLS:
            raise InvalidInput(
                "CELLS_INVALID",
                f"cells must be a whole number from 2 to {_MOST_CELLS}, got {cells!r:.40}",
            )
        added = noise_of(epsilon, noise)
        keep(
            self,
            tolerance=tolerance_exact(tolerance),
            noise=added,
            eta=eta_exact(eta),
            cells=cells,
            release=added.release(1),
        )

    @property
    def cost(self) -> Cost:
        """What one `verdict` costs, whatever the records are."""
        return self.release.cost

    def sums(self, cell: ArrayLike) -> NDArray[np.int64]:
        """How many records are in each cell. Raw: not to be published."""
        known = np.array(cell, dtype=np.int64).reshape(-1)
        known[(known < 0) | (known >= self.cells)] = self.cells - 1
        return np.bincount(known, minlength=self.cells).astype(np.int64)

    def verdict(self, cell: ArrayLike, *, source: BitSource | None = None) -> SumVerdict:
        """Tell the shares, by the number of each record's cell, and judge them. Every call costs
        `cost`.
        """
        told = self.release.release(self.sums(cell), source=source).values
        return self.judged(tuple(int(value) for value in told))

    def judged(self, told: tuple[int, ...]) -> SumVerdict:
        """What follows from what was told. Post-processing."""
        records = sum(told)
        if records <= 0:
            estimates = (1 / self.cells,) * self.cells
            return SumVerdict.of(estimates, math.inf, self.tolerance)
        estimates = tuple(min(1.0, max(0.0, count / records)) for count in told)
        return SumVerdict.of(estimates, self.error(estimates, records), self.tolerance)

    def error(self, estimates: Iterable[float], records: int) -> float:
        """How far off the worst of these estimated shares may be."""
        shares = np.array(tuple(estimates), dtype=np.float64)
        chance = float(self.eta) / 4
        z = self.noise.beyond(chance / self.cells)
        w = self._number_off(chance)
        least = records - w
        if least <= 1:
            return math.inf
        blur = (z + shares * w) / least
        budget = math.log(4 * self.cells / float(self.eta)) / least
        below = divergence_bounds(np.maximum(0.0, shares - blur), budget)[0]
        above = divergence_bounds(np.minimum(1.0, shares + blur), budget)[1]
        return float(np.maximum(above - shares, shares - below).max()) + _ROUND

    def needed(self, largest_share: Number) -> int | None:
        """Records with which all shares are most likely ACCEPTed, where none is supposed to be
        larger than this. No data.
        """
        share = min(0.5, float(exact(largest_share, name="largest_share")))
        luck = self.noise.beyond(0.1 / self.cells)

        def enough(records: int) -> bool:
            likely = share + (2 * math.sqrt(records * share) + luck) / records
            return self.error([min(0.5, likely)], records) <= self.tolerance

        return least_records(enough)

    def _number_off(self, chance: float) -> float:
        """What the sum of all draws exceeds in size with at most this chance."""
        log, most = math.log(2 / chance), self.cells * self.noise.beyond(chance / self.cells)
        rates = np.geomspace(1e-4, 1.0, 64) * min(self.noise.steepest(1.0), 40.0)
        moments = self.cells * self.noise.log_moment(rates, 1.0)
        return min(most, float(((log + moments) / rates).min()))
