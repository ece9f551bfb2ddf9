"""Prices at which requests like those that came would use up what is left by the end.

Excellent where requests keep coming from one source, lost where significance follows a trend; it
needs the number of requests. No guarantee.
"""

from __future__ import annotations

from allocator.scheduling.forecasting.imagined import Imagined
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest, best_of
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["LearnedPolicy"]


class LearnedPolicy:
    """The past, again."""

    name = "learned"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """``outlook``: the number of requests."""
        self._imagined = Imagined(outlook, seed, trend=False)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The best blocks at the learned prices."""
        return best_of(pool, request, self._imagined.prices(pool, request))
