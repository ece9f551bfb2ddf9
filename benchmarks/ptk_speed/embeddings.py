"""Embeddings of 6,000 users and 4,000 items from a million ratings, against plain hierarchical
Poisson factorization.

The baseline is the variational algorithm of Gopalan, Hofman & Blei on the rated pairs, in numpy and
scipy, without privacy: as many updates of users and items as ours makes, on int32 ids and float64
stars in memory. It sorts by a count sort, shares each rating among the factors a piece that fits a
cache at a time, and sums by sparse products.

Ours is not that algorithm with noise, but a cheaper one (`ptklib.ptks.embeddings.factorization`).
So the same steps as ours, without clipping, quantising and noise, are timed as well and said: they
are what privacy itself costs. They are no bar.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse, special

from benchmarks.bars import Say
from ptklib.columns.keys import IntegerRange
from ptklib.ptks.embeddings import Embeddings

WHAT = "20 factors of 6,000 users and 4,000 items, 1 million ratings / as many updates of plain Poisson factorization"
LIMIT = 1.3

_USERS, _ITEMS, _EVENTS = 6_000, 4_000, 1_000_000
_FACTORS, _TURNS = 20, 2
_ROUNDS = 7
_PIECE = 1 << 14
# Stars times this have about the variance of a Poisson variable.
_PRECISION = 3.0

Floats = NDArray[np.float64]


def rounds(say: Say) -> Iterator[tuple[float, float]]:
    users, items, stars = _ratings()
    table = pa.table({"user": users, "item": items, "stars": stars})
    ptk = Embeddings(
        users=IntegerRange(column="user", first=0, last=_USERS - 1),
        items=IntegerRange(column="item", first=0, last=_ITEMS - 1),
        value="stars",
        lower=1,
        upper=5,
        factors=_FACTORS,
        rounds=_TURNS,
        # So many updates as the baseline makes, worth their price or not.
        tastes="always",
    )
    for number in range(1 + _ROUNDS):
        begin = time.perf_counter()
        ptk.train_dp(table.to_batches(), epsilon=1, delta="1e-6")
        middle = time.perf_counter()
        _factorized(users, items, stars)
        end = time.perf_counter()
        _same_steps(users, items, stars)
        last = time.perf_counter()
        words = f"{middle - begin:.3f} s against {end - middle:.3f} s; the same steps without privacy {last - end:.3f} s"
        say(f"embeddings, round {number}: {words}")
        # The first round warms all.
        if number:
            yield middle - begin, end - middle


def _factorized(
    users: NDArray[np.int32], items: NDArray[np.int32], stars: Floats
) -> tuple[Floats, Floats]:
    """The mean vectors of users and items after `_TURNS` turns, users last."""
    matrix = _sorted(users, items, stars * _PRECISION)
    seen = sparse.csr_matrix((np.ones(_EVENTS), matrix.indices, matrix.indptr), shape=matrix.shape)
    places, owners = (
        matrix.indices.astype(np.intp),
        np.repeat(np.arange(_USERS), np.diff(matrix.indptr)),
    )
    shares = matrix.copy()
    rng = np.random.default_rng(0)
    size = np.sqrt(stars.mean() * _PRECISION / _FACTORS)
    user = [rng.gamma(30, size / 30, (_USERS, _FACTORS))] * 2
    item = [rng.gamma(30, size / 30, (_ITEMS, _FACTORS))] * 2
    user_rate, item_rate = np.full(_USERS, 1 / size), np.full(_ITEMS, 1 / size)

    def update(
        own: list[Floats], other: list[Floats], rate: Floats, turned: bool
    ) -> tuple[list[Floats], Floats]:
        # [mean, exp of the mean logarithm] of each side.
        for start in range(0, _EVENTS, _PIECE):
            here = slice(start, start + _PIECE)
            pair = user[1][owners[here]], item[1][places[here]]
            np.divide(matrix.data[here], np.einsum("nk,nk->n", *pair), out=shares.data[here])
        sums, counts = (shares.T, seen.T) if turned else (shares, seen)
        shape = 1.0 + own[1] * (sums @ other[1])
        below = rate[:, None] + counts @ other[0]
        mean = shape / below
        return [mean, np.exp(special.digamma(shape)) / below], (1 + _FACTORS) / (
            size + mean.sum(axis=1)
        )

    user, user_rate = update(user, item, user_rate, False)
    for _ in range(_TURNS):
        item, item_rate = update(item, user, item_rate, True)
        user, user_rate = update(user, item, user_rate, False)
    return user[0], item[0]


def _same_steps(
    users: NDArray[np.int32], items: NDArray[np.int32], stars: Floats
) -> tuple[Floats, Floats]:
    """Tastes of users and items by the turns of our training, on residuals as they are."""
    matrix = _sorted(users, items, stars)
    places = matrix.indices.astype(np.intp)
    count_items, count_users = np.bincount(places, minlength=_ITEMS), np.diff(matrix.indptr)
    level = stars.mean()
    item_mean = np.bincount(places, matrix.data - level, minlength=_ITEMS) / (count_items + 5)
    matrix.data -= (level + item_mean).take(places)
    matrix.data -= np.repeat(matrix @ np.ones(_ITEMS) / (count_users + 5), count_users)
    features = _whitened(
        np.random.default_rng(0).standard_normal((_ITEMS, _FACTORS - 1)), count_items
    )
    tastes = matrix @ features / (count_users + 20)[:, None]
    for _ in range(_TURNS):
        own = _whitened(tastes, count_users)
        features = _whitened(matrix.T @ own / (count_items + 20)[:, None], count_items)
        tastes = matrix @ features / (count_users + 20)[:, None]
    return tastes, features


def _sorted(users: NDArray[np.int32], items: NDArray[np.int32], values: Floats) -> Any:
    """Users by items.

    Turning around a matrix with one entry for each record is the fastest sort there is here.
    """
    ends = np.arange(len(users) + 1, dtype=np.int32)
    rows: Any = sparse.csc_matrix((values, users, ends), shape=(_USERS, len(users))).tocsr()
    return sparse.csr_matrix(
        (rows.data, items.take(rows.indices.astype(np.intp)), rows.indptr), shape=(_USERS, _ITEMS)
    )


def _whitened(vectors: Floats, weights: NDArray[Any]) -> Floats:
    squares, axes = np.linalg.eigh((vectors * (weights / weights.sum())[:, None]).T @ vectors)
    whitened: Floats = vectors @ (axes / np.sqrt(squares))
    return whitened


def _ratings() -> tuple[NDArray[np.int32], NDArray[np.int32], Floats]:
    rng = np.random.default_rng(0)
    users = rng.choice(_USERS, _EVENTS, p=rng.dirichlet(np.ones(_USERS))).astype(np.int32)
    items = rng.choice(_ITEMS, _EVENTS, p=rng.dirichlet(np.full(_ITEMS, 0.5))).astype(np.int32)
    tastes = rng.standard_normal((_USERS, 4)), rng.standard_normal((_ITEMS, 4))
    stars = (
        3.5
        + 0.25 * np.einsum("nk,nk->n", tastes[0][users], tastes[1][items])
        + 0.9 * rng.standard_normal(_EVENTS)
    )
    return users, items, np.clip(np.rint(stars), 1, 5)
