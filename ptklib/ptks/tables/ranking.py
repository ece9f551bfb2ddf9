"""Which public keys have the most: shares, ranks and the top k of a table of noisy totals.

All of this is post-processing of totals that have their noise already, for any k at once: free. A
mechanism that finds the top k alone would not do better. A record is in one cell, so Laplace noise
of scale 1/epsilon makes *all* counts private together; the difference of two of them, which decides
an order, has variance 4/epsilon^2. To name the k largest one after the other (exponential
mechanism, permute-and-flip, noisy maximum) costs k choices of epsilon/k, each with differences of
variance 2 k^2/epsilon^2, and gives no totals: it wins for k = 1 only, by a factor of 1.4 in noise,
and loses from k = 2 on. One-shot versions without that factor k need two-sided noise, which is what
the table has.

**Proof note.** *Unit, sensitivity:* those of the totals. *Cost:* none.

The totals of the keys on top are a little too large on average, because noise helped them up. Ties
go to the key that comes first in the domain, so that order never depends on anything but the
totals.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ptklib import config
from ptklib.ptks.tables.cells import Cells

__all__ = ["Ranking", "ranks", "shares", "top_table"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Ranking:
    """What keys are ranked by, and how many of them are the top."""

    kind: ClassVar[str] = "ranking"
    top: int
    by: Literal["count", "sum"] = "count"

    def __post_init__(self) -> None:
        """At least one is on top."""
        config.checked(self)
        config.demand(self.top >= 1, f"top must be at least 1, got {self.top}", field="top")


def ranks(totals: Floats) -> Floats:
    """1 for the largest total, and so on; the earlier cell first where totals are equal."""
    placed = np.empty(len(totals))
    placed[np.argsort(-totals, kind="stable")] = np.arange(1, len(totals) + 1)
    return placed


def shares(totals: Floats, whole: float) -> Floats:
    """The part of the whole, within 0 and 1; all equal where the whole is not positive.

    The whole is the sum of all totals as they are: that of the positive ones would grow with the
    number of empty cells.
    """
    return np.clip(totals / whole, 0.0, 1.0) if whole > 0 else np.full(len(totals), 1 / len(totals))


def top_table(cells: Cells, totals: Floats, whole: float, count: int) -> pa.Table:
    """The keys with the largest totals, first the largest:

    ``rank``, the key columns, ``total``, ``share``.
    """
    best = np.argsort(-totals, kind="stable")[:count]
    named = [("rank", pa.array(np.arange(1, len(best) + 1))), *cells.labels(best)]
    named += [("total", pa.array(totals[best])), ("share", pa.array(shares(totals, whole)[best]))]
    return pa.Table.from_arrays([column for _, column in named], names=[name for name, _ in named])
