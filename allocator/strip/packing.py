"""Packing for fixed options: every PTK, tallest first, onto the records that carry least so far.

Or, where few tall PTKs fill a record and who shares with whom is all that matters (``tight``), the
tall ones onto the fullest records that still have room, and only the flat ones onto those that
carry least.

The window is a line of N records in segments that carry the same PTKs. A PTK takes its samples from
the segments with the least demand on them, cutting the last one, so a plan of m PTKs has at most m
+ 1 segments. Loads stay level within the height of the PTKs still to come, which is why the small
ones come last. Integers only; deterministic: ties go to the larger samples, then to the order of
the table, and among segments to the one cut first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.table import Ints

__all__ = ["Packed", "pack"]


# Below this part of the capacity a PTK is flat.
_FLAT = 16


@dataclass(frozen=True)
class Packed:
    """Segments: how many records each holds, and which PTKs (by row of the table) train on them."""

    widths: Ints
    members: NDArray[np.bool_]  # segments by PTKs

    @property
    def total(self) -> int:
        """Records in all segments."""
        return int(self.widths.sum())


def pack(
    length: int,
    samples: Ints,
    demands: Ints,
    capacity: int,
    start: Packed | None = None,
    *,
    tight: bool = False,
) -> Packed | None:
    """All PTKs on ``length`` records within the capacity, or None where this way finds none.

    PTKs that stand in ``start`` already stay there, in its segments; the others are laid over and
    beside them.
    """
    count = len(samples)
    here = 0 if start is None else len(start.widths)
    widths = np.zeros(here + count + 1, dtype=np.int64)
    members = np.zeros((here + count + 1, count), dtype=bool)
    waiting: NDArray[np.bool_] = np.ones(count, dtype=bool)
    if start is not None:
        widths[:here], members[:here] = start.widths, start.members
        waiting = np.logical_not(start.members.any(axis=0))
    widths[here] = length - int(widths[:here].sum())
    if widths[here] < 0:
        return None
    loads = members @ demands
    # Segments by rising load; those before `used` exist.
    used = here + 1
    ranked = np.argsort(loads[:used], kind="stable")
    order = np.lexsort((np.arange(count), -samples, -demands))
    for i in order[waiting[order]]:
        wanted, demand = int(samples[i]), int(demands[i])
        if wanted > length:
            return None
        beyond = ranked[:0]
        if tight and demand * _FLAT > capacity:
            fits = loads[ranked] <= capacity - demand
            ranked, beyond = ranked[fits][::-1], ranked[~fits]
        ends = np.cumsum(widths[ranked])
        whole = int(np.searchsorted(ends, wanted, side="left"))
        if whole >= len(ranked):
            return None
        taken = ranked[: whole + 1]
        last = int(taken[-1])
        if int(loads[last]) + demand > capacity:
            return None
        over = int(ends[whole]) - wanted
        rest = np.concatenate([ranked[whole + 1 :], beyond])
        if over:
            # What is left of the last segment keeps its load and its members, and stays ahead of
            # those above it.
            widths[used], widths[last] = over, int(widths[last]) - over
            loads[used] = loads[last]
            members[used] = members[last]
            rest = np.concatenate([[used], rest])
            used += 1
        loads[taken] += demand
        members[taken, i] = True
        ranked = np.concatenate([taken, rest])
        ranked = ranked[np.argsort(loads[ranked], kind="stable")]
    filled = np.flatnonzero(members[:used].any(axis=1) & (widths[:used] > 0))
    return Packed(widths[filled], members[filled])
