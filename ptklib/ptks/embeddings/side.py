"""What is known of the tastes of one side, users or items, from sums on the features of the
other.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.embeddings.factorization import (
    Whitened,
    information,
    shrunk,
    times,
    variance_of,
    whitened,
)
from ptklib.ptks.embeddings.grams import evened_by

__all__ = ["Side"]

# Of features between two sums; see `variance_of`.
_REVIVAL = 0.1

Floats = NDArray[np.float64]


@dataclass
class Side:
    """(h, J) of one side: of all windows (``sums``, ``weights``) and, apart, of the windows before
    (``old_...``).
    """

    counts: Floats  # noisy, of this window
    every: Floats  # noisy, of all windows
    old_sums: Floats | None
    old_weights: Floats | None
    spread: float  # v: how fast data outweighs the mean, and how large an echo is
    sums: Floats = field(init=False)
    weights: Floats = field(init=False)
    fresh: Floats = field(
        init=False
    )  # J of this window, over the mean square of the features it was measured on
    variance: Floats = field(init=False)

    def learn(
        self, sums: Floats, noise: float, square: float, evened: Floats, echo: Floats | None
    ) -> None:
        """Take in noisy sums, in place of earlier ones of this window.

        ``square`` and ``evened`` are the balance of the features they were measured on
        (`balance`); ``echo`` is what a record meets of itself there, per unit of its squared
        residual.
        """
        self._take(times(self._own(sums, echo), evened), noise, square)

    def learn_evened(
        self,
        sums: Floats,
        noise: float,
        products: tuple[Floats, float],
        moment: Floats,
        echo: Floats | None,
    ) -> None:
        """The same where the noisy ``products`` of features that each row met are known as well,
        and their noise; ``moment`` is their mean over all rows.
        """
        square = max(float(np.trace(moment)) / len(moment), 1e-30)
        evened = evened_by(self._own(sums, echo), products[0], self.counts, products[1], moment)
        self._take(evened, noise, square)

    def _own(self, sums: Floats, echo: Floats | None) -> Floats:
        """Without the echo."""
        if echo is None:
            return sums
        return sums - (self.spread * np.maximum(self.counts, 0.0))[:, None] * echo

    def _take(self, evened: Floats, noise: float, square: float) -> None:
        known = np.maximum(self.counts, 0.0)
        self.sums, self.weights = information(evened, known * square, noise, self.spread)
        self.fresh = self.weights / square
        if self.old_sums is not None and self.old_weights is not None:
            self.sums, self.weights = self.sums + self.old_sums, self.weights + self.old_weights
        self.variance = variance_of(self.sums, self.weights, self.spread, least=_REVIVAL)

    def features(self) -> Whitened:
        """Features made of what is known. No column vanishes, for it may become better."""
        return whitened(shrunk(self.sums, self.weights, self.variance, self.spread), self.every)

    def echo(self, made: Whitened, partner: Floats) -> Floats:
        """What a record will meet of itself in the ``made`` features, per unit of its squared
        residual, at the mean.

        Vectors are h / (J + v/T^2), h = t D and t = ``fresh`` / count; and D was residuals times
        features of the ``partner``.
        """
        pull = np.einsum(
            "n,nk->k",
            self.fresh * made.kept,
            1 / (self.weights[:, None] + self.spread / self.variance),
        )
        gain = pull / max(float(np.maximum(self.counts, 0.0).sum()), 1e-30)
        return times(partner, gain[:, None] * made.axes / made.scales)

    def turn(self, axes: Floats) -> None:
        """Let old sums follow a rotation of the features, the own ones or the partner's.

        Features have one size at every step, and signal measured on them has one size too, so sums
        turn and keep their scale. (Following the scales of the features as well blows up what is
        noise.)
        """
        if self.old_sums is not None:
            self.old_sums = times(self.old_sums, axes)
