"""The bound of `allocator.verify.least_possible` in every coordinate of a filter, from arrays, for
thousands of PTKs.

N records carry at most N times the capacity, and each PTK needs at least the least area of its
options that fit. Whole numbers throughout: sums that 64 bits may not hold are added in two halves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from allocator.admission.coordinates import PtkOffers, problem_at
from allocator.verify import least_possible
from ptklib.privacy.bisection import first_true
from ptklib.privacy.filters import Filter

__all__ = ["arrays_of", "exact_sum", "least_in_each"]

_Ints = NDArray[np.int64]
_HALF = 32
_LOW = (1 << _HALF) - 1
_MOST = (1 << 63) - 1
_BEYOND = 1 << 70


def least_in_each(
    privacy_filter: Filter,
    room: Sequence[int],
    ptks: Sequence[PtkOffers],
    coordinates: Sequence[int],
) -> dict[int, int | None]:
    """The bound in each of these coordinates, in which so much is left; None where no number of
    records is enough.
    """
    if not ptks:
        return dict.fromkeys(coordinates, 0)
    if not all(ptk.offers for ptk in ptks):
        return dict.fromkeys(coordinates, None)
    samples, everywhere = arrays_of(ptks)
    bounds: dict[int, int | None] = {}
    for coordinate in coordinates:
        capacity = max(0, room[coordinate])
        demands = everywhere[:, :, coordinate]
        if capacity * int(samples.max()) > _MOST:
            loss = [most - left for most, left in zip(privacy_filter.capacity, room, strict=True)]
            bounds[coordinate] = least_possible(problem_at(privacy_filter, loss, ptks, coordinate))
        else:
            bounds[coordinate] = _least(samples, demands, capacity)
    return bounds


def arrays_of(ptks: Sequence[PtkOffers]) -> tuple[_Ints, _Ints]:
    """Samples by PTK and option, and demands by coordinate too. Each PTK has an offer at least;
    where one has fewer than others its last option stands again: it changes no minimum.
    """
    widest = max((len(ptk.offers) for ptk in ptks), default=0)
    padded = [[*ptk.offers, *[ptk.offers[-1]] * (widest - len(ptk.offers))] for ptk in ptks]
    samples = np.array([[offer.samples for offer in row] for row in padded], dtype=np.int64)
    return samples, np.array([[offer.demand for offer in row] for row in padded], dtype=np.int64)


def exact_sum(values: _Ints) -> list[int]:
    """Sums along the first axis of numbers from 0 on, whatever their size."""
    high, low = (values >> _HALF).sum(axis=0), (values & _LOW).sum(axis=0)
    return [
        (int(a) << _HALF) + int(b)
        for a, b in zip(np.atleast_1d(high), np.atleast_1d(low), strict=True)
    ]


def _least(samples: _Ints, demands: _Ints, capacity: int) -> int | None:
    fits = demands <= capacity
    if not fits.any(axis=1).all():
        return None
    areas = np.where(fits, samples * np.where(fits, demands, 0), _MOST)
    needed = np.where(fits, samples, _MOST)
    # Every PTK needs one of its options that fit.
    low = max(0, int(needed.min(axis=1).max()) - 1)
    high = low + 1

    def carries(size: int) -> bool:
        least = np.where(needed <= size, areas, _MOST).min(axis=1)
        return exact_sum(least)[0] <= size * capacity

    while not carries(high):
        low, high = high, high * 2
        if high > _BEYOND:
            return None
    return first_true(carries, low, high)
