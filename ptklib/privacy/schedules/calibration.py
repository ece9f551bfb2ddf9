"""The noise of a run for a promise: the least multiple of a schedule that is (epsilon, delta)-DP.

**The answer never exceeds the budget**: the run made with it is priced in the end, in the currency
that was asked for, and its epsilon at ``delta`` is at most ``epsilon``. It is the least multiple up
to a relative ``TOLERANCE``, in noise or in price.

`Accounting.GDP`    exact for reshuffled runs, and sampled ones at rate 1
`Accounting.RENYI`  by the Renyi curve: what a renyi filter with room for this run alone admits,
                    nearly (it splits its delta among orders)
`Accounting.PLD`    by the privacy-loss distribution: the least noise, for one run by itself
`Accounting.BEST`   the tightest that is known: GDP where it is exact, else PLD

Answers are remembered. No data. Reasons: TARGET_UNREACHABLE, COST_UNSUPPORTED, and those of
`schedules.base`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.schedules.base import LEAST_SIGMA, MOST_SIGMA, NoiseSchedule
from ptklib.privacy.schedules.decays import Uniform
from ptklib.privacy.schedules.runs import ReshuffledRun, Run, SampledRun

__all__ = ["TOLERANCE", "Accounting", "calibrated", "epsilon_under", "noise_multiplier"]

TOLERANCE = 2e-5
# Few orders, for speed; any subset gives a valid conversion.
_ORDERS = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(0.05, 1, 8),
            np.arange(2, 33, dtype=np.float64),
            np.round(np.geomspace(33, 2048, 32)),
        ]
    )
)


class Accounting(Enum):
    """The currency in which a promise is kept."""

    BEST = "best"
    GDP = "gdp"
    RENYI = "renyi"
    PLD = "pld"


def epsilon_under(cost: Cost, delta: Number, accounting: Accounting = Accounting.BEST) -> float:
    """The epsilon of a run's cost at this delta, in this currency; rounded up."""
    chance = delta_exact(delta)
    if accounting is Accounting.RENYI:
        return curves.epsilon_of_renyi(_ORDERS, cost.renyi(_ORDERS), chance)
    if accounting is Accounting.GDP:
        mu_squared = cost.mu_squared()
        if mu_squared is None:
            raise InvalidInput(
                "COST_UNSUPPORTED",
                f"a cost of kind {cost.kind} has no Gaussian-DP bound: use renyi or pld",
            )
        return curves.epsilon_of_gaussian(mu_squared, chance)
    return cost.epsilon(chance)


def calibrated(
    schedule: NoiseSchedule,
    run_of: Callable[[tuple[Fraction, ...]], Run],
    *,
    periods: int,
    epsilon: Number,
    delta: Number,
    accounting: Accounting = Accounting.BEST,
) -> NoiseSchedule:
    """The schedule scaled so that the run of its sigmas is (epsilon, delta)-DP; see the module.

    ``run_of`` makes the run of given sigmas, such as ``lambda sigmas:
    ReshuffledRun(sigmas=sigmas)``.
    """
    level, chance = epsilon_exact(epsilon), delta_exact(delta)
    if chance == 0:
        raise InvalidInput(
            "TARGET_UNREACHABLE",
            f"Gaussian noise is never ({show(level)}, 0)-DP: allow a delta",
        )
    shape = schedule.sigmas(periods)

    def price(factor: float, currency: Accounting) -> float:
        sigmas = schedule.scaled(factor).sigmas(periods)
        return _epsilon(run_of(sigmas), chance, currency)

    low, high = float(2 * LEAST_SIGMA / min(shape)), float(MOST_SIGMA / max(shape)) * 0.99
    # The Renyi price is quick, and above the best one by a few parts in a hundred.
    factor = _least_factor(
        lambda factor: price(factor, Accounting.RENYI), float(level), low, high, guess=1.0
    )
    if accounting is not Accounting.RENYI:
        factor = _least_factor(
            lambda factor: price(factor, accounting), float(level), low, high, guess=0.93 * factor
        )
    return schedule.scaled(factor)


@lru_cache(maxsize=1024)
def _sigma(
    rate: Fraction | None, steps: int, epsilon: Fraction, delta: Fraction, accounting: Accounting
) -> Fraction:
    def run_of(sigmas: tuple[Fraction, ...]) -> Run:
        if rate is None:
            return ReshuffledRun(sigmas=sigmas * steps)
        return SampledRun(rate=rate, steps=steps, sigmas=sigmas)

    scaled = calibrated(
        Uniform(sigma=Fraction(1)),
        run_of,
        periods=1,
        epsilon=epsilon,
        delta=delta,
        accounting=accounting,
    )
    return scaled.sigmas(1)[0]


def noise_multiplier(
    *,
    rate: Number | None,
    steps: int,
    epsilon: Number,
    delta: Number,
    accounting: Accounting = Accounting.BEST,
) -> Fraction:
    """The least sigma for ``steps`` equal steps: Poisson-sampled at ``rate``, or, where it is None,
    so many epochs of disjoint batches.
    """
    drawn = None if rate is None else exact(rate, name="rate")
    return _sigma(drawn, steps, epsilon_exact(epsilon), delta_exact(delta), accounting)


@lru_cache(maxsize=4096)
def _epsilon(run: Run, delta: Fraction, accounting: Accounting) -> float:
    try:
        return epsilon_under(run.cost, delta, accounting)
    except InvalidInput as error:
        # Too little noise for any price is not enough noise.
        if error.reason == "AMOUNT_TOO_LARGE":
            return math.inf
        raise


def _least_factor(
    price: Callable[[float], float], target: float, low: float, high: float, guess: float
) -> float:
    """The least factor in [low, high] whose price is at most the target; the price falls.

    Secant steps on logarithms, kept inside the bracket: a price is nearly a power of the factor.
    """
    guess, dear, cheap = min(max(guess, low), high), low, high
    known: list[tuple[float, float]] = []
    while cheap / dear - 1 > TOLERANCE:
        spent = price(guess)
        if spent <= target:
            cheap = guess
            if spent >= target * (1 - TOLERANCE):
                break
        else:
            dear = guess
        if math.isfinite(spent) and spent > 0:
            known.append((math.log(guess), math.log(spent)))
        guess = _next_guess(known, math.log(target * (1 - TOLERANCE / 2)), dear, cheap)
    if cheap == high and price(high) > target:
        raise InvalidInput(
            "TARGET_UNREACHABLE",
            f"no noise up to {high:g} times the schedule is within epsilon {target:g}: allow a "
            "larger epsilon or delta, or fewer steps",
        )
    return cheap


def _next_guess(
    known: list[tuple[float, float]], target: float, dear: float, cheap: float
) -> float:
    """Inside the bracket: where the price would be if it fell like 1/factor, then by the secant
    through the last two prices; by halving where that leads nowhere.
    """
    middle = math.sqrt(dear * cheap)
    if not known:
        return middle
    (x0, y0), slope = known[-1], -1.0
    if len(known) > 1:
        x1, y1 = known[-2]
        slope = (y1 - y0) / (x1 - x0) if x1 != x0 else 0.0
    aim = x0 + (target - y0) / slope if slope < -1e-3 else math.inf
    return math.exp(aim) if math.log(dear) < aim < math.log(cheap) else middle
