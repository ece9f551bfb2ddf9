"""Water-filling: whoever gains most for what it takes is next, until nothing fits or helps.

Two starts. **Kept**: everybody trains as in the plan of fewest samples, and the rest of the window is
cut into a few partitions more; PTKs first get partitions (more samples at the same epsilon), then
epsilon wherever there is room left. **Spread**: one partition for all, everybody at the least rung
that keeps its promise there, then epsilon. A PTK's gain is how much its loss falls as a share of its
target (`allocator.surplus.curves`); what it takes is demand times records. Gains shrink as a PTK is
given more, so the next one is always known and the order of all steps is that of their gain for
their price; ties go by the order of the PTKs. No step is taken that lowers a loss by less than
`LEAST_GAIN` of the target: more does not help there.

*Stable.* In the spread start all gains of epsilon fall together when the window grows (they are
1 / n times a number of the profile), so the same PTKs get the same epsilons in the next window,
whatever its DP count is, while their lowest rungs leave them room.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from itertools import pairwise

from allocator.plan import Plan
from allocator.surplus.curves import LossCurve
from allocator.surplus.layout import Layout, Room

__all__ = ["LEAST_GAIN", "MOST_REST", "REST", "kept", "spread"]

LEAST_GAIN = 1e-3
# The rest of the window in so many parts: a range of tags for each. In as many as there are PTKs of
# best effort, if these are more: each may need one of its own. But in no more than this.
REST, MOST_REST = 4, 64
# With more PTKs and partitions than this, PTKs get partitions of the rest alone.
MOST_PAIRS = 20_000


def spread(room: Room, curves: Sequence[LossCurve], samples: int) -> Layout | None:
    """One partition of so many samples for all; None where not all keep their promises on it."""
    lowest = []
    for curve in curves:
        held = curve.capped(samples)
        known = (place for place in range(len(curve.rungs)) if curve.keeps(place, held))
        lowest.append(next(known, None))
    rungs = [rung for rung in lowest if rung is not None]
    if len(rungs) < len(curves):
        return None
    layout = Layout(room, curves, [samples], rungs, [{0} for _ in curves])
    if layout.used[0] > room.most or layout.beside[0] > room.most_beside:
        return None
    _raise_all(layout)
    return layout


def kept(room: Room, curves: Sequence[LossCurve], plan: Plan, samples: int) -> Layout | None:
    """The plan of fewest samples, filled up to so many; None where a quota does not allow it."""
    by_id = {assignment.id: assignment for assignment in plan.assignments}
    sizes = [partition.samples for partition in plan.partitions]
    rest = samples - sum(sizes)
    parts = min(MOST_REST, max(REST, sum(curve.reference is not None for curve in curves)))
    sizes += [size for size in _parts(rest, parts) if size > 0]
    mine = [by_id[curve.id] for curve in curves]
    rungs = [
        curve.rung_of(assignment.level) for curve, assignment in zip(curves, mine, strict=True)
    ]
    allowed = [rung for rung in rungs if rung is not None]
    if len(allowed) < len(curves):
        return None
    layout = Layout(
        room, curves, sizes, allowed, [set(assignment.partitions) for assignment in mine]
    )
    if max(layout.used) > room.most or max(layout.beside) > room.most_beside:
        return None
    _widen_all(layout, parts)
    _raise_all(layout)
    return layout


def _parts(whole: int, count: int) -> list[int]:
    return (
        [whole * (k + 1) // count - whole * k // count for k in range(count)] if whole > 0 else []
    )


def _widen_all(layout: Layout, rest: int) -> None:
    """More samples at the same epsilon, one partition after the other."""
    count, places = len(layout.curves), range(len(layout.sizes))
    if count * len(places) > MOST_PAIRS:
        # The rest of the window is what there is to gain.
        places = places[-rest:]
    queue = [
        (*_worth(layout, number, place), number, place)
        for number in range(count)
        for place in places
        if place not in layout.places[number]
    ]
    heapq.heapify(queue)
    while queue:
        worth, gain, number, place = heapq.heappop(queue)
        now = _worth(layout, number, place)
        if now != (worth, gain):
            # It has got partitions meanwhile, and gains less: back into the line.
            heapq.heappush(queue, (*now, number, place))
        elif -gain >= LEAST_GAIN:
            layout.widen(number, place)


def _worth(layout: Layout, number: int, place: int) -> tuple[float, float]:
    curve, rung = layout.curves[number], layout.rungs[number]
    held = layout.held[number] + layout.sizes[place]
    gain = layout.loss(number) - curve.loss(rung, curve.capped(held))
    return -gain / (max(1, layout.room.demand(curve, rung)) * layout.sizes[place]), -gain


def _raise_all(layout: Layout) -> None:
    """More epsilon where there is room: steps along the lower hull of each curve, best first; then
    whatever smaller steps still fit.
    """
    steps = []
    for number in range(len(layout.curves)):
        for rung, gain, price in _hull(layout, number):
            steps.append((-gain / (price * layout.held[number]), number, rung))
    stuck = set[int]()
    for _, number, rung in sorted(steps):
        if number not in stuck and not layout.raise_to(number, rung):
            stuck.add(number)
    for number in sorted(stuck):
        _climb(layout, number)


def _climb(layout: Layout, number: int) -> None:
    """The highest rung that fits, of those that help."""
    curve, samples = layout.curves[number], layout.samples(number)
    for rung in range(len(curve.rungs) - 1, layout.rungs[number], -1):
        gain = layout.loss(number) - curve.loss(rung, samples)
        if gain >= LEAST_GAIN and layout.raise_to(number, rung):
            return


def _hull(layout: Layout, number: int) -> list[tuple[int, float, int]]:
    """The steps that a PTK may take one after the other: the rung it comes to, what it gains and what
    it takes. Gains for a price fall from step to step.
    """
    curve, samples, room = layout.curves[number], layout.samples(number), layout.room
    first, losses = layout.rungs[number], curve.losses(samples)
    points: list[tuple[int, float, int]] = []
    for rung in range(first, len(curve.rungs)):
        here = (curve.rungs[rung].demand[room.main], losses[rung], rung)
        if points and here[0] <= points[-1][0]:
            continue
        while len(points) > 1 and _slope(points[-1], here) <= _slope(points[-2], points[-1]):
            points.pop()
        points.append(here)
    steps = []
    for before, after in pairwise(points):
        gain = before[1] - after[1]
        if gain < LEAST_GAIN:
            break
        steps.append((after[2], gain, after[0] - before[0]))
    return steps


def _slope(left: tuple[int, float, int], right: tuple[int, float, int]) -> float:
    return (right[1] - left[1]) / (right[0] - left[0])
