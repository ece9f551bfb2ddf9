"""The loss of one block: piecewise constant over the line of tags, in a canonical form.

A loss map is a list of segments, each with a vector of integers (one per component of the stream's
filter). It is always canonical: segments are maximal, so neighbours differ. Hence the map is a
function of the multiset of charges that cover the block, not of their order or history; adding a
charge and taking it back restores it bit for bit.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from ptklib.ledger.slices import TAG_SPACE, TagRange

__all__ = ["LossMap", "Rows"]

Rows = NDArray[np.int64]


class LossMap:
    """Segments ``starts[i] <= tag < starts[i + 1]`` (the last ends the line) with losses
    ``rows[i]``.
    """

    __slots__ = ("_ceiling", "rows", "starts")

    def __init__(self, starts: list[int], rows: Rows) -> None:
        """Take over segments that are canonical already; see `empty`."""
        self.starts = starts
        self.rows = rows
        self._ceiling: Rows | None = None

    @classmethod
    def empty(cls, width: int) -> LossMap:
        """No loss anywhere."""
        return cls([0], np.zeros((1, width), dtype=np.int64))

    def within(self, tags: TagRange) -> Rows:
        """The losses of all segments that meet ``tags`` (a view; do not write)."""
        starts = self.starts
        if len(starts) == 1 or tags.stop - tags.start == TAG_SPACE:
            return self.rows
        return self.rows[bisect_right(starts, tags.start) - 1 : bisect_left(starts, tags.stop)]

    @property
    def ceiling(self) -> Rows:
        """At least the loss at every tag, component by component: enough to say yes at once, never
        to say no.
        """
        if self._ceiling is None:
            self._ceiling = self.peak()
        return self._ceiling

    def tighten(self) -> None:
        """Let the next `ceiling` be exact again."""
        self._ceiling = None

    def add(self, tags: TagRange, demand: Rows) -> None:
        """Add ``demand`` at every tag in ``tags``."""
        if self._ceiling is not None:
            # Some tags may not be covered, so this can be too high; it is never too low.
            self._ceiling = self._ceiling + demand
        self._lay(tags, demand)

    def take_back(self, tags: TagRange, demand: Rows) -> None:
        """Undo an `add`.

        The ceiling stays: whether it may come down, only a look at all segments could tell.
        """
        self._lay(tags, -demand)

    def _lay(self, tags: TagRange, demand: Rows) -> None:
        if tags.stop - tags.start == TAG_SPACE:
            self.rows += demand
            return
        first = self._cut(tags.start)
        last = self._cut(tags.stop)
        self.rows[first:last] += demand
        self._join(last)
        self._join(first)

    def peak(self) -> Rows:
        """The largest loss over all tags, component by component."""
        highest: Rows = self.rows.max(axis=0)
        return highest

    def segments(self) -> list[tuple[TagRange, tuple[int, ...]]]:
        """The map as plain values, in tag order."""
        stops = [*self.starts[1:], TAG_SPACE]
        return [
            (TagRange(start, stop), tuple(row))
            for start, stop, row in zip(self.starts, stops, self.rows.tolist(), strict=True)
        ]

    def _cut(self, tag: int) -> int:
        """Make ``tag`` the start of a segment; return that segment's index."""
        if tag == TAG_SPACE:
            return len(self.starts)
        at = bisect_left(self.starts, tag)
        if at == len(self.starts) or self.starts[at] != tag:
            self.starts.insert(at, tag)
            rows = np.empty((len(self.starts), self.rows.shape[1]), dtype=np.int64)
            rows[:at] = self.rows[:at]
            rows[at:] = self.rows[at - 1 :]
            self.rows = rows
        return at

    def _join(self, at: int) -> None:
        """Merge segment ``at`` into the one before it where they are equal."""
        rows = self.rows
        # Looking at one component first spares the comparison of whole vectors nearly always.
        if (
            0 < at < len(self.starts)
            and rows[at - 1, 0] == rows[at, 0]
            and (rows[at - 1] == rows[at]).all()
        ):
            del self.starts[at]
            self.rows = np.delete(rows, at, axis=0)
