"""Quantiles by public keys: one table for each quantile."""

from __future__ import annotations

from ptklib.ptk import Arrays
from ptklib.ptks.quantiles import Quantiles
from ptklib.serving_plans import ServingPlan
from ptklib.serving_plans.keys import tabulated

__all__ = ["plan"]


def plan(ptk: Quantiles, arrays: Arrays) -> ServingPlan:
    """Code the keys, look up."""
    return tabulated(ptk, arrays, ptk.keys)
