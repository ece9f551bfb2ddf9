"""How much evidence is enough, with the noise on it counted exactly.

The evidence of a bet is the logarithm of a capital M that starts with 1, stays non-negative and, if
the promise does not hold, is 1 at most in expectation. Released is S + Z, where S <= ln M in units
of ``unit`` and Z is discrete Laplace noise that knows nothing of the data.

**Proof note (validity).** By Markov P(S >= x) <= min(1, exp(-x unit)) for every x, if the promise
does not hold. Given Z, accepting at S + Z >= t is S >= t - Z. So an ACCEPT is wrong with
probability at most ``E[min(1, exp((Z - t) unit))]``, for any number of records, none included. This
is exact noise in an exact bound: no share of eta is set aside for "the noise was worse than
assumed", and nothing is left out. A threshold without the noise, ln(1/eta), is *not* valid: with no
records and much noise half of all Z exceed it.

With q = exp(-1/scale), c = (1 - q)/(1 + q), a = unit and whole t >= 1 that expectation is

    q^t/(1+q)  +  c exp(-a t) (q exp(-a)/(1 - q exp(-a))  +  ((q exp(a))^t - 1)/(q exp(a) - 1))

where the last quotient is t if q exp(a) = 1. It falls in t; the least t that is small enough is
found in 100-digit arithmetic, near what floats say, and must be small enough by a margin for its
rounding.

Gaussian noise is rounded to units, so Z <= N + 1/2 with N the continuous one, and N is taken half a
unit worse. In nats, with s the standard deviation and x = (t - 1/2) unit, the expectation is

    Phi(-x/s)  +  exp(s^2/2 - x) Phi(x/s - s)

in float64, whose error (relative 1e-13) is far inside the margin that is kept of eta.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from ptklib.privacy import curves
from ptklib.privacy.bisection import first_true

__all__ = [
    "chance_of_error",
    "least_gaussian_threshold",
    "least_threshold",
    "likely_gaussian_threshold",
    "likely_threshold",
]

_MARGIN = Fraction(1, 10**12)
_FLOAT_MARGIN = 1e-9


def chance_of_error(threshold: int, scale: Fraction, unit: Fraction) -> float:
    """How often evidence of a broken promise reaches this threshold, at most."""
    return curves.up(float(_chance(threshold, scale, unit)))


@lru_cache(maxsize=1024)
def least_threshold(scale: Fraction, unit: Fraction, eta: Fraction) -> int:
    """The least whole threshold at which an ACCEPT is wrong with probability at most ``eta``."""
    allowed = curves.precise(eta * (1 - _MARGIN))

    def enough(threshold: int) -> bool:
        return bool(_chance(threshold, scale, unit) <= allowed)

    # Floats are right but for a few units, so the steps from their answer are few.
    guess = max(1, round(likely_threshold(float(scale * unit), float(eta)) / float(unit)))
    low, high, step = guess, guess, 1
    while not enough(high):
        low, high, step = high, high + step, 2 * step
    while low == high and low > 1:
        low = max(1, high - step)
        if enough(low):
            high, step = low, 2 * step
    return high if low == high else first_true(enough, low, high)


@lru_cache(maxsize=1024)
def least_gaussian_threshold(sigma: Fraction, unit: Fraction, eta: Fraction) -> int:
    """The same for rounded Gaussian noise of standard deviation ``sigma`` units, within a unit and
    a billionth.
    """
    nats = likely_gaussian_threshold(float(sigma * unit), float(eta) * (1 - _FLOAT_MARGIN))
    return math.ceil(Fraction(nats * (1 + _FLOAT_MARGIN)) / unit + Fraction(1, 2))


@lru_cache(maxsize=4096)
def likely_gaussian_threshold(sigma: float, eta: float) -> float:
    """The same in nats, with Gaussian noise on the line; rounded up."""
    from scipy.special import log_ndtr  # slow to import, and not needed by those who only read

    def chance(threshold: float) -> float:
        far = math.exp(log_ndtr(-threshold / sigma))
        near = sigma * sigma / 2 - threshold + log_ndtr(threshold / sigma - sigma)
        return float(far + math.exp(min(near, 0.0)))

    return _least_with(chance, eta)


@lru_cache(maxsize=4096)
def likely_threshold(scale: float, eta: float) -> float:
    """The same in nats, by floats and with Laplace noise on the line: for planning alone."""

    def chance(threshold: float) -> float:
        far, falling = math.exp(-threshold / scale), math.exp(-threshold)
        # The difference quotient of the exponential, stable where both rates are the same; as a
        # difference elsewhere, for noise that is large would make powers of large numbers.
        rate = 1 / scale - 1
        if abs(rate) < 1e-9:
            both = falling * threshold
        elif abs(rate * threshold) < 1:
            both = -falling * math.expm1(-rate * threshold) / rate
        else:
            both = (falling - far) / rate
        return far / 2 + falling / (2 * (1 + scale)) + both / (2 * scale)

    return _least_with(chance, eta)


def _least_with(chance: Callable[[float], float], eta: float) -> float:
    """Where a chance that falls comes down to eta, rounded up."""
    low, high = 0.0, 1.0
    while chance(high) > eta:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if chance(middle) > eta else (low, middle)
    return high


def _chance(threshold: int, scale: Fraction, unit: Fraction) -> Any:
    """The expectation in the module, for a threshold of at least 1."""
    slope, step = curves.precise(1 / scale), curves.precise(unit)
    q, falling = curves.exp(-slope), curves.exp(-step * threshold)
    far = curves.exp(-slope * threshold)
    below = q * curves.exp(-step)
    rising = q * curves.exp(step)
    # (q e^a)^t e^(-a t) is q^t: no power of a large number is ever made.
    between = falling * threshold if unit * scale == 1 else (far - falling) / (rising - 1)
    return far / (1 + q) + (1 - q) / (1 + q) * (falling * below / (1 - below) + between)
