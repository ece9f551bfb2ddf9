"""How far a prediction is true: what it adds, against what was left of records without it.

*Tastes* are tested on records that they have not seen: a public hash of the pair of a user and an
item says of some that tastes are not learned from them. On those, the residual e and what tastes
predict of it, q, give the sums of e q and of q^2. Were tastes right, both would be the same; were
they chance, the first would be none. Predictions of tastes are multiplied by what the noisy sums
show, from 0 to 1: as far as they can be seen not to be true, tastes do no harm.

*Activities* of a user and an item may work together as factors do (counts: who orders more orders
more of everything) or be added up (minutes, miles). q is then the difference of the two, which the
same two sums judge, on all records.

**Proof note.** *Unit:* one record (event level alone). Whether it is held out depends on its own user
and item. *Sensitivity:* e and q are whole numbers of steps, at most `STEPS` away from 0; the record
adds round(e q / `STEPS`) and round(q^2 / `STEPS`), each at most `STEPS`: see `releases`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.embeddings.releases import STEPS

__all__ = ["evidence", "held_out", "interplay_in", "sums_of", "trust_in"]

Floats = NDArray[np.float64]

# One pair in so many is held out.
_ONE_IN = np.uint64(16)
# Tastes are shrunk already: as far as a test tells nothing, they are believed.
_DOUBT = 0.3
# Sums are kept in units of so many records.
_RECORDS = 200.0
_TINY = 1e-9
# Of one window, so that sums of many stay within what a state may hold.
_MOST = 2.0**40
_MIX = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F))


def held_out(users: NDArray[Any], items: NDArray[Any]) -> NDArray[np.bool_]:
    """Of each pair of codes, whether tastes are tested on it and not learned from it."""
    with np.errstate(over="ignore"):
        mixed = (users.astype(np.uint64) + np.uint64(1)) * _MIX[0]
        mixed ^= (items.astype(np.uint64) + np.uint64(1)) * _MIX[1]
        mixed ^= mixed >> np.uint64(32)
        mixed *= _MIX[1]
        mixed ^= mixed >> np.uint64(29)
        mixed *= _MIX[0]
    tested: NDArray[np.bool_] = (mixed >> np.uint64(40)) % _ONE_IN == 0
    return tested


def sums_of(residuals: Floats, predicted: Floats) -> NDArray[np.int64]:
    """The sums of e q and of q^2, from whole residuals and from what tastes predict of them, in
    steps.
    """
    whole = np.fmin(np.rint(predicted), STEPS)
    np.maximum(whole, -STEPS, out=whole)
    both = (residuals * whole, whole * whole)
    return np.array([[int(np.rint(products / STEPS).sum()) for products in both]], dtype=np.int64)


def evidence(noisy: NDArray[np.int64], sigma: float, spread: float) -> Floats:
    """The noisy sums of e q and of q^2, in units of `_RECORDS` records, and the variance of the
    former; ``spread`` is that of a residual, in steps squared. Those of several windows add up.
    """
    unit = STEPS * _RECORDS
    agree, square = (float(told) / unit for told in noisy)
    chance = (sigma / unit) ** 2 + spread / STEPS / unit * max(square, 0.0)
    return np.clip([agree, square, chance], -_MOST, _MOST)


def trust_in(told: Floats) -> float:
    """What to multiply predictions with, from 0 to 1: from `evidence`.

    The best guess of x from e q = x q^2 and chance, where x is 1, give or take `_DOUBT`, before
    anything is known.
    """
    agree, square, chance = (float(number) for number in told)
    known, before = max(square, 0.0) / max(chance, _TINY), 1 / _DOUBT**2
    return min(max((agree * known + before) / (square * known + before), 0.0), 1.0)


def interplay_in(told: Floats) -> float:
    """How much of the product of two activities to add to their sum, from 0 to 1: from the
    `evidence` of residuals from the whole product.

    Before anything is known it is half of it, give or take half.
    """
    agree, square, chance = (float(number) for number in told)
    known, before = max(square, 0.0) / max(chance, _TINY), 4.0
    guess = ((agree + square) * known + 0.5 * before) / (square * known + before)
    return min(max(guess, 0.0), 1.0)
