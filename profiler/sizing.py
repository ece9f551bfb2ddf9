"""How big must the profile slice be? From the registered PTKs alone, before any data is touched.

A schedule says how many records it takes; the schedules of several PTKs lie side by side in the profile slice. What is
asked of the slice is the sum, and a share of the window follows from how many records a window holds (a public guess or a
DP count).

Reason: SIZING_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from profiler.grid import MEASURED, chosen
from profiler.schedule import Terms, schedule
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, exact
from ptklib.ptk import Ptk

__all__ = ["MOST_SHARE", "Sizing", "needed_records", "recommend_profile"]

# Beyond half the window a profile would leave too little to train on.
MOST_SHARE = Fraction(1, 2)


@dataclass(frozen=True)
class Sizing:
    """``records`` of the profile slice for all PTKs; the share of the window that is; the window at which it is ``share``.

    ``fits`` is False where the window is too small even at `MOST_SHARE`: then ``window_seconds`` says what it should be.
    """

    records: int
    share: Fraction
    window_seconds: int
    fits: bool
    lines: Mapping[str, int]


def needed_records(ptk: Ptk, terms: Terms, levels: Sequence[Number], count: int = MEASURED) -> int:
    """Records for all doublings up to ``n_max`` at the levels that would be measured; 0 for a PTK with a closed form."""
    grid = tuple(epsilon_exact(one, name="level") for one in levels)
    closed = ptk.analytic_profile(float(terms.promised), grid, terms.delta, records_per_unit=terms.records_per_unit)
    if closed is not None:
        return 0
    plan = schedule(ptk, terms, chosen(grid, count), 1 << 62)
    # Levels share the slice evenly, so all must fit into the part of the largest.
    return len(plan.levels) * max(one.needed_records for one in plan.levels)


def recommend_profile(
    wanted: Mapping[str, tuple[Ptk, Terms]],
    levels: Sequence[Number],
    *,
    records_per_second: Number,
    window_seconds: int,
    count: int = MEASURED,
) -> Sizing:
    """Share and window for these PTKs. A share is rounded up to thousandths."""
    rate = exact(records_per_second, name="records_per_second")
    if rate <= 0 or window_seconds < 1:
        raise InvalidInput("SIZING_INVALID", "records_per_second and window_seconds must be positive")
    lines = {name: needed_records(ptk, terms, levels, count) for name, (ptk, terms) in wanted.items()}
    records = sum(lines.values())
    share = Fraction(math.ceil(records / (rate * window_seconds) * 1000), 1000)
    fits = share <= MOST_SHARE
    window = window_seconds if fits else math.ceil(records / (rate * MOST_SHARE))
    return Sizing(records, min(share, MOST_SHARE), window, fits, lines)
