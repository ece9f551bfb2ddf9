"""Splits chosen by a mechanism, level by level, from the records of each node.

The score of a split is the purity of its two sides, in whole units. With n records of a side, n_c
of class c, the side scores S/n with S = sum n_c^2 (gini) or W^2/n with W the sum of the target's
steps (mean squared error): the impurity of the split is a constant of the node, the same for all
its splits, minus the score.

**Sensitivity.** Add a record to the side. Its impurity f = n - S/n of class counts rises by 1 - (2n
n_k + n - S)/(n(n+1)), k being the class of the record. That is at least 0, for S >= n_k^2 and n_k
<= n, and at most 2n/(n+1) < 2, for n_k >= 0 and S <= n^2. The squared error of steps 0 to D rises
by (w - W/n)^2 n/(n+1), from 0 to D^2. The other side does not change. So of all splits of a node
**each impurity rises by 0 to R**, R = 2 or D^2, with one record; in units of 1/U it rises by 0 to R
U, and rounding down keeps that, for R U is whole and the constant of the node is a whole number of
units (for the target, the sum of squared steps). A mechanism whose answer is the same when one
number is added to all scores (noisy max, large margin: both look at differences only) then works as
if every score moved by at most R U / 2 in some direction: on the neighbour, add R U / 2 to all
scores. So its sensitivity is r R U / 2 for r records.

**Cost of a level.** Nodes hold different records. A user's r records may be in several nodes, r_i
in node i: noisy max with scale 2 r s/epsilon loses epsilon r_i / r there, which sums to at most
epsilon. The large margin mechanism loses (epsilon r_i / r, delta'): its Laplace steps and its rate
lose less for a smaller shift, its margins suffice for the largest. At most r nodes are touched, so
delta' = delta / r gives (epsilon, delta). Levels add up; trees hold different records.

All scores are computed in whole numbers: no rounding of floats can move them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.mechanisms.selection import NoisyMax
from ptklib.privacy.noise.source import BitSource
from ptklib.ptks.binned.codes import STEPS
from ptklib.ptks.binned.target import Classes, Target
from ptklib.ptks.forest.trees import Boxes, Integers, chosen_features, grown

__all__ = [
    "HALF_RANGE_CLASSES",
    "HALF_RANGE_STEPS",
    "class_purity",
    "grow_privately",
    "step_purity",
]

Wide = NDArray[np.int64]

# The unit of the scores of classes is 1/1024 of a record.
_UNITS = 1024
HALF_RANGE_CLASSES = _UNITS
HALF_RANGE_STEPS = STEPS**2 // 2


def class_purity(counts: Wide) -> Wide:
    """floor(1024 S / n) of class counts in the last axis; 0 of nothing.

    Exact for sums below 2**31.
    """
    total = np.maximum(counts.sum(axis=-1), 1)
    whole, rest = np.divmod(np.square(counts).sum(axis=-1), total)
    return np.asarray(_UNITS * whole + _UNITS * rest // total, dtype=np.int64)


def step_purity(counts: Wide) -> Wide:
    """floor(W^2 / n) of (n, W) in the last axis; 0 of nothing. Exact for n below 2**31."""
    total, weight = np.maximum(counts[..., 0], 1), counts[..., 1]
    mean, rest = np.divmod(weight, total)
    return np.asarray(mean * mean * total + 2 * mean * rest + rest * rest // total, dtype=np.int64)


def grow_privately(
    mechanisms: Sequence[NoisyMax | LargeMargin],
    target: Target,
    codes: NDArray[Any],
    label: NDArray[np.int32],
    tree: NDArray[np.intp],
    *,
    trees: int,
    sizes: NDArray[np.int64],
    count: int,
    seed: int,
    noise: BitSource | None,
) -> Integers:
    """The splits of a forest, each node's by the mechanism of its level, among ``count`` features
    of the seed.

    Every node makes one call of its mechanism, with or without records. Cost: that of the
    mechanisms of all levels.
    """
    purity = class_purity if isinstance(target, Classes) else step_purity
    node = np.zeros(codes.shape[1], dtype=np.intp)
    width = int(sizes.max())
    bins = np.arange(width)

    def choose(level: int, boxes: Boxes) -> tuple[Integers, Integers]:
        nonlocal node
        nodes = trees << level
        cell = (tree << level) + node
        options = chosen_features(seed, level, boxes, count)
        scores = np.zeros((nodes, count, width), dtype=np.int64)
        for place in range(len(sizes)):
            asked, column = np.nonzero(options == place)
            if len(asked):
                counts = target.count(cell * width + codes[place], nodes * width, label).reshape(
                    nodes, width, -1
                )
                left = np.cumsum(counts[asked], axis=1)
                scores[asked, column] = purity(left) + purity(left[:, -1:] - left)
        here = np.arange(nodes)[:, None]
        first, last = boxes.first[here, options], boxes.last[here, options]
        allowed = (bins >= first[..., None]) & (bins < last[..., None])
        feature, threshold = options[:, 0].copy(), np.full(nodes, width - 1, dtype=np.int32)
        for number in range(nodes):
            column, bin_ = np.nonzero(allowed[number])
            if len(column):
                won = mechanisms[level].release(scores[number, column, bin_], source=noise).index
                feature[number], threshold[number] = options[number, column[won]], bin_[won]
        node = 2 * node + (codes[feature[cell], np.arange(len(node))] > threshold[cell])
        return feature, threshold

    return grown(trees, len(mechanisms), sizes, choose)
