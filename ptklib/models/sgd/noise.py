"""Noise for sums of clipped gradients: exact rounded Gaussians, drawn for several steps at once.

**Proof note.** *Unit:* one record, or a user with ``records`` records. *Sensitivity:* a sum of
clipped gradients is a vector of whole numbers that one record moves by at most `whole.CLIP` in L2
(`clipped`), a user by at most ``records`` times that. *Cost:* the noise of a step is a continuous
Gaussian of standard deviation multiplier * records * CLIP, rounded to whole numbers, which is
post-processing of whole sums: a Gaussian mechanism of the stated multiplier, no more. Every number
is used for one step and dropped; numbers drawn ahead are kept in memory alone.

Reasons: those of `sampler`.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ptklib.models.sgd.whole import CLIP
from ptklib.privacy.amounts import exact
from ptklib.privacy.noise.sampler import rounded_gaussian
from ptklib.privacy.noise.source import BitSource

__all__ = ["StepNoise", "deviation"]

# Numbers drawn at once: few steps of a large net, many of a small one.
_AT_ONCE = 1 << 15


def deviation(multiplier: float, records: int) -> Fraction:
    """The standard deviation of the noise of a step, in units of the clipped sums."""
    return exact(multiplier) * records * CLIP


class StepNoise:
    """Noise of ``size`` numbers for each step."""

    def __init__(self, size: int, records: int, source: BitSource | None) -> None:
        """Nothing is drawn yet."""
        self._size, self._records, self._source = size, records, source
        self._ahead: NDArray[np.int64] = np.empty((0, size), dtype=np.int64)
        self._multiplier = 0.0
        self._used = 0

    def draw(self, multiplier: float, steps_left: int) -> NDArray[np.int64]:
        """The noise of a step at this multiplier; ``steps_left`` is how many with the same follow,
        this one counted.
        """
        if self._used == len(self._ahead) or multiplier != self._multiplier:
            # What was used goes before what comes: of a large net both take much room.
            self._ahead = self._ahead[:0].copy()
            steps = max(1, min(steps_left, _AT_ONCE // self._size))
            self._ahead = rounded_gaussian(
                (steps, self._size), deviation(multiplier, self._records), source=self._source
            )
            self._multiplier, self._used = multiplier, 0
        self._used += 1
        drawn: NDArray[np.int64] = self._ahead[self._used - 1]
        return drawn
