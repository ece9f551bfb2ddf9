"""Prices for what is probably still to come, inside a guarantee: the default for single blocks.

The rest of the stream is imagined from what came, along the trends that are beyond chance and with
the blocks that are still to arrive (`imagined`); prices are those at which it would use up what is
left. Whatever they say, they are held in the band of `guard`, so that no stream, however contrived,
gets less than its theorem says.
"""

from __future__ import annotations

from allocator.scheduling.forecasting.guard import PriceGuard
from allocator.scheduling.forecasting.imagined import Imagined
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest, best_of
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["ForecastPolicy"]


class ForecastPolicy:
    """What came, carried on; never worse than the theorem of `guard`."""

    name = "forecast"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """``outlook``: the number of requests and the range of ratios."""
        self._imagined = Imagined(outlook, seed, trend=True)
        self._guard = PriceGuard(outlook)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The best blocks at prices in the band."""
        prices = self._imagined.prices(pool, request)
        return best_of(pool, request, self._guard.held(pool, request, prices))
