"""What a state says: the level, activities, tastes, and how far to trust them. All post-processing.

The numbers of a state are sums that add up over windows; these are the guesses that follow.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptklib.ptk import Arrays
from ptklib.ptks.embeddings.factorization import (
    SPREAD,
    scaled_vectors_of,
    shrunk,
    variance_of,
    vectors_of,
)
from ptklib.ptks.embeddings.rows import guessed
from ptklib.ptks.embeddings.trust import interplay_in, trust_in
from ptklib.ptks.tables.remembered import remembered

__all__ = [
    "SPREAD_RECORDS",
    "activity_of",
    "best_guess",
    "free_place",
    "item_vectors",
    "level_of",
    "own_activity",
    "own_direction",
    "own_tastes",
    "spread_of",
    "user_vectors",
    "value_spread",
]

# Of the level before any data: uniform over the range.
_LEVEL_VARIANCE = 1 / 12
# Rates are positive: a level below this share of the range is taken as this.
_LEAST_LEVEL = 1e-3
# A user's own mean and tastes are shrunk as by this many records at the mean.
_OWN_RECORDS = 5.0
# Of the tastes of a user whose history is projected.
_OWN_VARIANCE = 0.01
# Of the variance of all values: what is left within a user or an item.
_OF_ALL = 0.8
# Squares and records behind the spread are kept in units of so many records.
SPREAD_RECORDS = 200.0

Floats = NDArray[np.float64]


def level_of(state: Arrays, floor: float) -> float:
    """The mean rate, in ranges."""
    told, weight = (float(number) for number in state["level"])
    middle = 0.5 + told / (weight + SPREAD / _LEVEL_VARIANCE)
    return max(_LEAST_LEVEL, floor + min(max(middle, 0.0), 1.0))


def activity_of(state: Arrays, side: str, floor: float) -> Floats:
    """How far the mean of each user or item is above the level, in ranges.

    States from before `rows` are read as they were.
    """
    activity = state[f"{side}_activity"]
    told, weights = activity.T
    middle = level_of(state, floor) - floor - 0.5
    above = told - middle * weights
    if "values" not in state:
        return best_guess(above[:, None], weights, SPREAD)[:, 0]
    squares, records = (SPREAD_RECORDS * float(number) for number in state["values"])
    spread = value_spread(squares, records, middle)
    return remembered(activity, (middle, spread), lambda: guessed(above, weights, spread))


def value_spread(squares: float, records: float, middle: float) -> float:
    """The variance of the values of a row, in squared ranges: a little less than that of all.

    ``squares`` is the sum of those of values from the middle of the range, ``middle`` their mean.
    """
    if records < 1:
        return SPREAD
    every = squares / records - middle * middle
    return _OF_ALL * min(max(every, SPREAD / 50), 0.25)


def spread_of(state: Arrays) -> float:
    """The variance of a residual, as a share of the squared range; `SPREAD` counts as
    `SPREAD_RECORDS` records.
    """
    squares, records = (float(number) for number in state["spread"])
    spread = (squares + SPREAD) / (max(records, 0.0) + 1.0)
    return min(max(spread, SPREAD / 10), 4 * SPREAD)


def best_guess(sums: Floats, weights: Floats, spread: float) -> Floats:
    """From (h, J) and v alone."""
    return shrunk(sums, weights, variance_of(sums, weights, spread), spread)


def own_activity(above: Floats, counts: Floats) -> Floats:
    """How far a user's values are above what is expected of their items, from her own records."""
    return above / (counts + _OWN_RECORDS)


def own_direction(sums: Floats, counts: Floats) -> Floats:
    """Of length below 1: the direction of a user's own sums, shorter the more of it may be
    chance.
    """
    square = np.einsum("nk,nk->n", sums, sums) + counts * SPREAD
    direction: Floats = sums / np.sqrt(np.maximum(square, 1e-30))[:, None]
    return direction


def own_tastes(sums: Floats, counts: Floats, state: Arrays) -> Floats:
    """A user's tastes from sums of her own residuals times the tastes of items, shrunk where those
    are mostly noise.
    """
    weights, spread = state["item_weights"], spread_of(state)
    share = np.maximum(state["item_counts"], 0.0)
    share = share / max(float(share.sum()), 1e-30)
    variance = variance_of(state["item_sums"], weights, spread)
    certain = share @ (weights[:, None] / (weights[:, None] + spread / variance))
    square = float(share @ np.square(state["item_tastes"]).mean(axis=1))
    tastes: Floats = certain * sums / (counts * square + spread / _OWN_VARIANCE)[:, None]
    return tastes


def user_vectors(state: Arrays, activity: Floats, tastes: Floats) -> Floats:
    """From activities and tastes of users, in levels. States from before `trust` are read as they
    were.

    Where a place is free of tastes (`free_place`), it says what activities have in common beyond
    their sum: (1 + a) (1 + b) - (1 - c) a b is 1 + a + b + c a b.
    """
    if "trust" not in state:
        return scaled_vectors_of(activity, tastes)
    place, tastes = free_place(state), trust_in(state["trust"]) * tastes
    if place is not None:
        tastes[:, place] = (interplay_in(state["interplay"]) - 1.0) * activity
    return vectors_of(activity, tastes)


def item_vectors(state: Arrays, activity: Floats, tastes: Floats) -> Floats:
    """The same of items."""
    if "trust" not in state:
        return scaled_vectors_of(activity, tastes)
    place, tastes = free_place(state), np.array(tastes)
    if place is not None:
        tastes[:, place] = activity
    return vectors_of(activity, tastes)


def free_place(state: Arrays) -> int | None:
    """Where vectors have no taste: the first place where they have none at all, the last one if
    that is left free.
    """
    tastes = state["item_tastes"]
    if not np.any(tastes):
        return 0
    return None if np.any(tastes[:, -1]) else tastes.shape[1] - 1
