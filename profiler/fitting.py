"""How many levels a profile slice carries: as many as have room for their sizes, four at most.

A level that is not measured costs little: below the lowest measured one, samples are taken in
proportion to 1/epsilon, which keeps the noise of a training as it is. A level without room for its
sizes finds nothing, and takes from the others what they need. Public and DP numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from profiler.grid import MEASURED, chosen
from profiler.measuring.schedule import Schedule, schedule
from profiler.measuring.terms import ProfileTerms
from ptklib.ptk import Ptk

__all__ = ["fitted_schedule"]

# Sizes that a level should have, for others to be measured beside it.
_WANTED_SIZES = 6


def fitted_schedule(
    ptk: Ptk,
    terms: ProfileTerms,
    levels: Sequence[Fraction],
    expected_records: int,
    count: int = MEASURED,
) -> Schedule:
    """A schedule of as many of the levels as have their doublings in the slice, ``count`` at most:
    lower ones are left out first. Public and DP numbers only.
    """
    for few in range(min(count, len(levels)), 1, -1):
        for first in range(len(levels) - few + 1):
            plan = schedule(ptk, terms, chosen(levels[first:], few), expected_records)
            wanted = [
                min(_WANTED_SIZES, len(terms.sizes(level.level)) or 1) for level in plan.levels
            ]
            if all(
                len(level.sizes) >= least for level, least in zip(plan.levels, wanted, strict=True)
            ):
                return plan
    return schedule(ptk, terms, levels[-1:], expected_records)
