"""The rest of a stream, imagined from what came: prices at which it would use up what is left.

Each of a sample of past requests stands for several that are still to come, at a time of its own
between now and the end. What a block will be worth to it then is what it was worth to the past
request, perhaps carried on along the trend of the block (`trend.slopes`), at most as long as the
block has been there. Where blocks keep arriving, they are expected to go on arriving at the same
rate: the newest block of then is worth what the newest block was worth to the past request, and so
on by rank; so is a block of now that was not there yet when the past request came.

Deterministic: the seed only orders the samples.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from allocator.scheduling.duals.market import market_prices
from allocator.scheduling.forecasting.trend import slopes
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import BlockRequest
from allocator.scheduling.problem.outlook import Outlook

__all__ = ["Imagined"]

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]

# What one solve may look at, and what is kept of the past.
_CELLS = 400_000
_SAMPLE = 512
_KEPT_CELLS = 8_000_000
_NEWCOMERS = 300
_ROUNDS = 14
_SOLVES = 40
_GOLDEN = 0.6180339887498949
_STEEPEST = 5.0


class Imagined:
    """Prices by imagination, made anew now and then."""

    def __init__(self, outlook: Outlook, seed: int, *, trend: bool) -> None:
        """``trend``: carry significance on along trends; else the future is like the past."""
        self._outlook = outlook
        self._trend = trend
        self._rng = np.random.default_rng([seed, 7])
        self._past: list[BlockRequest] = []
        self._dropped = 0
        self._cells = 0
        self._prices: _Floats = np.zeros(0)
        self._next = 1

    def prices(self, pool: Pool, request: BlockRequest) -> _Floats:
        """The price of every block of the pool for this request; it counts as past from now on."""
        self._remember(request)
        seen = self._dropped + len(self._past)
        if seen >= self._next:
            self._prices = self._solved(pool, seen)
            total = max(self._outlook.requests or 2 * seen, seen)
            self._next = seen + max(1, min(seen // 4, total // _SOLVES))
        if len(self._prices) < pool.count:
            # A block that came since is priced like the last one that is known.
            last = self._prices[-1] if len(self._prices) else 0.0
            more = np.full(pool.count - len(self._prices), last)
            self._prices = np.concatenate([self._prices, more])
        return self._prices

    def _remember(self, request: BlockRequest) -> None:
        self._past.append(request)
        self._cells += len(request.significance) + 1
        if self._cells > _KEPT_CELLS and len(self._past) > 2 * _SAMPLE:
            drop = len(self._past) // 2
            self._cells -= sum(len(past.significance) + 1 for past in self._past[:drop])
            del self._past[:drop]
            self._dropped += drop

    def _solved(self, pool: Pool, seen: int) -> _Floats:
        rest = max(self._outlook.requests or 2 * seen, seen) - seen + 1
        blocks = pool.count
        count = min(len(self._past), _SAMPLE, max(16, _CELLS // max(1, blocks)))
        at = np.unique(np.linspace(0, len(self._past) - 1, count).astype(np.int64))
        sample = [self._past[k] for k in at]
        cost = np.array([past.cost for past in sample], dtype=np.float64)
        limit = np.array([past.limit for past in sample], dtype=np.int64)
        there = np.array([len(past.significance) for past in sample], dtype=np.int64)
        past_value = np.zeros((blocks, len(at)))
        for k, past in enumerate(sample):
            past_value[: there[k], k] = past.significance
        ahead: _Floats = np.multiply(np.arange(len(at)) * _GOLDEN % 1.0, float(rest))
        value = past_value
        if self._trend and len(at) >= 8:
            value = past_value * self._carried(past_value, at, ahead, pool, seen)
        budget = pool.left.astype(np.float64)
        later = int((pool.opened > 0).sum())
        if later and seen > 8:
            come = np.floor(later / seen * ahead + ahead * 7.77 % 1.0).astype(np.int64)
            value = _by_rank(value, past_value, there, come)
            value = np.where(cost > pool.left[:, None], 0.0, value)
            new = _newcomers(past_value, there, come)
            like = float(pool.budget[-min(later, 20) :].mean())
            value = np.concatenate([value, new])
            budget = np.concatenate([budget, np.full(len(new), like)])
        else:
            value = np.where(cost > pool.left[:, None], 0.0, value)
        return market_prices(value, cost, limit, budget, weight=rest / len(at), rounds=_ROUNDS)[
            :blocks
        ]

    def _carried(self, value: _Floats, at: _Ints, ahead: _Floats, pool: Pool, seen: int) -> _Floats:
        slope = slopes(value, at, self._rng)[:, None]
        life = np.maximum(seen - pool.opened, 8)[:, None]
        far = np.where(slope < 0, ahead[None, :], np.minimum(ahead[None, :], life))
        since = (len(self._past) - at)[None, :]
        grown: _Floats = np.exp(np.clip(slope * (far + since), -_STEEPEST, _STEEPEST))
        return grown


def _by_rank(value: _Floats, past_value: _Floats, there: _Ints, come: _Ints) -> _Floats:
    """Blocks that a past request has not seen: as the block that had the rank which they will have
    when ``come`` more have arrived.
    """
    blocks = len(value)
    place = np.arange(blocks)[:, None]
    source = there - come + place - blocks
    use = (there <= place) & (source >= 0)
    taken = past_value[np.clip(source, 0, blocks - 1), np.arange(value.shape[1])]
    return np.where(use, taken, value)


def _newcomers(past_value: _Floats, there: _Ints, come: _Ints) -> _Floats:
    """Rows of blocks that are still to arrive."""
    rows = np.arange(min(int(come.max(initial=0)), _NEWCOMERS))[:, None]
    source = there - come + rows
    use = (rows < come) & (source >= 0) & (source < there)
    taken = past_value[np.clip(source, 0, len(past_value) - 1), np.arange(len(there))]
    return np.where(use, taken, 0.0)
