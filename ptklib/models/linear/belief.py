"""What noisy releases tell of the coefficients: a filter that weighs each by its known noise.

The products of entries are made plausible first (`plausible`): the mean product of two inputs is
drawn toward the product of their means by as much as the known noise explains what they differ by,
block by block (James & Stein), and negative eigenvalues are set to 0. Then in the axes of that
matrix A each coefficient has a mean and a variance, at first that of ``spread``. A release of
A (w* - w) + noise is one more observation of it (Kalman): its gain follows from the eigenvalue, the
variance and the noise, where what is still unknown of A counts as noise too. So directions that are
measured well are followed, and those that drown in noise are left as they are: a ridge for each
direction, from the known noise alone.

**Proof note.** Nothing here reads data: all of it is post-processing of releases. *Cost:* none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.models.linear.structure import CONSTANT, NUMBERS, Structure

__all__ = ["Belief", "plausible"]

Floats = NDArray[np.float64]

# How much of the noise of A is left after `plausible`.
_LEFT = 0.5


@dataclass
class Belief:
    """Coefficients in the axes of A, each with a variance. ``off`` is the standard deviation of the
    noise of an entry of A.
    """

    roots: Floats
    axes: Floats
    coefficients: Floats
    variances: Floats
    off: float
    gains: Floats
    first: float

    @classmethod
    def at(cls, products: Floats, coefficients: Floats, spread: float, off: float) -> Belief:
        """Before any release: coefficients that were guessed, and how far they may be off."""
        roots, axes = np.linalg.eigh(products)
        variances = np.full(len(roots), spread)
        # Before the first release: as much as one without noise would tell.
        gains = 1 / np.maximum(roots, 1.0)
        return cls(np.maximum(roots, 0.0), axes, coefficients, variances, off, gains, spread)

    def learn(self, sums: Floats, deviation: float, *, known: float = 0.0) -> None:
        """Take in a release of A (w* - w), whose noise has that deviation; ``known`` is the squared
        length of coefficients that noise of A was multiplied with besides.
        """
        noise = deviation**2 + self.off**2 * (_LEFT * float(self.variances.sum()) + known)
        self.gains = self.variances * self.roots / (self.roots**2 * self.variances + noise)
        self.coefficients = self.coefficients + self.axes @ (self.gains * (self.axes.T @ sums))
        self.variances = (1 - self.gains * self.roots) ** 2 * self.variances + (
            self.gains**2 * noise
        )

    def excess(self, deviation: float) -> float:
        """The squared error, summed over records, that noise of this deviation adds by the gains of
        the last release.
        """
        return float((self.roots * self.gains**2).sum()) * deviation**2

    def covariance(self, variance: float) -> Floats:
        """Of the coefficients: by noise, by what is unknown yet, and by which records there were,
        whose residuals have this variance.
        """
        learned = 1 - self.variances / self.first
        sampled = np.where(self.roots > 0, variance * learned**2 / np.maximum(self.roots, 1e-9), 0)
        made = (self.axes * (self.variances + np.minimum(sampled, self.first))) @ self.axes.T
        return np.asarray((made + made.T) / 2)


def plausible(structure: Structure, noisy: Floats, off: float) -> Floats:
    """A from its noisy products, of `Structure.matrix`. See the module."""
    count = max(float(noisy[-1, -1]), 1.0)
    means = np.clip(noisy[-1] / count, -1.0, 1.0)
    means[structure.listed] = np.maximum(means[structure.listed], 0.0)
    means[-1] = 1.0
    centred = noisy - count * np.outer(means, means)
    blocks = structure.blocks
    order = np.unique(blocks[blocks != CONSTANT])
    for place, block in enumerate(order):
        mine = np.flatnonzero(blocks == block)
        for other in order[place:]:
            theirs = np.flatnonzero(blocks == other)
            part = np.ix_(mine, theirs)
            if block == other and block != NUMBERS:
                continue
            shrunk = _shrunk(centred[part], off, same=block == other)
            centred[part] = shrunk
            centred[np.ix_(theirs, mine)] = shrunk.T
    squares = np.diagonal(centred).copy()
    if structure.squares_known:
        own = structure.listed
        squares[own] = count * (means[own] - means[own] ** 2)
    np.fill_diagonal(centred, np.maximum(squares, 0.0))
    centred[-1] = centred[:, -1] = 0.0
    roots, axes = np.linalg.eigh(centred)
    spread = (axes * np.maximum(roots, 0.0)) @ axes.T
    return np.asarray(spread + count * np.outer(means, means))


def _shrunk(part: Floats, off: float, *, same: bool) -> Floats:
    """A block of covariances, drawn to 0 by the share of its energy that noise explains; within one
    block the diagonal is left.
    """
    apart = part - np.diag(np.diagonal(part)) if same else part
    numbers = part.size - (len(part) if same else 0)
    energy = float(np.square(apart).sum())
    kept = max(0.0, 1 - numbers * off**2 / energy) if energy > 0 else 0.0
    return np.asarray(part - (1 - kept) * apart)
