"""Records of a forest: read once into small codes, given a tree each, and counted exactly.

Raw: for mechanisms only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptk import Batches, batches_of
from ptklib.ptks.forest.codes import Feature, feature_codes
from ptklib.ptks.forest.target import Labels, Target, Wide
from ptklib.ptks.forest.trees import Integers, leaves_of

__all__ = ["count_leaves", "count_tables", "drawn_trees", "pieces", "read"]

_ROWS_AT_ONCE = 1 << 16


def pieces(batches: Batches | pa.Table, rows: int = _ROWS_AT_ONCE) -> Iterator[pa.RecordBatch]:
    """The batches in pieces that fit a cache."""
    for batch in batches_of(batches):
        for start in range(0, batch.num_rows, rows):
            yield batch.slice(start, rows)


def read(
    inputs: tuple[Feature, ...], target: Target, batches: Batches
) -> tuple[NDArray[Any], Labels]:
    """Codes [inputs, records] and labels of the records that have one."""
    codes = [np.zeros((len(inputs), 0), dtype=np.uint8)]
    labels = [np.zeros(0, dtype=np.int32)]
    for piece in pieces(batches):
        label, bad = target.read(piece)
        one = feature_codes(inputs, piece)
        if bad.any():
            one, label = one[:, ~bad], label[~bad]
        codes.append(one)
        labels.append(label)
    return np.concatenate(codes, axis=1), np.concatenate(labels)


def drawn_trees(count: int, trees: int, noise: BitSource | None) -> NDArray[np.intp]:
    """One tree for each record. Drawn with the noise, though privacy does not rest on the draw
    being secret.

    It rests on this: the tree of a record does not depend on any other record.
    """
    if trees == 1:
        return np.zeros(count, dtype=np.intp)
    words = require_secure(noise).words(-(-count // 4)).view(np.uint16)[:count]
    return (words % np.uint16(trees)).astype(np.intp)


def count_tables(
    target: Target, sizes: tuple[int, ...], codes: NDArray[Any], label: Labels
) -> Wide:
    """The exact weights of all bins of all inputs: [all bins, channels]."""
    made = [
        target.count(codes[place].astype(np.intp), size, label) for place, size in enumerate(sizes)
    ]
    return target.corners(np.concatenate(made))


def count_leaves(
    target: Target,
    splits: Integers,
    codes: NDArray[Any],
    label: Labels,
    tree: NDArray[np.intp] | None,
) -> Wide:
    """The exact weights of all leaves, each record in its tree, or (None) in every tree: [trees,
    leaves, channels].
    """
    trees, leaves = splits.shape[0], splits.shape[1] + 1
    if tree is not None:
        made = target.count(tree * leaves + leaves_of(splits, codes, tree), trees * leaves, label)
    else:
        each = (leaves_of(splits, codes, one).astype(np.intp) for one in range(trees))
        made = np.concatenate([target.count(cell, leaves, label) for cell in each])
    return target.corners(made).reshape(trees, leaves, target.channels)
