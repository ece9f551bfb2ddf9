"""A threshold that rises as a block is used up: Alg. 2, corrected.

A block that has spent less than 1/(1 + ln(U/L)) of its budget takes any query that fits; later only
those with ``significance >= T(z) * cost``, where T(z) = (U e / L)^z L / e. Blocks that say yes are
chosen at random, as written.

What is corrected: the budget is checked before *every* grant, also where the threshold is not asked
(as written, a query of 0.8 of a budget may be granted at 0.3 of it spent); and the significance
itself is compared with the price of the query, so that its sensitivity does not depend on the
query. Values here are public or were paid for, so comparing costs nothing; a private comparison is
charged at the ledger before it is made, by whoever makes it. The competitive ratio 1 + ln(U/L) that
is claimed for it does not hold with several blocks: see ``docs/internals/scheduling.md``.
"""

from __future__ import annotations

import numpy as np

from allocator.scheduling.forecasting.ratios import RatioRange
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["ThresholdPolicy"]


class ThresholdPolicy:
    """Alg. 2 with the budget always checked."""

    name = "threshold"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """``outlook``: the range of ratios, if it is promised."""
        self._rng = np.random.default_rng([seed, 3])
        self._ratios = RatioRange(outlook)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """``limit`` of the blocks whose threshold is passed."""
        self._ratios.see(request)
        may = (request.significance > 0) & (pool.left >= request.cost)
        prices = np.zeros(pool.count)
        if self._ratios.known:
            spread, least = self._ratios.spread, self._ratios.least
            spent = 1 - pool.left / np.maximum(pool.budget, 1)
            risen = np.exp(spent * (1 + spread) - 1) * least
            prices = np.where(spent < 1 / (1 + spread), 0.0, risen)
            may &= request.significance >= prices * request.cost
        (at,) = np.nonzero(may)
        at = np.sort(self._rng.permutation(at)[: request.limit])
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64), prices)
