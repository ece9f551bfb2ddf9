"""The means that are served: pulled together as the table itself says (`tables.shrinkage`), but
never so far that a promised error would not hold.

`Statistics.analytic_profile` promises, with probability 95%, an error of at most t (a part of the
range) for the mean of a key with the share a of all N records, whatever the values are. A pull
towards other keys could break that for the one key that is far from all others. So for t up to
`TARGETS`, a key that may be meant is pulled only as far as its room allows:

* **Room.** The promise was made for a N records, so t >= q / (a N), where q is the distance, in
  records, that the noise of a total along any direction exceeds with probability 5% at most (both
  ends). A mean of c noisy records is pulled by at most q / (a N) - q / c: by nothing at a N
  records, by more the more there are. Where it is served above m + t, its noise along m is above
  t c - (q / (a N) - q / c) c >= q: as improbable as for the plain mean. Below m - t likewise.
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
from ptklib.ptks.tables.samples import reach
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
        within = self.reach / promised - self.reach / np.maximum(counts, promised)
        room = np.where(counts >= promised / 2, within, 1.0)
        return np.asarray(np.clip(pulled, plain - room, plain + room))

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
        # The variance of discrete Laplace noise is by 1/6 less than that of the continuous one.
        laplace = math.sqrt((self.variance + self.windows * self.unit**2 / 6) / 2)
        scale = laplace if self.mechanism == "laplace" else math.sqrt(self.variance)
        return reach(self.mechanism, self.degree) * scale + self.unit
