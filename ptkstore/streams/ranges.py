"""Whole numbers as ranges, in bounded room.

A sender that never skips a number costs one range however long it lives. Beyond `MAX_RANGES` the
lowest ranges are *forgotten*: of a number between the first and the last forgotten one it is not
known any more whether it came. That is a third answer, and never the same as "it came": who takes
the one for the other loses what was sent.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

__all__ = ["MAX_RANGES", "Ranges"]

MAX_RANGES = 1000


class Ranges:
    """A set of whole numbers that may forget the lowest ones."""

    __slots__ = ("_forgotten", "_starts", "_stops")

    def __init__(
        self, ranges: list[list[int]] | None = None, forgotten: list[int] | None = None
    ) -> None:
        """Empty, or what `as_json` gave."""
        self._starts = [start for start, _ in ranges or ()]
        self._stops = [stop for _, stop in ranges or ()]
        # From the first forgotten number to the one after the last.
        self._forgotten: tuple[int, int] | None = (
            None if forgotten is None else (forgotten[0], forgotten[1])
        )

    def __contains__(self, number: int) -> bool:
        """True when the number is known to have come."""
        place = bisect_right(self._starts, number) - 1
        return place >= 0 and number < self._stops[place]

    def forgot(self, number: int) -> bool:
        """True when it is not known whether the number came."""
        return (
            self._forgotten is not None
            and self._forgotten[0] <= number < self._forgotten[1]
            and number not in self
        )

    def add(self, number: int) -> None:
        """Add a number; `trim` must follow at the end."""
        starts, stops = self._starts, self._stops
        place = bisect_right(starts, number)
        if place > 0 and number < stops[place - 1]:
            return
        joins_left = place > 0 and stops[place - 1] == number
        joins_right = place < len(starts) and starts[place] == number + 1
        if joins_left and joins_right:
            stops[place - 1] = stops.pop(place)
            starts.pop(place)
        elif joins_left:
            stops[place - 1] = number + 1
        elif joins_right:
            starts[place] = number
        else:
            starts.insert(place, number)
            stops.insert(place, number + 1)

    def trim(self, most: int = MAX_RANGES) -> None:
        """Forget the lowest ranges beyond ``most``."""
        over = len(self._starts) - most
        if over <= 0:
            return
        first, last = self._starts[0], self._stops[over - 1]
        if self._forgotten is not None:
            first, last = min(first, self._forgotten[0]), max(last, self._forgotten[1])
        self._forgotten = (first, last)
        del self._starts[:over], self._stops[:over]

    def as_json(self) -> dict[str, Any]:
        """The ranges, and what was forgotten if anything was."""
        body: dict[str, Any] = {
            "ranges": [list(pair) for pair in zip(self._starts, self._stops, strict=True)]
        }
        return body if self._forgotten is None else {**body, "forgotten": list(self._forgotten)}
