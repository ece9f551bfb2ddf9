"""The means that are served: pulled together as the table itself says (`tables.shrinkage`), but
never so far that a promised error would not hold.

`Statistics.analytic_profile` promises, with probability 95%, an error of at most t (a part of the
range) for the mean of a key with the share a of all N records, whatever the values are. A pull
towards other keys could break that for the one key that is far from all others. So for t up to
`TARGETS`, a key that may be meant is pulled only as far as its room allows:

* **Room.** The promise was made for a N records, so t >= q / (a N), where q is the distance, in
  records, that the noise of a total along any direction exceeds with probability 5% at most (both
  ends). Along a place x of the range that distance is q(x), which is less than q inside, where both
  ends have a part of the noise. A mean p of c noisy records is pulled by at most
  r = q / (a N) - q' / max(c, a N), where q' is the largest q(x) for x within q / max(c, a N) of p.
  *Below a N noisy records*, served above m + t means that p is above x = m + t - (q - q(x)) / (a N);
  so the noise along x is above n (x - m) >= q(x), where n >= a N is the true number. *From a N
  noisy records*, p - m > t - r >= q' / c, so the noise along m, which is (p - m) c, is above q', and
  q' >= q(m) if m is within q / c of p; if it is further below, the noise is above q. Either is as
  improbable as the promise says, and so are both together, for what makes a mean large makes the
  count large as well, or small as well, or has nothing to do with it. Below m - t likewise.
* **Who is meant.** Keys whose noisy count is at least half of a N. A key that has a N records has
  a noisy count below that with probability 2e-6 at most where any t up to `TARGETS` is kept: half
  of a N is 15 scales of noise then. The bound of the promise takes every mean to be at both ends of
  the range at once, which leaves more than that over.
* **No promise.** Where a N is so small that no t up to `TARGETS` is kept, nothing limits the pull:
  noise is then as large as what keys often differ by, and pulling is what helps.

N is that of the noisy table, raised by four standard deviations of its own noise: less room. A
promise of more than `TARGETS` speaks of the mean before it is pulled.

**Proof note.** *Unit, cost:* none, all of it is post-processing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.tables.noisy_totals import Mechanism
from ptklib.ptks.tables.samples import reach, reaches
from ptklib.ptks.tables.shrinkage import TableNoise, pulled_means

__all__ = ["TARGETS", "NoisyTable"]

TARGETS = 0.1
_DEVIATIONS = 4.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class NoisyTable:
    """What is known of the totals of a state, in records, and whom its promise is about."""

    mechanism: Mechanism
    degree: int
    unit: float  # of the grid of totals
    variance: float  # of the noise of a total
    windows: float
    share: float  # a in the module

    def means(self, plain: Floats, counts: Floats, totals: Floats) -> Floats:
        """The means of all keys, as parts of the range: plain ones where there is nothing to learn
        from others.
        """
        pulled = pulled_means(counts, totals, self._noise)
        if pulled is None:
            return plain
        deviation = math.sqrt(self.variance * (self.degree + 1) * len(counts))
        promised = self.share * (float(counts.sum()) + _DEVIATIONS * deviation)
        if promised * TARGETS < self.reach:
            return pulled
        enough = np.maximum(counts, promised)
        within = self.reach / promised - self.along(plain, enough) / enough
        room = np.where(counts >= promised / 2, within, 1.0)
        return np.asarray(np.clip(pulled, plain - room, plain + room))

    def along(self, means: Floats, counts: Floats) -> Floats:
        """q' in the module."""
        far = reaches(self.mechanism, self.degree)
        away = np.minimum(np.abs(means - 0.5) + self.reach / counts, 0.5)
        places = np.ceil(2 * away * (len(far) - 1)).astype(np.intp)
        return np.asarray(far[places] * self._scale + self.unit)

    @property
    def _noise(self) -> TableNoise:
        return TableNoise(
            variance=self.variance,
            places=tuple(place / self.degree for place in range(self.degree + 1)),
            windows=self.windows if self.mechanism == "laplace" else math.inf,
        )

    @property
    def reach(self) -> float:
        """q in the module; rounding to whole totals included."""
        return reach(self.mechanism, self.degree) * self._scale + self.unit

    @property
    def _scale(self) -> float:
        # The variance of discrete Laplace noise is by 1/6 less than that of the continuous one.
        laplace = math.sqrt((self.variance + self.windows * self.unit**2 / 6) / 2)
        return laplace if self.mechanism == "laplace" else math.sqrt(self.variance)
