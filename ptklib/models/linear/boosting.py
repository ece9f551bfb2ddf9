"""Linear regression by rounds: each releases the products of rows with what is left of the label.

Released are, in this order: the products of entries (`structure`); the sum of labels and of their
squares; and in each round, with w the coefficients so far and r = clip(label - x w, -C, C), the
sums of x r and of r^2/C. C is chosen before the round from what was released before: so many
deviations of the residuals of the last round, as that round's own noise allows (`_LEAST` to
`_MOST`, so that noise adds at most `_PART` of their variance). As residuals shrink, so does C, and
with it the noise: that is what many rounds win over one release of everything. What is released is
read by `belief`.

**Proof note.** *Unit:* one record, or a user with at most r records. *Neighbours:* add or remove
one. *Sensitivity:* products as in `structure`. With labels of at most `GRAIN` steps the two sums
move by at most sqrt(2) `GRAIN`^2. In a round a record adds x r, at most sqrt(limit) C long, and
r^2/C in units of 1/STEPS, rounded, at most STEPS C: together at most C sqrt(limit + STEPS^2), since
its residual depends on the record and on what was released before alone (`exact_product`). r
records: r times as much. *Cost:* see `plans`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.labels import NumberLabel
from ptklib.models.linear.belief import Belief, plausible
from ptklib.models.linear.fitted import Fitted
from ptklib.models.linear.plans import BoostedPlan
from ptklib.models.linear.reading import MOST_STEPS, RESIDUAL, LabelledRows, grains_of, labelled
from ptklib.models.linear.structure import GRAIN, OFF, Structure
from ptklib.models.products import exact_product
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Batches

__all__ = ["boosted"]

# Of deviations of residuals, where they are clipped; and of their variance, what noise may add.
_LEAST, _MOST, _PART = 2.5, 6.0, 0.003
# How far coefficients may be off at first, in deviations of the label; how many deviations of its
# noise a variance is taken to be larger.
_SPREAD, _SURE = 0.8, 0.5
_FEWEST_STEPS = 4

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class _Kept:
    """The records of a training, in half the bytes."""

    rows: NDArray[np.int16]
    label: NDArray[np.int16]

    def wide(self) -> LabelledRows:
        return LabelledRows(self.rows.astype(np.float64), self.label.astype(np.float64))


def boosted(
    structure: Structure,
    target: NumberLabel,
    plan: BoostedPlan,
    batches: Batches,
    noise: BitSource | None,
) -> Fitted:
    """Coefficients by the plan, each of its mechanisms run once, that of a round in each round."""
    above, right = structure.kept
    totals = np.zeros(len(above), dtype=np.int64)
    label, squares = 0, 0
    kept: list[_Kept] = []
    for piece in labelled(structure, target, batches):
        coarse, values = structure.grains(piece.rows), grains_of(piece.label)
        totals += (coarse.T @ coarse)[above, right].astype(np.int64)
        label += GRAIN * int(values.sum())
        squares += int(np.square(values).sum())
        kept.append(_Kept(piece.rows.astype(np.int16), piece.label.astype(np.int16)))
    released = plan.products.release(totals * structure.weights, source=noise).values
    noisy = structure.matrix(released / structure.weights / GRAIN**2)
    off = float(plan.products.sigma) / OFF / GRAIN**2
    moments = plan.label.release([label, squares], source=noise).values / GRAIN**2
    return _rounds(structure, plan, kept, noise, (noisy, off, moments))


def _rounds(
    structure: Structure,
    plan: BoostedPlan,
    kept: list[_Kept],
    noise: BitSource | None,
    known: tuple[Floats, float, Floats],
) -> Fitted:
    """The rounds, from noisy products, their noise and the moments of the label."""
    noisy, off, moments = known
    count = max(float(noisy[-1, -1]), 1.0)
    free = structure.free
    products = plausible(structure, noisy, off)[free, free]
    mean = float(np.clip(moments[0] / count, -1, 1)) if structure.intercept else 0.0
    shift = float(plan.label.sigma) / GRAIN**2 / count * math.sqrt(1 + 4 * mean**2)
    variance = float(
        np.clip(max(moments[1] / count - mean**2, 0) + _SURE * shift, 1 / RESIDUAL**2, 1)
    )
    start = np.zeros(len(products))
    start[-1] = mean
    belief = Belief.at(products, start, _SPREAD**2 * variance, off)
    for _ in range(plan.rounds):
        # Known to the rule before the round is run: the noise of one residual step.
        unit = float(plan.multiplier) * plan.records * structure.rows.bound
        share = belief.excess(unit) / count
        times = float(np.clip(math.sqrt(_PART / share) if share > 0 else _MOST, _LEAST, _MOST))
        most = max(
            _FEWEST_STEPS, math.ceil(min(times * math.sqrt(variance) * RESIDUAL, MOST_STEPS))
        )
        sums, spread = _released(structure, plan, kept, noise, (belief.coefficients, most))
        release = plan.round_of(structure, most)
        deviation = float(release.sigma) / (STEPS * RESIDUAL)
        belief.learn(sums[free], deviation)
        clip = most / RESIDUAL
        seen = (max(spread, 0.0) + _SURE * deviation) * clip / count
        variance = float(np.clip(seen, 1 / RESIDUAL**2, clip**2))
    return Fitted(belief.coefficients, belief.covariance(variance), count, math.sqrt(variance))


def _released(
    structure: Structure,
    plan: BoostedPlan,
    kept: Iterable[_Kept],
    noise: BitSource | None,
    asked: tuple[Floats, int],
) -> tuple[Floats, float]:
    """The noisy sums of x r and of r^2/C of one round; 1 is 1."""
    coefficients, most = asked
    sums, squares = np.zeros(structure.width, dtype=np.int64), 0
    for part in kept:
        piece = part.wide()
        predicted = exact_product(piece.rows[:, structure.free] / STEPS, coefficients)
        residuals = piece.residuals(predicted, most)
        sums += (piece.rows.T @ residuals).astype(np.int64)
        squares += int(np.rint(np.square(residuals) * (STEPS / most)).sum())
    release = plan.round_of(structure, most)
    values = release.release(np.append(sums, squares), source=noise).values / (STEPS * RESIDUAL)
    return np.asarray(values[:-1]), float(values[-1])
