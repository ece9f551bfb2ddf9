"""How many epochs a schedule affords, and the decay that affords so many.

The question is asked of a *price*: a function that says what a list of sigmas costs, in a currency
in which costs of epochs add up and more noise is cheaper, such as `mu_squared_of`, the exact price
of reshuffled epochs (rho of zCDP is half of it). Answers never exceed the budget. No data.

Reasons: SCHEDULE_UNAFFORDABLE (not even the gentlest decay affords so many epochs), and those of
`schedules.base`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import TypeVar

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, exact, show
from ptklib.privacy.bisection import last_true
from ptklib.privacy.schedules.base import MAX_PERIODS, NoiseSchedule, period_count
from ptklib.privacy.schedules.decays import FallingSchedule

__all__ = ["affordable_epochs", "mu_squared_of", "strongest_decay"]

Falling = TypeVar("Falling", bound=FallingSchedule)
Price = Callable[[tuple[Fraction, ...]], Fraction]


def mu_squared_of(sigmas: tuple[Fraction, ...]) -> Fraction:
    """What reshuffled epochs at these sigmas cost: mu^2 of Gaussian DP, exactly."""
    return sum((1 / sigma**2 for sigma in sigmas), Fraction(0))


def affordable_epochs(schedule: NoiseSchedule, *, budget: Number, most: int = 10_000) -> int:
    """How many whole epochs of disjoint batches mu^2 = ``budget`` affords; 0 if not even one."""
    limit = exact(budget, name="budget")
    spent, epochs = Fraction(0), 0
    for sigma in schedule.sigmas(min(most, MAX_PERIODS)):
        spent += 1 / sigma**2
        if spent > limit:
            break
        epochs += 1
    return epochs


def strongest_decay(
    schedule: Falling,
    *,
    epochs: int,
    budget: Number,
    price: Price = mu_squared_of,
    places: int = 4,
) -> Falling:
    """The schedule with the strongest decay, in whole steps of ``10**-places``, of which ``epochs``
    epochs fit into the budget.

    The noise falls as the decay grows stronger, so the price rises and halving finds where it
    crosses the budget.
    """
    limit, steps = exact(budget, name="budget"), 10**places
    periods = period_count(epochs, name="epochs")
    gentle, strong = schedule.gentler_first
    sign = 1 if strong > gentle else -1
    start = round(gentle * steps)

    def at(number: int) -> Falling:
        decay = Fraction(start + sign * number, steps)
        return replace(schedule, decay=decay)

    def fits(number: int) -> bool:
        return price(at(number).sigmas(periods)) <= limit

    if not fits(0):
        raise InvalidInput(
            "SCHEDULE_UNAFFORDABLE",
            f"{epochs} epochs without any decay cost more than {show(limit)}: start with more "
            "noise, or run fewer epochs",
        )
    end = abs(round(strong * steps) - start)
    return at(last_true(fits, 0, max(1, end)))
