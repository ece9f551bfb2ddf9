"""One protocol for every rule that decides a request when it comes.

A request costs ``cost`` at each block it is given and takes at most ``limit`` blocks; what a block
is worth to it is public or was paid for (never raw: what is decided from it is shown). The policy
sees the blocks that have arrived and nothing of what is to come, except what the stream promises
(`problem.outlook`). Decisions cannot be taken back. A decision says the price it was made at, so
that it can be explained: block i was given where ``significance - cost * price[i]`` was among the
``limit`` largest and positive, and there was room.

Whoever drives the policy charges the pool after each decision, before the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.online.pool import Pool

__all__ = ["REASONS", "BlockDecision", "BlockPolicy", "BlockRequest", "best_of"]

REASONS = ("GRANTED", "PARTLY", "BELOW_PRICE", "NO_ROOM", "NOT_ELIGIBLE", "NO_LIMIT")


@dataclass(frozen=True)
class BlockRequest:
    """Request number ``index``; ``significance`` of every block of the pool (0: not eligible).

    ``least``: the smallest charge at a block that is still of use; None where a part is of none.
    """

    index: int
    cost: int
    limit: int
    significance: NDArray[np.int64]
    least: int | None = None


@dataclass(frozen=True)
class BlockDecision:
    """The blocks that are given, what each is charged, and the price of every block of the pool
    (None where the policy has none).
    """

    blocks: NDArray[np.intp]
    amounts: NDArray[np.int64]
    prices: NDArray[np.float64] | None = None

    def reason(self, pool: Pool, request: BlockRequest) -> str:
        """Why, in one of `REASONS`; asked before the pool is charged."""
        if len(self.blocks):
            return "GRANTED" if len(self.blocks) >= request.limit else "PARTLY"
        if request.limit == 0:
            return "NO_LIMIT"
        eligible = request.significance > 0
        if not eligible.any():
            return "NOT_ELIGIBLE"
        return "BELOW_PRICE" if (eligible & (pool.left >= request.cost)).any() else "NO_ROOM"


class BlockPolicy(Protocol):
    """Decides requests in the order in which they come."""

    name: str

    def decide(self, pool: Pool, request: BlockRequest) -> BlockDecision:
        """What the request is given, for good."""


def best_of(
    pool: Pool,
    request: BlockRequest,
    prices: NDArray[np.float64],
    allowed: NDArray[np.bool_] | None = None,
) -> BlockDecision:
    """The ``limit`` blocks of the largest positive ``significance - cost * price`` with room.

    Ties go to the block that came first.
    """
    margin = request.significance - request.cost * prices
    may = (request.significance > 0) & (margin > 0) & (pool.left >= request.cost)
    if allowed is not None:
        may &= allowed
    (at,) = np.nonzero(may)
    if len(at) > request.limit:
        worth = margin[at]
        if request.limit == 0:
            at = at[:0]
        elif request.limit == 1:
            at = at[[int(np.argmax(worth))]]
        else:
            # Selection first: sorting ten thousand blocks for three of them would be the whole cost.
            edge = np.partition(worth, len(worth) - request.limit)[len(worth) - request.limit]
            over = at[worth > edge]
            at = np.concatenate([over, at[worth == edge][: request.limit - len(over)]])
    return BlockDecision(at, np.full(len(at), request.cost, dtype=np.int64), prices)
