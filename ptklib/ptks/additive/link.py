"""From a score to a prediction, in whole numbers: what a record adds depends on that record alone,
to the last bit.

A score is a whole number of steps. Terms are too, so the score of a record is an exact sum of
integers, and its prediction is looked up in a table. No record is rounded by where it stands in an
array, as exponentials of whole arrays may be.

=========  ==============================  =====================================
target     a score is                      the prediction
=========  ==============================  =====================================
classes    log odds of the second class,   its probability
           1,024 steps to 1, within 8
a number   a part of the range,            the same, within the range
           4,096 steps to the whole
=========  ==============================  =====================================

**Proof note.** *Unit:* one record. ``halves`` holds p - 1/2 in whole 1/`STEPS`, for a prediction p
from 0 to 1: whatever the score, its absolute value is at most `REACH` = `STEPS` / 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.binned.codes import STEPS
from ptklib.ptks.binned.target import Classes, Target

__all__ = ["REACH", "Link", "Scores", "link_of"]

Floats = NDArray[np.float64]
Scores = NDArray[np.int32]

REACH = STEPS // 2

_LOGIT_UNITS, _MOST_LOG_ODDS = 1024, 8
_RANGE_UNITS = 4096
# How shapes of a part of a range compare with those of log odds: a probability of a half rises by a
# quarter of its log odds.
_RANGE_SCALE = 1 / 16


@dataclass(frozen=True, eq=False)
class Link:
    """Scores of records, and of terms, in steps."""

    units: int  # steps of a score of 1
    lower: int  # the least and the largest score that count
    upper: int
    scale: float  # of squared terms, and of the variance of one label
    predictions: Floats  # of all scores in their order
    halves: Floats  # whole: `STEPS` times the prediction less a half

    @property
    def most(self) -> int:
        """The largest absolute value of a term or a base, in steps."""
        return max(abs(self.lower), abs(self.upper))

    def places(self, scores: Scores) -> Scores:
        """Where scores are in the tables; beyond the ends, the ends."""
        return np.asarray(np.clip(scores, self.lower, self.upper) - self.lower, dtype=np.int32)

    def base(self, share: float) -> float:
        """The score whose prediction is this share."""
        return float(np.log(share / (1 - share))) if self.lower < 0 else share

    def curvature(self, shares: Floats, overall: float) -> Floats:
        """A bound, for each bin, of how fast the mean prediction of a record rises with the score.

        p(1 - p) is concave: its mean is at most that of the mean. A bin may start at the overall
        share, so half of what that says is the least.
        """
        if self.lower == 0:
            return np.ones_like(shares)
        return np.asarray(
            np.maximum(shares * (1 - shares), overall * (1 - overall) / 2), dtype=np.float64
        )

    def steps(self, scores: Floats) -> Scores:
        """Scores or terms as whole steps within the limits of terms."""
        return np.asarray(
            np.clip(np.rint(scores * self.units), -self.most, self.most), dtype=np.int32
        )


def link_of(target: Target) -> Link:
    """Log odds for classes, the range itself for a number."""
    return _logit() if isinstance(target, Classes) else _range()


@lru_cache(maxsize=1)
def _logit() -> Link:
    most = _LOGIT_UNITS * _MOST_LOG_ODDS
    scores = np.arange(-most, most + 1) / _LOGIT_UNITS
    return _made(_LOGIT_UNITS, -most, most, 1.0, 1 / (1 + np.exp(-scores)))


@lru_cache(maxsize=1)
def _range() -> Link:
    scores = np.arange(_RANGE_UNITS + 1) / _RANGE_UNITS
    return _made(_RANGE_UNITS, 0, _RANGE_UNITS, _RANGE_SCALE, scores)


def _made(units: int, lower: int, upper: int, scale: float, predictions: Floats) -> Link:
    halves = np.clip(np.rint(STEPS * predictions) - REACH, -REACH, REACH)
    predictions.flags.writeable = halves.flags.writeable = False
    return Link(units, lower, upper, scale, predictions, halves)
