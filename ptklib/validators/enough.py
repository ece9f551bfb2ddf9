"""The least number of records that is enough, for planning: public numbers alone."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["least_records"]


def least_records(
    enough: Callable[[int], bool], *, first: int = 2, most: int = 10**12
) -> int | None:
    """The least number from half of ``first`` on, to a part in 500: what follows from laws on a
    lattice is not steadier than that. None where that is more than ``most``.
    """
    high = first
    while not enough(high):
        high *= 2
        if high > most:
            return None
    low = high // 2
    while high - low > max(1, high // 500):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
