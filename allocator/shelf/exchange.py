"""Who can take whose place: PTKs that demand no more than another in a partition of every size.

If a demands at most what b does at every level, any shelf with b on it has room for a instead. So
there are best prices with price(a) <= price(b) (dual-optimal inequalities): to ask for that changes
no bound, and it stands for all the shelves that differ by such exchanges, which then need not be
found one by one. A cover may leave a out where b is covered twice; `placed` says who really goes
where.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from allocator.shelf.levels import Levels
from allocator.table import Ints

__all__ = ["Exchanges", "exchanges_of", "placed"]


@dataclass(frozen=True)
class Exchanges:
    """``fits[a, b]``: a can take the place of b (each its own); ``pairs`` (a, b): those that the
    others follow from.
    """

    fits: NDArray[np.bool_]
    pairs: Ints


def exchanges_of(levels: Levels) -> Exchanges:
    """All exchanges; of two that are alike the first can take the place of the second and not the
    other way in ``pairs``.
    """
    count = len(levels.needs)
    fits = np.zeros((count, count), dtype=bool)
    for b, row in enumerate(levels.needs):
        # Demands fall as levels rise, so the first level of each of b's runs is where a is closest
        # to failing.
        firsts = np.concatenate([[0], np.flatnonzero(row[1:] != row[:-1]) + 1])
        fits[:, b] = (levels.needs[:, firsts] <= row[firsts]).all(axis=1)
    places = np.arange(count)
    strict = fits & ~(fits.T & (places[:, None] >= places[None, :]))
    # Counts of paths are whole numbers below 2**24: exact in single precision, whatever the order
    # of adding.
    steps = strict.astype(np.float32)
    return Exchanges(fits, np.argwhere(strict & ~((steps @ steps) > 0)).astype(np.int64))


def placed(fits: NDArray[np.bool_], slots: list[Ints]) -> list[Ints] | None:
    """Every PTK on one of the slots (shelves by whom they have room for), in its own place or
    another's; None if that fails.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    count = len(fits)
    owners = np.concatenate(slots)
    shelf = np.repeat(np.arange(len(slots)), [len(slot) for slot in slots])
    where = np.full(count, -1, dtype=np.int64)
    # Own places first; who is there twice leaves a place to others.
    for k, i in enumerate(owners):
        if where[i] < 0:
            where[i] = k
    waiting = np.flatnonzero(where < 0)
    if len(waiting):
        matching = maximum_bipartite_matching(csr_array(fits[:, owners]), perm_type="column")
        if (matching < 0).any():
            return None
        where = matching.astype(np.int64)
    return [members for k in range(len(slots)) if len(members := np.flatnonzero(shelf[where] == k))]
