"""Where significance is going: a slope of its logarithm for every block, as far as it is beyond
chance.

``value[i, k]`` was seen at request number ``at[k]`` (0: not seen). The common slope is that of all
blocks about their own means; it counts as far as it exceeds its standard error, taken over requests
as wholes because the values of a request move together. On top of it a block that was there all the
time may have a slope of its own. These are believed only as far as slopes in the true order of
requests are larger than in every one of some random orders: without a trend all orders are alike.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["slopes"]

_Floats = NDArray[np.float64]
_ORDERS = 24
# A slope of two standard errors counts for a third of itself, below 1.7 not at all.
_PENALTY = 6.0
_THERE = 0.9


def slopes(value: _Floats, at: NDArray[np.int64], rng: np.random.Generator) -> _Floats:
    """The change of log significance per request, of every block."""
    seen = value > 0
    each = np.maximum(seen.sum(axis=1, keepdims=True), 1)
    logs = np.log(np.where(seen, value, 1.0))
    times = np.broadcast_to(at.astype(np.float64), value.shape)
    times = np.where(
        seen, times - np.where(seen, times, 0.0).sum(axis=1, keepdims=True) / each, 0.0
    )
    logs = np.where(seen, logs - logs.sum(axis=1, keepdims=True) / each, 0.0)
    spread = float((times * times).sum())
    if spread <= 0:
        return np.zeros(len(value))
    common = float((times * logs).sum()) / spread
    rest = np.where(seen, logs - common * times, 0.0)
    error = float(((times * rest).sum(axis=0) ** 2).sum()) / spread**2
    common *= max(0.0, 1 - _PENALTY * error / max(common**2, 1e-300))
    own = _own(rest, seen, at, rng)
    return common + own


def _own(
    rest: _Floats, seen: NDArray[np.bool_], at: NDArray[np.int64], rng: np.random.Generator
) -> _Floats:
    """What the slopes of blocks add to the common slope."""
    own = np.zeros(len(rest))
    there = seen.mean(axis=1) > _THERE
    if there.sum() < 3:
        return own
    rest = np.where(seen, rest - rest.sum(axis=0) / np.maximum(seen.sum(axis=0), 1), 0.0)
    true = at - at.mean()
    orders = np.stack([true, *(rng.permutation(true) for _ in range(_ORDERS))], axis=1)
    found_in = rest[there] @ orders / max(float(true @ true), 1e-300)
    sizes = (found_in * found_in).mean(axis=0)
    belief = max(0.0, 1 - float(sizes[1:].max()) / max(float(sizes[0]), 1e-300))
    own[there] = belief * found_in[:, 0]
    return own
