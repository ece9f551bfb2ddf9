"""Who trains where at which rung, while it is being filled, in one coordinate of the filter.

Demands are counted in a **main** coordinate and, where the composition has one, in its side
coordinate: what fits both is admitted (`allocator.admission.coordinates`). Every other coordinate is
the business of the filter, which is asked in the end (`allocator.surplus.enriching`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from allocator.plan import Assignment, Partition, Plan
from allocator.surplus.curves import LossCurve

__all__ = ["Layout", "Room"]


@dataclass(frozen=True)
class Room:
    """What one record may carry in the coordinate that is counted in, and beside it."""

    main: int
    most: int
    side: int | None = None
    most_beside: int = 0

    def demand(self, curve: LossCurve, rung: int) -> int:
        """What a rung demands in the main coordinate."""
        return curve.rungs[rung].demand[self.main]

    def beside(self, curve: LossCurve, rung: int) -> int:
        """What it demands in the side coordinate."""
        return 0 if self.side is None else curve.rungs[rung].demand[self.side]


@dataclass
class Layout:
    """Partitions of some sizes; the rung and the partitions of each PTK; what each partition has
    used.
    """

    room: Room
    curves: Sequence[LossCurve]
    sizes: list[int]
    rungs: list[int]
    places: list[set[int]]
    used: list[int] = field(default_factory=list)
    beside: list[int] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Add up what there is."""
        self.held = [sum(self.sizes[place] for place in places) for places in self.places]
        self.used, self.beside = [0] * len(self.sizes), [0] * len(self.sizes)
        for number, places in enumerate(self.places):
            for place in places:
                self._add(number, place, self.rungs[number], 1)

    def samples(self, number: int) -> int:
        """What a PTK trains on."""
        return self.curves[number].capped(self.held[number])

    def loss(self, number: int) -> float:
        """What is to be expected of a PTK."""
        return self.curves[number].loss(self.rungs[number], self.samples(number))

    @property
    def total_loss(self) -> float:
        """Of all of them."""
        return sum(self.loss(number) for number in range(len(self.curves)))

    def widen(self, number: int, place: int) -> bool:
        """Let a PTK train on one partition more, if there is room."""
        rung = self.rungs[number]
        if place in self.places[number] or not self._fits(number, place, None, rung):
            return False
        self._add(number, place, rung, 1)
        self.places[number].add(place)
        self.held[number] += self.sizes[place]
        return True

    def raise_to(self, number: int, rung: int) -> bool:
        """Give a PTK a higher rung, if there is room wherever it trains."""
        old = self.rungs[number]
        if not all(self._fits(number, place, old, rung) for place in self.places[number]):
            return False
        for place in self.places[number]:
            self._add(number, place, old, -1)
            self._add(number, place, rung, 1)
        self.rungs[number] = rung
        return True

    def plan(self) -> Plan:
        """As a plan, without the partitions that nobody trains on."""
        kept = [k for k in range(len(self.sizes)) if any(k in places for places in self.places)]
        numbers = {old: new for new, old in enumerate(kept)}
        assignments = tuple(
            Assignment(
                id=curve.id,
                level=curve.rungs[self.rungs[number]].level,
                demand=self.room.demand(curve, self.rungs[number]),
                samples=self.samples(number),
                partitions=tuple(sorted(numbers[place] for place in self.places[number])),
            )
            for number, curve in enumerate(self.curves)
        )
        partitions = tuple(
            Partition(
                self.sizes[place],
                self.used[place],
                tuple(
                    sorted(
                        curve.id
                        for curve, places in zip(self.curves, self.places, strict=True)
                        if place in places
                    )
                ),
            )
            for place in kept
        )
        total = sum(partition.samples for partition in partitions)
        return Plan("FEASIBLE", total, None, None, partitions, assignments, "surplus")

    def _fits(self, number: int, place: int, old: int | None, new: int) -> bool:
        curve, room = self.curves[number], self.room
        freed = 0 if old is None else room.demand(curve, old)
        freed_beside = 0 if old is None else room.beside(curve, old)
        return (
            self.used[place] - freed + room.demand(curve, new) <= room.most
            and self.beside[place] - freed_beside + room.beside(curve, new) <= room.most_beside
        )

    def _add(self, number: int, place: int, rung: int, times: int) -> None:
        curve = self.curves[number]
        self.used[place] += times * self.room.demand(curve, rung)
        self.beside[place] += times * self.room.beside(curve, rung)
