"""Learned prices inside the guarantee of `guard`."""

from __future__ import annotations

from allocator.scheduling.forecasting.guard import PriceGuard
from allocator.scheduling.forecasting.imagined import Imagined
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest, best_of
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["GuardedPolicy"]


class GuardedPolicy:
    """The past, again; never worse than the theorem of `guard`."""

    name = "guarded"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """``outlook``: the number of requests and the range of ratios."""
        self._imagined = Imagined(outlook, seed, trend=False)
        self._guard = PriceGuard(outlook)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The best blocks at prices in the band."""
        prices = self._imagined.prices(pool, request)
        return best_of(pool, request, self._guard.held(pool, request, prices))
