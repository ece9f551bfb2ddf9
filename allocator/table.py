"""A problem as arrays: what of it a best plan can use.

Of a PTK's options only the *undominated* ones are kept (no other has at most its demand and at most
its samples), by rising demand and falling samples, within the capacity and n_max. PTKs stand in the
order of their ids, so that every answer is the same however the problem was listed; equal options
keep the one listed first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from allocator.problem import Option, Problem

__all__ = ["Floats", "Ints", "OptionTable", "rows_of", "table_of", "why_no_table"]

Ints = NDArray[np.int64]
_NAMED = 3
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OptionTable:
    """Usable options, one row per PTK in the order of ids; rows may differ in length and are never
    empty.
    """

    capacity: int
    ids: tuple[str, ...]
    rows: tuple[tuple[Option, ...], ...]

    def __len__(self) -> int:
        """How many PTKs."""
        return len(self.ids)

    @cached_property
    def width(self) -> int:
        """The most options that a PTK has."""
        return max((len(row) for row in self.rows), default=0)

    @cached_property
    def samples(self) -> Ints:
        """By PTK and option; where a row is shorter its last option is repeated."""
        return self._filled("samples")

    @cached_property
    def demands(self) -> Ints:
        """By PTK and option; where a row is shorter its last option is repeated."""
        return self._filled("demand")

    @cached_property
    def lengths(self) -> Ints:
        """How many options each PTK has."""
        return np.array([len(row) for row in self.rows], dtype=np.int64)

    def _filled(self, field: str) -> Ints:
        filled = np.zeros((len(self), self.width), dtype=np.int64)
        for i, row in enumerate(self.rows):
            values = [getattr(option, field) for option in row]
            filled[i] = values + values[-1:] * (self.width - len(values))
        return filled

    def allowed(self, most: int) -> NDArray[np.bool_]:
        """Which options train on at most so many samples."""
        inside = np.arange(self.width)[None, :] < self.lengths[:, None]
        return np.asarray(inside & (self.samples <= most))


def table_of(problem: Problem) -> OptionTable | None:
    """The table, or None when some PTK has no option that could ever be used."""
    ptks = sorted(problem.ptks, key=lambda ptk: ptk.id)
    rows = []
    for ptk in ptks:
        kept: list[Option] = []
        for candidate in sorted(ptk.options, key=lambda option: (option.demand, option.samples)):
            usable = candidate.demand <= problem.capacity and (
                problem.n_max is None or candidate.samples <= problem.n_max
            )
            if usable and (not kept or candidate.samples < kept[-1].samples):
                kept.append(candidate)
        if not kept:
            return None
        rows.append(tuple(kept))
    return OptionTable(problem.capacity, tuple(ptk.id for ptk in ptks), tuple(rows))


def rows_of(table: OptionTable, places: Ints) -> OptionTable:
    """The table of some of the PTKs."""
    return OptionTable(
        table.capacity, tuple(table.ids[i] for i in places), tuple(table.rows[i] for i in places)
    )


def why_no_table(problem: Problem) -> str:
    """Which PTKs have no option that could ever be used, for people."""
    lost = [
        ptk.id
        for ptk in sorted(problem.ptks, key=lambda ptk: ptk.id)
        if table_of(Problem(problem.capacity, problem.n_max, (ptk,))) is None
    ]
    names = ", ".join(lost[:_NAMED]) + (
        f" and {len(lost) - _NAMED} more" if len(lost) > _NAMED else ""
    )
    held = "" if problem.n_max is None else f" within {problem.n_max} samples"
    return f"the target of {names} is not reachable at any profiled level{held}"
