"""The arithmetic of serving plans: values from values, each as the PTKs compute it, to the last
bit.

NumPy and the standard library alone: see `ptklib.serving`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["STEPS"]

Array = np.ndarray[Any, Any]


def _combine(parts: Sequence[Array], sizes: Sequence[int]) -> Array:
    codes = parts[0]
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        codes = codes * (size + 1) + part
    return codes


def _look_up(parts: Sequence[Array], table: Array) -> Array:
    (codes,) = parts
    return table[codes]


def _median_rows(parts: Sequence[Array], tables: Array) -> Array:
    (codes,) = parts
    codes = codes.reshape(len(tables), -1)
    lines = np.stack([table[row] for table, row in zip(tables, codes, strict=True)]).astype(
        np.float64
    )
    return lines[0] if len(lines) == 1 else np.median(lines, axis=0)


def _shrunk_counts(parts: Sequence[Array], variance: float) -> Array:
    positive = np.maximum(parts[0], 0.0)
    squares = np.square(positive)
    weight = squares + variance
    made: Array = positive * np.divide(
        squares, weight, out=np.zeros_like(squares), where=weight > 0
    )
    return made


def _class_shares(
    parts: Sequence[Array],
    prior: Array,
    variance: float,
    spreads: Array,
    weights: Array,
    chances: Array | None = None,
) -> Array:
    (counts,) = parts
    if chances is not None:
        # Of a single row: what is below zero is noise.
        counts = np.maximum(counts, 0.0)
    even = float(np.square(prior).sum())
    noise = variance * (len(prior) - 2 + len(prior) * even)
    n = np.maximum(counts.sum(axis=1), 0.0)
    # n w / n: the factor of the deviation, with no division by a small n.
    factor = np.zeros_like(n)
    for spread, weight in zip(spreads.tolist(), weights.tolist(), strict=True):
        if weight > 0:
            room = spread * (1 - even)
            below = room * np.square(n) + noise
            factor += weight * np.divide(room * n, below, out=np.zeros_like(n), where=below > 0)
    if noise == 0:
        # The limit, also where the prior leaves no room: plain shares.
        factor = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
    class_shares: Array = counts - n[:, None] * prior
    class_shares *= factor[:, None]
    class_shares += prior
    np.clip(class_shares, 0.0, 1.0, out=class_shares)
    class_shares /= class_shares.sum(axis=1)[:, None]
    if chances is not None:
        exact = np.divide(counts, n[:, None], out=class_shares.copy(), where=n[:, None] > 0)
        chance = chances[np.minimum(np.rint(n), len(chances) - 1).astype(np.intp)]
        class_shares += chance[:, None] * (exact - class_shares)
    return class_shares


def _times(parts: Sequence[Array]) -> Array:
    first, second = parts
    made: Array = first * second
    return made


def _row_product(parts: Sequence[Array], lower: float, upper: float) -> Array:
    first, second = parts
    # Number by number: other ways of summing may round by where a line stands.
    sums = np.zeros(len(first))
    for left, right in zip(first.T, second.T, strict=True):
        sums += left * right
    made: Array = np.clip(sums, lower, upper)[:, None]
    return made


def _part(parts: Sequence[Array], place: int) -> Array:
    return np.ascontiguousarray(parts[0][:, place])


def _affine(parts: Sequence[Array], offset: float, scale: float) -> Array:
    made: Array = offset + scale * parts[0]
    return made


def _total(parts: Sequence[Array], offset: int, lower: int, upper: int) -> Array:
    total = np.full(len(parts[0]), offset, dtype=np.int64)
    for part in parts:
        total += part
    return np.clip(total, lower, upper) - lower


def _walk(parts: Sequence[Array], splits: Array) -> Array:
    codes = np.stack(parts)
    rows = np.arange(codes.shape[1])
    inner = splits.shape[1]
    leaves = np.empty((len(splits), len(rows)), dtype=np.int32)
    for tree, (features, thresholds) in enumerate(zip(splits[..., 0], splits[..., 1], strict=True)):
        node = np.zeros(len(rows), dtype=np.intp)
        for _ in range(inner.bit_length()):
            node = 2 * node + 1 + (codes[features[node], rows] > thresholds[node])
        leaves[tree] = node - inner
    return leaves


def _mean_leaves(parts: Sequence[Array], shares: Array) -> Array:
    (leaves,) = parts
    total = np.zeros((leaves.shape[1], shares.shape[2]))
    for lines, leaf in zip(shares, leaves, strict=True):
        total += lines[leaf]
    return total / len(shares)


def _tree(parts: Sequence[Array], place: int) -> Array:
    line: Array = parts[0][place]
    return line


def _is_leaf(parts: Sequence[Array], place: int, leaf: int) -> Array:
    flags: Array = (parts[0][place] == leaf).astype(np.uint8)
    return flags


def _along(parts: Sequence[Array], weights: Array, origin: Array, divisor: float | None) -> Array:
    along = np.zeros(len(parts[0]))
    for weight, part, middle in zip(weights, parts, origin, strict=True):
        along += weight * (part - middle)
    if divisor is not None:
        along /= divisor
    return along


def _squares(parts: Sequence[Array], centres: Array) -> Array:
    squares = np.zeros((len(centres), len(parts[0])))
    for row, centre in zip(squares, centres, strict=True):
        for part, place in zip(parts, centre, strict=True):
            row += np.square(part - place)
    return squares


def _nearest(parts: Sequence[Array]) -> Array:
    nearest: Array = parts[0].argmin(axis=0).astype(np.int64)
    return nearest


def _distance(parts: Sequence[Array], place: int) -> Array:
    distance: Array = np.sqrt(parts[0][place])
    return distance


STEPS: dict[str, Callable[..., Array]] = {
    "affine": _affine,
    "along": _along,
    "class_shares": _class_shares,
    "combine": _combine,
    "distance": _distance,
    "is_leaf": _is_leaf,
    "look_up": _look_up,
    "mean_leaves": _mean_leaves,
    "median_rows": _median_rows,
    "nearest": _nearest,
    "part": _part,
    "row_product": _row_product,
    "shrunk_counts": _shrunk_counts,
    "squares": _squares,
    "times": _times,
    "total": _total,
    "tree": _tree,
    "walk": _walk,
}
