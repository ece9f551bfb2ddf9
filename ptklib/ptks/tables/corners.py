"""Corners: how one record of a bounded value is spread over a few totals, so that they are as
sensitive as a count alone.

A value of w whole steps, 0 to D, has the weights

======  =============================  ==========  =============================
degree  weights of a record            they sum    the totals give
======  =============================  ==========  =============================
0       1                              1           count
1       D-w, w                         D           count, sum of w
2       (D-w)^2, 2w(D-w), w^2          D^2         count, sum of w, sum of w^2
======  =============================  ==========  =============================

which are not negative and sum to W = D^degree, whatever the value is.

Why no split of the budget is better ------------------------------------ Take the range as 1, n
records of a key with mean m, and d = m - 1/2. To first order a mean S/n is off by (noise of the sum
- m noise of the count) / n. In units of 2 / (epsilon n)^2 the variances are

* corners: m^2 + (1-m)^2 = 1/2 + 2 d^2, from 1/2 in the middle to 1 at the bounds;
* a sum with the share a of epsilon and a count with the rest: 1/a^2 + m^2/(1-a)^2, at least 1 in
  every split;
* a centred sum (of x - 1/2, sensitivity 1/2) and a count: 1/(4 a^2) + d^2/(1-a)^2. The best share
  *for a known d* gives ((1/4)^(1/3) + (d^2)^(1/3))^3: from 1/4 (all on the sum, none on the count)
  in the middle to 2 at the bounds. The best share for an unknown mean is a = 1/2, and 2 in the
  worst case.

So corners have half the worst variance of the best split. Even a split that knew d beats them only for |d| < 0.07, by
at most a half in variance, and has no count then. In the worst case nothing is better: at m = 0 and m = 1 the variance of the
corners is that of a release that spends all of epsilon on the sum alone. The reason: noise of the corners has the density
exp(-epsilon |z|), where |z| is the norm whose unit ball is the convex hull of all that one record can change (the K-norm
mechanism of Hardt and Talwar); any split has a larger ball. With Gaussian noise the corners and the best centred split
are the same up to a rotation.

With three corners the worst variance of a mean is 5/4 instead of 1.
`tests/ptks/test_statistics_encoding.py` measures this.

**Proof note.** *Unit:* one record. *Sensitivity:* it moves the corners of one cell by whole, not
negative weights that sum to W: by exactly W in L1, at most W in L2. *Cost:* none here.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["moments", "weights"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def weights(sums: Integers, steps: int) -> Integers:
    """Totals of the corners, one column each, from the totals of 1, w, w^2: one row each."""
    if len(sums) == 1:
        return np.ascontiguousarray(sums.T)
    if len(sums) == 2:
        n, w = sums
        return np.stack([steps * n - w, w], axis=1)
    n, w, ww = sums
    return np.stack([steps * steps * n - 2 * steps * w + ww, 2 * (steps * w - ww), ww], axis=1)


def moments(totals: Integers, steps: int) -> dict[str, Floats]:
    """From noisy corners: count, mean and variance of each cell and, last, of all together, in
    units of the range.

    ``total`` is the sum of w over D as it is, without limits: unbiased, for ranks and shares.
    """
    degree = totals.shape[1] - 1
    corners = np.vstack([totals, totals.sum(axis=0, dtype=np.float64)]) / steps**degree
    count = corners.sum(axis=1)
    total = corners @ np.linspace(0.0, 1.0, degree + 1)
    usable = count > 0
    divisor = np.where(usable, count, 1.0)
    mean = np.clip(total / divisor, 0.0, 1.0)
    variance = np.clip(corners[:, -1] / divisor - mean**2, 0.0, mean * (1 - mean))
    # First what all records together fall back to, then the cells.
    for values, middle in ((mean, 0.5), (variance, 1 / 12)):
        values[-1] = values[-1] if usable[-1] else middle
        values[~usable] = values[-1]
    return {
        "count": np.maximum(count, 0.0),
        "mean": mean,
        "variance": variance,
        "counted": count,
        "total": total,
    }
