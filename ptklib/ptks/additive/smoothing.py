"""The shape of an input from what was seen of its bins with known noise: post-processing.

Each bin was seen once, with a variance that is public. Shapes are taken to be normal around zero:
bins in an order as a walk whose steps have one variance, categories each on its own. That variance
is not known; several are weighed by how well they explain what was seen, and by how likely they are
for the inputs of this model, and the means are taken with these weights. Where nothing but noise was
seen, small variances win and the shape is near zero; where much was seen, it stays as it was seen.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["odds_of", "smoothed"]

Floats = NDArray[np.float64]

_VARIANCES = np.array([0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0])
# Of the first bin of a walk, and of the unknown bin beside it.
_FIRST, _UNKNOWN = 1.0, 0.3
# How far what is seen may be from nothing: by the noise, and by a shape that is plain to see.
_DEVIATIONS, _MOST = 2.0, 8.0
# Inputs' worth of a guess of which variances are likely, and turns of the search for a better one.
# The guess favours small variances: a shape of noise costs more than one that is a little too flat.
_FEW, _TURNS = 2.0, 20


def smoothed(
    seen: Floats, variance: Floats, odds: Floats, *, ordered: bool, scale: float
) -> Floats:
    """The shape of all bins, the unknown one last; ``scale`` is that of squared shapes, ``odds``
    are those of the variances before anything was seen of this input.
    """
    means, evidence = _explained(seen, variance, ordered=ordered, scale=scale)
    weights = _weights(evidence + odds)
    # Number by number, in one order.
    total = np.zeros(len(means))
    for place, weight in enumerate(weights):
        total += weight * means[:, place]
    if not ordered:
        return total
    last = seen[-1:] * (scale * _UNKNOWN) / (scale * _UNKNOWN + variance[-1:])
    return np.concatenate([total, last])


def odds_of(seen: Sequence[tuple[Floats, Floats, bool]], scale: float) -> Floats:
    """The odds of the variances that inputs with these shapes (what was seen, its variance, whether
    in an order) have in common.

    Shapes of one model are alike: where many are plain to see, a faint one is likelier true. Odds
    are moved to explain all inputs, beginning with `_FEW` inputs' worth of a guess.
    """
    evidence = [
        _explained(shape, variance, ordered=ordered, scale=scale)[1]
        for shape, variance, ordered in seen
    ]
    guess = _FEW * _weights(-0.5 * np.log(_VARIANCES))
    odds = np.log(guess)
    for _ in range(_TURNS):
        total = guess.copy()
        for by_variance in evidence:
            total += _weights(by_variance + odds)
        odds = np.log(total)
    return odds


def _explained(
    seen: Floats, variance: Floats, *, ordered: bool, scale: float
) -> tuple[Floats, Floats]:
    """The means of the bins (without the unknown one, in an order) for each variance, and how well
    it explains them.
    """
    seen = _believable(seen, variance, scale)
    if ordered:
        return _walked(seen[:-1], variance[:-1], scale)
    total = scale * _VARIANCES + variance[:, None]
    evidence = -0.5 * (np.log(total) + np.square(seen)[:, None] / total).sum(axis=0)
    return seen[:, None] * (scale * _VARIANCES) / total, evidence


def _believable(seen: Floats, variance: Floats, scale: float) -> Floats:
    """What was seen, within what a shape and noise may make of it: Laplace noise goes far more often
    than the normal one that is assumed here, and one bin must not pass for a shape.
    """
    limit = _DEVIATIONS * np.sqrt(variance) + _MOST * np.sqrt(scale) / (1 + variance / scale)
    return np.asarray(np.clip(seen, -limit, limit), dtype=np.float64)


def _walked(seen: Floats, variance: Floats, scale: float) -> tuple[Floats, Floats]:
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
    return made, evidence


def _weights(odds: Floats) -> Floats:
    weights = np.exp(odds - odds.max())
    return np.asarray(weights / weights.sum(), dtype=np.float64)
