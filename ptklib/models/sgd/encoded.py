"""Records in memory, as a run takes them: whole rows in float32, their lengths, and labels.

Rows lie on *shelves* of some megabytes, so that reading never needs twice the room: four bytes for
an entry, and `RECORD_BYTES` for all else of a record.

**Proof note.** *Unit:* one record. *Cost:* none here. A row of `InputRows.steps` is cut toward zero
to the grid of the first layer: element by element, no longer than before.

Reasons: none of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.sgd.heads import Labels
from ptklib.models.sgd.whole import Floats

__all__ = ["RECORD_BYTES", "SHELF_BYTES", "EncodedRecords", "Encoder"]

Doubles = NDArray[np.float64]
Places = NDArray[np.intp]
Piece = tuple[Floats, Doubles, Labels]

SHELF_BYTES = 16 << 20
# Of a record besides its row: label, length, tag, batch, places that are drawn ahead.
RECORD_BYTES = 128


class EncodedRecords:
    """All records of a training; they are read and not changed."""

    def __init__(self, shelves: list[Floats], squares: list[Floats], labels: list[Labels]) -> None:
        """Shelves of equal size but for the last."""
        self.shelves = shelves
        self.squares, self.labels = _joined(squares), _joined(labels)
        self._starts = np.cumsum([0, *map(len, shelves)])

    def __len__(self) -> int:
        """How many records there are: private."""
        return len(self.labels)

    def rows(self, members: Places) -> Floats:
        """The rows of these members, which rise."""
        if len(self.shelves) == 1:
            return np.take(self.shelves[0], members, axis=0, mode="clip")
        cuts = np.searchsorted(members, self._starts)
        made = np.empty((len(members), self.shelves[0].shape[1] if self.shelves else 0), np.float32)
        for place, shelf in enumerate(self.shelves):
            here = slice(cuts[place], cuts[place + 1])
            if here.stop > here.start:
                there = members[here] - self._starts[place]
                np.take(shelf, there, axis=0, out=made[here], mode="clip")
        return made

    def pieces(self, members: Places | None, most: int) -> Iterator[Piece]:
        """The members (None: all) in pieces of at most so many."""
        if members is None:
            for shelf, begin in zip(self.shelves, self._starts, strict=False):
                for start in range(0, len(shelf), most):
                    rows = shelf[start : start + most]
                    here = slice(begin + start, begin + start + len(rows))
                    yield rows, self.squares[here].astype(np.float64), self.labels[here]
            return
        for start in range(0, len(members), most):
            some = members[start : start + most]
            yield self.rows(some), self.squares[some].astype(np.float64), self.labels[some]


class Encoder:
    """Makes `EncodedRecords`, piece by piece."""

    def __init__(self, width: int, bits: int) -> None:
        """Rows of so many entries, with so many binary places."""
        self._factor = 2.0**bits / STEPS
        self._width = width
        self._per_shelf = max(1, SHELF_BYTES // (4 * width))
        self._shelves: list[Floats] = []
        self._open: list[Floats] = []
        self._in_open = 0
        self._squares: list[Floats] = []
        self._labels: list[Labels] = []

    def add(self, steps: Doubles, labels: NDArray[np.float64]) -> None:
        """Rows in whole steps (overwritten), and labels."""
        steps *= self._factor
        rows = np.trunc(steps).astype(np.float32)
        # Whole numbers whose squares sum to at most 2**24: exact.
        self._squares.append(np.einsum("ij,ij->i", rows, rows))
        self._labels.append(labels.astype(np.float32))
        while len(rows):
            some = rows[: self._per_shelf - self._in_open]
            self._open.append(some)
            self._in_open += len(some)
            rows = rows[len(some) :]
            if self._in_open == self._per_shelf:
                self._close()

    def done(self) -> EncodedRecords:
        """All that was added."""
        if self._open:
            self._close()
        shelves = self._shelves or [np.zeros((0, self._width), np.float32)]
        return EncodedRecords(shelves, self._squares, self._labels)

    def _close(self) -> None:
        self._shelves.append(np.concatenate(self._open))
        self._open, self._in_open = [], 0


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate([np.zeros(0, np.float32), *parts])
