"""How often to try: laws of a number of runs, drawn before anything is run and without the data.

=========================  ==========================================  ============================
`NegativeBinomialRuns`     at least one; shape 1 is geometric, 0        the smaller the shape, the
                           logarithmic                                  cheaper and the more uneven
`PoissonRuns`              none with chance exp(-mean)                  near its mean
=========================  ==========================================  ============================

Draws are exact, by rejection with rational chances (`coins`). The number is never told, but time
tells it, and may: it does not depend on the data.

Reasons: those of `ptklib.privacy.costs.stopping`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.privacy.costs import BestOfNegativeBinomialCost, BestOfPoissonCost, Cost, PureCost
from ptklib.privacy.costs.stopping import mean_of_negative_binomial
from ptklib.privacy.noise.source import BitSource
from ptklib.privacy.selection.coins import geometric_from_one, rejected

__all__ = ["NegativeBinomialRuns", "PoissonRuns", "Stopping"]


@dataclass(frozen=True, kw_only=True)
class NegativeBinomialRuns:
    """P(K = k) proportional to (1 - stop)^k times the product of (l + shape) / (l + 1) over l from
    1 to k - 1, for k >= 1.
    """

    shape: Fraction
    stop: Fraction

    def __post_init__(self) -> None:
        """Checked as the cost checks them."""
        checked = BestOfNegativeBinomialCost(
            base=PureCost(epsilon=1), shape=self.shape, stop=self.stop
        )
        object.__setattr__(self, "shape", checked.shape)
        object.__setattr__(self, "stop", checked.stop)

    @property
    def mean(self) -> float:
        """How many runs there are on average."""
        return mean_of_negative_binomial(self.shape, self.stop)

    def cost_of_best(self, base: Cost) -> BestOfNegativeBinomialCost:
        """What the best run costs, where one costs ``base``."""
        return BestOfNegativeBinomialCost(base=base, shape=self.shape, stop=self.stop)

    def draw(self, source: BitSource | None = None) -> int:
        """A geometric number, kept with the chance of the product: at most 1, as the shape is."""
        return rejected(
            lambda: geometric_from_one(self.stop, source),
            lambda number: self._share(number),
            source,
        )

    def _share(self, number: int) -> Fraction:
        share = Fraction(1)
        for place in range(1, number):
            share *= (place + self.shape) / (place + 1)
        return share


@dataclass(frozen=True, kw_only=True)
class PoissonRuns:
    """P(K = k) = exp(-mean) mean^k / k!; with chance exp(-mean) nothing is run."""

    average: Fraction

    def __post_init__(self) -> None:
        """Checked as the cost checks it."""
        checked = BestOfPoissonCost(base=PureCost(epsilon=1), mean=self.average)
        object.__setattr__(self, "average", checked.mean)

    @property
    def mean(self) -> float:
        """How many runs there are on average."""
        return float(self.average)

    def cost_of_best(self, base: Cost) -> BestOfPoissonCost:
        """What the best run costs, where one costs ``base``."""
        return BestOfPoissonCost(base=base, mean=self.average)

    def draw(self, source: BitSource | None = None) -> int:
        """A geometric number from 0 that goes on with chance mean / (mean + 1), kept in proportion
        to (mean + 1)^k / k!, which is largest at the whole part of mean + 1.
        """
        stop = 1 / (self.average + 1)

        def propose() -> int:
            return geometric_from_one(stop, source) - 1

        return rejected(propose, lambda number: _poisson_share(number, self.average + 1), source)


Stopping = NegativeBinomialRuns | PoissonRuns


@lru_cache(maxsize=4096)
def _poisson_share(number: int, rate: Fraction) -> Fraction:
    """rate^k / k!, over its largest value."""
    top, share = math.floor(rate), Fraction(1)
    for place in range(min(number, top) + 1, max(number, top) + 1):
        share *= rate / place
    return share if number >= top else 1 / share
