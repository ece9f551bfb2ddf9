"""Poisson factorization from noisy sums: how much to believe a sum, and the vectors that follow. All post-processing.

The model is that of hierarchical Poisson factorization (Gopalan, Hofman & Blei 2015): the value of user u and item i has
the mean theta_u . beta_i, and each user and item has an activity that scales its vector. Written around the level of all
values::

    mean = level (1 + a_u) (1 + b_i) (1 + p_u . f_i / level)

with activities a, b and tastes p, f: theta_u = (1 + a_u) (1, p_u) and beta_i = level (1 + b_i) (1, f_i / level). Tastes are
signed here, where the model has vectors that are not negative: noise would push half of the small ones below zero, and
cutting them there biases every mean.

The variational step of the model needs, for each user, the sum over her events of y phi, where phi shares the value y among
the factors. Of that, (mean) phi follows from the state and the number of events. What is left, (y - mean) phi, is small,
and around the level it is the residual times (1, f_i). Only that part, and the number of events, is measured.

A measured sum D of residuals times a feature of mean square g has mean R x, R = n g, for the wanted number x, and variance
R v + s^2: v from the spread of the values, s^2 from the noise. So its information about x is J = R^2 / (R v + s^2), and
h = R D / (R v + s^2) has mean J x. (h, J) of several windows add up. With x spread around 0 with variance t^2 the best guess
is h / (J + 1/t^2), and E[h^2] = J + J^2 t^2 tells t^2: where there is nothing but noise, t^2 and the guess come out as 0.

**Echo.** Features are made of sums over the same events. So an event meets, in the features of its item, its own residual
e times what its user's features were; it adds e^2 of that to its user's sum, which says nothing of her. Where the features of
an item are G D for its sum D, a user's sum holds about n v mean(G) times her own former features, which are known: they
are subtracted. Without that, sparse data and little noise make tastes of chance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RESOLUTION", "information", "shrunk", "variance_of", "vectors_of", "whitened", "whole"]

Floats = NDArray[np.float64]

# A feature vector of length 1 is this many units long.
RESOLUTION = 512
_TINY = 1e-30
_LEAST_VARIANCE = 1e-12


def information(sums: Floats, reach: Floats, spread: float, noise: float) -> tuple[Floats, Floats]:
    """(h, J) of noisy sums, one row each; ``reach`` is R, ``spread`` v, ``noise`` s."""
    positive = np.maximum(reach, 0.0)
    weight = positive / (positive * spread + noise * noise + _TINY)
    return sums * weight[:, None], positive * weight


def variance_of(sums: Floats, weights: Floats, *, least: float = 0.0) -> Floats:
    """t^2 of each column of (h, J), from all rows.

    ``least`` is a least value, in units of what noise alone would make of it: features that seem to be noise must not
    vanish, for they may become better ones.
    """
    total, known = float(weights.sum()), max(float(np.square(weights).sum()), _TINY)
    variance = (np.einsum("nk,nk->k", sums, sums) - total) / known
    return np.asarray(np.maximum(variance, least * total / known + _LEAST_VARIANCE), dtype=np.float64)


def shrunk(sums: Floats, weights: Floats, variance: Floats) -> Floats:
    """The best guess from (h, J) and t^2."""
    guess: Floats = sums / (weights[:, None] + 1 / variance)
    return guess


def whitened(vectors: Floats, weights: Floats) -> tuple[Floats, Floats, Floats]:
    """Features that span the same: uncorrelated under the weights, of mean square length 1, then cut to length 1.

    Also the matrix T that turned vectors into features (but for the cut), and the inverse of its transpose: what multiplies
    vectors multiplies features after T^-T.
    """
    share = np.maximum(weights, 0.0)
    share = share / max(float(share.sum()), _TINY)
    moment = (vectors * share[:, None]).T @ vectors
    squares, axes = np.linalg.eigh(moment)
    scales = np.sqrt(np.maximum(squares, 1e-12 * float(squares[-1])) * len(squares) + _TINY)
    turn: Floats = axes / scales
    return _cut(vectors @ turn), turn, axes * scales


def whole(features: Floats) -> Floats:
    """The features in units of 1/`RESOLUTION`, as whole float64 numbers; no row is longer than `RESOLUTION`, exactly.

    Rows are first cut to slightly less, then rounded towards zero, which makes none longer.
    """
    rounded: Floats = np.trunc(_cut(features) * (RESOLUTION * (1 - 2.0**-30)))
    return rounded


def vectors_of(activity: Floats, tastes: Floats) -> Floats:
    """(1 + activity) (1, tastes) for each row; an activity below -1 is taken as -1."""
    return np.column_stack([np.ones(len(tastes)), tastes]) * np.maximum(1.0 + activity, 0.0)[:, None]


def _cut(vectors: Floats) -> Floats:
    """Rows longer than 1 cut to length 1."""
    lengths = np.sqrt(np.einsum("nk,nk->n", vectors, vectors))
    cut: Floats = vectors / np.maximum(lengths, 1.0)[:, None]
    return cut
