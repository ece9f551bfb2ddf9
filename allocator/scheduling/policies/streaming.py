"""Each block once, at random: data that comes and goes."""

from __future__ import annotations

import numpy as np

from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockDecision, BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["StreamingPolicy"]


class StreamingPolicy:
    """A block that was given is never given again, whatever it has left."""

    name = "streaming"

    def __init__(self, outlook: Outlook, seed: int = 0) -> None:  # noqa: ARG002
        """Needs no outlook."""
        self._rng = np.random.default_rng([seed, 2])
        self._used = np.zeros(0, dtype=np.bool_)

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """``limit`` of the blocks that nobody had."""
        if len(self._used) < pool.count:
            more = np.zeros(2 * pool.count - len(self._used), dtype=np.bool_)
            self._used = np.concatenate([self._used, more])
        fresh = ~self._used[: pool.count]
        (at,) = np.nonzero(fresh & (request.significance > 0) & (pool.left >= request.cost))
        at = np.sort(self._rng.permutation(at)[: request.limit])
        self._used[at] = True
        return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64))
