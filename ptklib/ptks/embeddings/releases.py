"""What the training of embeddings may release: which sums, their sensitivity, their noise, the
price.

The price is fixed before any data: one Gaussian of noise ``base`` on sensitivity 1. A release gets
a *share* of it, in parts of `PARTS`; which shares is decided in `budget`, and may depend on what
was released before, as long as those of a training are no more than `PARTS` together. There are
three kinds of integer vectors:

* *activity*: a record adds (`STEPS`/2, w) to its row, |w| <= `STEPS`: the number of records and the
  sum of their values. It may add up to `STEPS`/8 to one number more, the sum of all squares.
* *tastes*: a record adds w f to its row, |w| <= `STEPS`, where f is the feature vector of its
  partner: whole numbers of length at most `RESOLUTION`. Beside that it may add, once, the products
  f_k f_l, k <= l, times `GRAM_SCALE`.
* *trust*: a record adds two numbers of at most `STEPS`.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity (L2):* of *activity*, one record moves one row, and
that number, by at most sqrt(STEPS^2 + (STEPS/2)^2 + (STEPS/8)^2). Of *tastes*, by STEPS *
RESOLUTION; the products of each pair once are sum_{k<=l} (f_k f_l)^2 <= |f|^4 together, so with them
by sqrt((STEPS * RESOLUTION)^2 + (GRAM_SCALE * RESOLUTION^2)^2). Of *trust*, by STEPS * sqrt(2). All
are rounded up. At user level only rows of items are released and several records of a user with one
item count as one (`EventTable.pairs`), so r records move at most r rows, each by no more than
that: sqrt(r) times as much. (*Trust* and the level, whose records share a row, are released at event
level alone.) Entries are whole numbers, summed exactly, so this holds to the last bit. *Cost:* the
release j has the share c_j of mu^2 and sigma_j = sensitivity_j base / sqrt(c_j), rounded up: it is
mu sqrt(c_j)-Gaussian-DP whatever was released before it. Shares sum to at most 1 whatever comes out,
so all together are mu-Gaussian-DP: mu^2 adds up under full adaptivity. mu is the largest that is
(epsilon, delta)-DP. Every record takes part in every release but those that a public hash of its
pair leaves out: nothing is sampled by chance, so there is no amplification to claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ptklib.price_first import Budget
from ptklib.privacy import curves
from ptklib.privacy.costs import Cost, GaussianCost
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.privacy.noise.sampler import MAX_SCALE
from ptklib.ptks.embeddings.factorization import RESOLUTION

__all__ = [
    "COUNT_UNITS",
    "GRAM_SCALE",
    "PARTS",
    "SQUARE_UNITS",
    "STEPS",
    "EmbeddingReleases",
    "plan_of",
]

# Values and residuals are whole numbers of steps; half a step is far below the noise of any budget.
STEPS = 4096
# A record in a count is this many units: half of the largest value, so that counting costs 12% of
# the noise.
COUNT_UNITS = STEPS // 2
# The largest squared residual is this many: only their mean over all records is wanted.
SQUARE_UNITS = STEPS // 8
# The products of a feature vector of length 1 are half of the largest residual times it.
GRAM_SCALE = STEPS // (2 * RESOLUTION)
# Of a budget; shares are whole numbers of these, so that their sum is exact.
PARTS = 10_000


@dataclass(frozen=True)
class EmbeddingReleases:
    """The releases that one training may make.

    ``base`` is the noise of the whole budget on sensitivity 1; ``share`` and ``rounds`` are those
    of the configuration, and so is ``always``: tastes are bought whatever they may be worth.
    """

    base: float
    records: int
    share: float
    rounds: int
    always: bool = False

    @property
    def cost(self) -> Cost:
        """Of all releases of a training together, whatever it decides."""
        return GaussianCost(sigma=self.base, sensitivity=1)

    @property
    def mu_squared(self) -> float:
        """The budget, as a number to plan with."""
        return self.base**-2

    def activity(self, parts: int) -> GaussianRelease:
        """Counts and sums."""
        return self._release(STEPS**2 + COUNT_UNITS**2 + SQUARE_UNITS**2, parts)

    def tastes(self, parts: int, *, products: bool) -> GaussianRelease:
        """Sums on features, with the products of features or without."""
        return self._release(_square_of_tastes(products), parts)

    def draws_tastes(self, parts: int, *, products: bool) -> bool:
        """Whether the noise of these can be drawn: a training must not find out halfway."""
        return self._noise(_square_of_tastes(products), parts)[0] <= MAX_SCALE

    def trust(self, parts: int) -> GaussianRelease:
        """How far predictions of tastes are true."""
        return self._release(2 * STEPS**2, parts)

    def _release(self, square: int, parts: int) -> GaussianRelease:
        """A release of L2 sensitivity sqrt(square * records), rounded up, with this share of the
        budget.
        """
        sigma, sensitivity = self._noise(square, parts)
        return GaussianRelease(sigma=sigma, sensitivity=sensitivity)

    def _noise(self, square: int, parts: int) -> tuple[float, int]:
        """Its standard deviation, and the sensitivity."""
        sensitivity = math.isqrt(square * self.records - 1) + 1
        # Rounded up past the error of the root and the product, so that the shares sum to no more
        # than 1.
        return curves.up(curves.up(self.base * sensitivity) / math.sqrt(parts / PARTS)), sensitivity


def _square_of_tastes(products: bool) -> int:
    more = (GRAM_SCALE * RESOLUTION**2) ** 2 if products else 0
    return int((STEPS * RESOLUTION) ** 2 + more)


def plan_of(
    budget: Budget, *, share: float, rounds: int, always: bool = False
) -> EmbeddingReleases:
    """The plan for this budget."""
    return EmbeddingReleases(budget.gaussian_sigma(), budget.records, share, rounds, always)
