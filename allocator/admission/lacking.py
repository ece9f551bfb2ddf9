"""How far a coordinate is from a plan, by adding up: whether one partition is enough, and which
coordinate to explain where there is no plan in any.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allocator.admission.coordinates import PtkOffers, room_of, usable_coordinates
from allocator.admission.reach import arrays_of, exact_sum
from ptklib.privacy.filters import Filter

__all__ = ["lacking", "single_fits"]

_NEVER = float("inf")


def lacking(
    ptks: Sequence[PtkOffers], coordinate: int, room: int, n_max: int | None
) -> tuple[int, float]:
    """How many PTKs have no option that fits, and what the others need of the room at least, as a
    share. Less is nearer.
    """
    if not ptks or not all(ptk.offers for ptk in ptks):
        return sum(not ptk.offers for ptk in ptks), _NEVER
    samples, everywhere = arrays_of(ptks)
    demands = everywhere[:, :, coordinate].astype(np.float64)
    within = samples <= n_max if n_max is not None else np.ones_like(samples, dtype=bool)
    fits = (within & (demands <= room)).any(axis=1)
    if not fits.any():
        return len(ptks), _NEVER
    areas = np.where(within, samples * demands, _NEVER).min(axis=1)[fits]
    tallest = np.where(within, demands, _NEVER).min(axis=1)[fits]
    share = max(float(areas.sum()) / n_max if n_max else 0.0, float(tallest.max()))
    return int((~fits).sum()), share / max(1, room)


def single_fits(
    privacy_filter: Filter, loss: Sequence[int], ptks: Sequence[PtkOffers], n_max: int
) -> bool:
    """True when the cheapest options within n_max fit on one record together in some coordinate: a
    plan with one partition, as far as the side coordinate admits it.
    """
    if not ptks:
        return True
    if not all(ptk.offers for ptk in ptks):
        return False
    samples, demands = arrays_of(ptks)
    within = samples <= n_max
    if not within.any(axis=1).all():
        return False
    room = room_of(privacy_filter, loss)
    least = np.where(within[:, :, None], demands, np.iinfo(np.int64).max).min(axis=1)
    sums = exact_sum(least)
    return any(
        sums[usable_coordinate] <= room[usable_coordinate]
        for usable_coordinate in usable_coordinates(privacy_filter, loss)
    )
