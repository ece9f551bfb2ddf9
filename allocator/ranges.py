"""From a plan to ranges of the window: who trains on which share of it.

Records carry a tag, uniform over the window, so a partition of s of the window's n records is a
range of tags of length s / n. Partitions lie side by side in the order of the plan, from ``start``
on; each length is rounded **up** to the grid, so a partition never gets less than its share and
never overlaps its neighbour. The ranges of a PTK are those of its partitions, with neighbours
joined. Exact fractions throughout.

Reason: WINDOW_TOO_SMALL (the plan needs more than the window holds), PLAN_MISSING (there is no plan
to cut).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from allocator.plan import Plan
from ptklib.errors import InvalidInput

__all__ = ["GRID", "Range", "partition_ranges", "ptk_ranges"]

# Finer than any sample, and a whole number of tags: boundaries are multiples of 2**-48.
GRID = 1 << 48


@dataclass(frozen=True)
class Range:
    """From ``start`` to below ``stop``, as shares of the window."""

    start: Fraction
    stop: Fraction


def partition_ranges(
    plan: Plan, available: int, *, start: Fraction = Fraction(0), grid: int = GRID
) -> tuple[Range, ...]:
    """One range for each partition of the plan, in a window of ``available`` records that is free
    from ``start`` on.
    """
    if plan.total_samples is None:
        raise InvalidInput(
            "PLAN_MISSING", f"the plan must exist to be cut into ranges, got {plan.status}"
        )
    ranges = []
    at = Fraction(ceil(start * grid), grid)
    for partition in plan.partitions:
        # Records from `start` on stand for the rest of the window.
        length = Fraction(partition.samples, max(1, available)) * grid
        stop = at + Fraction(ceil(length), grid)
        ranges.append(Range(at, stop))
        at = stop
    if at > 1:
        raise InvalidInput(
            "WINDOW_TOO_SMALL",
            f"the window must hold the plan's {plan.total_samples} samples, got {available} "
            "records of which the share "
            f"{float(1 - start):g} is free: hold more, or plan for less",
            needed=plan.total_samples,
            available=available,
        )
    return tuple(ranges)


def ptk_ranges(
    plan: Plan, available: int, *, start: Fraction = Fraction(0), grid: int = GRID
) -> Mapping[str, tuple[Range, ...]]:
    """For each PTK its disjoint ranges, by rising start."""
    cut = partition_ranges(plan, available, start=start, grid=grid)
    ranges: dict[str, tuple[Range, ...]] = {}
    for assignment in plan.assignments:
        joined: list[Range] = []
        for place in sorted(assignment.partitions):
            if joined and joined[-1].stop == cut[place].start:
                joined[-1] = Range(joined[-1].start, cut[place].stop)
            else:
                joined.append(cut[place])
        ranges[assignment.id] = tuple(joined)
    return ranges
