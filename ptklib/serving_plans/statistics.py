"""Statistics by public keys: one table for each statistic."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.statistics import Statistics
from ptklib.serving_plans import ServingPlan
from ptklib.serving_plans.keys import tabulated

__all__ = ["plan"]


def plan(ptk: Statistics, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
