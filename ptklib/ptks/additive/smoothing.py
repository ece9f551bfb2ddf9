"""The shape of an input from what was seen of its bins with known noise: post-processing.

Each bin was seen once, with a variance that is public. Shapes are taken to be normal around zero:
bins in an order as a walk whose steps have one variance, categories each on its own. That variance
is not known; several are weighed by how well they explain what was seen, and the means are taken
with these weights. Where nothing but noise was seen, small variances win and the shape is near
zero; where much was seen, it stays as it was seen.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["smoothed"]

Floats = NDArray[np.float64]

_VARIANCES = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
# Of the first bin of a walk, and of the unknown bin beside it.
_FIRST, _UNKNOWN = 1.0, 0.3


def smoothed(seen: Floats, variance: Floats, *, ordered: bool, scale: float) -> Floats:
    """The shape of all bins, the unknown one last; ``scale`` is that of squared shapes."""
    if not ordered:
        return _alone(seen, variance, scale)
    last = seen[-1:] * (scale * _UNKNOWN) / (scale * _UNKNOWN + variance[-1:])
    return np.concatenate([_walked(seen[:-1], variance[:-1], scale), last])


def _alone(seen: Floats, variance: Floats, scale: float) -> Floats:
    total = scale * _VARIANCES + variance[:, None]
    evidence = -0.5 * (np.log(total) + np.square(seen)[:, None] / total).sum(axis=0)
    means = seen[:, None] * (scale * _VARIANCES) / total
    return _weighed(means, evidence)


def _walked(seen: Floats, variance: Floats, scale: float) -> Floats:
    """The mean of a walk given all bins: forth, with what was seen so far, and back."""
    steps = scale * _VARIANCES
    means, spreads, ahead = [], [], []
    mean, spread = np.zeros(len(steps)), np.full(len(steps), scale * _FIRST)
    evidence = np.zeros(len(steps))
    for place in range(len(seen)):
        total = spread + variance[place]
        error = seen[place] - mean
        evidence -= 0.5 * (np.log(total) + error * error / total)
        gain = spread / total
        mean = mean + gain * error
        left = spread * (1 - gain)
        spread = left + steps
        means.append(mean)
        spreads.append(left)
        ahead.append(spread)
    made = np.empty((len(seen), len(steps)))
    made[-1] = means[-1]
    for place in range(len(seen) - 2, -1, -1):
        pull = spreads[place] / ahead[place]
        made[place] = means[place] + pull * (made[place + 1] - means[place])
    return _weighed(made, evidence)


def _weighed(means: Floats, evidence: Floats) -> Floats:
    # Before anything is seen small variances are likelier: a shape of noise costs more than one that
    # is a little too flat.
    odds = evidence - 0.5 * np.log(_VARIANCES)
    weights = np.exp(odds - odds.max())
    weights /= weights.sum()
    # Number by number, in one order.
    total = np.zeros(len(means))
    for place, weight in enumerate(weights):
        total += weight * means[:, place]
    return total
