"""How many records a value needs for its noisy class shares: a bound on the probability of a large
error.

A value holds n records in L classes, each count with independent, symmetric noise of scale s
records. The share m of a class is read as (n m + a_l) / (n + sum a). While the noisy sum is
positive, it is too large by more than e exactly when ``(1 - c) a_l - c (sum of the others) > e n``
with c = m + e <= 1; too small in the same way. All weights (1 - c, c, ..., c) are weakly majorised
by L - 1 ones, so by Proschan's theorem (see `profile`) that sum has the heaviest tail. Both tails
and the chance that the noisy sum of all L counts is not positive are added up.

Tails are exact. The sum of k Laplace noises is beyond d with probability ``sum_j C(k-1+j, j)
2**-(k+j) P(N_d < k-j)``, j from 0 to k-1, N_d a Poisson number of mean d (integrate its density by
parts). Beyond `_MANY` of them Chernoff's bound is used.

For an estimate of several rows (`counts_estimate.combined`) the bound of a single row is used: a
median is more peaked than one draw.
"""

from __future__ import annotations

import math

from ptklib.ptks.tables.fewest import smallest_enough
from ptklib.ptks.tables.samples import CONFIDENCE, MAX_RECORDS

__all__ = ["failure_bound", "smallest_count"]

_MANY = 64


def failure_bound(mechanism: str, scale: float, classes: int, error: float, count: int) -> float:
    """At most this is the probability that the noisy share of a class misses ``error`` in a value
    of ``count`` records.
    """
    others = classes - 1
    # Noise on the integers is covered by the continuous one with half a record more for each.
    tail = _tail(mechanism, max(0.0, error * count - others / 2) / scale, others)
    left = max(0.0, count - classes / 2) / scale
    return 2 * tail + _tail(mechanism, left, classes)


def smallest_count(mechanism: str, scale: float, classes: int, error: float) -> int | None:
    """The fewest records of a value that keep ``error`` with probability `CONFIDENCE`; None beyond
    `MAX_RECORDS`.
    """

    def enough(count: int) -> bool:
        return failure_bound(mechanism, scale, classes, error, count) <= 1 - CONFIDENCE

    return smallest_enough(enough, MAX_RECORDS)


def _tail(mechanism: str, distance: float, terms: int) -> float:
    """At least the probability that a sum of so many unit noises is beyond ``distance``."""
    if mechanism == "gaussian":
        return math.erfc(distance / math.sqrt(2 * terms)) / 2
    if terms > _MANY:
        slope = (math.hypot(terms, distance) - terms) / max(distance, 1e-300)
        return min(0.5, math.exp(-slope * distance - terms * math.log1p(-(slope**2))))
    # The probabilities of fewer than 1, 2, ... events.
    upto: list[float] = []
    term = math.exp(-distance)
    for events in range(terms):
        upto.append(term + (upto[-1] if upto else 0.0))
        term *= distance / (events + 1)
    return sum(
        math.comb(terms - 1 + j, j) * 0.5 ** (terms + j) * upto[terms - 1 - j] for j in range(terms)
    )
