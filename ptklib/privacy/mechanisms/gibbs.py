"""The exact draw behind the selections: index i with probability proportional to exp(rate *
score_i).

A real U, uniform on [0, 1), picks the first i with ``U W < C_i``, where C_i are the cumulative
weights exp(-rate * (max - score)), W is their sum, and only as many bits of U are drawn as the
answer needs.

* *Fast path*: 64 bits of U and float64 sums. With u = 2**-53 and n candidates, a weight is off by at most 10 u (the
  exponent x has relative error 3u, w|x| <= 1/e, and exp is granted 8 ulp; weights below exp(-700) are taken as 0), so a
  cumulative sum is off by at most u n (10 + W), and U W by as much plus W (4u + 2**-64). If no C_i lies within
  ``4 u n (W + 10)`` of U W, which is more than both together, the answer is that of exact arithmetic.
* *Undecided*, about once in 10**15 / n**2 draws: integers that enclose each weight, at a precision that grows with U by
  64 bits at a time until the answer is certain.

So the law of the index is exact for every score, however far apart: no weight overflows, and one
that underflows still has its true chance. The time taken depends on the data and the noise at those
odds, and only then.

Unit and sensitivity: those of the scores, which the mechanism states. Cost: that of the mechanism.
"""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from ptklib.privacy.noise.exact import negative_exp
from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["draw_indices"]

Integers = NDArray[np.int64]

_STEP_BITS = 64
_ROUNDOFF = 2.0**-53
_FAINT = 700.0


def draw_indices(
    scores: Integers, rate: Fraction, count: int, *, source: BitSource | None = None
) -> Integers:
    """``count`` independent indices of the one-dimensional ``scores``, |score| <= 2**60, each
    exactly distributed.
    """
    bits = require_secure(source)
    gaps = scores.max() - scores
    words = bits.words(count)
    indices, decided = _fast(gaps, float(rate), words)
    for place in np.flatnonzero(~decided):
        indices[place] = _settle(gaps, rate, int(words[place]), bits)
    return indices


def _fast(
    gaps: Integers, rate: float, words: NDArray[np.uint64]
) -> tuple[Integers, NDArray[np.bool_]]:
    """The indices by float64, and which of them are certain."""
    exponents = gaps * rate
    weights = np.where(exponents < _FAINT, np.exp(-np.minimum(exponents, _FAINT)), 0.0)
    upto = np.concatenate([[-np.inf], np.cumsum(weights)])
    total = upto[-1]
    slack = 4 * _ROUNDOFF * gaps.size * (total + 10)
    aim = words.astype(np.float64) * 2.0**-_STEP_BITS * total
    indices = np.minimum(np.searchsorted(upto, aim, side="right") - 1, gaps.size - 1)
    decided = (aim - upto[indices] > slack) & (upto[indices + 1] - aim > slack)
    return indices.astype(np.int64), decided


def _settle(gaps: Integers, rate: Fraction, u: int, bits: BitSource) -> int:
    """The index for U in [u, u+1)/2**64, in exact arithmetic and with more bits of U where
    needed.
    """
    distinct, place = np.unique(gaps, return_inverse=True)
    known = _STEP_BITS
    while True:
        precision = known + _STEP_BITS + gaps.size.bit_length()
        enclosures = [negative_exp(rate * int(gap), precision) for gap in distinct]
        low_upto = list(accumulate(enclosures[i][0] for i in place.ravel()))
        high_upto = list(accumulate(enclosures[i][1] for i in place.ravel()))
        low, high = u * low_upto[-1], (u + 1) * high_upto[-1]
        # The cumulative weights that are certainly at most U W: the index is not before the first
        # of the others.
        index = bisect_right(high_upto, low >> known)
        if index == gaps.size - 1 or high <= low_upto[index] << known:
            return index
        u = (u << _STEP_BITS) | int(bits.words(1)[0])
        known += _STEP_BITS
