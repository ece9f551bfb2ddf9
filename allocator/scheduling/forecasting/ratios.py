"""Between which values significance per unit of cost lies: promised, or as seen so far.

The theorems about thresholds and prices take the range as known (least L, most U). Where a stream
promises it, that is used; where it does not, the range of what came so far, which proves nothing.
"""

from __future__ import annotations

import math

import numpy as np

from allocator.scheduling.online.protocol import BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["RatioRange"]


class RatioRange:
    """A range that grows with what is seen, unless it is promised."""

    def __init__(self, outlook: Outlook) -> None:
        """``outlook``: what the stream promises."""
        self._promised = outlook.least_ratio is not None and outlook.most_ratio is not None
        self.least = outlook.least_ratio or math.inf
        self.most = outlook.most_ratio or 0.0

    @property
    def known(self) -> bool:
        """True when there is a range."""
        return 0 < self.least <= self.most < math.inf

    @property
    def spread(self) -> float:
        """ln(U / L); 0 without a range."""
        return math.log(self.most / self.least) if self.known else 0.0

    def see(self, request: BlockRequest) -> None:
        """Widen the range, where nothing is promised."""
        if self._promised or request.cost <= 0 or not len(request.significance):
            return
        worth = request.significance
        most = int(worth.max())
        if most <= 0:
            return
        least = int(np.where(worth > 0, worth, most).min())
        self.most = max(self.most, most / request.cost)
        self.least = min(self.least, least / request.cost)
