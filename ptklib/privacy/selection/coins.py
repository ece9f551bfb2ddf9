"""Exact chances from secret bits: a coin, a number below another, a geometric number.

Everything is integer arithmetic, so that laws are those that are priced, to the last bit. Unit,
sensitivity and cost: none, nothing here knows data.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from ptklib.privacy.noise.source import BitSource, require_secure

__all__ = ["coin", "geometric_from_one", "rejected", "uniform_below"]

_WORD_BITS = 64


def uniform_below(bound: int, source: BitSource | None) -> int:
    """A whole number from 0 to ``bound - 1``, each as likely as any other."""
    bits = require_secure(source)
    words = -(-bound.bit_length() // _WORD_BITS)
    surplus = words * _WORD_BITS - bound.bit_length()
    while True:
        drawn = 0
        for word in bits.words(words).tolist():
            drawn = (drawn << _WORD_BITS) | int(word)
        # At least half of what is drawn is below.
        if (drawn := drawn >> surplus) < bound:
            return drawn


def coin(chance: Fraction, source: BitSource | None) -> bool:
    """True with exactly this chance."""
    return uniform_below(chance.denominator, source) < chance.numerator


def geometric_from_one(stop: Fraction, source: BitSource | None) -> int:
    """How many coins it takes until the first True: k with chance (1 - stop)^(k-1) stop."""
    number = 1
    while not coin(stop, source):
        number += 1
    return number


def rejected(
    propose: Callable[[], int], share: Callable[[int], Fraction], source: BitSource | None
) -> int:
    """A proposal, kept with the chance ``share(proposal)``; another one where it is not."""
    while True:
        number = propose()
        if coin(share(number), source):
            return number
