"""How many records of the profile slice a PTK needs: from its configuration alone, before any data
is touched.

A schedule says how many records it takes; the schedules of several PTKs lie side by side in the
profile slice, so what is asked of the slice is the sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from profiler.grid import MEASURED, chosen
from profiler.measuring.schedule import ProfileTerms, schedule
from ptklib.privacy.amounts import Number, epsilon_exact
from ptklib.ptk import Ptk

__all__ = ["needed_records"]


def needed_records(
    ptk: Ptk, terms: ProfileTerms, levels: Sequence[Number], count: int = MEASURED
) -> int:
    """Records for all doublings up to ``n_max`` at the levels that would be measured; 0 for a PTK
    with a closed form.
    """
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    closed = ptk.analytic_profile(
        float(terms.promised), grid, terms.delta, records_per_unit=terms.records_per_unit
    )
    if closed is not None:
        return 0
    plan = schedule(ptk, terms, chosen(grid, count), 1 << 62)
    # Levels share the slice evenly, so all must fit into the part of the largest.
    return len(plan.levels) * max(level.needed_records for level in plan.levels)
