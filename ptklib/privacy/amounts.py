"""Exact budget arithmetic: human numbers in, integers inside, no float in between.

Every amount that is stored or compared is an integer count of a fixed unit:

* privacy loss (epsilon, Renyi divergence, mu squared): nano, ``NANO = 10**9`` units to one;
* delta: atto, ``ATTO = 10**18`` units to one.

The one rounding rule: **charges round up, capacities round down.** So the sum of the stored charges
is never less than the sum of the true ones, and ten charges of "0.1" are exactly a capacity of
"1.0".

Human forms are parsed exactly (`exact`): a string such as ``"0.1"``, ``"1e-6"`` or ``"1/3"``, an
int, a Fraction, a Decimal, or a float, which means the shortest decimal that prints it (``0.1`` is
one tenth, not 0.1000000000000000055…). NaN, infinities, negatives, bools and texts of more than
`MAX_DIGITS` characters are refused before any big number is built.

Reasons: AMOUNT_NOT_A_NUMBER, AMOUNT_NOT_FINITE, AMOUNT_NEGATIVE, AMOUNT_ZERO, AMOUNT_TOO_LARGE,
AMOUNT_TOO_SMALL, AMOUNT_TOO_LONG.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np

from ptklib.errors import InvalidInput

__all__ = [
    "ATTO",
    "MAX_DIGITS",
    "MAX_EPSILON",
    "NANO",
    "Number",
    "ceil_units",
    "delta_exact",
    "epsilon_exact",
    "exact",
    "floor_units",
    "show",
    "show_units",
]

NANO = 10**9
ATTO = 10**18
# No promise is worth stating beyond this; it also keeps every sum far inside 64 bits.
MAX_EPSILON = 1000
MAX_DIGITS = 40
# Far below one unit of anything we keep, and small enough that no exponent can build a giant
# integer.
_MIN_EXPONENT = -60
_MAX_EXPONENT = 30

Number = int | float | str | Decimal | Fraction

_TEXT = re.compile(r"(?P<mantissa>[+-]?(?:\d+(?:\.\d*)?|\.\d+))(?:[eE](?P<exponent>[+-]?\d+))?")
_RATIO = re.compile(r"([+-]?\d+)/(\d+)")


def exact(value: Number, *, name: str = "amount") -> Fraction:
    """Return the non-negative rational a human meant, or refuse with a reason.

    ``name`` is used in the message.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal | Fraction):
        raise InvalidInput(
            "AMOUNT_NOT_A_NUMBER",
            f"{name} must be a number such as 0.1 or '1e-6', got {type(value).__name__}",
            field=name,
        )
    if isinstance(value, float | Decimal) and not _is_finite(value):
        raise InvalidInput("AMOUNT_NOT_FINITE", f"{name} must be finite, got {value}", field=name)
    if isinstance(value, int | Fraction):
        result = Fraction(value)
    else:
        result = _parse(repr(value) if isinstance(value, float) else str(value), name)
    _check_length(result, name)
    if result < 0:
        raise InvalidInput(
            "AMOUNT_NEGATIVE", f"{name} must not be negative, got {show(result)}", field=name
        )
    return result


def epsilon_exact(value: Number, *, name: str = "epsilon") -> Fraction:
    """An epsilon (or rho, or mu): positive, at most `MAX_EPSILON`."""
    result = exact(value, name=name)
    if result == 0:
        raise InvalidInput(
            "AMOUNT_ZERO", f"{name} must be positive, got 0: nothing is free", field=name
        )
    if result > MAX_EPSILON:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE",
            f"{name} must be at most {MAX_EPSILON}, got {show(result)}",
            field=name,
        )
    return result


def delta_exact(value: Number, *, name: str = "delta") -> Fraction:
    """A delta: zero, or between one atto (1e-18) and one (exclusive)."""
    result = exact(value, name=name)
    if result >= 1:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE", f"{name} must be less than 1, got {show(result)}", field=name
        )
    if 0 < result < Fraction(1, ATTO):
        raise InvalidInput(
            "AMOUNT_TOO_SMALL",
            f"{name} must be 0 or at least 1e-18, got {show(result)}",
            field=name,
        )
    return result


