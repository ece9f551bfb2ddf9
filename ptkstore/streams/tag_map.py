"""A map from tags to integers in 16 bytes per tag: sorted runs that merge as they grow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ptkstore.streams.tags import Tags

__all__ = ["Numbers", "TagMap"]

Numbers = NDArray[np.int64]


class TagMap:
    """Tags are added once and found in logarithmic time; whole arrays at a time."""

    def __init__(self, default: int) -> None:
        """Empty; ``default`` is what unknown tags map to."""
        self._default = default
        self._runs: list[tuple[Tags, Numbers]] = []

    def find(self, tags: Tags) -> Numbers:
        """The number of each tag."""
        answer = np.full(len(tags), self._default, dtype=np.int64)
        for known, numbers in self._runs:
            place, hit = _places(known, tags)
            answer[hit] = numbers[place[hit]]
        return answer

    def put(self, tags: Tags, numbers: Numbers) -> None:
        """Set the numbers of distinct tags, known or new."""
        new = np.ones(len(tags), dtype=bool)
        for known, values in self._runs:
            place, hit = _places(known, tags)
            values[place[hit]] = numbers[hit]
            new &= ~hit
        if new.any():
            self._runs.append(_sorted(tags[new], numbers[new]))
        while len(self._runs) > 1 and 2 * len(self._runs[-1][0]) > len(self._runs[-2][0]):
            (a, b), (c, d) = self._runs.pop(), self._runs.pop()
            self._runs.append(_sorted(np.concatenate([a, c]), np.concatenate([b, d])))


def _places(known: Tags, tags: Tags) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    place = np.minimum(np.searchsorted(known, tags), len(known) - 1)
    return place, known[place] == tags


def _sorted(tags: Tags, numbers: Numbers) -> tuple[Tags, Numbers]:
    order = np.argsort(tags, kind="stable")
    return tags[order], numbers[order]
