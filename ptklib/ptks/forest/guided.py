"""Splits from noisy tables of one feature each: one release for all nodes of all trees.

The tables count, for each feature, the records of each bin and class. They say which features and
thresholds tell the classes apart, and with the assumption that features are independent given the
class (naive Bayes) they say it for every node of every tree: the expected counts of a node are
those of its classes times the shares of its box. A node then takes the split with the least
expected impurity among some of the features, drawn from the public seed. Choosing this way costs
nothing more, however many trees and levels there are; choosing by the exponential mechanism pays
for every level with records of one tree only. What the assumption misses, the leaf counts put
right, which are counted and noised in the trees as grown.

Categories have no order of their own. They are put into the order of their (noisy) classes, which
for two classes and for regression is the order in which the best subset is an interval (Breiman et
al. 1984).

Everything in this module is post-processing of the noisy tables.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.forest.trees import Boxes, Integers, chosen_features, grown, public_uniform

__all__ = ["Tables", "expected_leaves", "grow", "ranked_bins", "simplex"]

Floats = NDArray[np.float64]

_CELLS_AT_ONCE = 1 << 20
# Purities closer than this, relative to the records, are equal: the seed decides, not the rounding.
_EQUAL = 1e-7


@dataclass(frozen=True)
class Tables:
    """Denoised tables: records of each class, and how each class spreads over the bins of each
    feature.
    """

    classes: Floats  # [classes]
    upto: Floats  # [features, bins + 1, classes]: the share of a class in the bins before, in their order

    @classmethod
    def of(cls, noisy: Floats, sizes: tuple[int, ...], order: Integers) -> Tables:
        """From noisy counts [all bins, classes], features in turn, and the rank of each bin in its
        feature.
        """
        classes, shares = _denoised(noisy, sizes)
        upto = np.ones((len(sizes), max(sizes) + 1, len(classes)))
        for place, (share, rank) in enumerate(
            zip(shares, np.split(order, np.cumsum(sizes)[:-1]), strict=True)
        ):
            ordered = np.empty_like(share)
            ordered[rank] = share
            upto[place, 0] = 0
            upto[place, 1 : len(share) + 1] = np.cumsum(ordered, axis=0)
        return cls(classes, upto)


def ranked_bins(
    noisy: Floats, sizes: tuple[int, ...], sorted_features: tuple[int, ...], deviation: float
) -> Integers:
    """The rank of each bin in its feature: its place, or in sorted features that of its classes.

    ``deviation`` is that of the noise: bins with few records beside it are taken to be like all.
    """
    classes, shares = _denoised(noisy, sizes)
    ranks = [
        _ranked(share * classes, classes, deviation)
        if place in sorted_features
        else np.arange(len(share))
        for place, share in enumerate(shares)
    ]
    return np.concatenate(ranks).astype(np.int32)


def grow(
    tables: Tables,
    *,
    trees: int,
    depth: int,
    sizes: NDArray[np.int64],
    count: int,
    seed: int,
    deviation: float,
) -> Integers:
    """The splits of a forest: of ``count`` features of each node the one with the least expected
    impurity.

    Purities that differ by less than ``deviation``, that of the noise of a cell, are put in random
    order by the seed. All trees see the same noise; where it decides, they had better differ.
    Measured: 1% more accuracy where noise is large.
    """
    spread = deviation + _EQUAL * float(tables.classes.sum())
    expected = np.tile(tables.classes, (trees, 1))

    def choose(level: int, boxes: Boxes) -> tuple[Integers, Integers]:
        nonlocal expected
        options = chosen_features(seed, level, boxes, count)
        jitter = spread * public_uniform(
            seed, 2 * level + 1, (len(options), count, int(sizes.max()))
        )
        made = [
            _best(tables, boxes, expected, options, jitter, rows)
            for rows in _pieces(len(options), tables.upto)
        ]
        feature, threshold = (
            np.concatenate(parts).astype(np.int32) for parts in zip(*made, strict=True)
        )
        expected = _children(tables, boxes, expected, feature, threshold)
        return feature, threshold

    return grown(trees, depth, sizes, choose)


def expected_leaves(tables: Tables, splits: Integers, sizes: NDArray[np.int64]) -> Floats:
    """The expected counts of each class in each leaf: [trees, leaves, classes]."""
    trees, inner, _ = splits.shape
    expected = np.tile(tables.classes, (trees, 1))

    def follow(level: int, boxes: Boxes) -> tuple[Integers, Integers]:
        nonlocal expected
        here = splits[:, 2**level - 1 : 2 ** (level + 1) - 1]
        feature, threshold = here[..., 0].ravel(), here[..., 1].ravel()
        expected = _children(tables, boxes, expected, feature, threshold)
        return feature, threshold

    grown(trees, (inner + 1).bit_length() - 1, sizes, follow)
    return expected.reshape(trees, inner + 1, -1)


def simplex(rows: Floats, totals: Floats) -> Floats:
    """Each row moved to the nearest one that is not negative and has its total."""
    falling = -np.sort(-rows, axis=1)
    excess = (np.cumsum(falling, axis=1) - totals[:, None]) / np.arange(1, rows.shape[1] + 1)
    kept = np.count_nonzero(falling > excess, axis=1)
    above = excess[np.arange(len(rows)), np.maximum(kept, 1) - 1]
    return np.asarray(np.maximum(rows - above[:, None], 0.0), dtype=np.float64)


def _best(
    tables: Tables, boxes: Boxes, expected: Floats, options: Integers, jitter: Floats, rows: slice
) -> tuple[Integers, Integers]:
    """The best (feature, threshold) of some nodes of a level."""
    here = np.arange(rows.stop - rows.start)
    bins = tables.upto.shape[1] - 1
    places = np.arange(bins)
    wanted = expected[rows]
    best = np.full(len(here), -np.inf)
    feature, threshold = options[rows, 0].copy(), np.full(len(here), bins - 1, dtype=np.int32)
    for column in range(options.shape[1]):
        chosen = options[rows, column]
        first, last = boxes.first[rows][here, chosen], boxes.last[rows][here, chosen]
        left = (
            _share(tables, chosen[:, None], first[:, None], last[:, None], places[None])
            * wanted[:, None]
        )
        score = _purity(left) + _purity(wanted[:, None] - left)
        score += jitter[rows, column, :bins]
        score[(places < first[:, None]) | (places >= last[:, None])] = -np.inf
        top = score.argmax(axis=1)
        better = score[here, top] > best
        best = np.where(better, score[here, top], best)
        feature = np.where(better, chosen, feature)
        threshold = np.where(better, top, threshold).astype(np.int32)
    return feature, threshold


def _share(
    tables: Tables, feature: Integers, first: Integers, last: Integers, place: NDArray[np.int64]
) -> Floats:
    """The share of each class of the box that is left of a threshold; half where the box should
    hold none.
    """
    before = tables.upto[feature, first]
    whole = tables.upto[feature, last + 1] - before
    part = tables.upto[feature, place + 1] - before
    return np.clip(
        np.divide(part, whole, out=np.full_like(part, 0.5), where=whole > 1e-12), 0.0, 1.0
    )


def _children(
    tables: Tables, boxes: Boxes, expected: Floats, feature: Integers, threshold: Integers
) -> Floats:
    """The expected counts of the nodes of the next level."""
    here = np.arange(len(feature))
    first, last = boxes.first[here, feature], boxes.last[here, feature]
    # A threshold beyond the box sends everything left.
    left = expected * _share(
        tables, feature, first, last, np.clip(threshold, first - 1, last).astype(np.int64)
    )
    return np.stack([left, expected - left], axis=1).reshape(2 * len(here), -1)


def _purity(counts: Floats) -> Floats:
    """The sum of squares over the total, the larger the purer; 0 of nothing."""
    total = counts.sum(axis=-1)
    squares = np.square(counts).sum(axis=-1)
    return np.asarray(
        np.divide(squares, total, out=np.zeros_like(total), where=total > 1e-9), dtype=np.float64
    )


def _denoised(noisy: Floats, sizes: tuple[int, ...]) -> tuple[Floats, list[Floats]]:
    """Records of each class, and of each feature the share of the classes in its bins."""
    parts = np.split(noisy, np.cumsum(sizes)[:-1])
    # Each feature counts all records: the noise of its total is that of its bins, so few bins weigh
    # more.
    weight = 1 / np.array(sizes, dtype=np.float64)
    total = sum(w * part.sum(axis=0) for w, part in zip(weight, parts, strict=True)) / weight.sum()
    classes = np.asarray(np.maximum(total, 1.0), dtype=np.float64)
    return classes, [simplex(part.T, classes).T / classes for part in parts]


def _ranked(counts: Floats, classes: Floats, deviation: float) -> Integers:
    """The rank of each bin by its classes: along the direction in which the bins differ most."""
    total = counts.sum(axis=1, keepdims=True)
    apart = (counts - total * (classes / classes.sum())) / (total + deviation * len(classes))
    if len(classes) == 2:
        along = apart[:, 1]
    else:
        _, _, axes = np.linalg.svd(np.sqrt(total) * apart, full_matrices=False)
        along = apart @ axes[0]
    rank = np.empty(len(counts), dtype=np.int32)
    rank[np.argsort(along, kind="stable")] = np.arange(len(counts))
    return rank


def _pieces(nodes: int, upto: Floats) -> list[slice]:
    step = max(1, _CELLS_AT_ONCE // (upto.shape[1] * upto.shape[2]))
    return [slice(start, min(nodes, start + step)) for start in range(0, nodes, step)]
