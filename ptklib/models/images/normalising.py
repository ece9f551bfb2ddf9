"""Features of an image on a scale of their own: a function of one record, so it costs nothing.

A statistic of the data (the mean of a feature over all images) would have to be paid for. These two
look at one image: ``norm`` divides its features by their length; ``groups`` takes the features in
groups of neighbours, moves each group to mean 0 and the same spread, and divides by the length
(Wu and He 2018 call that group normalisation). Either way an image comes out with length 1, or 0
where nothing is in it: the public bound that a clipped gradient wants.

Reasons: none.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Normalisation", "grouped", "normalised", "scaled"]

Normalisation = Literal["groups", "norm", "none"]
Floats = NDArray[np.float32]

# Below this a group has nothing to tell but rounding errors. Pixels are in 0..1.
_FLAT = 1e-4


def normalised(features: Floats, way: Normalisation) -> Floats:
    """Features (images, groups, members) as (images, features), in the way that was asked."""
    if way == "groups":
        features = grouped(features)
    flat = features.reshape(len(features), -1)
    return flat if way == "none" else scaled(flat)


def grouped(features: Floats) -> Floats:
    """Each group with mean 0 and, unless it is flat, mean square 1."""
    centred = features - features.mean(axis=2, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=2, keepdims=True))
    return np.asarray(centred / np.maximum(spread, np.float32(_FLAT)), dtype=np.float32)


def scaled(flat: Floats) -> Floats:
    """Each row with length 1; a row of nearly nothing stays shorter."""
    # Squares first, then the sum of each row by itself: no rounding depends on other rows.
    length = np.sqrt(np.square(flat, dtype=np.float64).sum(axis=1))[:, None]
    # Rounded up, so that no row is longer than 1 in float32.
    divisor = np.maximum(length, _FLAT) * (1 + 1e-6)
    return np.asarray(flat / divisor.astype(np.float32), dtype=np.float32)
