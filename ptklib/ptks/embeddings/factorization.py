"""Poisson factorization from noisy sums: how much to believe a sum, and the vectors that follow.
All post-processing.

The model is that of hierarchical Poisson factorization (Gopalan, Hofman & Blei 2015): the value of
user u and item i has the mean theta_u . beta_i, and each user and item has an activity that scales
its vector. Written around the level of all values::

    mean = level (1 + a_u) (1 + b_i) (1 + p_u . f_i / level)

with activities a, b and tastes p, f: theta_u = (1 + a_u) (1, p_u) and beta_i = level (1 + b_i) (1,
f_i / level). Tastes are signed here, where the model has vectors that are not negative: noise would
push half of the small ones below zero, and cutting them there biases every mean.

The variational step of the model needs, for each user, the sum over her events of y phi, where phi
shares the value y among the factors. Of that, (mean) phi follows from the state and the number of
events. What is left, (y - mean) phi, is small, and around the level it is the residual times (1,
f_i). Only that part, and the number of events, is measured.

A measured sum D of residuals times a feature of mean square g has mean R x, R = n g, for the wanted
number x, and variance R v + s^2: v from the spread of the values, s^2 from the noise. The part t =
R v / (R v + s^2) of its variance is that of data without noise, so it is worth J = R t such
records, and h = t D has mean J x and variance J v. (h, J) of several windows add up. With x spread
around 0 with variance T^2 the best guess is h / (J + v/T^2), and E[h^2] = J v + J^2 T^2 tells T^2:
where there is nothing but noise, T^2 and the guess come out as 0.

**Echo.** Features are made of sums over the same events. So an event meets, in the features of its
item, its own residual e times what its user's features were; it adds e^2 of that to its user's sum,
which says nothing of her. Where the features of an item are G D for its sum D, a user's sum holds
about n v mean(G) times her own former features, which are known: they are subtracted. Without that,
sparse data and little noise make tastes of chance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "RESOLUTION",
    "SPREAD",
    "Whitened",
    "balance",
    "information",
    "moment_of",
    "scaled_vectors_of",
    "shrunk",
    "times",
    "variance_of",
    "vectors_of",
    "whitened",
    "whole",
]

Floats = NDArray[np.float64]

# A feature vector of length 1 is this many units long.
RESOLUTION = 512
# v where it is not known better: the variance of a residual, as a share of the squared range, about
# that of star ratings.
SPREAD = 1 / 24
# Products of more numbers than this make OpenBLAS start threads.
_SINGLE = 2**17
_TINY = 1e-30
_LEAST_VARIANCE = 1e-12
# Features whose variance is below this share of the largest are left smaller than others: they are
# next to nothing.
_FLAT = 1e-3


def information(
    sums: Floats, reach: Floats, noise: float, spread: float = SPREAD
) -> tuple[Floats, Floats]:
    """(h, J) of noisy sums, one row each; ``reach`` is R, ``noise`` s, ``spread`` v."""
    positive = np.maximum(reach, 0.0)
    trust = positive * spread / (positive * spread + noise * noise + _TINY)
    return sums * trust[:, None], positive * trust


def variance_of(
    sums: Floats, weights: Floats, spread: float = SPREAD, *, least: float = 0.0
) -> Floats:
    """T^2 of each column of (h, J), from all rows.

    ``least`` is a least value, in units of what noise alone would make of it: features that seem to
    be noise must not vanish, for they may become better ones.
    """
    chance, known = spread * float(weights.sum()), max(float(np.square(weights).sum()), _TINY)
    variance = (np.einsum("nk,nk->k", sums, sums) - chance) / known
    return np.asarray(
        np.maximum(variance, least * chance / known + _LEAST_VARIANCE), dtype=np.float64
    )


def shrunk(sums: Floats, weights: Floats, variance: Floats, spread: float = SPREAD) -> Floats:
    """The best guess from (h, J) and T^2."""
    guess: Floats = sums / (weights[:, None] + spread / variance)
    return guess


def times(vectors: Floats, matrix: Floats) -> Floats:
    """``vectors @ matrix``, for many vectors and a small matrix, without threads."""
    made = np.empty((len(vectors), matrix.shape[1]))
    for here in _pieces(len(vectors), matrix.size):
        np.matmul(vectors[here], matrix, out=made[here])
    return made


def moment_of(vectors: Floats, weights: Floats) -> Floats:
    """The mean of v v^T under the weights, those below 0 taken as 0."""
    share = np.maximum(weights, 0.0)
    total = max(float(share.sum()), _TINY)
    weighed = vectors * share[:, None]
    moment = np.zeros((vectors.shape[1], vectors.shape[1]))
    for here in _pieces(len(vectors), moment.size):
        moment += weighed[here].T @ vectors[here]
    return moment / total


def _pieces(rows: int, numbers: int) -> Iterator[slice]:
    """Rows by rows, so few at a time that BLAS starts no threads: waking them costs more, on a busy
    machine far more.
    """
    step = max(1, _SINGLE // max(numbers, 1))
    return (slice(start, start + step) for start in range(0, rows, step))


def balance(features: Floats, weights: Floats) -> tuple[float, Floats]:
    """The mean square of one number of the features under the weights, and a matrix that makes sums
    on them comparable.

    Features are whitened for all windows together; among the records of one window some directions
    may be stronger, up to all there is. The matrix cuts sums in those to what they would be at the
    mean, and leaves weak ones as they are.
    """
    moment = moment_of(features, weights)
    square = max(float(np.trace(moment)) / len(moment), _TINY)
    strengths, axes = np.linalg.eigh(moment)
    return square, (axes * np.minimum(square / np.maximum(strengths, _TINY), 1.0)) @ axes.T


@dataclass(frozen=True)
class Whitened:
    """``features`` are vectors, rotated to ``axes``, over ``scales``, times ``kept``: what the cut
    left of each row.
    """

    features: Floats
    axes: Floats
    scales: Floats
    kept: Floats


def whitened(vectors: Floats, weights: Floats) -> Whitened:
    """Features that span the same: uncorrelated under the weights, of mean square length 1, then
    cut to length 1.
    """
    squares, axes = np.linalg.eigh(moment_of(vectors, weights))
    scales = np.sqrt(np.maximum(squares, _FLAT * float(squares[-1])) * len(squares) + _TINY)
    features = times(vectors, axes / scales)
    kept = _kept(features)
    return Whitened(features * kept[:, None], axes, scales, kept)


def whole(features: Floats) -> Floats:
    """The features in units of 1/`RESOLUTION`, as whole float64 numbers; no row is longer than
    `RESOLUTION`, exactly.

    Rows are first cut to slightly less, then rounded towards zero, which makes none longer. Rows
    that are no numbers are 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        rounded: Floats = np.trunc(
            features * (_kept(features) * (RESOLUTION * (1 - 2.0**-30)))[:, None]
        )
    return np.nan_to_num(rounded, copy=False)


def vectors_of(activity: Floats, tastes: Floats) -> Floats:
    """(1 + activity, tastes) for each row; an activity below -1 is taken as -1."""
    return np.column_stack([np.maximum(1.0 + activity, 0.0), tastes])


def scaled_vectors_of(activity: Floats, tastes: Floats) -> Floats:
    """(1 + activity) (1, tastes): as states from before `trust` are read."""
    return vectors_of(np.zeros(len(tastes)), tastes) * np.maximum(1.0 + activity, 0.0)[:, None]


def _kept(vectors: Floats) -> Floats:
    """The factor that cuts each row to length 1, where it is longer."""
    kept: Floats = 1 / np.maximum(np.sqrt(np.einsum("nk,nk->n", vectors, vectors)), 1.0)
    return kept
