"""Eligible blocks at random, until their budgets run out: Sage as it is simulated by others."""

from __future__ import annotations

import numpy as np

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["RandomPolicy"]


class RandomPolicy:
    """Refuses only where there is no room. The seed decides everything; nothing here is noise."""

    name = "random"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:  # noqa: ARG002
        """Needs no outlook."""
        self._rng = np.random.default_rng([seed, 1])

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """``limit`` of the blocks with room."""
        (at,) = np.nonzero((request.significance > 0) & (pool.left >= request.cost))
        at = np.sort(self._rng.permutation(at)[: request.limit])
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64))
