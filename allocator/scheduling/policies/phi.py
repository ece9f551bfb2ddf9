"""A price that rises with what a block has spent, and the best blocks at those prices.

Block i, of whose budget the share z is spent, asks phi(z) per unit of cost; the query is given the
``limit`` blocks with the largest positive ``significance - cost * phi(z)``. Where all ratios lie in
[L, U]::

    phi(z) = (a - 1) L (e^z - 1)          until phi = L, at z0 = ln(a / (a - 1))
    phi(z) = L e^(a (z - z0))             after
    a (1 - ln(a / (a - 1))) = ln(U / L)   so that phi(1) = U

*Theorem.* For requests that are small against the budgets the optimum is at most a times what is
granted. Proof: the prices phi(z_i) at the end, with each query's gain at the prices when it came,
are a feasible dual of the linear relaxation, since prices only rise and a full block asks U, which
nobody pays. Granting a query block i at price phi raises the primal by p and the dual by (p - e
phi) + b (phi(z + e/b) - phi(z)), in the limit p + e (phi' - phi). Before z0, phi' - phi = (a - 1) L
<= (a - 1) p / e; after it, phi' - phi = (a - 1) phi <= (a - 1) p / e. So the dual rises by at most
a p. (1.58 at U/L = 1, 3.48 at 10, 5.70 at 100.)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.forecasting.ratios import RatioRange
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest, best_of
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["PhiPolicy", "competitive_ratio"]


def competitive_ratio(spread: float) -> float:
    """The a of the theorem for ``spread`` = ln(U/L): e/(e-1) at 0, about 1 + spread for large."""
    low, high = 1 + 1e-12, spread + 3
    for _ in range(200):
        middle = (low + high) / 2
        if middle * (1 - math.log(middle / (middle - 1))) < spread:
            low = middle
        else:
            high = middle
    return high


class PhiPolicy:
    """The proved prices."""

    name = "phi"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:  # noqa: ARG002
        """``outlook``: the range of ratios, if it is promised."""
        self._ratios = RatioRange(outlook)
        self._spread, self._ratio = -1.0, 0.0

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The best blocks at the prices of now."""
        self._ratios.see(request)
        return best_of(pool, request, self._prices(pool))

    def _prices(self, pool: Pool) -> NDArray[np.float64]:
        if not self._ratios.known:
            return np.zeros(pool.count)
        if self._ratios.spread != self._spread:
            self._spread = self._ratios.spread
            self._ratio = competitive_ratio(self._spread)
        a, least = self._ratio, self._ratios.least
        spent = 1 - pool.left / np.maximum(pool.budget, 1)
        turn = math.log(a / (a - 1))
        early = (a - 1) * np.expm1(np.minimum(spent, turn))
        prices: NDArray[np.float64] = least * np.where(
            spent <= turn, early, np.exp(a * (spent - turn))
        )
        return prices
