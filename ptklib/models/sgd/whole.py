"""The grids on which nets are trained: whole numbers whose products and sums float32 holds exactly.

A float32 holds every whole number up to `EXACT` = 2**24. A sum of products of whole numbers is
therefore exact, **in whatever order it is made and however it is cut**, as long as the magnitudes of
its terms sum to at most that: each partial sum is a whole number within reach. By Cauchy and
Schwarz the magnitudes of the terms of x.w sum to at most \\|x\\| \\|w\\|, so it is enough that rows
and columns have lengths of at most `LENGTH` = 2**12. (A matrix product is taken to be made of the
products of the classical one: true of every BLAS that numpy is built with.)

* *Weights* are rounded to a power of two that depends on them alone (`whole_weights`): they are
  public. Rows and columns then have lengths of at most `LENGTH`.
* *Inputs* of a layer are rounded to 2**-bits, where `bits_of` follows from the widths of the net
  and a public bound of their length.
* *Clipped gradients* have lengths of at most `CLIP` = 2**16 units; `ROWS` of them add up to numbers
  within `EXACT`.

**Proof note.** *Unit, cost:* none. What is here depends on public numbers alone. *Lengths:* weights
are scaled so that no row or column is longer than `_ROOM` = 2**12 - 2**7 by float32 arithmetic,
which errs by less than one part in 500 for up to 2**14 entries; rounding to whole numbers adds at
most sqrt(2**14)/2 = 64: below 2**12.

Reasons: none of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CLIP",
    "EXACT",
    "LENGTH",
    "MAX_BITS",
    "MAX_WIDTH",
    "ROWS",
    "Floats",
    "bits_of",
    "whole_weights",
]

Floats = NDArray[np.float32]

EXACT = 1 << 24
LENGTH = 1 << 12
CLIP = 1 << 16
ROWS = EXACT // CLIP
MAX_WIDTH = 1 << 14
MAX_BITS = 12

_LEAST_BITS = 3
_ROOM = LENGTH - (1 << 7) - 8
_MAX_EXPONENT = 100


def bits_of(bound: float, outputs: int, layers: int) -> int:
    """How many binary places inputs of a layer have whose length is at most ``bound``.

    So few that rows are no longer than `LENGTH`, and that rounding what they are multiplied with
    (``outputs`` numbers) adds little to the `CLIP` units of a gradient of so many layers.
    """
    reach = min(LENGTH / 2, CLIP / math.sqrt(8 * layers * outputs))
    return max(_LEAST_BITS, min(MAX_BITS, math.floor(math.log2(reach / bound))))


def whole_weights(weights: Floats, out: Floats) -> float:
    """Write the weights as whole numbers of a unit, and return the unit."""
    longest = math.sqrt(
        max(
            float(np.einsum("ij,ij->i", weights, weights).max()),
            float(np.einsum("ij,ij->j", weights, weights).max()),
        )
    )
    exponent = math.floor(math.log2(_ROOM / longest)) if longest > 0 else 0
    exponent = max(-_MAX_EXPONENT, min(_MAX_EXPONENT, exponent))
    np.multiply(weights, np.float32(2.0**exponent), out=out)
    np.rint(out, out=out)
    return 2.0**-exponent
