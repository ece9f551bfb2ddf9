"""First come, first served: the eligible blocks that arrived first, while there is room."""

from __future__ import annotations

import numpy as np

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["FirstComePolicy"]


class FirstComePolicy:
    """Refuses only where there is no room."""

    name = "fcfs"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:
        """Needs no outlook and no seed."""

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The first ``limit`` blocks with room."""
        (at,) = np.nonzero((request.significance > 0) & (pool.left >= request.cost))
        at = at[: request.limit]
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64))
