"""How strong the features were that the records of a row met: the mean of their products, row by
row.

A row whose partners are few and alike meets, of all directions that features may take, mostly one.
Its sum holds then up to K times what a row with mixed partners would have there, for K features. Read
as if it were mixed, its tastes come out K times too strong; so with the sums their products are
released, and each row is evened out by its own.

Products have noise as sums have. What the noise of a row drowns is replaced by the mean of all rows:
as far as the noisy products of all rows show that rows differ at all. All is post-processing.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["evened_by", "products_of"]

Floats = NDArray[np.float64]

# Rows whose matrices are turned at a time.
_ROWS_AT_ONCE = 1 << 12
_TINY = 1e-30


def products_of(features: Floats) -> Floats:
    """f_k f_l, k <= l, of each row: exact for whole features."""
    first, second = np.triu_indices(features.shape[1])
    products: Floats = features[:, first] * features[:, second]
    return products


def evened_by(
    sums: Floats, products: Floats, counts: Floats, noise: float, moment: Floats
) -> Floats:
    """Sums on features as they would be had each row met features of strength ``square`` in the
    directions where it met stronger ones, where ``square`` is the mean of ``moment``.

    ``products`` are noisy sums of products, ``noise`` its standard deviation, ``counts`` the noisy
    numbers of records, and ``moment`` the mean product of all.
    """
    width = sums.shape[1]
    first, second = np.triu_indices(width)
    square = max(float(np.trace(moment)) / width, _TINY)
    known = np.maximum(counts, 1.0)
    away = products / known[:, None] - moment[first, second]
    chance = np.square(noise / known)
    # How much rows differ, weighed as their records are.
    weight = known / known.sum()
    differ = max(float(weight @ (np.square(away).mean(axis=1) - chance)), 0.0)
    own = differ / (differ + chance + _TINY)
    evened = np.empty_like(sums)
    for start in range(0, len(sums), _ROWS_AT_ONCE):
        here = slice(start, start + _ROWS_AT_ONCE)
        matrices = np.empty((len(sums[here]), width, width))
        mixed = moment[first, second] + own[here, None] * away[here]
        matrices[:, first, second] = mixed
        matrices[:, second, first] = mixed
        strengths, axes = np.linalg.eigh(matrices)
        turned = np.einsum("nkl,nk->nl", axes, sums[here])
        turned *= np.minimum(square / np.maximum(strengths, _TINY), 1.0)
        evened[here] = np.einsum("nkl,nl->nk", axes, turned)
    return evened
