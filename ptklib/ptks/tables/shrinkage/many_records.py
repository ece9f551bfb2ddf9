"""Groups that have records enough for their noisy count to be as good as the true one: their means,
and what these say of models, in closed form.

The deviation of a noisy total, b - x c for the centre x and the noisy count c, is noise of known
variance and c times what the mean is off the centre. For a mixture of normals on either side the
posterior mean is linear in the deviation for each pair of normals.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptklib.ptks.tables.shrinkage.models import FAR, PriorModel

__all__ = ["ManyRecords"]

Floats = NDArray[np.float64]
Parts = list[tuple[float, Floats]]


@dataclass(frozen=True, kw_only=True)
class ManyRecords:
    """What all groups of a table have in common."""

    middle: float  # the mean of all records
    shifts: Floats  # of the centre of each spread from there
    spreads: Floats
    variance: float  # of a deviation
    mixture: tuple[tuple[float, float], ...]  # of its noise

    def posterior(
        self, counts: Floats, away: Floats, models: tuple[PriorModel, ...]
    ) -> tuple[list[Floats], list[Floats]]:
        """For each model, of each group (row) under each spread: the mean less the middle, and the
        logarithm of its likelihood.
        """
        records = counts[:, None]
        apart = away[:, None] - records * self.shifts
        spread = np.square(records * self.spreads)
        coin = records * max(self.middle * (1 - self.middle), 1e-4)
        anywhere: Parts = [(0.5, spread + coin), (0.5, spread + np.square(records) / 12)]
        far = self._mixed(apart, anywhere)
        means, logs = [], []
        known: dict[tuple[float, float], tuple[Floats, Floats]] = {}
        for model in models:
            key = (model.drawn, model.whole)
            if key not in known:
                own = spread + model.drawn * coin
                near: Parts = [(part * (1 - model.whole), wide * own) for wide, part in FAR]
                known[key] = self._mixed(apart, [*near, (model.whole, spread + coin)])
            pull, log = _either(known[key], far, model.far)
            means.append(self.shifts + pull * apart / records)
            logs.append(log)
        return means, logs

    def _mixed(self, apart: Floats, parts: Parts) -> tuple[Floats, Floats]:
        """The part of the deviation that is the group's own, and the logarithm of its density."""
        squares = np.square(apart)
        logs, pulls = [], []
        for tail, share in self.mixture:
            for part, own in parts:
                both = own + tail * self.variance
                logs.append(np.log(share * part) - (np.log(both) + squares / both) / 2)
                pulls.append(own / both)
        top = np.maximum.reduce(logs)
        odds = [np.exp(log - top) for log in logs]
        whole = np.add.reduce(odds)
        pulled = [odd * pull for odd, pull in zip(odds, pulls, strict=True)]
        return np.add.reduce(pulled) / whole, top + np.log(whole)


def _either(
    near: tuple[Floats, Floats], far: tuple[Floats, Floats], part: float
) -> tuple[Floats, Floats]:
    """Of two mixtures of which the second has this part."""
    first, second = np.log1p(-part) + near[1], np.log(part) + far[1]
    top = np.maximum(first, second)
    odds, others = np.exp(first - top), np.exp(second - top)
    whole = odds + others
    return (odds * near[0] + others * far[0]) / whole, top + np.log(whole)
