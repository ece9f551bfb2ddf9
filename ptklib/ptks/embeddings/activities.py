"""How users and items are summed for their activities: from the level, and how far.

A record enters the sum of its row by how far its value is above the level, which was released first.
Beside sums from the middle of the range the noise of the count then does not matter: at a level of a
sixth of the range it made two thirds of all noise. What is farther than the *reach* is cut: few
records are, and noise is smaller by as much. Where noise is no matter the reach is all that a value
can be away.

**Proof note.** *Unit:* one record. Level, reach and the spread of values are functions of releases,
and a record's own part, in units of the reach, is within `STEPS` of 0 and whole (`events`):
`releases` has sensitivity and cost. The rest is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptklib.ptk import Arrays
from ptklib.ptks.embeddings.factorization import information, variance_of
from ptklib.ptks.embeddings.reading import value_spread
from ptklib.ptks.embeddings.releases import COUNT_UNITS, PARTS, STEPS, EmbeddingReleases
from ptklib.ptks.embeddings.rows import likely_counts

__all__ = ["Level", "Reading", "both", "keep", "left_by"]

Floats = NDArray[np.float64]
State = dict[str, NDArray[Any]]
# Noisy counts and sums, and the standard deviation of the noise of a sum.
Reading = tuple[Floats, Floats, float]

# The least reach, in parts of the farthest that a value can be from the level: so much times the
# clip of residuals, which is a share of the range.
_OF_CLIP = 1.6
# Records are mostly those of rows with so many times the mean number.
_BUSY = 3.0


@dataclass(frozen=True)
class Level:
    """What is known once the level is: ``share`` is its place in the range, from 0 to 1, ``squares``
    the sum of squares of values from the middle of the range.
    """

    share: float
    records: float
    squares: float
    clip: float

    @property
    def spread(self) -> float:
        """The variance of the values of a row."""
        return value_spread(self.squares, self.records, self.share - 0.5)

    def reach(self, plan: EmbeddingReleases, rows: int, parts: int) -> float:
        """How far values and residuals are let into the sums of so many rows, in ranges."""
        farthest = max(self.share, 1 - self.share)
        data = _BUSY * max(self.records, 1.0) / rows * self.spread
        noise = farthest**2 * (1 + (COUNT_UNITS / STEPS) ** 2) * plan.base**2 * PARTS / parts
        least = min(_OF_CLIP * self.clip, 1.0)
        return farthest * (least + (1 - least) * data / (data + noise))


def keep(
    state: State, before: Arrays, side: str, told: Reading, level: Level, sigma: float
) -> None:
    """What noisy counts and sums above the level say, told from the middle of the range, for the
    level of the next window may be another. ``sigma`` is the noise of both in their units.
    """
    counts, sums, noise = told
    likely, _ = likely_counts(counts, (sigma / COUNT_UNITS) ** 2)
    above, weights = information(sums[:, None], likely, noise, level.spread)
    known = np.column_stack([above[:, 0] + (level.share - 0.5) * weights, weights])
    for name, new in ((f"{side}_counts", counts), (f"{side}_activity", known)):
        state[name] = new + before[name] if name in before else new


def left_by(told: Reading, every: float, level: float) -> float:
    """The variance that activities will leave, in squared ranges: users are taken to explain as much
    as items do. ``every`` is the variance of values.
    """
    counts, sums, noise = told
    above, weights = information(sums[:, None], counts, noise, every)
    explained = float(variance_of(above, weights, every)[0])
    # Activities multiply: (1 + v) (1 + v) - 1 for two of variance v over the squared level.
    together = 2 * explained + (explained / level) ** 2
    return max(every - together, every / 10)


def both(first: Reading, second: Reading) -> Reading:
    """Two noisy readings of the same, each weighed by how precise it is."""
    part = second[2] ** 2 / (first[2] ** 2 + second[2] ** 2)
    counts, sums = (
        part * left + (1 - part) * right for left, right in zip(first[:2], second[:2], strict=True)
    )
    return counts, sums, first[2] * float(np.sqrt(part))
