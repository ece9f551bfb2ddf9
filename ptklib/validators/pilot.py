"""What losses look like, from a few records of the test slice: what a stake is chosen by.

A loss falls between two knots, 0 and then the bound divided by powers of three, and counts for both
in proportion to how near it is. Released is one noisy number for each knot. All after that is
post-processing: a law on the knots (`SupposedLosses`).

**Proof note.** *Unit:* one record, or one user with at most r of them. *Neighbours:* add or remove
one. *Sensitivity:* a record adds two non-negative integers that make `UNIT` together, so its L1
norm is UNIT (and its L2 norm no more); a unit moves the vector by at most r UNIT. The knots follow
from public numbers. *Cost:* that of one release of the noise with that sensitivity. *Validity*
needs nothing of it: the records of a pilot are not those of the test, and any stake is valid.

Reasons: those of `betting`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.frozen import keep
from ptklib.privacy.mechanisms.release import GaussianRelease, LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import count_of
from ptklib.validators.betting import clipped, target_within
from ptklib.validators.noises import Noise, noise_of
from ptklib.validators.supposed import SupposedLosses

__all__ = ["UNIT", "LossPilot"]

# Units of a record.
UNIT = 2**20
_RATIO, _MOST_KNOTS = 3, 16


@dataclass(frozen=True, init=False)
class LossPilot:
    """A look at losses that are to be judged against ``target``."""

    noise: Noise
    records_per_unit: int
    knots: tuple[float, ...]
    release: LaplaceRelease | GaussianRelease = field(repr=False)

    def __init__(
        self,
        *,
        target: Number,
        epsilon: Number | None = None,
        noise: Noise | None = None,
        bound: Number = 1,
        records_per_unit: int = 1,
    ) -> None:
        """Check the parameters; fix sensitivity and price."""
        wanted, most = target_within(target, bound)
        added, units = noise_of(epsilon, noise), count_of(records_per_unit, name="records_per_unit")
        keep(
            self,
            noise=added,
            records_per_unit=units,
            knots=_knots(wanted, most),
            release=added.release(units * UNIT),
        )

    @property
    def cost(self) -> Cost:
        """What one `tell` costs, whatever the records are."""
        return self.release.cost

    def sums(self, losses: ArrayLike) -> NDArray[np.int64]:
        """How much of all records falls to each knot, in units. Raw: not to be published."""
        known, knots = clipped(losses, self.knots[-1]), np.array(self.knots)
        above = np.clip(np.searchsorted(knots, known), 1, len(knots) - 1)
        share = (known - knots[above - 1]) / (knots[above] - knots[above - 1])
        upper = np.clip(np.ceil(share * UNIT), 0, UNIT).astype(np.int64)
        sums = np.zeros(len(knots), dtype=np.int64)
        np.add.at(sums, above, upper)
        np.add.at(sums, above - 1, UNIT - upper)
        return sums

    def tell(self, losses: ArrayLike, *, source: BitSource | None = None) -> tuple[int, ...]:
        """The same with noise. Every call costs `cost`."""
        told = self.release.release(self.sums(losses), source=source)
        return tuple(int(value) for value in told.values)

    def read(self, told: tuple[int, ...]) -> SupposedLosses | None:
        """The law that they speak of; None where they tell of no record. Post-processing."""
        weights = tuple(max(0, value) / UNIT for value in told)
        return SupposedLosses(self.knots, weights) if sum(weights) > 0 else None


def _knots(target: Fraction, bound: Fraction) -> tuple[float, ...]:
    knots = [bound]
    while knots[-1] > target / _RATIO and len(knots) < _MOST_KNOTS:
        knots.append(knots[-1] / _RATIO)
    return (0.0, *(float(knot) for knot in reversed(knots)))
