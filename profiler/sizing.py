"""How many records of the profile slice a PTK needs: from its configuration alone, before any data
is touched.

A schedule says how many records it takes; the schedules of several PTKs lie side by side in the
profile slice, so what is asked of the slice is the sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profiler.measuring.retraining import lifted
from profiler.measuring.schedule import Schedule, schedule
from profiler.measuring.terms import ProfileTerms
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.ptk import Ptk

__all__ = ["REACH", "largest_planned", "least_records", "needed_records"]

# The samples of a plan that a slice should be able to find, where no more is known.
REACH = 4096
_MOST = 1 << 40


def needed_records(
    ptk: Ptk, terms: ProfileTerms, levels: Sequence[Number], reach: int = REACH
) -> int:
    """The least slice whose profile can plan with ``reach`` samples (or ``n_max``, if that is less)
    at the highest level; 0 for a PTK with a closed form.
    """
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    closed = ptk.analytic_profile(
        float(terms.promised), grid, terms.delta, records_per_unit=terms.records_per_unit
    )
    if closed is not None:
        return 0
    plain = replace(terms, states=0)
    wanted = min(reach, plain.n_max)

    def enough(records: int) -> bool:
        return largest_planned(schedule(ptk, plain, grid[-1:], records)) >= wanted

    most = 1 << 10
    while not enough(most) and most < _MOST:
        most *= 2
    least = most // 2
    while most - least > least // 64:
        middle = (least + most) // 2
        least, most = (least, middle) if enough(middle) else (middle, most)
    return most


def least_records(ptk: Ptk, terms: ProfileTerms, levels: Sequence[Number]) -> int:
    """The least slice in which a profile begins at all: on less, a PTK without a closed form waits."""
    level = epsilon_exact(levels[-1], name="level")
    return schedule(ptk, replace(terms, states=0), [level], 0).levels[0].needed_records


def largest_planned(plan: Schedule) -> int:
    """The most samples that a schedule can come to plan with; 0 where nothing fits."""
    trains = [training for level in plan.levels for training in level.trains]
    return max((lifted(training.size, training.states) for training in trains), default=0)
