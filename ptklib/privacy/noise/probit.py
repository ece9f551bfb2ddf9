"""The inverse normal distribution function, vectorised: Taylor polynomials from a table, scipy's
ndtri in the far tail.

scipy's ``ndtri`` takes branches for every element, which costs more than everything else in a draw.
Here the leading bits of the float64 p (its octave and 9 bits of its fraction) name one of 512 cells
per octave, and a Taylor polynomial of degree four around the middle of the cell gives the value.
The coefficients are closed forms of s = ndtri(middle), with s' = 1/phi(s):

    s'' = s s'²      s''' = (2s² + 1) s'³      s'''' = (6s³ + 7s) s'⁴      s''''' = (24s⁴ + 46s² + 7) s'⁵

**Error.** Let e = 2**-53 and m = p s' = P(Z < s)/phi(s), Mills' ratio, at most sqrt(pi/2) and decreasing in |s|. The
distance x to the middle is at most p 2**-10, so what is cut off is at most (24s⁴ + 46s² + 7) m⁵ 2**-50/120. The factor of
2**-50 is largest at s = 0, where it is 0.18: the rest is below 2e everywhere. x is exact (the difference of two floats
of one octave). The terms of degree one and more sum to less than 2**-9, and the first, x s' <= m 2**-10, dominates:
their roundings, and an error of s' of (8s² + 2|s| + 8)e relative, with m <= 1/|s|, cost less than e/4. The last
addition costs e |s|. What is left is the error of ndtri at the middles of the cells: if it is within
8e |s| + 2e, this function is within 10e |s| + 5e. That is an assumption about scipy. The sampler's self-test checks it
at a sample of cells, and `seams` finds any single cell that is out of line with its neighbours.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["Probit", "seams"]

_Floats = NDArray[np.float64]

_CELL_BITS = 9
_SHIFT = 52 - _CELL_BITS
_HALF_CELL = 1 << (_SHIFT - 1)
_ABOVE = np.int64(-1 << _SHIFT)
# Cells for 2**-20 <= p < 1/2 and the one that begins at 1/2; one draw in half a million has a
# smaller p.
_LEAST = 2.0**-20
_FIRST = int(np.float64(_LEAST).view(np.int64)) >> _SHIFT
_CELLS = (19 << _CELL_BITS) + 1


def ndtri(p: _Floats) -> _Floats:
    """scipy's, imported when the first noise is drawn: those who only read states never wait for
    it.
    """
    from scipy import special

    quantiles: _Floats = special.ndtri(p)
    return quantiles


class Probit:
    """ndtri for 0 < p <= 1/2 with buffers for ``size`` elements."""

    def __init__(self, size: int) -> None:
        """Buffers are reused from call to call: one instance per thread and call of a sampler."""
        self._table = _coefficients()
        self._index = np.empty(size, dtype=np.int64)
        self._middle = np.empty(size, dtype=np.int64)
        self._coefficient = np.empty(size)
        self._value = np.empty(size)

    def __call__(self, p: _Floats) -> _Floats:
        """ndtri(p), in a buffer that the next call reuses; p is overwritten."""
        n = len(p)
        index, middle, coefficient, value = (
            self._index[:n],
            self._middle[:n],
            self._coefficient[:n],
            self._value[:n],
        )
        far = np.flatnonzero(p < _LEAST) if n and p.min() < _LEAST else None
        far_values = ndtri(p[far]) if far is not None else None
        bits = p.view(np.int64)
        np.bitwise_and(bits, _ABOVE, out=middle)
        np.bitwise_or(middle, _HALF_CELL, out=middle)
        np.right_shift(bits, _SHIFT, out=index)
        np.subtract(index, _FIRST, out=index)
        x = np.subtract(p, middle.view(np.float64), out=p)
        np.take(self._table[4], index, out=value, mode="clip")
        for degree in (3, 2, 1, 0):
            np.multiply(value, x, out=value)
            np.take(self._table[degree], index, out=coefficient, mode="clip")
            np.add(value, coefficient, out=value)
        if far is not None:
            value[far] = far_values
        return value


@lru_cache(maxsize=1)
def _coefficients() -> tuple[_Floats, ...]:
    edges = (np.arange(_CELLS, dtype=np.int64) + _FIRST) << _SHIFT
    s = ndtri((edges | _HALF_CELL).view(np.float64))
    d = np.sqrt(2 * np.pi) * np.exp(s * s / 2)
    return (s, d, s * d**2 / 2, (2 * s**2 + 1) * d**3 / 6, (6 * s**3 + 7 * s) * d**4 / 24)


def seams() -> float:
    """The largest jump between neighbouring cells, in units of what the proof allows it to be.

    The polynomials of two neighbours must agree at their common edge: each is within 10e |s| + 5e of the same number. An
    error of ndtri at any one middle shows as a jump; one that all neighbours share does not.
    """
    edges = (np.arange(1, _CELLS, dtype=np.int64) + _FIRST) << _SHIFT
    x = edges.view(np.float64) - (edges - _HALF_CELL).view(np.float64)
    left = np.zeros(len(edges))
    for coefficient in reversed(_coefficients()):
        left = left * x + coefficient[:-1]
    right = Probit(len(edges))(edges.view(np.float64).copy())
    return float(np.max(np.abs(left - right) / (2.0**-53 * (20 * np.abs(right) + 10))))
