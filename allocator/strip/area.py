"""A lower bound that needs no solver: samples times demand is area, and N records have room for N
times the capacity.

No plan, of any form, holds fewer than the smallest N with N >= min_j n_ij for every PTK i and N * D
>= A(N), where A(N) = sum_i min{ n_ij d_ij : n_ij <= N }: in a plan of N samples every PTK takes an
option with n_ij <= N, its records carry d_ij each, and no record carries more than D. A(N) falls as
N rises, so the bound is found by walking along the n_ij once. Exact: Python's integers.
"""

from __future__ import annotations

import numpy as np

from allocator.table import Ints, OptionTable

__all__ = ["area_bound", "least_area"]


def area_bound(table: OptionTable) -> int:
    """The smallest N that the areas leave possible; 0 without PTKs."""
    if not len(table):
        return 0
    events = sorted(
        (option.samples, i, option.samples * option.demand)
        for i, row in enumerate(table.rows)
        for option in row
    )
    least: list[int | None] = [None] * len(table)
    missing, total = len(table), 0
    for place, (samples, i, area) in enumerate(events):
        known = least[i]
        if known is None:
            missing -= 1
        if known is None or area < known:
            total += area - (known or 0)
            least[i] = area
        if missing:
            continue
        following = events[place + 1][0] if place + 1 < len(events) else None
        bound = max(samples, _ceiling(total, table.capacity))
        if following is None or bound < following:
            return bound
    raise AssertionError("a table has an option for every PTK")


def least_area(table: OptionTable, most: int) -> Ints | None:
    """For each PTK the place of its option of least area with at most so many samples; None when
    one has none.
    """
    chosen = np.zeros(len(table), dtype=np.int64)
    for i, row in enumerate(table.rows):
        areas = [
            (option.samples * option.demand, j)
            for j, option in enumerate(row)
            if option.samples <= most
        ]
        if not areas:
            return None
        chosen[i] = min(areas)[1]
    return chosen


def _ceiling(value: int, divisor: int) -> int:
    return -(-value // divisor) if divisor else (0 if value == 0 else 1 << 62)
