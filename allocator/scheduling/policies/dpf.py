"""Budget that is unlocked evenly over the stream, the smallest dominant share first.

Decided request by request there is nobody to compare with, so what remains of the rule is its
fairness: a block unlocks an equal part of its budget with every request, until half of the stream
is over, and a request gets the blocks of which it takes the smallest share.
"""

from __future__ import annotations

import numpy as np

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["FairSharePolicy", "unlocked"]


def unlocked(
    pool: Pool, request: BlockRequest, outlook: Outlook
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What is unlocked and not yet spent of every block."""
    over = (outlook.requests or 200) / 2
    share = np.minimum((request.index - pool.opened + 1) / max(over, 1.0), 1.0)
    left: np.ndarray[tuple[int], np.dtype[np.float64]] = pool.left - pool.budget * (1 - share)
    return left


class FairSharePolicy:
    """DPF, decided request by request."""

    name = "dpf"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:  # noqa: ARG002
        """``outlook``: the number of requests."""
        self._outlook = outlook

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """The blocks of the smallest dominant share whose unlocked budget suffices."""
        free = unlocked(pool, request, self._outlook)
        (at,) = np.nonzero((request.significance > 0) & (free >= request.cost))
        share = request.cost / np.maximum(pool.budget[at], 1)
        at = np.sort(at[np.argsort(share, kind="stable")[: request.limit]])
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64))
