"""Numeric privacy curves: the Renyi divergence of each noise, the Gaussian profile, and the ways
between them.

Contract: **every number returned is an upper bound** on the true one. Closed forms are arranged so
that nothing cancels, and the result is inflated by a relative `MARGIN`, orders of magnitude above
the rounding error; the sampled Gaussian, which sums thousands of terms, gets `SUM_MARGIN`. A caller
may therefore round a result to the nearest float or decimal without falling below the truth, and
still rounds up when it makes integers of it.

An order is a float above 1; ``inf`` is the order at which the divergence is the pure epsilon.

Renyi to (epsilon, delta) is Canonne, Kamath & Steinke 2020 (Prop. 12; also Balle et al. 2020): a
divergence R at order a gives delta = exp((a-1)(R-epsilon)) (1-1/a)^(a-1) / a for every epsilon, and
the inequality behind it holds pointwise, so it also holds for measures of mass less than one.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MARGIN",
    "ORDERS",
    "SUM_MARGIN",
    "Floats",
    "capacity_at",
    "delta_of_gaussian",
    "delta_of_renyi",
    "epsilon_of_delta",
    "epsilon_of_gaussian",
    "epsilon_of_renyi",
    "exp",
    "laplace_renyi",
    "log",
    "mu_squared_of_pure",
    "precise",
    "pure_renyi",
    "root",
    "sampled_gaussian_renyi",
    "up",
]

Floats = NDArray[np.float64]

MARGIN = 1e-12
SUM_MARGIN = 1e-9
# The binomial sum has one term per unit of the order; above this the unsampled Gaussian bounds it.
_LARGEST_SUM = 1 << 14
_TINY = Fraction(1, 10**30)


class _Local(threading.local):
    """A context of our own in each thread: the global one may be changed by anybody, and functions
    change it while they run.
    """

    def __init__(self) -> None:
        self.mp: Any = mpmath.MPContext()
        self.mp.dps = 100


_PRECISE = _Local()

# Where conversions look for the best order; fine where the optimum usually is.
ORDERS: Floats = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.01, 1, 24),
            np.arange(2, 64, dtype=np.float64),
            np.round(np.geomspace(64, _LARGEST_SUM, 40)),
            [np.inf],
        ]
    )
)


def precise(value: Fraction | float) -> Any:
    """The value as a 100-digit number."""
    exact = Fraction(value)
    return _PRECISE.mp.mpf(exact.numerator) / exact.denominator


def up(value: float) -> float:
    """Inflate a computed bound past its rounding error; zero stays zero."""
    return math.nextafter(value * (1 + MARGIN), math.inf) if value > 0 else value


def pure_renyi(orders: Floats, epsilon: Fraction | float) -> Floats:
    """Renyi divergence of randomized response, the worst of all epsilon-DP pairs.

    R = log(cosh((a-1/2)e) / cosh(e/2)) / (a-1), which is (sinh(ae) - sinh((a-1)e)) / sinh(e) by the
    half-angle formulas; written with log1p where ae is small, so that it keeps all its digits as e
    goes to zero.
    """
    e = float(epsilon)
    with np.errstate(over="ignore", invalid="ignore"):
        small = np.log1p(
            2 * np.sinh(orders * e / 2) * np.sinh((orders - 1) * e / 2) / math.cosh(min(e, 700) / 2)
        )
        large = (np.log1p(np.exp(-(2 * orders - 1) * e)) - math.log1p(math.exp(-e))) / (orders - 1)
        curve = np.where(orders * e < 2, small / (orders - 1), e + large)
    return np.asarray(np.minimum(curve, e) * (1 + MARGIN), dtype=np.float64)


def laplace_renyi(orders: Floats, epsilon: Fraction, step: Fraction = Fraction(0)) -> Floats:
    """Renyi divergence of Laplace noise: ``epsilon`` = sensitivity / scale; ``step`` = 1 / scale on
    integers, else 0.

    With t the step and T the epsilon, the sum (or integral) over the three regions k <= 0, 0 < k <
    sensitivity and k >= sensitivity collapses to A exp((a-1)T) + B exp(-aT) with A + B = 1 and A :
    B = sinh(at) : sinh((a-1)t); as t goes to 0 this is a : a-1, the continuous Laplace. For a
    sensitivity of one unit (T = t) it is randomized response: on integers the noise has no room
    between the two answers.
    """
    return np.array(
        [_laplace_at(float(order), epsilon, step) for order in orders], dtype=np.float64
    )


def _laplace_at(order: float, epsilon: Fraction, step: Fraction) -> float:
    if math.isinf(order):
        return up(float(epsilon))
    a, loss, t = precise(order), precise(max(epsilon, _TINY)), precise(step)
    near, far = (
        (a, a - 1) if step == 0 else (_PRECISE.mp.sinh(a * t), _PRECISE.mp.sinh((a - 1) * t))
    )
    excess = (near * _PRECISE.mp.expm1((a - 1) * loss) + far * _PRECISE.mp.expm1(-a * loss)) / (
        near + far
    )
    return up(float(_PRECISE.mp.log1p(excess) / (a - 1)))


def sampled_gaussian_renyi(orders: Floats, rate: float, sigma: float) -> Floats:
    """One step of Poisson sampling at ``rate`` and Gaussian noise ``sigma``, sensitivity 1, under
    add/remove.

    At an integer order a (Mironov, Talwar & Zhang 2019): exp((a-1)R) = sum_k C(a,k) q^k (1-q)^(a-k)
    exp(k(k-1)/(2 sigma^2)). The binomial weights sum to one, so that sum minus one is the same sum
    with expm1 for exp: all terms are positive, those of k = 0, 1 vanish and no digit is lost for
    small q. (a-1)R is convex in a, so between integers its chord is an upper bound. Sampling never
    hurts, so the plain Gaussian bounds it as well.
    """
    plain = orders / (2 * sigma * sigma)
    if rate >= 1:
        return np.asarray(plain * (1 + SUM_MARGIN), dtype=np.float64)
    summable = orders <= _LARGEST_SUM
    below = np.floor(orders[summable]).astype(np.int64)
    above = np.ceil(orders[summable]).astype(np.int64)
    logs = {int(a): _log_moment(int(a), rate, sigma) for a in np.union1d(below, above)}
    low = np.array([logs[int(a)] for a in below])
    high = np.array([logs[int(a)] for a in above])
    part = orders[summable] - below
    curve = np.full(orders.shape, np.inf)
    curve[summable] = (low * (1 - part) + high * part) / (orders[summable] - 1)
    return np.asarray(np.minimum(curve, plain) * (1 + SUM_MARGIN), dtype=np.float64)


def _log_moment(order: int, rate: float, sigma: float) -> float:
    from scipy import special  # slow to import, and not needed by those who only read states

    if order < 2:
        return 0.0
    k = np.arange(2, order + 1, dtype=np.float64)
    power = k * (k - 1) / (2 * sigma * sigma)
    weight = special.gammaln(order + 1) - special.gammaln(k + 1) - special.gammaln(order - k + 1)
    weight += k * math.log(rate) + (order - k) * math.log1p(-rate)
    with np.errstate(over="ignore"):
        grown = np.where(power < 30, np.log(np.expm1(np.minimum(power, 30))), power)
    excess = float(special.logsumexp(weight + grown))
    return excess + math.log1p(math.exp(-excess)) if excess > 0 else math.log1p(math.exp(excess))


def mu_squared_of_pure(epsilon: Fraction | float) -> float:
    """The smallest mu^2 such that epsilon-DP implies mu-GDP: mu = -2 Phi^-1(1 / (1 +
    exp(epsilon))).

    Proof. The trade-off of epsilon-DP is f(x) = max(0, 1 - exp(e) x, exp(-e)(1 - x)): straight from
    (0, 1) to its kink at x0 = 1/(1 + exp(e)), f(x0) = x0, and straight again to (1, 0). The
    Gaussian trade-off G(x) = Phi(Phi^-1(1-x) - mu) is convex, runs through (0, 1) and (1, 0), and
    meets the diagonal at Phi(-mu/2) = x0 for this mu. A convex function lies below its chords, and
    the two chords are f: G <= f, so every epsilon-DP mechanism is mu-GDP. A smaller mu fails at x0.
    """
    from scipy import special

    e = float(epsilon)
    # 1/2 - x0 = tanh(e/2)/2 keeps the digits of a small epsilon, the logarithm those of a large
    # one.
    if e < 4:
        mu = 2 * math.sqrt(2) * float(special.erfinv(math.tanh(e / 2)))
    else:
        mu = -2 * float(special.ndtri_exp(-e - math.log1p(math.exp(-e))))
    return mu * mu * (1 + SUM_MARGIN)


def delta_of_gaussian(mu: Any, epsilon: Any) -> Any:
    """Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2), to 100 digits: the exact delta of mu-GDP at
    this epsilon.
    """
    first = _PRECISE.mp.erfc((epsilon / mu - mu / 2) / _PRECISE.mp.sqrt(2))
    second = _PRECISE.mp.erfc((epsilon / mu + mu / 2) / _PRECISE.mp.sqrt(2))
    return (first - _PRECISE.mp.exp(epsilon) * second) / 2


def epsilon_of_gaussian(mu_squared: Fraction | float, delta: Fraction | float) -> float:
    """The least epsilon with delta(epsilon) <= delta for mu-GDP; infinite at delta = 0."""
    if delta <= 0:
        return math.inf
    mu, target = _PRECISE.mp.sqrt(precise(mu_squared)), precise(delta)
    return up(epsilon_of_delta(lambda epsilon: delta_of_gaussian(mu, precise(epsilon)), target))


def epsilon_of_delta(profile: Callable[[float], Any], delta: Any) -> float:
    """The least epsilon, to a relative `MARGIN`, at which a falling profile is at most delta;
    always one that is.
    """
    if profile(0.0) <= delta:
        return 0.0
    low, high = 0.0, 1e-6
    while profile(high) > delta:
        low, high = high, 2 * high
        if high > 1e12:
            return math.inf
    while high - low > MARGIN * high:
        middle = (low + high) / 2
        low, high = (low, middle) if profile(middle) <= delta else (middle, high)
    return high


def epsilon_of_renyi(orders: Floats, values: Floats, delta: Fraction | float) -> float:
    """The best epsilon over the orders for this delta. At delta = 0 only the order inf has one."""
    pure = float(np.min(values[np.isinf(orders)], initial=np.inf))
    if delta <= 0:
        return pure
    finite = np.isfinite(orders)
    a, value = orders[finite], values[finite]
    best = float(
        np.min(value + np.log1p(-1 / a) - (math.log(delta) + np.log(a)) / (a - 1), initial=np.inf)
    )
    return min(pure, up(max(0.0, best)))


def delta_of_renyi(orders: Floats, values: Floats, epsilon: float) -> float:
    """The best delta over the orders at this epsilon; at most 1."""
    if float(np.min(values[np.isinf(orders)], initial=np.inf)) <= epsilon:
        return 0.0
    finite = np.isfinite(orders) & np.isfinite(values)
    a, value = orders[finite], values[finite]
    best = float(np.min((a - 1) * (value - epsilon + np.log1p(-1 / a)) - np.log(a), initial=0.0))
    # The exponent's own rounding error is absolute, so it is added before exp.
    return min(1.0, up(math.exp(best + MARGIN * (1 + abs(best)))))


def capacity_at(order: Fraction, epsilon: Fraction, delta: Fraction) -> Any:
    """The largest Renyi divergence at a finite ``order`` that still implies (epsilon, delta); may
    be negative.
    """
    a = precise(order)
    return (
        precise(epsilon)
        - _PRECISE.mp.log((a - 1) / a)
        + (_PRECISE.mp.log(precise(delta)) + _PRECISE.mp.log(a)) / (a - 1)
    )


def root(value: Fraction | float) -> Any:
    """The square root to 100 digits."""
    return _PRECISE.mp.sqrt(precise(value))


def exp(value: Any) -> Any:
    """The exponential to 100 digits."""
    return _PRECISE.mp.exp(value)


def log(value: Any) -> Any:
    """The natural logarithm to 100 digits."""
    return _PRECISE.mp.log(value)
