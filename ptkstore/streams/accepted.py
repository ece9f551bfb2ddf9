"""Which batches were accepted: per producer, the sequence numbers as ranges.

Producers count upwards, so a producer that never skips costs one range however long it lives. Skipping is allowed;
beyond `MAX_RANGES` the oldest gaps are closed, after which a number inside them counts as a duplicate.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

__all__ = ["MAX_RANGES", "Accepted"]

MAX_RANGES = 1000


class Accepted:
    """A set of (producer, seq)."""

    def __init__(self, body: dict[str, list[list[int]]] | None = None) -> None:
        """Empty, or what `as_json` gave."""
        self._starts: dict[str, list[int]] = {}
        self._stops: dict[str, list[int]] = {}
        for producer, ranges in (body or {}).items():
            self._starts[producer] = [start for start, _ in ranges]
            self._stops[producer] = [stop for _, stop in ranges]

    def __contains__(self, batch: tuple[str, int]) -> bool:
        """True when the batch was accepted before."""
        producer, seq = batch
        starts = self._starts.get(producer)
        if starts is None:
            return False
        place = bisect_right(starts, seq) - 1
        return place >= 0 and seq < self._stops[producer][place]

    def update(self, batches: Iterable[tuple[str, int]]) -> None:
        """Add batches, in any order."""
        for producer, seq in batches:
            if (producer, seq) not in self:
                self._add(producer, seq)

    def _add(self, producer: str, seq: int) -> None:
        starts, stops = self._starts.setdefault(producer, []), self._stops.setdefault(producer, [])
        place = bisect_right(starts, seq)
        joins_left = place > 0 and stops[place - 1] == seq
        joins_right = place < len(starts) and starts[place] == seq + 1
        if joins_left and joins_right:
            stops[place - 1] = stops.pop(place)
            starts.pop(place)
        elif joins_left:
            stops[place - 1] = seq + 1
        elif joins_right:
            starts[place] = seq
        else:
            starts.insert(place, seq)
            stops.insert(place, seq + 1)
        if len(starts) > MAX_RANGES:
            starts.pop(1)
            stops.pop(0)

    def as_json(self) -> dict[str, list[list[int]]]:
        """Ranges by producer."""
        return {
            producer: [list(one) for one in zip(starts, self._stops[producer], strict=True)]
            for producer, starts in sorted(self._starts.items())
        }
