"""A tree of counts over the bins of a grid, and the estimate of every bin that its noisy nodes
agree on best.

The tree -------- Level 0 has the bins; every further level has groups of ``branching`` neighbours
of the one below, up to the level with no more than ``branching`` nodes. A record counts once on
every level. The noise is the same on all nodes. A sum of many bins is then a sum of few nodes, and
the more levels, the less of the budget each has.

Which tree: the variance of ``count below an edge - q count`` after the least squares below,
averaged over edges with q the uniform one, in units of 1/epsilon^2 (Laplace) and sigma^2 (Gaussian
noise of sensitivity 1), equal shares of the levels:

=======  =============  ========  =============  ===============  =======  ==========  =============
bins     Laplace: flat  binary    16 a node      root of bins     flat     binary      4 a node
=======  =============  ========  =============  ===============  =======  ==========  =============
64       21             53        22             19               11       4.4         4.2
256      85             115       40             40               43       7.2         7.2
1024     341            214       99             83               171      10.7        10.8
=======  =============  ========  =============  ===============  =======  ==========  =============

So two levels are right for Laplace noise up to about a thousand bins, three beyond; for Gaussian
noise four a node. Shares of the budget that grow or fall geometrically from level to level, and the
best shares found by search, gain 5% at most; a root costs more than it gives. Hence equal shares
and no root.

Least squares (Hay et al. 2010): upwards, a node's own noisy count and the sum of its children are
averaged by their variances; downwards, what a parent has more or less than its children together is
given to them by their variances. Groups need not be full. On exact counts this changes nothing.

**Proof note.** *Unit:* one record. *Sensitivity:* it moves one node of each level by 1: the vector
by ``levels`` in L1 and by its root in L2. *Cost:* none here; all but `counts` is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Tree", "default_branching", "spread", "tails"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_FLAT = 48
_TWO_LEVELS = 1024
# Where Chernoff's bound is tried, and the slopes of p^2 / (1 - p^2) between neighbours.
_PORTIONS = np.linspace(0.02, 0.98, 49)
_SLOPES = np.diff(_PORTIONS**2 / (1 - _PORTIONS**2)) / np.diff(_PORTIONS)


def default_branching(mechanism: str, bins: int) -> int:
    """The branching with the least error in the table of the module."""
    if mechanism == "gaussian":
        return 4
    if bins <= _FLAT:
        return bins
    levels = 2 if bins <= _TWO_LEVELS else 3
    branching = 2
    while branching**levels < bins:
        branching += 1
    return branching


@dataclass(frozen=True)
class Tree:
    """The nodes of all levels in a row, bins first."""

    bins: int
    branching: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Nodes of each level, bins first."""
        sizes = [self.bins]
        while sizes[-1] > self.branching:
            sizes.append(-(-sizes[-1] // self.branching))
        return tuple(sizes)

    @property
    def levels(self) -> int:
        """How many nodes a record counts in."""
        return len(self.sizes)

    @property
    def nodes(self) -> int:
        """All of them."""
        return sum(self.sizes)

    def counts(self, bins: Integers) -> Integers:
        """All nodes, one row for each row of bins."""
        made = [bins]
        for _ in self.sizes[1:]:
            made.append(self._grouped(made[-1]))
        return np.concatenate(made, axis=1)

    def fitted(self, nodes: NDArray[np.int64] | Floats) -> Floats:
        """The bins that fit all noisy nodes best, by least squares; they may be negative."""
        ends = np.cumsum(self.sizes)[:-1]
        own = [totals.astype(np.float64) for totals in np.split(nodes, ends, axis=1)]
        below, spread = [own[0]], [np.ones((1, self.bins))]
        for level in range(1, self.levels):
            variance = self._grouped(spread[-1])
            spread.append(1 / (1 + 1 / variance))
            below.append(spread[-1] * (own[level] + self._grouped(below[-1]) / variance))
        fit = below[-1]
        for level in range(self.levels - 2, -1, -1):
            gap = (fit - self._grouped(below[level])) / self._grouped(spread[level])
            fit = (
                below[level]
                + spread[level] * np.repeat(gap, self.branching, axis=1)[:, : self.sizes[level]]
            )
        return fit

    def _grouped(self, level: NDArray[Any]) -> NDArray[Any]:
        return np.add.reduceat(level, np.arange(0, level.shape[1], self.branching), axis=1)


@lru_cache(maxsize=1024)
def spread(tree: Tree, share: float) -> tuple[Floats, Floats, Floats]:
    """How node noise enters ``count below an edge - share count`` for every edge: sum of squares,
    largest, sum of sizes.

    There is no root, so a node moves the bins below its own node of the top level and no others:
    with weight ``-share`` of what it moves in all where the edge is to their left, ``1 - share``
    where it is to their right. Only the nodes of the block that the edge is in are looked at one by
    one, and all blocks but the last are alike.
    """
    first, last, width = _blocks(tree)
    whole = len(first[1]) and (tree.bins - 1) // width
    # What the blocks add up to that are wholly to the left of the edge, and those wholly to its
    # right.
    totals = [_sums(first[1])] * whole + [_sums(last[1])]
    squares, largest, sizes = (np.zeros(tree.bins + 1) for _ in range(3))
    for block, (below, moved) in enumerate([first] * whole + [last]):
        edges = slice(block * width, block * width + below.shape[1])
        weights = np.abs(below - share * moved[:, None])
        before, after = totals[:block], totals[block + 1 :]
        squares[edges] = (
            np.square(weights).sum(axis=0)
            + (1 - share) ** 2 * sum(sums[0] for sums in before)
            + share**2 * sum(sums[0] for sums in after)
        )
        sides = [(1 - share) * sums[1] for sums in before[:1]] + [
            share * sums[1] for sums in after[:1] + after[-1:]
        ]
        largest[edges] = np.maximum(weights.max(axis=0), max(sides, default=0.0))
        sizes[edges] = (
            weights.sum(axis=0)
            + (1 - share) * sum(sums[2] for sums in before)
            + share * sum(sums[2] for sums in after)
        )
    return squares, largest, sizes


def _sums(moved: Floats) -> tuple[float, float, float]:
    """Of what nodes move in all: the sum of squares, the largest, the sum."""
    return float(np.square(moved).sum()), float(np.abs(moved).max()), float(np.abs(moved).sum())


@lru_cache(maxsize=64)
def _blocks(tree: Tree) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats], int]:
    """The bins below the first and below the last node of the top level, and how wide a full block
    is.

    For every node of a block: what it moves below each edge of the block, and in all.
    """
    width = tree.branching ** (tree.levels - 1)
    blocks = []
    for block in (0, (tree.bins - 1) // width):
        begin, end = block * width, min((block + 1) * width, tree.bins)
        nodes: list[int] = []
        offset, size = 0, width
        for level in tree.sizes:
            nodes += range(offset + block * size, offset + min((block + 1) * size, level))
            offset, size = offset + level, size // tree.branching
        rows = np.zeros((len(nodes), tree.nodes))
        rows[np.arange(len(nodes)), nodes] = 1.0
        below = np.cumsum(tree.fitted(rows)[:, begin:end], axis=1)
        blocks.append((np.insert(below, 0, 0.0, axis=1), below[:, -1]))
    return blocks[0], blocks[1], width


def tails(
    mechanism: str, scale: float, squares: Floats, largest: Floats, sizes: Floats, distance: float
) -> Floats:
    """At most this is the probability that a weighted sum of node noise is beyond ``distance`` on
    one side.

    Laplace: Chernoff's bound. For |t| < 1/(scale largest), with x_i = (t scale weight_i)^2 and X the largest of them, the log
    of the moment is at most sum -log(1 - x_i) <= sum x_i / (1 - X); that of the discrete noise is no larger. Gaussian: the
    normal tail, after half a unit for each node, by which rounding moves it.
    """
    if mechanism == "gaussian":
        # Imported when it is needed: those who only read states never wait for it.
        from scipy.special import erfc

        left = np.maximum(distance - sizes / 2, 0.0)
        return np.asarray(erfc(left / (scale * np.sqrt(2 * squares))) / 2)
    # The bound is minimised over a grid of t; every t gives a bound. Of a convex function's values
    # on a grid the least is where the slopes between neighbours turn, and these are the same for
    # all nodes up to a factor.
    steepness, pull = squares / largest**2, distance / (scale * largest)
    portion = _PORTIONS[np.searchsorted(_SLOPES, pull / steepness)]
    logs = steepness * portion**2 / (1 - portion**2) - portion * pull
    return np.asarray(np.exp(np.minimum(logs, 0.0)))
