"""What the training of embeddings releases, fixed before any data: which sums, their sensitivity,
their noise, the price.

Every release is of one of two kinds of integer vectors. In both, a record is in one row.

* *activity*: a record adds (`STEPS`/2, w) to its row, |w| <= `STEPS`: the number of records and the sum of their values. It may
  add up to `STEPS`/8 to one number more, the sum of all squares.
* *tastes*: a record adds w times the feature vector of its partner, |w| <= `STEPS`, feature vectors whole numbers of length
  at most `RESOLUTION`.

**Proof note.** *Unit:* one record, or a user with at most r = ``records_per_unit`` records.
*Neighbours:* add or remove one. *Sensitivity (L2):* one record moves one row, and that number, by
at most sqrt(STEPS^2 + (STEPS/2)^2 + (STEPS/8)^2), rounded up, or one row by STEPS * RESOLUTION. At
user level only rows of items are released and several records of a user with one item count as one
(`hpf_users`), so r records move at most r rows, each by no more than that: sqrt(r) times as much.
Entries are whole numbers, summed exactly, so this holds to the last bit. *Cost:* the release j has
the share c_j of mu^2 and sigma_j = sensitivity_j / (mu sqrt(c_j)), rounded up; shares sum to 1, so
all together are mu-Gaussian-DP, adaptively too, and mu is the largest that is (epsilon, delta)-DP.
Every record takes part in every release: nothing is sampled, so there is no amplification to claim.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact
from ptklib.privacy.costs import Cost
from ptklib.privacy.costs.base import sum_of
from ptklib.privacy.costs.calibration import gaussian_sigma
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.ptk import count_of
from ptklib.ptks.embeddings.factorization import RESOLUTION

__all__ = ["COUNT_UNITS", "SQUARE_UNITS", "STEPS", "EmbeddingReleases", "plan_of"]

# Values and residuals are whole numbers of steps; half a step is far below the noise of any budget.
STEPS = 4096
# A record in a count is this many units: half of the largest value, so that counting costs 12% of
# the noise.
COUNT_UNITS = STEPS // 2
# The largest squared residual is this many: only their mean over all records is wanted.
SQUARE_UNITS = STEPS // 8


@dataclass(frozen=True)
class EmbeddingReleases:
    """The releases of one training:

    ``activities`` of the first kind and ``updates`` of the second.
    """

    activity: GaussianRelease
    activities: int
    tastes: GaussianRelease
    updates: int
    records: int

    @property
    def cost(self) -> Cost:
        """Of all releases together."""
        return sum_of((self.activity.cost,) * self.activities + (self.tastes.cost,) * self.updates)


def plan_of(
    epsilon: Number, delta: Number, records_per_unit: int, *, share: float, rounds: int
) -> EmbeddingReleases:
    """The plan for this budget; ``share`` of it for activities where users have rows, half of that
    where they have none.
    """
    chance = delta_exact(delta)
    level, records = epsilon_exact(epsilon), count_of(records_per_unit)
    if chance == 0:
        raise InvalidInput(
            "DELTA_NEEDED", "embeddings have Gaussian noise, which needs a delta above 0"
        )
    return _plan(level, chance, records, share, rounds)


@lru_cache(maxsize=256)
def _plan(
    epsilon: Fraction, delta: Fraction, records: int, share: float, rounds: int
) -> EmbeddingReleases:
    """Calibration is a search with many digits: remembered, for the same plan is priced many
    times.
    """
    base = gaussian_sigma(epsilon=epsilon, delta=delta)
    activities, updates = (2, 2 * rounds + 1) if records == 1 else (1, rounds)
    whole = share if records == 1 else share / 2
    return EmbeddingReleases(
        activity=_release(
            base, STEPS**2 + COUNT_UNITS**2 + SQUARE_UNITS**2, records, whole / activities
        ),
        activities=activities,
        tastes=_release(base, (STEPS * RESOLUTION) ** 2, records, (1 - whole) / updates),
        updates=updates,
        records=records,
    )


def _release(base: float, square: int, records: int, share: float) -> GaussianRelease:
    """A release of L2 sensitivity sqrt(square * records), rounded up, with this share of the
    budget.
    """
    sensitivity = math.isqrt(square * records - 1) + 1
    # Rounded up past the error of the root and the product, so that the shares sum to no more than
    # 1.
    sigma = curves.up(curves.up(base * sensitivity) / math.sqrt(share))
    return GaussianRelease(sigma=sigma, sensitivity=sensitivity)
