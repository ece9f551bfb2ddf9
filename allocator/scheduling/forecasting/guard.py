"""What keeps a price inside a guarantee, wherever it comes from.

All ratios lie in [L, U]; a = 2 (1 + ln(U/L)). Block i with budget b has earned V; its *cap* is
``a V / b``.

*Reserve.* A block that has earned V keeps the share ln(U / cap) / a of its budget (while cap < L:
(1 + ln(U/L) - cap/L) / a; from cap = U on nothing), unless the sale is at the cap or above. Sales
at the cap raise V fast enough that the share never runs short: selling dz at ratio r >= cap lowers
the share by r dz / (V/b) / a >= dz. So a block that is full has cap >= U.

*Cap.* While (1 + a) times all that was granted is less than the sum of what all requests so far
could have been given had there been room for everything, prices are at most the cap.

*Theorem.* For requests that are small against the budgets the optimum is at most 1 + 2a times what
is granted. Proof: let s be the last request after which the cap did not apply. Requests up to s
were worth at most (1 + a) ALG. Of the later ones, take as duals the largest price that each block
asked of them (U where it had no room) and each request's gain at the prices when it came: they are
feasible, cost at most the sum of b_i times cap_i = a V_i, and the gains are at most what was
granted after s. Together at most (1 + a) ALG_s + a ALG + (ALG - ALG_s) <= (1 + 2a) ALG.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.forecasting.ratios import RatioRange
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["PriceGuard", "guaranteed"]

_Floats = NDArray[np.float64]


def guaranteed(spread: float) -> float:
    """The optimum is at most so many times what is granted; ``spread`` = ln(U/L)."""
    return 1 + 4 * (1 + spread)


class PriceGuard:
    """Holds prices in the band of the theorem."""

    def __init__(self, outlook: Outlook) -> None:
        """``outlook``: the range of ratios; where it is not promised, that of what came."""
        self._ratios = RatioRange(outlook)
        self._asked = 0.0

    def held(self, pool: Pool, request: BlockRequest, prices: _Floats) -> _Floats:
        """The prices for this request."""
        ratios, worth = self._ratios, request.significance
        ratios.see(request)
        self._asked += _most(worth, request.limit)
        if not ratios.known or request.cost <= 0:
            return prices
        a = 2 * (1 + ratios.spread)
        budget = np.maximum(pool.budget, 1)
        cap = a * pool.earned / budget
        after = cap + a * worth / budget
        keep = np.where(
            after >= ratios.least,
            np.log(ratios.most / np.clip(after, ratios.least, ratios.most)),
            ratios.spread + 1 - after / ratios.least,
        )
        short = pool.left - request.cost < keep * budget / a
        held: _Floats = np.where(short, np.maximum(prices, cap), prices)
        if (1 + a) * float(pool.earned.sum()) < self._asked or math.isinf(self._asked):
            held = np.minimum(held, cap)
        return held


def _most(worth: NDArray[np.int64], limit: int) -> float:
    """The sum of the ``limit`` largest."""
    if limit <= 0 or not len(worth):
        return 0.0
    if limit == 1:
        return float(worth.max())
    if limit >= len(worth):
        return float(worth.sum(dtype=np.float64))
    return float(
        np.partition(worth, len(worth) - limit)[len(worth) - limit :].sum(dtype=np.float64)
    )
