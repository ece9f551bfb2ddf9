"""How the budget of the counts PTK is split over its tables: the release of each, and the price of
all.

A record is in one cell of every table, so a unit of r records moves each table by at most r, in L1
and in L2. A feature of weight w gets the share w / W of the budget, W the sum of all weights; its
rows (a hashed feature has several tables) divide the share evenly.

* Laplace: shares of epsilon. A table with share a has noise of scale r / (a epsilon), exact
  fractions; the losses of the tables add up to epsilon. Tables of one scale are one
  `LaplaceRelease` of all their cells, at sensitivity r times their number, and are priced as one.
* Gaussian: shares of mu^2. With sigma the least that is (epsilon, delta)-DP at sensitivity 1, a
  table with share a has standard deviation at least r sigma / sqrt(a). Its mu^2 is at most a /
  sigma^2, and all together are at most 1 / sigma^2: the price is that of one Gaussian of
  sensitivity 1.

With n tables of equal weight, Laplace noise grows as n and Gaussian noise as sqrt(n).

Reasons: DELTA_NEEDED, and those of `mechanisms.release` and `amounts`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.price_first import Budget
from ptklib.privacy.costs import Cost, DiscreteLaplaceCost, GaussianCost
from ptklib.privacy.costs.base import sum_of
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.ptks.tables.noisy_totals import Release, variance_of

__all__ = ["CountReleases", "plan_of"]

# Far above the rounding of a few float64 operations, far below anything that matters.
_ROUND_UP = 1 + 1e-12


@dataclass(frozen=True)
class CountReleases:
    """The release of each feature (for every one of its tables), and the price of all of them."""

    releases: tuple[Release, ...]
    variances: tuple[float, ...]  # of the noise of a cell
    cost: Cost


@lru_cache(maxsize=64)
def plan_of(
    mechanism: str, weights: tuple[Fraction, ...], rows: tuple[int, ...], budget: Budget
) -> CountReleases:
    """The releases before any data; ``weights`` and ``rows`` are by feature. Remembered: the same
    plan is priced many times.

    Proof: see the module.
    """
    records = budget.records
    whole = sum(weights)
    # Of one table.
    shares = [weight / whole / row for weight, row in zip(weights, rows, strict=True)]
    made: dict[Fraction, Release] = {}
    if mechanism == "laplace":
        for share in dict.fromkeys(shares):
            made[share] = LaplaceRelease(epsilon=share * budget.epsilon, sensitivity=records)
        return _whole(made, shares, _laplace_price(made, shares, rows, records))
    sigma = budget.gaussian_sigma(instead="laplace")
    for share in dict.fromkeys(shares):
        made[share] = GaussianRelease(
            sigma=records * sigma / math.sqrt(share) * _ROUND_UP, sensitivity=records
        )
    return _whole(made, shares, GaussianCost(sigma=sigma, sensitivity=1))


def _whole(made: dict[Fraction, Release], shares: list[Fraction], cost: Cost) -> CountReleases:
    variances = {share: variance_of(release) for share, release in made.items()}
    return CountReleases(
        tuple(made[share] for share in shares), tuple(variances[share] for share in shares), cost
    )


def _laplace_price(
    made: dict[Fraction, Release], shares: list[Fraction], rows: tuple[int, ...], records: int
) -> Cost:
    """The tables of one scale are one vector release: its sensitivity is r times their number."""
    tables = dict.fromkeys(made, 0)
    for share, row in zip(shares, rows, strict=True):
        tables[share] += row
    costs = []
    for share, release in made.items():
        assert isinstance(release, LaplaceRelease)
        costs.append(DiscreteLaplaceCost(scale=release.scale, sensitivity=records * tables[share]))
    return sum_of(tuple(costs))
