"""A whole run of Poisson-sampled Gaussian steps, each with noise of its own: scheduled DP-SGD."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import ATTO, Number, delta_exact, exact
from ptklib.privacy.costs.base import Cost, count, positive
from ptklib.privacy.costs.gaussian import MAX_MU_SQUARED
from ptklib.privacy.curves import Floats
from ptklib.privacy.frozen import keep
from ptklib.privacy.loss_distribution import SampledSteps, delta_of_run, epsilon_of_run

__all__ = ["SampledRunCost"]

MAX_SEGMENTS = 1000
_LEAST_SIGMA = Fraction(1, 1000)


@dataclass(frozen=True, init=False, repr=False)
class SampledRunCost(Cost):
    """``steps[i]`` Gaussians of noise ``sigmas[i]`` (sensitivity 1), for every i, each on a fresh
    Poisson sample at ``rate``; the whole list is fixed before the first step.

    One value that is right in every currency:

    * ``renyi`` is the sum of the steps' curves: what a filter with renyi composition charges, and
      sound beside whatever else an adaptive analyst does.
    * ``epsilon`` and ``delta`` are those of the privacy-loss distribution of the run: near the
      optimum, for people and for ``ApproxCost(epsilon=cost.epsilon(d), delta=d)``, which is what a
      filter with basic or strong composition charges. They hold for this run alone. A sum with
      another cost is converted from the Renyi curves, and a run that stops early costs all the
      same, because nothing may be decided by looking at such a profile.
    * there is no Gaussian-DP bound: a filter with gaussian composition refuses the run, except at
      rate 1, where every step is a plain Gaussian and mu^2 is the sum of 1/sigma^2.

    Unit: record or user, as the stream declares, drawn independently into each batch. Sensitivity:
    1 in the unit of sigma, in L2 over everything that a step releases.
    """

    kind: ClassVar[str] = "sampled_run"
    rate: Fraction
    sigmas: tuple[Fraction, ...]
    steps: tuple[int, ...]

    def __init__(self, *, rate: Number, sigmas: Iterable[Number], steps: Iterable[int]) -> None:
        """Equally many sigmas and counts; neighbours of the same sigma are put together."""
        levels = [positive(sigma, name="sigma") for sigma in sigmas]
        counts = [count(number, name="steps") for number in steps]
        if len(levels) != len(counts) or not levels:
            raise InvalidInput(
                "COST_INVALID",
                f"a run must have one number of steps per sigma, and at least one, got "
                f"{len(levels)} sigmas and {len(counts)} numbers",
            )
        merged: list[tuple[Fraction, int]] = []
        for level, number in zip(levels, counts, strict=True):
            if merged and merged[-1][0] == level:
                merged[-1] = (level, merged[-1][1] + number)
            else:
                merged.append((level, number))
        if len(merged) > MAX_SEGMENTS:
            raise InvalidInput(
                "COST_INVALID",
                f"a run must have at most {MAX_SEGMENTS} different sigmas in a row, got "
                f"{len(merged)}: keep each for more steps",
            )
        _check_size(merged)
        keep(
            self,
            rate=positive(rate, name="rate", at_most=1),
            sigmas=tuple(level for level, _ in merged),
            steps=tuple(number for _, number in merged),
        )

    def renyi(self, orders: Floats) -> Floats:
        """The sum; see `curves.sampled_gaussian_renyi`."""
        total = np.zeros(orders.shape)
        for sigma, steps in self.levels().items():
            total += steps * _step_renyi(tuple(orders.tolist()), float(self.rate), sigma)
        return total * (1 + curves.MARGIN)

    def mu_squared(self) -> Fraction | None:
        """The sum of 1/sigma^2 where every record is in every batch; None elsewhere."""
        if self.rate < 1:
            return None
        return sum(
            (number / sigma**2 for sigma, number in zip(self.sigmas, self.steps, strict=True)),
            Fraction(0),
        )

    def epsilon(self, delta: Number) -> float:
        """Of the run's privacy-loss distribution; from the Renyi curve where that has none."""
        chance = delta_exact(delta)
        if self.rate == 1 or chance == 0:
            return super().epsilon(chance)
        known = epsilon_of_run(float(self.rate), self._segments(), float(chance))
        return known if math.isfinite(known) else super().epsilon(chance)

    def delta(self, epsilon: Number) -> float:
        """Of the run's privacy-loss distribution."""
        if self.rate == 1:
            return super().delta(epsilon)
        level = float(exact(epsilon, name="epsilon"))
        # What was cut off is no statement about deltas that small.
        return max(delta_of_run(float(self.rate), self._segments(), level), 1 / ATTO)

    def levels(self) -> dict[float, int]:
        """How many steps there are at each sigma; their order does not matter to any currency."""
        total: dict[float, int] = {}
        for sigma, number in zip(self.sigmas, self.steps, strict=True):
            total[float(sigma)] = total.get(float(sigma), 0) + number
        return total

    def _segments(self) -> tuple[SampledSteps, ...]:
        return tuple(SampledSteps(sigma, number) for sigma, number in sorted(self.levels().items()))


@lru_cache(maxsize=4096)
def _step_renyi(orders: tuple[float, ...], rate: float, sigma: float) -> Floats:
    curve = curves.sampled_gaussian_renyi(np.array(orders), rate, sigma)
    curve.flags.writeable = False
    return curve


def _check_size(segments: list[tuple[Fraction, int]]) -> None:
    """Noise that is no noise, or a run beyond any promise, is refused before curves overflow."""
    least = min(sigma for sigma, _ in segments)
    total = sum(number / sigma**2 for sigma, number in segments)
    if least < _LEAST_SIGMA or total > MAX_MU_SQUARED * 10**6:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE",
            f"a run must have sigmas of at least {_LEAST_SIGMA} and not too many steps, got sigma "
            f"{float(least):g} and a sum of 1/sigma^2 of {float(total):g}: add more noise",
        )
