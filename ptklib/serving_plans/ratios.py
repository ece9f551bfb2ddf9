"""Ratios by public keys: one table for the ratio and each of the sums."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.ratios import Ratios
from ptklib.serving_plans import ServingPlan
from ptklib.serving_plans.keys import tabulated

__all__ = ["plan"]


def plan(ptk: Ratios, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
