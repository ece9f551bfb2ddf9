"""The smallest whole number at which a falling function is at most one, in few looks where a guess
is good.

Every look may take milliseconds. Looks begin at the guess and go away from it in growing steps
until the answer lies between two of them, then where a straight line through the logarithms meets
one; a halving in between keeps that honest.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ptklib.privacy.bisection import first_true

__all__ = ["fewest", "smallest_enough"]

_LEAST = 1e-300


def fewest(excess: Callable[[int], float], near: float, most: int) -> int | None:
    """The smallest count from 1 to ``most`` with ``excess(count) <= 1``; None when there is none.

    ``excess`` falls.
    """
    low, high = 0, most + 1
    # Logarithms of the excess where it is known.
    above, below = math.nan, math.nan
    probe, step, turn = min(most, max(1, math.ceil(near))), 1, 0
    while high - low > 1:
        value = math.log(max(excess(probe), _LEAST))
        if value <= 0:
            high, below = probe, value
        else:
            low, above = probe, value
        if high > most:
            probe, step = min(most, low + step), step * 4
        elif math.isnan(above):
            probe, step = max(1, high - step), step * 4
        else:
            turn += 1
            probe = (low + high) // 2 if turn % 3 == 0 else _between(low, high, above, below)
        probe = min(max(probe, low + 1), high - 1)
    return high if high <= most else None


def smallest_enough(enough: Callable[[int], bool], most: int) -> int | None:
    """The smallest count from 1 to ``most`` that is enough; None when there is none.

    What is enough stays so for more.
    """
    return first_true(enough, 0, most) if enough(most) else None


def _between(low: int, high: int, above: float, below: float) -> int:
    share = above / (above - below) if above - below > 0 else 0.5
    return math.ceil(math.exp(math.log(low) + share * (math.log(high) - math.log(low))))
