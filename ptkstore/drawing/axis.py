"""From values to places along an axis, and the values to write beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["EvenAxis", "LogAxis"]


class LogAxis:
    """Logarithmic, with a little room at both ends. Values are positive."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        """The values that must fit between two places."""
        low, high = math.log10(min(values)), math.log10(max(values))
        room = max(0.08 * (high - low), 0.1)
        self._low, self._high, self._begin, self._end = low - room, high + room, begin, end

    def at(self, value: float) -> float:
        """The place of a value."""
        along = (math.log10(value) - self._low) / (self._high - self._low)
        return self._begin + along * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """Powers of ten, and 2 and 5 times them where there are few."""
        powers = range(math.floor(self._low), math.ceil(self._high) + 1)
        for steps in ((1,), (1, 3), (1, 2, 5)):
            values = [step * 10.0**power for power in powers for step in steps]
            values = [value for value in values if self._low <= math.log10(value) <= self._high]
            if len(values) >= 3:
                break
        return values


class EvenAxis:
    """From zero, every step as long as the others."""

    def __init__(self, values: Sequence[float], begin: float, end: float) -> None:
        """The values that must fit between two places."""
        # A little room above for the name of the axis.
        self._high, self._begin, self._end = 1.12 * max([*values, 0.0]) or 1.0, begin, end

    def at(self, value: float) -> float:
        """The place of a value."""
        return self._begin + value / self._high * (self._end - self._begin)

    def ticks(self) -> list[float]:
        """Round values, at least four steps."""
        step = 10.0 ** math.floor(math.log10(self._high))
        step = step if self._high / step >= 4 else step / 4
        return [step * k for k in range(math.floor(self._high / step + 1e-9) + 1)]
