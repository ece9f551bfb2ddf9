"""What a run spends: its steps, their noise and the price of all of them, before any data.

A run has `stages`: so many steps at one noise multiplier, the noise over the clipping norm. With
Poisson batches a stage of steps costs a `SampledGaussianCost`; with batches by tag a stage is whole
epochs and costs a `ReshuffledGaussianCost`: every record is in one batch of an epoch, and nothing
is amplified. All batches is a batch of all records: the rate is 1 and every step is a Gaussian.

The price of the run is their sum. It is the same whatever the data, and a run makes exactly the
steps that are priced.

**Proof note.** *Unit:* one record; or a user with at most k records. *Batches by tag:* her records
move the sums of one epoch by at most k C in L2, in whichever batches they are; noise is k times as
much (`noise`), so the cost is that of one record. *Poisson:* she has a record in a batch with
chance 1 - (1-q)^k at most. If she has, she moves its sum by at most k C. Whatever her members are,
given that there are some, the pair is no easier to tell apart than a Gaussian of that distance
sampled at that rate (hockey-stick and Renyi divergences are jointly convex, and do not fall with
distance or rate): `SampledGaussianCost` at rate min(1, q k), noise k times as much. *Cost:* of each
release the one stated; adaptive composition of fixed costs.

Reasons: DELTA_NEEDED, TARGET_UNREACHABLE, and those of `amounts` and `costs`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

from ptklib.price_first import Budget
from ptklib.privacy.costs import Cost, ReshuffledGaussianCost, SampledGaussianCost
from ptklib.privacy.costs.base import sum_of
from ptklib.privacy.costs.calibration import calibrate

__all__ = ["Batching", "SgdPace", "SgdPlan", "SgdStage", "plan_of"]

Batching = Literal["poisson", "tags"]

# A larger multiplier than needed by at most this is taken: the search is as long as it is fine.
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class SgdStage:
    """Steps of one noise: a multiplier, or what it is relative to that of other stages."""

    steps: int
    noise: float


@dataclass(frozen=True)
class SgdPace:
    """How a run goes through the records, and its relative noise. With tags, ``rate`` is one over
    a whole number of batches and stages are whole epochs.
    """

    batching: Batching
    rate: Fraction
    stages: tuple[SgdStage, ...]

    @property
    def batches(self) -> int:
        """How many batches an epoch has."""
        return round(1 / self.rate)


@dataclass(frozen=True)
class SgdPlan:
    """A run and its price: ``pace`` with multipliers for noise."""

    pace: SgdPace
    budget: Budget
    cost: Cost

    @property
    def records(self) -> int:
        """Of a unit of privacy, at most."""
        return self.budget.records

    @cached_property
    def steps(self) -> int:
        """How many there are; no run makes more."""
        return sum(stage.steps for stage in self.pace.stages)

    def multiplier(self, step: int) -> tuple[float, int]:
        """The noise multiplier of a step, and how many steps have it from here on."""
        for stage in self.pace.stages:
            if step < stage.steps:
                return stage.noise, stage.steps - step
            step -= stage.steps
        raise AssertionError(step)  # no step that is not priced is made


@lru_cache(maxsize=256)
def plan_of(pace: SgdPace, budget: Budget) -> SgdPlan:
    """The least noise, in the proportions of the pace, that a budget pays for."""
    # Refuses a budget that has no delta.
    whole = budget.gaussian_sigma()
    if pace.rate == 1 or pace.batching == "tags":
        passes = 1 if pace.rate == 1 else pace.batches
        factor = whole * _root(
            [SgdStage(stage.steps // passes, stage.noise) for stage in pace.stages]
        )
    else:
        factor = calibrate(
            lambda factor: _cost(_scaled(pace, factor), budget.records),
            epsilon=budget.epsilon,
            delta=budget.delta,
            tolerance=_TOLERANCE,
        )
    made = _scaled(pace, factor)
    return SgdPlan(made, budget, _cost(made, budget.records))


def _root(stages: Sequence[SgdStage]) -> float:
    """The root of the sum over passes of 1 / noise^2, a little more."""
    total = sum(Fraction(stage.steps) / Fraction(stage.noise) ** 2 for stage in stages)
    return math.sqrt(total) * (1 + 1e-12)


def _scaled(pace: SgdPace, factor: float) -> SgdPace:
    stages = tuple(SgdStage(stage.steps, _short(stage.noise * factor)) for stage in pace.stages)
    return SgdPace(pace.batching, pace.rate, stages)


def _short(noise: float) -> float:
    """Rounded up to nine digits: prices with short numbers add up exactly."""
    exponent = len(str(int(noise))) if noise >= 1 else 0
    unit: int = 10 ** max(0, 9 - exponent)
    return math.ceil(Fraction(noise) * unit) / unit


def _cost(pace: SgdPace, records: int) -> Cost:
    parts: list[Cost] = []
    for stage in pace.stages:
        if pace.batching == "tags" and pace.rate != 1:
            epochs = -(-stage.steps // pace.batches)
            parts.append(ReshuffledGaussianCost(sigma=stage.noise, epochs=epochs))
        elif (rate := min(Fraction(1), pace.rate * records)) == 1:
            parts.append(ReshuffledGaussianCost(sigma=stage.noise, epochs=stage.steps))
        else:
            parts.append(SampledGaussianCost(rate=rate, sigma=stage.noise, steps=stage.steps))
    return sum_of(tuple(parts))
