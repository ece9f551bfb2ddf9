"""The grid of privacy levels at which PTKs are profiled.

Levels are shares of the stream's epsilon, evenly spaced on a logarithmic scale and rounded to two
digits, so that people can read them and sums come out even: 0.01, 0.017, 0.028, ..., 0.6, 1. They
are exact fractions, the same on every machine.

Reason: LEVELS_INVALID, and those of `amounts`.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, exact

__all__ = ["DEFAULT_COUNT", "privacy_levels"]

DEFAULT_COUNT = 10
_MOST = 100
# Enough digits that rounding to two never depends on them; Decimal is the same everywhere.
_DIGITS = Context(prec=40, rounding=ROUND_HALF_EVEN)
_HUMAN = Context(prec=2, rounding=ROUND_HALF_EVEN)


def privacy_levels(
    epsilon: Number = 1, *, count: int = DEFAULT_COUNT, lowest: Number = "0.01", highest: Number = 1
) -> tuple[Fraction, ...]:
    """``count`` rising levels from ``lowest`` to ``highest`` (shares of ``epsilon``), both
    included.
    """
    return _levels(epsilon_exact(epsilon), count, lowest, highest)


@lru_cache(maxsize=64)
def _levels(whole: Fraction, count: int, lowest: Number, highest: Number) -> tuple[Fraction, ...]:
    low, high = exact(lowest, name="lowest"), exact(highest, name="highest")
    if type(count) is not int or not 1 <= count <= _MOST:
        raise InvalidInput(
            "LEVELS_INVALID", f"count must be an integer from 1 to {_MOST}, got {count!r:.40}"
        )
    if not 0 < low <= high <= 1:
        raise InvalidInput(
            "LEVELS_INVALID",
            f"levels must have 0 < lowest <= highest <= 1, got {lowest} and {highest}",
        )
    shares = [low, *(_between(low, high, step, count - 1) for step in range(1, count - 1)), high]
    if count == 1:
        shares = [high]
    if any(share >= other for share, other in pairwise(shares)):
        raise InvalidInput(
            "LEVELS_INVALID",
            f"{count} levels between {lowest} and {highest} must differ in two digits: take fewer, "
            "or a wider range",
        )
    return tuple(share * whole for share in shares)


def _between(low: Fraction, high: Fraction, step: int, steps: int) -> Fraction:
    first, last = (
        _DIGITS.divide(Decimal(end.numerator), Decimal(end.denominator)) for end in (low, high)
    )
    ratio = _DIGITS.power(
        _DIGITS.divide(last, first), _DIGITS.divide(Decimal(step), Decimal(steps))
    )
    return Fraction(_HUMAN.plus(_DIGITS.multiply(first, ratio)))
