"""Budget that is unlocked evenly over the stream, spent where it yields most.

As `dpf`, but a request gets the unlocked blocks that are worth most for what it takes of what they
have left: the efficiency by which DPack packs, decided request by request.
"""

from __future__ import annotations

import numpy as np

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.policies.dpf import unlocked
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["PackingPolicy"]


class PackingPolicy:
    """DPack, decided request by request."""

    name = "dpack"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:  # noqa: ARG002
        """``outlook``: the number of requests."""
        self._outlook = outlook

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The most efficient blocks whose unlocked budget suffices."""
        free = unlocked(pool, request, self._outlook)
        (at,) = np.nonzero((request.significance > 0) & (free >= request.cost))
        yields = request.significance[at] * np.maximum(pool.left[at], 1)
        at = np.sort(at[np.argsort(-yields.astype(np.float64), kind="stable")[: request.limit]])
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64))
