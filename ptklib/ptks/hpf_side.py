"""What is known of the tastes of one side, users or items, from sums on the features of the other."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.hpf import information, shrunk, variance_of

__all__ = ["SPREAD", "Side"]

# The variance of a residual, as a share of the squared range: about that of star ratings. It says how fast data outweighs
# the mean and how large an echo is; no claim of privacy rests on it.
SPREAD = 1 / 24
# Of features between two sums; see `hpf.variance_of`.
_REVIVAL = 0.1

Floats = NDArray[np.float64]


@dataclass
class Side:
    """(h, J) of one side: of all windows (``sums``, ``weights``) and, apart, of the windows before (``old_...``)."""

    counts: Floats  # noisy, of this window
    every: Floats  # noisy, of all windows
    old_sums: Floats
    old_weights: Floats
    sums: Floats = field(init=False)
    weights: Floats = field(init=False)
    gain: Floats = field(init=False)  # of features per unit of a sum, mean over events, by column

    def __post_init__(self) -> None:
        """Before any sum of this window."""
        self.sums, self.weights = self.old_sums, self.old_weights
        self.gain = np.zeros(self.old_sums.shape[1])

    def learn(self, sums: Floats, square: float, noise: float, echo: Floats | None) -> None:
        """Take in noisy sums on features of this mean square, in place of earlier ones of this window.

        ``echo`` is what a record meets of itself in its partner, per unit of its squared residual.
        """
        known = np.maximum(self.counts, 0.0)
        if echo is not None:
            sums = sums - (SPREAD * known)[:, None] * echo
        told, weights = information(sums, known * square, SPREAD, noise)
        self.sums, self.weights = told + self.old_sums, weights + self.old_weights
        # Features are h / (J + 1/t^2) with h = (weights / (known square)) sum.
        pull = weights @ (1 / (self.weights[:, None] + 1 / self._variance()))
        self.gain = pull / max(square * float(known.sum()), 1e-30)

    def guess(self) -> Floats:
        """Vectors to make features of: none vanishes, for it may become better."""
        return shrunk(self.sums, self.weights, self._variance())

    def turn(self, matrix: Floats) -> None:
        """Follow a change of coordinates."""
        self.sums, self.old_sums = self.sums @ matrix, self.old_sums @ matrix

    def _variance(self) -> Floats:
        return variance_of(self.sums, self.weights, least=_REVIVAL)
