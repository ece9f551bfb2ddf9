"""The two tests of a profile: "risk at most 2 target" and "minimal risk above the target", as
comparisons of whole numbers.

Under add/remove neighbours the number of records in a slice is private, so nothing here divides by
it. Both tests look at a sum of terms ``loss - c`` over the records of one slice, with noise, and
compare it with a public threshold. What makes them right **for any number of records, even none**:

*Upper test* (a witness has risk at most p = 2 target). Take c = 7/4 target < p, as in Fig. 3. If
the risk is p or more, then for the rate lambda > 0 with ``p e^(-lambda(1-c)) + (1-p) e^(lambda c) =
1`` each term has ``E e^(lambda(c - loss)) <= 1`` (the exponential is convex, so a loss of 0 or 1 is
the worst one of its mean), and so has the sum, for every rate up to lambda. With noise X,
independent of the data, Markov gives ``P[sum(c - loss) + X >= a] <= E e^(theta X) / e^(theta a)``
for each theta <= lambda; ``a`` is the least at which some theta makes this the failure that was
asked for.

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
from fractions import Fraction

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact

__all__ = [
    "LOWER_FAILURE",
    "UNIT",
    "UPPER_FAILURE",
    "figure_records",
    "lower_centre",
    "lower_threshold",
    "target_exact",
    "upper_centre",
    "upper_threshold",
    "validation_records",
]

UNIT = 1 << 16
# A witness misses its promise, or a reachable target is called unreachable, at most this often in a
# level.
UPPER_FAILURE = 0.05
LOWER_FAILURE = 1e-4
# No loss can be above it, so the rate could be anything.
_LARGEST_RATE = 60.0


def target_exact(target: Number) -> Fraction:
    """A target: above 0 and below 1."""
    found = exact(target, name="target")
    if not 0 < found < 1:
        raise InvalidInput("TARGET_INVALID", f"target must be above 0 and below 1, got {target}")
    return found


def upper_centre(target: Fraction) -> int:
    """c of the upper test in units, 7/4 target rounded down; at most the largest loss."""
    return min(UNIT, math.floor(target * UNIT * Fraction(7, 4)))


def lower_centre(target: Fraction) -> int:
    """c of the lower test in units, 3/2 target rounded up."""
    return min(UNIT, math.ceil(target * UNIT * Fraction(3, 2)))


def figure_records(target: Fraction, look: Fraction, looks: int) -> int:
    """m of Fig. 3: 2 (target^-2 + (epsilon target)^-1) ln(100 T)."""
    return math.ceil(2 * (1 / target**2 + 1 / (look * target)) * Fraction(math.log(100 * looks)))


def upper_threshold(
    target: Fraction, scale: Fraction, looks: int, records_per_unit: int = 1
) -> int:
    """The noisy sum of ``c - loss``, in units, from which on the risk is at most 2 target, at all
    looks together.

    ``scale`` is that of the noise, in units.
    """
    centre = upper_centre(target) / UNIT
    promised = float(2 * target)
    if promised >= 1:
        return 0  # Every risk is at most 1: nothing to show.
    rate = _rate(centre, promised) / records_per_unit
    return _threshold(rate, float(scale) / UNIT, UPPER_FAILURE / looks)


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


def validation_records(
    target: Fraction, scale: Fraction, looks: int, look: Fraction, records_per_unit: int = 1
) -> int:
    """How many records let a state of risk 3/2 target pass all looks but with a small probability;
    m of Fig. 3 at least.

    Fig. 3's m alone is too small for its own claim at large targets (Hoeffding asks for 8 target^-2
    where it has 2).
    """
    least = figure_records(target, look, looks)
    threshold = upper_threshold(target, scale, looks, records_per_unit) / UNIT
    risk, centre, noise = float(target) * 1.5, upper_centre(target) / UNIT, float(scale) / UNIT
    if risk >= centre or risk >= 1 or threshold <= 0:
        return least
    wanted = math.log(looks / UPPER_FAILURE)
    best = math.inf
    for theta in _thetas(min(_LARGEST_RATE, 0.999 / noise)):
        shrink = -math.log(
            risk * math.exp(theta * (1 - centre)) + (1 - risk) * math.exp(-theta * centre)
        )
        if shrink > 0:
            need = theta * threshold + _noise(theta, noise) + wanted
            best = min(best, records_per_unit * need / shrink)
    return max(least, math.ceil(best)) if math.isfinite(best) else least


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
    theta up to the rate.
    """
    wanted = -math.log(failure)
    best = min(
        (wanted + _noise(theta, scale)) / theta for theta in _thetas(min(rate, 0.999 / scale))
    )
    return math.ceil(best * UNIT * (1 + 1e-9)) + 1


def _noise(theta: float, scale: float) -> float:
    """ln E e^(theta X) of Laplace noise; noise on whole units of the same scale has less."""
    return -math.log1p(-((theta * scale) ** 2))


def _thetas(most: float) -> Iterator[float]:
    return (most * step / 64 for step in range(1, 65))
