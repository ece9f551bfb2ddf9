"""A constant threshold, and a part of what was asked where the whole is not worth it: Alg. 3,
corrected.

The threshold is T = U / (1 + ln(U/L)) per unit of cost. A block that is worth ``T * cost`` is given
whole; one that is worth at least ``T * least``, where the request says that a charge of ``least``
is still of use, is charged exactly ``least``.

What is corrected: the charge is one of two public amounts. As written it is ``significance / T -
e0``, which tells the significance to the last bit to everybody who may look into the ledger. Its
Theorem 5 is false as well (where all ratios are below the threshold nothing is served), so no ratio
is claimed.
"""

from __future__ import annotations

import numpy as np

from allocator.scheduling.forecasting.ratios import RatioRange
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["PartialPolicy"]


class PartialPolicy:
    """Alg. 3 with public charges."""

    name = "partial"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """``outlook``: the range of ratios, if it is promised."""
        self._rng = np.random.default_rng([seed, 4])
        self._ratios = RatioRange(outlook)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """``limit`` of the blocks that pass, each whole or its ``least`` part."""
        self._ratios.see(request)
        ratios = self._ratios
        price = ratios.most / (1 + ratios.spread) if ratios.known else 0.0
        least = request.cost if request.least is None else min(request.least, request.cost)
        worth = request.significance
        whole = (worth >= price * request.cost) & (pool.left >= request.cost)
        part = (worth >= price * least) & (pool.left >= least)
        (at,) = np.nonzero((worth > 0) & (whole | part))
        at = np.sort(self._rng.permutation(at)[: request.limit])
        amounts = np.where(whole[at], request.cost, least).astype(np.int64)
        return BlockDecision(at, amounts, np.full(pool.count, price))
