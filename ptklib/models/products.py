"""Products of matrices that are exact, so that no record moves the prediction of another.

A product of floats is rounded by the order of its sums, and that order follows from how many rows
there are and where one stands. Here rows hold whole multiples of a unit, weights are rounded to a
grid, and the grid is so coarse that no sum can need more than the 53 bits of a float64: every order
gives the same, exact sum.

**Proof note.** Nothing is released here. Of weights that sum to S in magnitude and rows of at most
``most`` the grid is the power of two g with most S / unit <= 2**52 g < 2 most S / unit; rounding
adds at most g/2 to each of the weights, so no partial sum is above 2**53 of unit g while
most d / unit <= 2**53, which `InputRows` keeps by far. Weights lose what is below 2**-51 most/unit
of S.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS

__all__ = ["exact_product", "on_grid"]

Floats = NDArray[np.float64]

_BITS = 52


def exact_product(
    rows: Floats, weights: Floats, *, unit: float = 1 / STEPS, most: float = 1.0
) -> Floats:
    """``rows @ weights``, the same for a row wherever it stands.

    ``weights`` has a row for each entry, and one column or several. Entries of ``rows`` are
    multiples of ``unit``, a power of two, and at most ``most``, as those of `InputRows.matrix` are.
    """
    wide = weights.reshape(len(weights), -1)
    grids = np.array([_grid(math.fsum(np.abs(column)) * most / unit) for column in wide.T])
    made = rows @ (np.rint(wide / grids) * grids)
    return np.asarray(made.reshape(len(rows), *weights.shape[1:]), dtype=np.float64)


def on_grid(values: Floats, *, most: float, bits: int = 20) -> tuple[Floats, float]:
    """Values, clipped to ``most`` (a power of two), as multiples of a unit, and the unit: what
    comes out of a layer as the rows of the next.
    """
    unit = most * 2.0**-bits
    return np.asarray(np.clip(np.rint(values / unit) * unit, -most, most)), unit


def _grid(reach: float) -> float:
    """The grid of weights whose products with rows, in units, sum to at most ``reach``."""
    return math.ldexp(1.0, max(math.frexp(reach)[1] - _BITS, -1000)) if reach > 0 else 1.0
