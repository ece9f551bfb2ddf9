"""Quantiles by public keys: one table for each quantile."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.quantiles.ptk import Quantiles
from ptklib.ptks.tables.serving import tabulated
from ptklib.serving.plan import ServingPlan

__all__ = ["plan"]


def plan(ptk: Quantiles, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
