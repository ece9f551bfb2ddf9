"""Noise that falls when a validation set says that training no longer gets better.

Looking at data is not free. `ValidationDecay` is a rule on accuracies; where these come from is
stated by its ``looks``, and its price counts them:

* `PublicLooks`: the accuracy is measured on **public** records. Looks cost nothing. A set that was
  split off the private records is not public.
* `PrivateLooks`: every look is a count of right answers on private records, released with Gaussian
  noise. **Every look is charged**, whether it changed anything or not, and all that are planned are
  charged before the first.

The sigma of an epoch now depends on earlier answers, so the price is that of *whatever* may happen:

* ``floor_sigmas`` is the run in which every look finds no progress. Each epoch of any other run has
  at least that much noise; it could be made of the floor's by adding more, and which noise to add
  follows from what is known already. So every run is post-processing of the floor run, whose price,
  in any currency, holds for all.
* `EpochAllowance` spends a fixed mu^2 of Gaussian DP instead, for reshuffled epochs: sums of mu^2
  hold under full adaptivity (Smith & Thakurta 2022), so epochs may run until the next does not fit.
  Its cost is the whole allowance, known before; what is left over is not given back. There is none
  for sampled steps, whose privacy-loss distribution must not be stopped by looking at it.

The rule (Yu et al. 2019): every ``period`` looks the mean of the last ``window`` accuracies is
compared with that of the last comparison; where it rose by at most ``progress``, noise is
multiplied by ``factor``. The first comparison is with 0.

Reasons: SCHEDULE_INVALID, MECHANISM_SPENT.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from ptklib.errors import InvalidInput, MechanismSpent
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.costs import Cost, GaussianCost, GdpCost, ParallelCost
from ptklib.privacy.costs.base import positive, sum_of
from ptklib.privacy.mechanisms.release import GaussianRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.privacy.schedules.base import level, period_count, sigma_of

__all__ = ["EpochAllowance", "PrivateLooks", "PublicLooks", "ValidationDecay"]


@dataclass(frozen=True)
class PublicLooks:
    """Accuracies on public records: free."""

    def cost_with(self, training: Cost, looks: int) -> Cost:  # noqa: ARG002
        """That of the training."""
        return training


@dataclass(frozen=True, kw_only=True)
class PrivateLooks:
    """Noisy counts of right answers on ``records`` private records, about (a public number).

    *Unit*: a record; or a user with at most ``records_per_unit``. *Neighbours*: add or remove one.
    *Sensitivity*: a count moves by at most ``records_per_unit``. *Cost*: a `GaussianCost` for
    every look. Where looks and training read different records (``apart``: parts by tag) a unit
    pays for the one or the other, else for both.
    """

    sigma: Fraction
    records: int
    records_per_unit: int = 1
    apart: bool = False

    def __post_init__(self) -> None:
        """Noise in range; at least one record."""
        object.__setattr__(self, "sigma", level(self.sigma, name="sigma"))
        if self.records < 1 or self.records_per_unit < 1:
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"looks need at least one record, and one per unit, got {self.records} and "
                f"{self.records_per_unit}",
            )

    @property
    def release(self) -> GaussianRelease:
        """The mechanism of one look."""
        return GaussianRelease(
            sigma=self.sigma * self.records_per_unit, sensitivity=self.records_per_unit
        )

    def accuracy(self, right: int, *, source: BitSource | None = None) -> float:
        """A look: the noisy count of right answers as a part of the public number of records."""
        told = self.release.release(np.array([right], dtype=np.int64), source=source)
        return float(np.clip(told.values[0] / self.records, 0, 1))

    def cost_with(self, training: Cost, looks: int) -> Cost:
        """That of the training and of every look."""
        if looks == 0:
            return training
        paid = sum_of((GaussianCost(sigma=self.sigma),) * looks)
        return ParallelCost(parts=[training, paid]) if self.apart else training + paid


Looks = PublicLooks | PrivateLooks


@dataclass(frozen=True, kw_only=True)
class ValidationDecay:
    """Noise that is multiplied by ``factor`` when accuracy stands still; one look per epoch."""

    initial: Fraction
    factor: Fraction
    progress: Fraction
    period: int
    window: int
    looks: Looks

    def __post_init__(self) -> None:
        """A factor in (0, 1); a window that a period holds."""
        object.__setattr__(self, "initial", level(self.initial, name="initial"))
        object.__setattr__(self, "factor", positive(self.factor, name="factor"))
        object.__setattr__(self, "progress", exact(self.progress, name="progress"))
        if self.factor >= 1:
            raise InvalidInput(
                "SCHEDULE_INVALID", f"factor must be below 1, got {show(self.factor)}"
            )
        period_count(self.period, name="period")
        if not 1 <= self.window <= self.period:
            raise InvalidInput(
                "SCHEDULE_INVALID",
                f"window must be from 1 to the period {self.period}, got {self.window}",
            )

    def next_sigma(self, accuracies: Sequence[float]) -> Fraction:
        """The noise of the next epoch, from the accuracy after each epoch so far."""
        falls, last = 0, 0.0
        for end in range(self.period, len(accuracies) + 1, self.period):
            mean = float(np.mean(accuracies[end - self.window : end]))
            falls += mean - last <= float(self.progress)
            last = mean
        return self._fallen(falls)

    def floor_sigmas(self, epochs: int) -> tuple[Fraction, ...]:
        """The least noise that each epoch may have: every comparison finds no progress."""
        return tuple(self._fallen(epoch // self.period) for epoch in range(period_count(epochs)))

    def looks_within(self, epochs: int) -> int:
        """How many looks so many epochs make: one after each that a later one may depend on."""
        return (period_count(epochs) - 1) // self.period * self.period

    def cost(self, training: Cost, epochs: int) -> Cost:
        """What a training of so many epochs costs with its looks; ``training`` is the price of
        `floor_sigmas`, or of an `EpochAllowance`.
        """
        return self.looks.cost_with(training, self.looks_within(epochs))

    def _fallen(self, falls: int) -> Fraction:
        return sigma_of(float(self.initial) * float(self.factor) ** falls)


class EpochAllowance:
    """A fixed mu^2 for reshuffled epochs whose noise is chosen as they go; ``cost`` is all of it.

    *Unit, sensitivity*: as in `ReshuffledRun`. *Cost*: `GdpCost` of ``mu_squared``, whatever is
    taken: a filter of Gaussian DP.
    """

    def __init__(self, *, mu_squared: Number) -> None:
        """Nothing is taken yet."""
        self.cost = GdpCost(mu_squared=mu_squared)
        self._left = self.cost.mu_squared()

    def affords(self, sigma: Number) -> bool:
        """Whether an epoch with this noise still fits."""
        return 1 / level(sigma, name="sigma") ** 2 <= self._left

    def take(self, sigma: Number) -> None:
        """Pay for an epoch before it starts; `MechanismSpent` where it does not fit."""
        if not self.affords(sigma):
            raise MechanismSpent(
                "MECHANISM_SPENT",
                f"an epoch at sigma {show(exact(sigma))} does not fit into what is left of mu^2: "
                "add noise, or stop",
            )
        self._left -= 1 / exact(sigma) ** 2
