"""How far a coordinate is from a plan, by adding up: which one to explain where there is none in any."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from allocator.coordinates import PtkOffers
from allocator.reach import arrays_of

__all__ = ["lacking"]

_NEVER = float("inf")


def lacking(ptks: Sequence[PtkOffers], coordinate: int, room: int, n_max: int | None) -> tuple[int, float]:
    """How many PTKs have no option that fits, and what all need of the room at least, as a share of it. Less is nearer."""
    if not ptks or not all(ptk.offers for ptk in ptks):
        return sum(not ptk.offers for ptk in ptks), _NEVER
    samples, everywhere = arrays_of(ptks)
    demands = everywhere[:, :, coordinate].astype(np.float64)
    within = samples <= n_max if n_max is not None else np.ones_like(samples, dtype=bool)
    lost = ~(within & (demands <= room)).any(axis=1)
    areas = np.where(within, samples * demands, _NEVER).min(axis=1)
    tallest = np.where(within, demands, _NEVER).min(axis=1)
    share = max(float(areas.sum()) / n_max if n_max else 0.0, float(tallest.max()))
    return int(lost.sum()), share / max(1, room)
