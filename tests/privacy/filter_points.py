"""Points of a filter: empty ones, and how much they take."""

from __future__ import annotations

import numpy as np

from ptklib.privacy.costs import (
    Cost,
)
from ptklib.privacy.filters import Filter
from ptklib.privacy.filters.base import Ints

__all__ = ["empty", "filled"]


def empty(one: Filter) -> Ints:
    """The loss of one fresh point."""
    return np.zeros((1, one.width), dtype=np.int64)


def filled(one: Filter, cost: Cost) -> int:
    """How many such costs a fresh point admits."""
    demand = np.array(one.demand(cost), dtype=np.int64)
    loss = np.zeros((1, one.width), dtype=np.int64)
    count = 0
    while one.admits(loss, demand)[0]:
        loss = loss + demand
        count += 1
    return count
