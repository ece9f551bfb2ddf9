"""Ratios by public keys: one table for the ratio and each of the sums."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.ratios.ptk import Ratios
from ptklib.ptks.tables.serving import tabulated
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Ratios, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
