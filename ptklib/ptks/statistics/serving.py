"""Statistics by public keys: one table for each statistic."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.statistics.ptk import Statistics
from ptklib.ptks.tables.serving import tabulated
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Statistics, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
