"""A whole training, priced before it starts: how batches are drawn, and the noise of each period.

The two kinds differ in who is in a batch, and nothing else decides the price:

`ReshuffledRun`  disjoint batches in every epoch: a record is in one batch of each. An epoch is
                 *one unamplified* Gaussian (zCDP of reshuffling); its cost is Gaussian-DP and
                 exact in every currency.
`SampledRun`     every step draws every record independently with the same rate (Poisson). Amplified:
                 the exact Renyi curve, and the privacy-loss distribution for the run by itself.

``cost`` is one value, which every filter reads in its own currency:

===================  ======================================  ========================================
filter               `ReshuffledRun`                         `SampledRun`
===================  ======================================  ========================================
renyi                order times mu^2/2                      the sum of the steps' Renyi curves
gaussian             mu^2, exactly                           refused (at rate 1: mu^2)
basic, strong, pure  refused; `basic_cost` at a chosen       refused; `basic_cost` at a chosen delta,
                     delta, by the exact Gaussian profile    by the privacy-loss distribution
===================  ======================================  ========================================

A run that stops early, by choice or by accident, has cost all of it.

Unit: record or user, as the stream declares. Neighbours: add or remove one. Sensitivity: 1 in the
unit of sigma. Reasons: those of `schedules.base` and of the costs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, show
from ptklib.privacy.costs import ApproxCost, Cost, GdpCost, ReshuffledGaussianCost, SampledRunCost
from ptklib.privacy.costs.base import count, positive
from ptklib.privacy.schedules.base import MAX_PERIODS, level

__all__ = ["ReshuffledRun", "Run", "SampledRun", "basic_cost"]

# What is left of mu^2 below this is rounded up into it.
_UNIT = 10**15


@dataclass(frozen=True, kw_only=True)
class ReshuffledRun:
    """One pass over disjoint batches for each sigma.

    Proof: a record is in one batch of an epoch, whichever batch the others are in; the other
    batches of the epoch see the same data between neighbours, so they are post-processing, and the
    epoch is the Gaussian of that one batch. Epochs compose: mu^2 = sum of 1/sigma^2.
    """

    sigmas: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """At least one epoch, each sigma in range."""
        object.__setattr__(self, "sigmas", _levels(self.sigmas))

    @property
    def mu_squared(self) -> Fraction:
        """The sum of 1/sigma^2, rounded up to a short number."""
        total = sum((1 / sigma**2 for sigma in self.sigmas), Fraction(0))
        return Fraction(math.ceil(total * _UNIT), _UNIT)

    @property
    def cost(self) -> Cost:
        """What the run costs."""
        if len(set(self.sigmas)) == 1:
            return ReshuffledGaussianCost(sigma=self.sigmas[0], epochs=len(self.sigmas))
        return GdpCost(mu_squared=self.mu_squared)


@dataclass(frozen=True, kw_only=True)
class SampledRun:
    """``steps`` Poisson-sampled steps at ``rate`` for each sigma; see `SampledRunCost`."""

    rate: Fraction
    steps: int
    sigmas: tuple[Fraction, ...]

    def __post_init__(self) -> None:
        """A rate in (0, 1], at least one step."""
        object.__setattr__(self, "rate", positive(self.rate, name="rate", at_most=1))
        object.__setattr__(self, "steps", count(self.steps, name="steps"))
        object.__setattr__(self, "sigmas", _levels(self.sigmas))

    @property
    def total_steps(self) -> int:
        """Over all periods."""
        return self.steps * len(self.sigmas)

    @property
    def cost(self) -> SampledRunCost:
        """What the run costs."""
        return SampledRunCost(
            rate=self.rate, sigmas=self.sigmas, steps=[self.steps] * len(self.sigmas)
        )


Run = ReshuffledRun | SampledRun
MakeRun = Callable[[tuple[Fraction, ...]], Run]


def basic_cost(run: Run, delta: Number) -> ApproxCost:
    """The run as (epsilon, delta), for a filter with basic or strong composition."""
    epsilon = run.cost.epsilon(delta)
    if not math.isfinite(epsilon):
        raise InvalidInput(
            "COST_INVALID",
            f"this run has no epsilon at delta {show(Fraction(delta))}: allow a delta above 0",
        )
    # One nano is what a ledger counts in; up, so that the charge is not below the price.
    return ApproxCost(epsilon=Fraction(math.ceil(epsilon * 10**9), 10**9), delta=delta)


def _levels(sigmas: tuple[Fraction, ...]) -> tuple[Fraction, ...]:
    levels = tuple(level(sigma, name="sigma") for sigma in sigmas)
    if not 0 < len(levels) <= MAX_PERIODS:
        raise InvalidInput(
            "SCHEDULE_INVALID",
            f"a run must have 1 to {MAX_PERIODS} periods, got {len(levels)}",
        )
    return levels
