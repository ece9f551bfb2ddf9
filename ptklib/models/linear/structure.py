"""Which products of the entries of a row are not known beforehand, and how far a record moves them.

A row is extended by a constant 1. Of the products of its entries, x_i x_j with i <= j, some follow
from the configuration: entries of the same listed input (`Categories` and the like) exclude each
other, so their product is 0; and where no row is shortened an entry of a listed input is 0 or 1, so
its square is its product with the constant. The others are released: entries in steps of
1/`GRAIN`, 7/5 of a product where i < j (a product off the diagonal stands for two), in whole
numbers: 7 x_i x_j and 5 x_i^2.

**Proof note.** *Unit:* one record. *Sensitivity:* with L the largest squared length of an extended
row, in steps, and q_g the squared length of what listed input g adds to it, the squares of what is
released sum to 25 sum x_i^4 + 49 sum_(i<j) x_i^2 x_j^2 <= 25 (sum x_i^2)^2 - 25 sum_g q_g^2, where
the last sum is over listed inputs whose squares are left out: there sum_(i in g) x_i^4 = q_g^2, as
only one entry is not 0. That rises with every q_g, so it is at most 25 (L^2 - G `GRAIN`^4) with G
such inputs; `weighted_square` is that. With a norm G = 0. In L1, sum_(i<=j) |x_i x_j| is at most
((sum |x_i|)^2 + L)/2, and a sum of k entries that are not 0 is at most sqrt(k L). *Exactness:* a
product of steps is at most 2**16, and whole floats below 2**53 add up exactly. *Cost:* none here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ptklib.columns.numbers import Bounded
from ptklib.models.inputs import STEPS, NumberedColumns, Vector, width_of
from ptklib.models.rows import InputRows

__all__ = ["CONSTANT", "GRAIN", "NUMBERS", "OFF", "ON", "Structure"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# What 1 is where products are taken: coarser than `STEPS`, so that the noise of a thousand entries
# stays within what the sampler draws.
GRAIN = 1 << 8
# Weights on the diagonal and off it: 7/5 is just below sqrt(2).
ON, OFF = 5, 7
NUMBERS, CONSTANT = -1, -2


@dataclass(frozen=True)
class Structure:
    """What is known of the products of extended rows. ``rows`` has an intercept, the constant;
    ``intercept`` says whether it has a coefficient.
    """

    rows: InputRows
    intercept: bool

    @property
    def free(self) -> slice:
        """The entries that have coefficients."""
        return slice(None) if self.intercept else slice(0, -1)

    @property
    def width(self) -> int:
        """Entries of an extended row."""
        return self.rows.width

    @cached_property
    def blocks(self) -> Integers:
        """Of each entry the place of its listed input, `NUMBERS` or `CONSTANT`."""
        made: list[int] = []
        for place, source in enumerate(self.rows.inputs):
            number = isinstance(source, Bounded | Vector | NumberedColumns)
            made += [NUMBERS if number else place] * width_of(source)
        return np.array([*made, CONSTANT])

    @cached_property
    def listed(self) -> NDArray[np.bool_]:
        """Which entries are of listed inputs."""
        return self.blocks >= 0

    @cached_property
    def squares_known(self) -> bool:
        """Whether entries of listed inputs are 0 or 1."""
        return not self.rows.shortens

    @cached_property
    def kept(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The places i <= j of the products that are released."""
        above, right = np.triu_indices(self.width)
        together = (self.blocks[above] == self.blocks[right]) & self.listed[above]
        known = together & ((above != right) | self.squares_known)
        return above[~known], right[~known]

    @cached_property
    def weights(self) -> Integers:
        """Of each product that is released."""
        above, right = self.kept
        return np.where(above == right, ON, OFF).astype(np.int64)

    @cached_property
    def limit(self) -> int:
        """L: the largest squared length of an extended row in steps of 1/`GRAIN`."""
        return self.rows.limit // (STEPS // GRAIN) ** 2

    @cached_property
    def lengths(self) -> int:
        """The largest sum of |x_i| of an extended row in steps of 1/`GRAIN`."""
        entries = 1 + len(set(self.blocks[self.listed])) + int((self.blocks == NUMBERS).sum())
        return min(GRAIN * entries, math.isqrt(self.limit * entries) + 1)

    @cached_property
    def weighted_square(self) -> int:
        """The most that the squares of what a record adds to the weighted products sum to."""
        known = len(set(self.blocks[self.listed])) if self.squares_known else 0
        return ON**2 * (self.limit**2 - known * GRAIN**4)

    def grains(self, steps: Floats) -> Floats:
        """Extended rows in steps of 1/`GRAIN`. Cut toward zero where a norm must hold."""
        coarse = steps * (GRAIN / STEPS)
        return np.trunc(coarse) if self.rows.shortens else np.rint(coarse)

    def matrix(self, released: Floats) -> Floats:
        """The products as a symmetric matrix, of what was released, divided by its weights: 1 is 1.

        Those that are known are filled in.
        """
        made = np.zeros((self.width, self.width))
        made[self.kept] = released
        if self.squares_known:
            places = np.flatnonzero(self.listed)
            made[places, places] = made[places, -1]
        return np.asarray(np.triu(made) + np.triu(made, 1).T)
