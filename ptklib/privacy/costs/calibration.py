"""The noise for a target cost, and back.

**The answer always meets the target**: the cost made with the returned number has at most the
wanted epsilon at the wanted delta. It is the least such number up to a stated tolerance, never the
nearest. All take keywords only.

Reasons: TARGET_UNREACHABLE (no noise meets it), and those of `amounts`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, show
from ptklib.privacy.costs.base import Cost, positive
from ptklib.privacy.costs.gaussian import GaussianCost, SampledGaussianCost, ZcdpCost

__all__ = [
    "calibrate",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_sigma",
    "laplace_scale",
    "sampled_gaussian_sigma",
    "zcdp_rho",
]

# Noise beyond these is no longer an answer.
_LEAST, _MOST = 1e-9, 1e12


def laplace_scale(*, epsilon: Number, sensitivity: Number = 1) -> Fraction:
    """The scale b, exact, at which Laplace noise (discrete too) on this L1 sensitivity is
    epsilon-DP.
    """
    return positive(sensitivity, name="sensitivity") / epsilon_exact(epsilon)


def gaussian_sigma(*, epsilon: Number, delta: Number, sensitivity: Number = 1) -> float:
    """The least sigma, rounded up, at which a Gaussian on this L2 sensitivity is (epsilon,
    delta)-DP.

    The analytic Gaussian mechanism (Balle & Wang 2018): bisection on the exact profile, not the
    classical formula, which is loose and wrong for epsilon above 1.
    """
    most = _most_mu(epsilon_exact(epsilon), _some_delta(delta, epsilon))
    return curves.up(float(positive(sensitivity, name="sensitivity") / Fraction(most)))


@lru_cache(maxsize=1024)
def _most_mu(epsilon: Fraction, delta: Fraction) -> float:
    """The largest mu, rounded down, of a Gaussian that is (epsilon, delta)-DP.

    Remembered: it is a search with many digits, and the same plan is priced many times.
    """
    level, target = curves.precise(epsilon), curves.precise(delta)
    low, high = 0.0, 1.0
    while curves.delta_of_gaussian(curves.precise(high), level) <= target:
        low, high = high, 2 * high
    while low == 0 or high - low > curves.MARGIN * high:
        middle = (low + high) / 2
        if curves.delta_of_gaussian(curves.precise(middle), level) <= target:
            low = middle
        else:
            high = middle
    return low


def gaussian_epsilon(*, sigma: Number, delta: Number, sensitivity: Number = 1) -> float:
    """The least epsilon, rounded up, of a Gaussian at this delta."""
    return GaussianCost(sigma=sigma, sensitivity=sensitivity).epsilon(delta)


def gaussian_delta(*, sigma: Number, epsilon: Number, sensitivity: Number = 1) -> float:
    """The least delta, rounded up, of a Gaussian at this epsilon."""
    return GaussianCost(sigma=sigma, sensitivity=sensitivity).delta(epsilon)


def sampled_gaussian_sigma(*, rate: Number, steps: int, epsilon: Number, delta: Number) -> float:
    """The least noise multiplier at which DP-SGD with Poisson batches is (epsilon, delta)-DP."""
    _some_delta(delta, epsilon)
    return calibrate(
        lambda sigma: SampledGaussianCost(rate=rate, sigma=sigma, steps=steps),
        epsilon=epsilon,
        delta=delta,
    )


def zcdp_rho(*, epsilon: Number, delta: Number) -> float:
    """The largest rho, rounded down, whose zCDP implies (epsilon, delta)-DP."""
    _some_delta(delta, epsilon)
    # More noise is less rho; the reciprocal of the least noise is the largest rho.
    noise = calibrate(lambda noise: ZcdpCost(rho=1 / noise), epsilon=epsilon, delta=delta)
    return 1 / noise


def calibrate(
    make_cost: Callable[[float], Cost], *, epsilon: Number, delta: Number, tolerance: float = 1e-6
) -> float:
    """The least noise whose cost is (epsilon, delta)-DP; at most a factor ``1 + tolerance`` above
    it.

    ``make_cost(noise)`` must cost less as the noise grows. A noise that it refuses as too costly
    (AMOUNT_TOO_LARGE) counts as not enough.
    """
    level, chance = epsilon_exact(epsilon), delta_exact(delta)

    def meets(noise: float) -> bool:
        try:
            cost = make_cost(noise)
        except InvalidInput as error:
            if error.reason == "AMOUNT_TOO_LARGE":
                return False
            raise
        spent = cost.epsilon(chance)
        return math.isfinite(spent) and Fraction(spent) <= level

    high = 1.0
    while not meets(high):
        high *= 4
        if high > _MOST:
            raise InvalidInput(
                "TARGET_UNREACHABLE",
                f"no noise up to {_MOST:g} is ({show(level)}, {show(chance)})-DP: ask for a larger "
                "epsilon or delta",
            )
    low = high / 4
    while meets(low):
        low, high = low / 4, low
        if low < _LEAST:
            return high
    while high - low > tolerance * high:
        middle = (low + high) / 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _some_delta(delta: Number, epsilon: Number) -> Fraction:
    chance = delta_exact(delta)
    if chance == 0:
        raise InvalidInput(
            "TARGET_UNREACHABLE",
            f"Gaussian noise is never ({show(epsilon_exact(epsilon))}, 0)-DP: allow a delta, or "
            "use Laplace noise",
        )
    return chance
