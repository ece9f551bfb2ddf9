"""How many records a noisy share, count or mean needs: a bound on the probability of a large error,
from public numbers.

Let a cell hold n records, with noise a_0, ... on its corners, each of scale s records, independent
and symmetric (see `statistics`). The mean of the cell, as a fraction m of the range, is read back
as (n m + sum t_i a_i) / (n + sum a_i), where t_i is the place of corner i in the range: (0, 1), or
(0, 1/2, 1). It is too large by more than e, while the noisy count is positive, exactly when::

    sum (t_i - c) a_i  >  e n                   with c = m + e

and c <= 1, for the mean is clipped. The same holds for too small. Of all c in [0, 1], c = 0 and c =
1 have the largest weights (in the order of majorisation), so by Proschan's theorem (1965: sums of
independent, symmetric, log-concave noise are less peaked the more uneven the weights) the worst
tail is that of the weights 1, or 1 and 1/2. Both tails, and the chance that the noisy count is not
positive (union over its terms), are added up.

Noise on the integers is more peaked than the continuous noise rounded to them, so it is covered by
half a unit each.

The bound holds for every distribution of the values. It is tight to a few percent of n where the
mean is near a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptklib.config import demand
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number
from ptklib.ptks.tables.fewest import smallest_enough

__all__ = [
    "CONFIDENCE",
    "MAX_RECORDS",
    "at_levels",
    "check_min_share",
    "failure_bound",
    "reach",
    "reaches",
    "smallest_count",
]

CONFIDENCE = 0.95
MAX_RECORDS = 10**15
# Of the noise of a count, of a mean with two corners, and with three: the worst case.
_WEIGHTS = ((1.0,), (1.0,), (1.0, 0.5))
# Steps from the middle of the range to its end.
_PLACES = 257


def failure_bound(
    mechanism: str, scale: float, unit: float, error: float, degree: int, count: int
) -> float:
    """At most this is the probability that a cell of ``count`` records misses ``error``.

    ``scale`` of the noise and ``unit`` of its grid are in records. ``degree`` 0: a count, relative
    to ``count``; 1 and 2: a mean, with two or three corners.
    """
    weights = _WEIGHTS[degree]
    tail = _tail(mechanism, max(0.0, error * count - unit / 2 * sum(weights)) / scale, weights)
    if degree == 0:
        return 2 * tail
    corners = degree + 1
    left = max(0.0, count - unit / 2 * corners) / scale
    if mechanism == "gaussian":
        return 2 * tail + _tail(mechanism, left / math.sqrt(corners), (1.0,))
    return 2 * tail + corners * _tail(mechanism, left / corners, (1.0,))


@lru_cache
def reach(mechanism: str, degree: int) -> float:
    """How far out, in scales, both tails of the noise of a mean together have 1 - `CONFIDENCE`."""
    weights = _WEIGHTS[degree]
    near, far = 0.0, 64.0
    while far - near > 1e-9:
        middle = (near + far) / 2
        enough = 2 * _tail(mechanism, middle, weights) <= 1 - CONFIDENCE
        near, far = (near, middle) if enough else (middle, far)
    return far


@lru_cache
def reaches(mechanism: str, degree: int) -> NDArray[np.float64]:
    """`reach` by how far a mean is from the middle of the range: at even steps from nothing to
    half of the range. With the noise of two ends it is smaller inside the range, where each has a
    part of the weight; with that of three it is taken as the worst everywhere.
    """
    far = reach(mechanism, degree)
    places = np.linspace(0.5, 1.0, _PLACES)
    if degree != 1:
        return np.full(_PLACES, far)
    if mechanism == "gaussian":
        return np.asarray(far * np.hypot(places, 1 - places))
    return np.array([_laplace_reach(place) for place in places[:-1].tolist()] + [far])


def _laplace_reach(weight: float) -> float:
    """How far out both tails of Laplace noise of this and of the other weight, 1 in all, have
    1 - `CONFIDENCE` together; rounded up.
    """
    other = 1 - weight
    near, far = 0.0, 64.0
    while far - near > 1e-9:
        middle = (near + far) / 2
        if weight == other:
            both = (1 + middle / (2 * weight)) * math.exp(-middle / weight)
        else:
            both = weight**2 * math.exp(-middle / weight) - other**2 * math.exp(-middle / other)
            both /= weight**2 - other**2
        near, far = (near, middle) if both <= 1 - CONFIDENCE else (middle, far)
    return far


def smallest_count(
    mechanism: str, scale: float, unit: float, error: float, degree: int
) -> int | None:
    """The fewest records of a cell that keep ``error`` with probability `CONFIDENCE`; None beyond
    `MAX_RECORDS`.
    """

    def enough(count: int) -> bool:
        return failure_bound(mechanism, scale, unit, error, degree, count) <= 1 - CONFIDENCE

    return None if error <= 0 else smallest_enough(enough, MAX_RECORDS)


def check_min_share(share: float | None) -> None:
    """Refuse what is no share of the records that a cell may have to hold."""
    demand(
        share is None or 0 < share <= 1,
        "min_share must be above 0 and at most 1",
        field="min_share",
    )


def at_levels(
    target: float, levels: Sequence[Number], needed: Callable[[Number], int | None]
) -> tuple[int | None, ...]:
    """What is needed at each level, None where the noise would be too large to be drawn; a target
    is a share.
    """
    demand(0 < target < 1, f"target must be between 0 and 1, got {target!r:.40}", field="target")
    told: list[int | None] = []
    for level in levels:
        try:
            told.append(needed(level))
        except InvalidInput as error:
            if error.reason not in {"SCALE_TOO_LARGE", "SENSITIVITY_TOO_LARGE"}:
                raise
            told.append(None)
    return tuple(told)


def _tail(mechanism: str, distance: float, weights: tuple[float, ...]) -> float:
    """The probability that the weighted sum of unit noise is beyond ``distance``; weights (1,) or
    (1, 1/2).
    """
    if mechanism == "gaussian":
        return math.erfc(distance / math.sqrt(2 * sum(weight**2 for weight in weights))) / 2
    if len(weights) == 1:
        return math.exp(-distance) / 2
    # The convolution of Laplace noise of scales 1 and 1/2.
    return (4 * math.exp(-distance) - math.exp(-2 * distance)) / 6
