"""Complete binary trees over binned features: which split each node has, and the leaf of each
record.

A tree of depth d has the nodes 0 to 2**d - 2, the root first; the children of node v are 2v+1 and
2v+2. A record goes right where the code of the node's feature is **above** the threshold. Leaves
are 0 to 2**d - 1 from left to right.

Everything here is public or post-processing: no data is looked at but for routing, whose result
goes to a mechanism. Random choices that need no privacy (which features a node may look at) come
from a public seed by Philox, whose raw words are the same on every machine and in every version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Boxes",
    "Chooser",
    "Integers",
    "chosen_features",
    "grown",
    "leaves_of",
    "public_uniform",
    "random_splits",
]

Integers = NDArray[np.int32]
Floats = NDArray[np.float64]

_ROWS_AT_ONCE = 1 << 15


@dataclass(frozen=True)
class Boxes:
    """The bins that each node of a level can still hold, first to last, of each feature: [trees *
    nodes, features].
    """

    first: Integers
    last: Integers

    @classmethod
    def roots(cls, trees: int, sizes: NDArray[np.int64]) -> Boxes:
        """Everything; ``sizes`` count the unknown bin."""
        last = np.broadcast_to((sizes - 1).astype(np.int32), (trees, len(sizes)))
        return cls(np.zeros_like(last), last.copy())

    @property
    def open(self) -> NDArray[np.bool_]:
        """Which features a node can still split."""
        return self.last > self.first

    def split(self, feature: Integers, threshold: Integers) -> Boxes:
        """Those of the children, left and right in turn."""
        first, last = np.repeat(self.first, 2, axis=0), np.repeat(self.last, 2, axis=0)
        here = np.arange(len(feature))
        last[2 * here, feature] = np.minimum(threshold, last[2 * here, feature])
        first[2 * here + 1, feature] = np.minimum(threshold + 1, last[2 * here + 1, feature])
        return Boxes(first, last)


# (level, boxes) to the (feature, threshold) of each node of the level, trees in turn.
Chooser = Callable[[int, Boxes], tuple[Integers, Integers]]


def grown(trees: int, depth: int, sizes: NDArray[np.int64], choose: Chooser) -> Integers:
    """The splits of a forest, level by level: [trees, 2**depth - 1, (feature, threshold)]."""
    splits = np.zeros((trees, 2**depth - 1, 2), dtype=np.int32)
    boxes = Boxes.roots(trees, sizes)
    for level in range(depth):
        feature, threshold = choose(level, boxes)
        here = slice(2**level - 1, 2 ** (level + 1) - 1)
        splits[:, here, 0] = feature.reshape(trees, -1)
        splits[:, here, 1] = threshold.reshape(trees, -1)
        boxes = boxes.split(feature, threshold)
    return splits


def public_uniform(seed: int, stream: int, shape: tuple[int, ...]) -> Floats:
    """Numbers in [0, 1) that everybody can compute: no noise, and of no use as such."""
    words = np.random.Philox(key=np.array([seed, stream], dtype=np.uint64)).random_raw(
        int(np.prod(shape))
    )
    return np.asarray(
        (np.asarray(words, dtype=np.uint64) >> np.uint64(11)) * 2.0**-53, dtype=np.float64
    ).reshape(shape)


def chosen_features(seed: int, level: int, boxes: Boxes, count: int) -> Integers:
    """``count`` features of each node, by the seed, those that it can still split first: [nodes,
    count].
    """
    order = public_uniform(seed, 2 * level, boxes.first.shape)
    order[~boxes.open] += 1
    return np.argsort(order, axis=1, kind="stable")[:, :count].astype(np.int32)


@lru_cache(maxsize=16)
def random_splits(seed: int, trees: int, depth: int, sizes: tuple[int, ...]) -> Integers:
    """A forest from the seed alone: a feature at random, a threshold at random among the bins that
    are left.
    """

    def choose(level: int, boxes: Boxes) -> tuple[Integers, Integers]:
        feature = chosen_features(seed, level, boxes, 1)[:, 0]
        here = np.arange(len(feature))
        low, high = boxes.first[here, feature], boxes.last[here, feature]
        place = public_uniform(seed, 2 * level + 1, (len(feature),))
        return feature, (low + np.floor(place * np.maximum(high - low, 1))).astype(np.int32)

    splits = grown(trees, depth, np.array(sizes), choose)
    splits.flags.writeable = False
    return splits


def leaves_of(
    splits: Integers, codes: NDArray[Any], tree: NDArray[np.intp] | int
) -> NDArray[np.int32]:
    """The leaf of each record (a column of ``codes``) in its tree, or in the one tree given."""
    inner = splits.shape[1]
    depth = inner.bit_length()
    feature, threshold = splits[..., 0].ravel(), splits[..., 1].ravel().astype(codes.dtype)
    count = codes.shape[1]
    leaves = np.empty(count, dtype=np.int32)
    for start in range(0, count, _ROWS_AT_ONCE):
        piece = np.ascontiguousarray(codes[:, start : start + _ROWS_AT_ONCE])
        rows = np.arange(piece.shape[1])
        offset = (tree if isinstance(tree, int) else tree[start : start + _ROWS_AT_ONCE]) * inner
        flat, width = piece.ravel(), piece.shape[1]
        node = np.zeros(width, dtype=np.intp)
        for _ in range(depth):
            place = node + offset
            code = flat[feature[place] * np.intp(width) + rows]
            node += node
            node += 1
            node += code > threshold[place]
        leaves[start : start + _ROWS_AT_ONCE] = node - inner
    return leaves
