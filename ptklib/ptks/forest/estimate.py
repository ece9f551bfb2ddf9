"""Shares of the classes in each leaf from noisy counts: post-processing.

Noisy counts are moved to the nearest ones that are not negative and keep their total, and smoothed
towards what is known without the leaf: its ancestors, or the expected counts of the tables
(`forest_guided`). The weight of that knowledge is the number of records that noise alone would seem
to hold: it decides in leaves with few records and vanishes in large ones.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.forest.guided import simplex

__all__ = ["from_ancestors", "from_expected", "overall"]

Floats = NDArray[np.float64]

# In standard deviations of a cell, for each class. Measured: more is better for the Brier score of
# few trees, less for the accuracy of many, over which errors of leaves cancel and what is known is
# the same for all.
_WEIGHT = 0.1


def from_expected(counts: Floats, deviation: float, expected: Floats) -> Floats:
    """Shares [trees, leaves, classes], smoothed towards those of the expected counts."""
    total = expected.sum(axis=2, keepdims=True)
    known = np.divide(
        expected,
        total,
        out=np.broadcast_to(overall(counts), expected.shape).copy(),
        where=total > 1e-9,
    )
    return _smoothed(counts, deviation, known)


def from_ancestors(counts: Floats, deviation: float) -> Floats:
    """Shares [trees, leaves, classes], each node smoothed towards its parent, the roots towards all
    trees together.
    """
    trees, leaves, classes = counts.shape
    known: Floats = np.broadcast_to(overall(counts), (trees, 1, classes))
    for level in range(leaves.bit_length()):
        inside = leaves >> level
        here = counts.reshape(trees, leaves // inside, inside, classes).sum(axis=2)
        known = _smoothed(
            here, deviation * inside**0.5, known if level == 0 else np.repeat(known, 2, axis=1)
        )
    return known


def overall(counts: Floats) -> Floats:
    """The shares of the classes in all leaves together; even ones where nothing is left."""
    total = np.maximum(counts.sum(axis=(0, 1)), 0.0)
    return total / total.sum() if total.sum() > 0 else np.full(len(total), 1 / len(total))


def _smoothed(counts: Floats, deviation: float, known: Floats) -> Floats:
    """The nearest counts that can be, with the weight of the noise given to what is known."""
    classes = counts.shape[2]
    total = np.maximum(counts.sum(axis=2), 0.0)
    whole = simplex(counts.reshape(-1, classes), total.ravel()).reshape(counts.shape)
    weight = _WEIGHT * deviation * classes
    return np.asarray((whole + weight * known) / (total + weight)[..., None], dtype=np.float64)
