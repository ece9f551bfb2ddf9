"""Two totals for a ratio of sums: which sums of u and v to release, so that their ratio has the
least noise.

A record has a numerator u and a denominator v, whole numbers of steps from 0 to D, with u <= slope v: its own ratio is
bounded too. Released are the totals of two *forms*, p = a u + b v with small whole a and b. Noise of one scale on both must
grow with the **reach**: the largest |p1| + |p2| of a record (L1), or the root of the largest p1^2 + p2^2 (L2). A norm is
convex, so the largest is at a corner of the region: (0, D), (D, D) or (D, D/slope).

The error of the ratio R = (sum of u)/(sum of v) is, to first order, (noise of u - R noise of v) /
(sum of v). With u - R v = l1 p1 + l2 p2 its variance is in proportion to reach^2 (l1^2 + l2^2).
`best_forms` takes the pair with the least of that, in the worst case over the ratios expected,
among all pairs with coefficients up to `LARGEST`: within some percent of the best real
coefficients, found by search. One form is near u - R v for a likely R, which is what the ratio
needs most, and which no record moves far.

Splitting epsilon between the total of u and the total of v, the best share for the same ratios, is
far behind. Variances in units of 2/epsilon^2:

======  ===============  ============  ==========
slope   ratios expected  best split    best forms
======  ===============  ============  ==========
1       0 to 1           8.0           1.0
1       0.25 to 0.75     6.1           0.63
2       0 to 2           17            4.0
2.5     0.38 to 1.1      9.0           1.4
5       0.2 to 0.6       5.0           1.2
20      0.3 to 0.9       7.2           1.6
======  ===============  ============  ==========

Where the slope is 1 the forms are v - u and u: the corners of `corners`, weighted by v.

**Proof note.** *Unit:* one record. *Sensitivity:* it moves the two totals of one cell by its p1 and
p2, and the reach is computed from the public bounds in exact arithmetic, rounded up. *Cost:* none
here.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

__all__ = ["LARGEST", "Forms", "best_forms"]

LARGEST = 12
# Scores nearer than this are equal: the smaller coefficients win, on every machine.
_SAME = 1 + 1e-9

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Forms:
    """(a, b) of both forms, and what one record moves them by at most."""

    first: tuple[int, int]
    second: tuple[int, int]
    l1: int
    l2_squared: int

    @property
    def matrix(self) -> Integers:
        """One row for each form."""
        return np.array([self.first, self.second], dtype=np.int64)

    def totals(self, u: Integers, v: Integers) -> Integers:
        """The totals of both forms, one column each, from those of u and v."""
        return np.stack([a * u + b * v for a, b in (self.first, self.second)], axis=1)

    def read(self, totals: Integers | Floats) -> tuple[Floats, Floats]:
        """The totals of u and v that these totals of the forms stand for."""
        (a, b), (c, d) = self.first, self.second
        first, second = totals[:, 0].astype(np.float64), totals[:, 1].astype(np.float64)
        det = a * d - b * c
        return (d * first - b * second) / det, (a * second - c * first) / det


@lru_cache(maxsize=256)
def best_forms(steps: int, slope: Fraction, low: Fraction, high: Fraction, gaussian: bool) -> Forms:
    """The forms with the least worst variance for ratios, in steps, from ``low`` to ``high``; both
    at most ``slope`` >= 1.
    """
    a, b = (
        grid.ravel()
        for grid in np.meshgrid(
            np.arange(LARGEST + 1), np.arange(-LARGEST, LARGEST + 1), indexing="ij"
        )
    )
    a, b, c, d = a[:, None], b[:, None], a[None, :], b[None, :]
    det = a * d - b * c
    corners = ((0.0, 1.0), (1.0, 1.0), (1.0, float(1 / slope)))
    sizes = [(np.abs(a * u + b * v), np.abs(c * u + d * v)) for u, v in corners]
    reach = np.max(
        [left**2 + right**2 if gaussian else (left + right) ** 2 for left, right in sizes], axis=0
    )
    spread = np.max(
        [(d + c * ratio) ** 2 + (b + a * ratio) ** 2 for ratio in (float(low), float(high))], axis=0
    )
    score = np.where(det != 0, reach * spread / np.where(det != 0, det, 1) ** 2, np.inf)
    near = np.argwhere(score <= score.min() * _SAME)
    pairs = [((int(a[i, 0]), int(b[i, 0])), (int(c[0, j]), int(d[0, j]))) for i, j in near]
    first, second = min(
        pairs,
        key=lambda pair: (sum(abs(coefficient) for form in pair for coefficient in form), pair),
    )
    moved = [
        [abs(of_u * u + of_v * v) for of_u, of_v in (first, second)]
        for u, v in (
            (Fraction(0), Fraction(steps)),
            (Fraction(steps), Fraction(steps)),
            (Fraction(steps), steps / slope),
        )
    ]
    return Forms(
        first, second, ceil(max(map(sum, moved))), ceil(max(p * p + q * q for p, q in moved))
    )
