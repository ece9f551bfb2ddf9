"""Which levels to measure: a few of the grid, spread evenly on its logarithmic scale, and in which
order.

The highest level is measured first: it needs the fewest samples. What it cannot reach no lower
level can (a larger epsilon could add noise to act as a smaller one), and what it needs every lower
level needs at least, so their doublings begin there. If the minimal risk is above the target, that
holds at every level.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ptklib.errors import InvalidInput

__all__ = ["MEASURED", "chosen", "first_size"]

MEASURED = 4


def chosen(
    levels: Sequence[Fraction], count: int = MEASURED, *, highest: Fraction | None = None
) -> tuple[Fraction, ...]:
    """``count`` of the levels, the lowest and the highest that is affordable among them.

    Reason: LEVELS_INVALID.
    """
    if type(count) is not int or count < 1:
        raise InvalidInput(
            "LEVELS_INVALID",
            f"the number of levels to measure must be at least 1, got {count!r:.40}",
        )
    usable = [level for level in levels if highest is None or level <= highest]
    if not usable:
        raise InvalidInput(
            "LEVELS_INVALID", "no level leaves room for the price of a profile: give lower levels"
        )
    if count >= len(usable):
        return tuple(usable)
    if count == 1:
        return (usable[-1],)
    places = {round(k * (len(usable) - 1) / (count - 1)) for k in range(count)}
    return tuple(usable[place] for place in sorted(places))


def first_size(estimate: int | None) -> int:
    """Where the doublings of lower levels begin: half of what the highest level was found to
    need.
    """
    return 0 if estimate is None else max(1, estimate // 2)
