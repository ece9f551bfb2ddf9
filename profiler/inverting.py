"""The error that a closed form promises at an epsilon on so many samples: a profile, read backwards.

An analytic profile says how many records a target needs. A looser target never needs more, so the
tightest one that so many records are enough for is found by halving. Public numbers alone: free.
"""

from __future__ import annotations

from fractions import Fraction

from profiler.analytic import Analytic
from ptklib.privacy.amounts import Number

__all__ = ["CONFIDENCE", "closed_form_error", "has_closed_form"]

# What closed forms are made for.
CONFIDENCE = "0.95"
# Errors are told in these steps, rounded up.
_STEPS = 10**5


def has_closed_form(
    ptk: Analytic, epsilon: Number, delta: Number = 0, records_per_unit: int = 1
) -> bool:
    """True where the error follows from public numbers. That depends on the configuration alone."""
    told = ptk.analytic_profile(0.5, (epsilon,), delta, records_per_unit=records_per_unit)
    return told is not None


def closed_form_error(
    ptk: Analytic,
    epsilon: Number,
    samples: int,
    delta: Number = 0,
    records_per_unit: int = 1,
) -> Fraction | None:
    """What a state of so many records stays within with probability `CONFIDENCE`; None where that
    is 1 or more, and where there is no closed form.
    """

    def enough(step: int) -> bool:
        told = ptk.analytic_profile(
            step / _STEPS, (epsilon,), delta, records_per_unit=records_per_unit
        )
        return told is not None and told[0] is not None and told[0] <= samples

    low, high = 0, _STEPS - 1
    if not enough(high):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Fraction(high, _STEPS)
