"""Does a richer plan hold? Written for itself: no line is shared with what makes richer plans.

`faults_of_surplus` checks one against the plan of fewest samples that it stands beside: the same
PTKs, each once; every level one that the PTK may be given; every promise kept by a point of its
profile (at least that epsilon on at least those samples); no more samples than there are; members,
sizes and totals that add up; and at every partition what the filter itself says to the sum of its
members' demands, all coordinates at once, on top of the loss there. Answers with sentences; an empty
tuple means sound.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

import numpy as np

from allocator.admission.coordinates import PtkOffers
from allocator.plan import Assignment, Plan
from ptklib.privacy.filters import Demand, Filter

__all__ = ["faults_of_surplus"]


def faults_of_surplus(
    guards: Sequence[tuple[Filter, Sequence[int]]],
    ptks: Sequence[PtkOffers],
    demands: Mapping[tuple[str, str], Demand],
    minimum: Plan,
    richer: Plan,
    samples: int,
) -> tuple[str, ...]:
    """What is wrong with a richer plan. ``guards`` are filters with the loss at the window,
    ``demands`` what each PTK demands at each level that it may be given.
    """
    return (
        *_promises(ptks, demands, minimum, richer),
        *_places(richer, samples),
        *_charges(guards, demands, richer),
    )


def _promises(
    ptks: Sequence[PtkOffers],
    demands: Mapping[tuple[str, str], Demand],
    minimum: Plan,
    richer: Plan,
) -> Iterator[str]:
    asked = Counter(assignment.id for assignment in minimum.assignments)
    told = Counter(assignment.id for assignment in richer.assignments)
    if asked != told:
        yield f"the plans are for other PTKs: {sorted((asked - told) + (told - asked))}"
    profiles = {ptk.id: ptk.offers for ptk in ptks}
    for assignment in richer.assignments:
        if (assignment.id, assignment.level) not in demands:
            yield f"{assignment.id} may not be given {assignment.level}"
        if not any(
            Decimal(assignment.level) >= Decimal(offer.level)
            and assignment.samples >= offer.samples
            for offer in profiles.get(assignment.id, ())
        ):
            yield (
                f"{assignment.id} has no promise at {assignment.level} on {assignment.samples} "
                "samples"
            )


def _places(richer: Plan, samples: int) -> Iterator[str]:
    total = 0
    for number, partition in enumerate(richer.partitions):
        total += partition.samples
        inside = [
            assignment.id for assignment in richer.assignments if number in assignment.partitions
        ]
        if sorted(inside) != list(partition.members) or not inside or partition.samples < 1:
            yield f"partition {number} holds {partition.samples} for {partition.members}, not for {inside}"
    if total != richer.total_samples or total > samples:
        yield f"the plan says {richer.total_samples} samples, has {total}, and there are {samples}"
    for assignment in richer.assignments:
        yield from _place(assignment, richer)


def _place(assignment: Assignment, richer: Plan) -> Iterator[str]:
    known = set(range(len(richer.partitions)))
    if not assignment.partitions or len(set(assignment.partitions)) < len(assignment.partitions):
        yield f"the partitions of {assignment.id} are none, or one of them twice"
    if not known.issuperset(assignment.partitions):
        yield f"{assignment.id} is in a partition that the plan does not have"
        return
    if (
        sum(richer.partitions[place].samples for place in assignment.partitions)
        < assignment.samples
    ):
        yield f"the partitions of {assignment.id} hold fewer than its {assignment.samples} samples"


def _charges(
    guards: Sequence[tuple[Filter, Sequence[int]]],
    demands: Mapping[tuple[str, str], Demand],
    richer: Plan,
) -> Iterator[str]:
    for number in range(len(richer.partitions)):
        rows = [
            demands[assignment.id, assignment.level]
            for assignment in richer.assignments
            if number in assignment.partitions and (assignment.id, assignment.level) in demands
        ]
        for place, (privacy_filter, loss) in enumerate(guards):
            total = [
                min(sum(column), top)
                for column, top in zip(zip(*rows, strict=True), privacy_filter.ceiling, strict=True)
            ]
            said = privacy_filter.admits(
                np.array([list(loss)], dtype=np.int64), np.array(total, dtype=np.int64)
            )
            if not said.all():
                yield f"partition {number} is beyond {'the promise' if not place else 'a quota'}"