def ceil_units(value: Fraction, unit: int) -> int:
    """A charge in whole units, rounded up."""
    return -((-value.numerator * unit) // value.denominator)


def floor_units(value: Fraction, unit: int) -> int:
    """A capacity in whole units, rounded down."""
    return value.numerator * unit // value.denominator


def show(value: Fraction) -> str:
    """The shortest exact decimal ('0.1', '1e-06'), or 'p/q' where there is none; `exact` reads it
    back.
    """
    # As many places as the denominator has factors of two, or of five if it has more of those.
    places = (value.denominator & -value.denominator).bit_length() - 1
    rest, fives = value.denominator >> places, 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest != 1:
        return f"{value.numerator}/{value.denominator}"
    places = max(places, fives)
    sign = "-" if value < 0 else ""
    # Integers only: Decimal arithmetic would round to the caller's context.
    digits = str(abs(value.numerator) * 10**places // value.denominator)
    if value != 0 and abs(value) < Fraction(1, 10_000):
        mantissa = digits.rstrip("0")
        exponent = len(digits) - 1 - places
        return (
            sign + mantissa[0] + ("." + mantissa[1:] if mantissa[1:] else "") + f"e{exponent:+03d}"
        )
    if places == 0:
        return sign + digits
    digits = digits.zfill(places + 1)
    return f"{sign}{digits[:-places]}.{digits[-places:]}"


def show_units(units: int, unit: int) -> str:
    """Print a stored integer as the decimal it stands for:

    ``show_units(100_000_000, NANO) == '0.1'``.
    """
    return show(Fraction(units, unit))


def _is_finite(value: float | Decimal) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else value - value == 0


def _parse(text: str, name: str) -> Fraction:
    text = text.strip()
    if len(text) > MAX_DIGITS:
        raise InvalidInput(
            "AMOUNT_TOO_LONG",
            f"{name} must have at most {MAX_DIGITS} characters, got {len(text)}",
            field=name,
        )
    if text.lower().lstrip("+-") in {"nan", "inf", "infinity"}:
        raise InvalidInput("AMOUNT_NOT_FINITE", f"{name} must be finite, got {text}", field=name)
    ratio = _RATIO.fullmatch(text)
    if ratio and text.isascii() and int(ratio[2]) != 0:
        return Fraction(int(ratio[1]), int(ratio[2]))
    match = _TEXT.fullmatch(text)
    if not text.isascii() or not match:
        raise InvalidInput(
            "AMOUNT_NOT_A_NUMBER",
            f"{name} must be a number such as 0.1 or '1e-6', got {text!r}",
            field=name,
        )
    whole, _, places = match["mantissa"].partition(".")
    digits = int(whole + places)
    if digits == 0:
        return Fraction(0)
    # The exponent is judged before a power is built, so that none can build a giant integer.
    exponent = int(match["exponent"] or 0) - len(places)
    size = len(str(abs(digits))) - 1 + exponent
    if size >= _MAX_EXPONENT:
        raise InvalidInput(
            "AMOUNT_TOO_LARGE",
            f"{name} must be below 1e{_MAX_EXPONENT}, got {text}",
            field=name,
        )
    if size < _MIN_EXPONENT:
        raise InvalidInput(
            "AMOUNT_TOO_SMALL",
            f"{name} must be 0 or at least 1e{_MIN_EXPONENT}, got {text}",
            field=name,
        )
    return Fraction(digits) * Fraction(10) ** exponent


def _check_length(value: Fraction, name: str) -> None:
    """Integers and ratios come in unparsed: hold them to what `show` can print and `exact` read
    back.
    """
    # Most are so short that printing them tells nothing: a decimal has no more places than its
    # denominator has bits.
    if value.numerator.bit_length() // 3 + value.denominator.bit_length() + 4 <= MAX_DIGITS:
        return
    limit = 10**MAX_DIGITS
    if (
        abs(value.numerator) > limit * limit
        or value.denominator > limit * limit
        or len(show(value)) > MAX_DIGITS
    ):
        raise InvalidInput(
            "AMOUNT_TOO_LONG", f"{name} must have at most {MAX_DIGITS} digits", field=name
        )
