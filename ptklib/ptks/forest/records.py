"""Records of a forest: given a tree each, and counted by leaf, exactly.

Raw: for mechanisms only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.noise.source import BitSource, require_secure
from ptklib.ptks.binned.target import Labels, Target, Wide
from ptklib.ptks.forest.trees import Integers, leaves_of

__all__ = ["count_leaves", "drawn_trees"]


def drawn_trees(count: int, trees: int, noise: BitSource | None) -> NDArray[np.intp]:
    """One tree for each record. Drawn with the noise, though privacy does not rest on the draw
    being secret.

    It rests on this: the tree of a record does not depend on any other record.
    """
    if trees == 1:
        return np.zeros(count, dtype=np.intp)
    words = require_secure(noise).words(-(-count // 4)).view(np.uint16)[:count]
    return (words % np.uint16(trees)).astype(np.intp)


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
        each = (leaves_of(splits, codes, number).astype(np.intp) for number in range(trees))
        made = np.concatenate([target.count(cell, leaves, label) for cell in each])
    return target.corners(made).reshape(trees, leaves, target.channels)
