"""The two tests of a profile: "risk at most the target" and "minimal risk above the target", as
comparisons of whole numbers.

Under add/remove neighbours the number of records in a slice is private, so nothing here divides by
it. Both tests look at a sum of terms ``loss - c`` over the records of one slice, with noise, and
compare it with a public threshold. What makes them right **for any number of records, even none**:

*Upper test* (a state has risk at most t, the target). Take a c below t. If the risk is t or more,
then for the rate lambda > 0 with ``t e^(-lambda(1-c)) + (1-t) e^(lambda c) = 1`` each term has ``E
e^(lambda(c - loss)) <= 1`` (the exponential is convex, so a loss of 0 or 1 is the worst one of its
mean), and so has the product over all records, for every rate up to lambda: who bets on each record
that the risk is below t does not win. By Markov the sum of ``c - loss`` exceeds ``ln(1/f)/lambda``
with a probability of at most f. Noise X, independent of the data, is either one more factor
(``P[sum + X >= a] <= E e^(theta X) / e^(theta a)`` for theta <= lambda) or a quantile of its own;
the threshold is the smaller one of both. A state passes when its mean loss is below t by a *margin*
of ``t - c + threshold/m`` on m records; c is chosen so that this is least for the planned m.

*Lower test* (the minimal risk is above the target). With c = 3/2 target and the rate at which ``t
e^(lambda(1-c)) + (1-t) e^(-lambda c) = 1``: if some f has risk at most t, the sum of ``loss(f) -
c`` rarely exceeds a, and the least sum over all f is below it.

Units of r records (users): Hoelder's inequality over the records of a user gives the same with
rates r times smaller.

Losses are whole numbers of 1/`UNIT`; thresholds are rounded against the claim. Failures count all T
looks (union bound). Floating point decides how likely an error of the estimate is, never what is
private.

Reason: TARGET_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact

__all__ = [
    "LOWER_FAILURE",
    "UNIT",
    "UPPER_FAILURE",
    "RiskTest",
    "lower_centre",
    "lower_threshold",
    "risk_test",
    "target_exact",
    "validation_records",
]

UNIT = 1 << 16
# A state that was looked at misses the target though it passed, or a reachable target is called
# unreachable, at most this often in a level.
UPPER_FAILURE = 0.05
LOWER_FAILURE = 1e-4
# How far sums and noise are off, at most, for a state that is good enough to pass in 95% of looks.
_OF_SUM, _OF_NOISE = 1.9, 2.5
# No loss can be above it, so the rate could be anything.
_LARGEST_RATE = 60.0


def target_exact(target: Number) -> Fraction:
    """A target: above 0 and below 1."""
    exact_target = exact(target, name="target")
    if not 0 < exact_target < 1:
        raise InvalidInput("TARGET_INVALID", f"target must be above 0 and below 1, got {target}")
    return exact_target


@dataclass(frozen=True)
class RiskTest:
    """The upper test on so many planned records: whether a noisy sum of ``centre - loss``, in units,
    reaches the threshold.
    """

    target: Fraction
    centre: int
    threshold: int
    records: int

    @property
    def margin(self) -> float:
        """By how much the mean loss must be below the target to pass."""
        return float(self.target) - self.risk(self.threshold)

    def risk(self, total: int) -> float:
        """The mean loss that a sum stands for."""
        return (self.centre - total / self.records) / UNIT


@lru_cache(maxsize=4096)
def risk_test(
    target: Fraction, scale: Fraction, looks: int, records: int, records_per_unit: int = 1
) -> RiskTest:
    """The test of the least margin for so many planned records, right for any number of them at all
    looks together.

    ``scale`` is that of the noise, in units.
    """
    tests = []
    for step in range(1, 25):
        centre = math.floor(target * UNIT * (1 - Fraction(2**step, 3**step)))
        if step == 1:
            centre = math.floor(target * UNIT * Fraction(1, 6))
        rate = _rate(centre / UNIT, float(target)) / records_per_unit
        threshold = _threshold(rate, float(scale) / UNIT, UPPER_FAILURE / looks)
        tests.append(RiskTest(target, centre, threshold, records))
    return min(tests, key=lambda test: (test.margin, test.centre))


def lower_centre(target: Fraction) -> int:
    """c of the lower test in units, 3/2 target rounded up."""
    return min(UNIT, math.ceil(target * UNIT * Fraction(3, 2)))


def lower_threshold(
    target: Fraction, scale: Fraction, looks: int, records_per_unit: int = 1
) -> int:
    """The noisy least sum of ``loss - c``, in units, from which on the minimal risk is above the
    target.
    """
    centre = lower_centre(target) / UNIT
    if centre >= 1:
        return UNIT**3  # Never: no loss exceeds c.
    rate = _rate(1 - centre, 1 - float(target)) / records_per_unit
    return _threshold(rate, float(scale) / UNIT, LOWER_FAILURE / looks)


@lru_cache(maxsize=4096)
def validation_records(
    target: Fraction, scale: Fraction, looks: int, share: Fraction, records_per_unit: int = 1
) -> int:
    """On so many records a state whose risk is below the target by that share of it passes all looks
    but with a small probability.
    """
    below = float(target * share)
    risk = float(target) - below
    noise = _OF_NOISE * float(scale) / UNIT

    def enough(records: int) -> bool:
        margin = risk_test(target, scale, looks, records, records_per_unit).margin
        usual = _OF_SUM * math.sqrt(risk * (1 - risk) * records * records_per_unit)
        return (below - margin) * records >= math.hypot(usual, noise)

    most = 16
    while not enough(most) and most < 1 << 40:
        most *= 2
    least = most // 2
    while most - least > max(1, least // 64):
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def _rate(centre: float, mean: float) -> float:
    """lambda > 0 with mean e^(-lambda(1-centre)) + (1-mean) e^(lambda centre) = 1, for centre <
    mean.
    """

    def growth(rate: float) -> float:
        return mean * math.exp(-rate * (1 - centre)) + (1 - mean) * math.exp(rate * centre) - 1

    if growth(_LARGEST_RATE) <= 0:
        return _LARGEST_RATE
    return _bisect(growth, _LARGEST_RATE)


def _bisect(growth: Callable[[float], float], high: float) -> float:
    """Just below the positive zero of a convex function that falls first."""
    low = 0.0
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if growth(middle) < 0 else (low, middle)
    return low


def _threshold(rate: float, scale: float, failure: float) -> int:
    """The least a, in units and rounded up, with E e^(theta X) e^(-theta a) <= failure for some
    theta up to the rate; or the sum of a quantile of the noise and one without noise.
    """
    wanted = -math.log(failure)
    best = min(
        (wanted + _noise(theta, scale)) / theta for theta in _thetas(min(rate, 0.999 / scale))
    )
    # Half of the failures for the noise, half for the sum.
    apart = scale * wanted + (wanted + math.log(2)) / rate
    best = min(best, apart)
    return math.ceil(best * UNIT * (1 + 1e-9)) + 1


def _noise(theta: float, scale: float) -> float:
    """ln E e^(theta X) of Laplace noise; noise on whole units of the same scale has less."""
    return -math.log1p(-((theta * scale) ** 2))


def _thetas(most: float) -> Iterator[float]:
    return (most * step / 64 for step in range(1, 65))
