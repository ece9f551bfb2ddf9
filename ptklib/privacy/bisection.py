"""The whole number at which an answer changes, by halving.

Neither end is asked: what holds there is the caller's knowledge. The answer must change once in
between. No data.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["first_true", "last_true"]


def last_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The last number below ``high`` at which it holds, where it holds at ``low`` and not at
    ``high``.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def first_true(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The first number above ``low`` at which it holds, where it holds at ``high`` and not at
    ``low``.
    """
    return last_true(lambda number: not holds(number), low, high) + 1
