"""Linear regression from one release: the products of all entries and the label, with a ridge for
each direction from the known noise.

The label is one more entry of the extended row (`structure`), after the constant. With the released
products A of entries, those b of entries with the label and the mean m of the label, the
coefficients are m for the constant and what `belief` learns from b - A m e. Nothing but sums is
kept, so records pass by once and memory does not grow with them.

**Proof note.** *Unit:* one record, or a user with at most r records. *Neighbours:* add or remove
one. *Sensitivity:* with y^2 <= `GRAIN`^2 the squared length L of a row becomes L + `GRAIN`^2, and
the squares of what is released sum to at most 25 ((L + GRAIN^2)^2 - G GRAIN^4), as in `structure`;
in L1 at most ((l + GRAIN)^2 + L + GRAIN^2)/2, with l the largest sum of entries. r records: r times
as much. *Cost:* that of the one release, Gaussian or Laplace (delta 0).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ptklib.models.labels import NumberLabel
from ptklib.models.linear.belief import Belief, plausible
from ptklib.models.linear.fitted import Fitted
from ptklib.models.linear.plans import MomentsPlan
from ptklib.models.linear.reading import grains_of, labelled
from ptklib.models.linear.structure import GRAIN, OFF, ON, Structure
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Batches

__all__ = ["moments"]

_SPREAD, _SURE = 0.8, 0.5

Floats = NDArray[np.float64]


def moments(
    structure: Structure,
    target: NumberLabel,
    plan: MomentsPlan,
    batches: Batches,
    noise: BitSource | None,
) -> Fitted:
    """Coefficients from the one release of the plan."""
    above, right = structure.kept
    totals = np.zeros(len(above) + structure.width + 1, dtype=np.int64)
    for piece in labelled(structure, target, batches):
        rows, label = structure.grains(piece.rows), grains_of(piece.label)
        products = (rows.T @ rows)[above, right]
        totals += np.concatenate([products, rows.T @ label, [label @ label]]).astype(np.int64)
    gaussian = isinstance(plan.release, GaussianRelease)
    weights = np.concatenate([structure.weights, np.full(structure.width, OFF), [ON]])
    if not gaussian:
        weights[:] = 1
    values = plan.release.release(totals * weights, source=noise).values
    released = values / weights / GRAIN**2
    if isinstance(plan.release, GaussianRelease):
        off = float(plan.release.sigma) / OFF / GRAIN**2
    else:
        off = float(plan.release.scale) * math.sqrt(2) / GRAIN**2
    noisy = structure.matrix(released[: len(above)])
    return _coefficients(structure, noisy, released[len(above) :], off)


def _coefficients(structure: Structure, noisy: Floats, labels: Floats, off: float) -> Fitted:
    """From the noisy products, those with the label, its square, and the deviation of their
    noise.
    """
    count = max(float(noisy[-1, -1]), 1.0)
    sums, square = labels[:-1], float(labels[-1])
    free = structure.free
    products = plausible(structure, noisy, off)[free, free]
    mean = float(np.clip(sums[-1] / count, -1, 1)) if structure.intercept else 0.0
    sums = sums[free]
    shift = off / count * math.sqrt(1 + 4 * mean**2)
    least = 1 / GRAIN**2
    variance = float(np.clip(max(square / count - mean**2, 0) + _SURE * shift, least, 1))
    start = np.zeros(len(products))
    start[-1] = mean
    belief = Belief.at(products, start, _SPREAD**2 * variance, off)
    belief.learn(sums - mean * products[-1], off, known=mean**2)
    slopes = belief.coefficients
    left = square - 2 * float(slopes @ sums) + float(slopes @ products @ slopes)
    residual = float(np.clip(left / count, least, variance))
    return Fitted(slopes, belief.covariance(residual), count, math.sqrt(residual))
