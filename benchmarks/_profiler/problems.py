"""Synthetic problems with known risks: records of any number, the risk of any state, and the least
risk of all.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa

from benchmarks._profiler.ptks import Histogram, LeastSquares, Mean, Threshold
from ptklib.ptk import Arrays, Ptk

__all__ = ["KINDS", "Problem", "mean_of", "needed", "problem"]

KINDS = ("threshold", "mean", "histogram", "least squares")
_BINS = 8
_STEP = 2**0.25


@dataclass(frozen=True)
class Problem:
    """A PTK and a distribution:

    ``draw(rng, n)`` records, ``risk(state)`` exactly, ``least`` the minimal risk.
    """

    name: str
    ptk: Ptk
    draw: Callable[[np.random.Generator, int], pa.RecordBatch]
    risk: Callable[[Arrays], float]
    least: float


def problem(kind: str, least: float) -> Problem:
    """A problem of that kind whose minimal risk is ``least``."""
    return {
        "threshold": _threshold,
        "mean": _mean,
        "histogram": _histogram,
        "least squares": _least_squares,
    }[kind](least)


def _table(**columns: object) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {name: np.asarray(one, dtype=np.float64) for name, one in columns.items()}
    )


def _threshold(least: float) -> Problem:
    """x uniform, y = [x >= 5/8] flipped with probability ``least`` (below 1/2)."""
    ptk = Threshold(grid=64)

    def draw(rng: np.random.Generator, n: int) -> pa.RecordBatch:
        x = rng.random(n)
        return _table(x=x, y=(x >= 0.625) ^ (rng.random(n) < least))

    def risk(arrays: Arrays) -> float:
        return least + (1 - 2 * least) * abs(float(arrays["f"][0]) - 0.625)

    return Problem("threshold", ptk, draw, risk, least)


def mean_of(least: float) -> float:
    """The mean of the problem of that name."""
    return max(0.5, 1 - math.sqrt(least) - 0.02)


def _mean(least: float) -> Problem:
    """x in {m - d, m + d}: the variance d^2 is the minimal risk, at most 1/4.

    The mean is off the middle where it can be.
    """
    spread = math.sqrt(least)
    centre = mean_of(least)

    def draw(rng: np.random.Generator, n: int) -> pa.RecordBatch:
        return _table(x=centre + spread * rng.choice([-1.0, 1.0], n))

    def risk(arrays: Arrays) -> float:
        return least + (float(arrays["f"][0]) - centre) ** 2

    return Problem("mean", Mean(), draw, risk, least)


def _histogram(least: float) -> Problem:
    """One bin holds share p, the others the rest evenly: the minimal half Brier score (1 - sum of
    squares)/2 is ``least``.
    """
    # (1 - p^2 - (1-p)^2/(k-1))/2 = least, for p above 1/k.
    k = _BINS - 1
    low, high = 1 / _BINS, 1.0
    for _ in range(60):
        p = (low + high) / 2
        low, high = (p, high) if (1 - p * p - (1 - p) ** 2 / k) / 2 > least else (low, p)
    shares = np.array([p] + [(1 - p) / k] * k)

    def draw(rng: np.random.Generator, n: int) -> pa.RecordBatch:
        return _table(x=(rng.choice(_BINS, n, p=shares) + 0.5) / _BINS)

    def risk(arrays: Arrays) -> float:
        found = arrays["f"]
        return float(((found**2).sum() + 1) / 2 - (found * shares).sum())

    return Problem(
        "histogram", Histogram(bins=_BINS), draw, risk, float((1 - (shares**2).sum()) / 2)
    )


def _least_squares(least: float) -> Problem:
    """x uniform, y = x/2 + 1/4 or so plus or minus sqrt(least): the best slope is known, and its
    risk.
    """
    # y = x/2 +- d needs room: shift x to [d', 1] by drawing x from {1/2, 1}. y in [0, 1] while d <=
    # 1/4; beyond, y is 0 or 1.
    spread = math.sqrt(least)
    points = np.array([0.75, 1.0])
    slope = 0.55

    def draw(rng: np.random.Generator, n: int) -> pa.RecordBatch:
        x = rng.choice(points, n)
        return _table(x=x, y=slope * x + spread * rng.choice([-1.0, 1.0], n))

    def risk(arrays: Arrays) -> float:
        return least + (float(arrays["f"][0]) - slope) ** 2 * float((points**2).mean())

    return Problem("least squares", LeastSquares(), draw, risk, least)


@cache
def needed(
    kind: str, least: float, target: float, epsilon: float, runs: int = 200, share: float = 0.9
) -> int:
    """The least n, on a grid of fourth roots of 2, whose DP states have risk at most least + target
    in ``share`` of runs.
    """
    one = problem(kind, least)
    rng = np.random.default_rng(
        [len(kind), round(least * 1e6), round(target * 1e6), round(epsilon * 1e6)]
    )
    n = 1.0
    while n < 2**22:
        size = round(n)
        good = 0
        for run in range(runs):
            state = one.ptk.train_dp([one.draw(rng, size)], epsilon=str(epsilon))
            good += one.risk(state) <= one.least + target
            if run - good > (1 - share) * runs:
                break
        else:
            return size
        n *= _STEP
    raise ValueError("no n is enough")
