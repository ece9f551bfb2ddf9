"""A richer plan for a window that is held anyway: more samples and more epsilon than the plan of
fewest samples, where they lower losses most.

In: that plan, the losses at the window and the filter that guards its points (and the quotas that
count there), the curves of its PTKs, and how many records there are: public numbers and DP counts
alone, so it is free. Out: a plan of the same form, or None where nothing is gained.

* *One charge per point.* Every PTK has one epsilon and disjoint partitions, as before.
* *The promise.* For every PTK there is a level of its profile that it has at least, on at least the
  samples that the level needs (`LossCurve.keeps`). That level may be another than in the plan of fewest
  samples, which buys short windows with high epsilons: where the window is held anyway, less epsilon
  on far more samples keeps the same promise and leaves room for others.
* *Exposure* is that of the window, which holds these records in any case.
* *The ledger.* Both starts are filled in main coordinates of the filter, one at a time (the kept
  start in the plan's own alone), and the best is kept. **Nothing is returned that `Filter.admits`
  refuses** at any partition, on top of the loss there, for the filter and every quota.

The spread start is preferred unless the other is better by more than `WORTH`: near-ties do not
change the plan from window to window.

Reasons: those of `allocator.admission.coordinates`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from allocator.admission.coordinates import roles, room_of, usable_coordinates
from allocator.admission.peak import members_of, peak_of
from allocator.plan import Plan
from allocator.surplus.curves import LossCurve
from allocator.surplus.filling import kept, spread
from allocator.surplus.layout import Layout, Room
from ptklib.privacy.filters import Filter

__all__ = ["WORTH", "Expected", "Guard", "Richer", "enrich", "expected_of"]

WORTH = 0.01
# With more PTKs than `FEW` about so many coordinates are tried besides the plan's own.
FEW, TRIED = 32, 4


@dataclass(frozen=True)
class Guard:
    """A filter that every record's charges must fit, and the largest loss per component so far."""

    privacy_filter: Filter
    loss: tuple[int, ...]


@dataclass(frozen=True)
class Expected:
    """The loss to expect of a PTK, as a share of its target: with the plan of fewest samples and with
    the richer one.
    """

    id: str
    minimum: float
    surplus: float


@dataclass(frozen=True)
class Richer:
    """A richer plan, the coordinate it counts in, and what is to be expected of it."""

    plan: Plan
    coordinate: int
    expected: tuple[Expected, ...]


def enrich(
    guards: Sequence[Guard],
    curves: Sequence[LossCurve],
    plan: Plan,
    coordinate: int,
    samples: int,
) -> Richer | None:
    """The plan that uses up to ``samples`` records; None where there is none that gains anything.

    The first guard is the stream's filter, the others its quotas. ``curves`` are those of the PTKs of
    the plan, which counts in ``coordinate``.
    """
    if plan.total_samples is None or not curves or samples < plan.total_samples:
        return None
    before = expected_of(curves, plan)
    main = usable_coordinates(guards[0].privacy_filter, guards[0].loss)
    layouts: list[tuple[float, int, int, Layout]] = []
    for place, tried in enumerate(_tried(main, coordinate, len(curves))):
        room = _room(guards, tried)
        wide = spread(room, curves, samples)
        if wide is not None:
            layouts.append((wide.total_loss, place, tried, wide))
        if tried == coordinate:
            filled = kept(room, curves, plan, samples)
            if filled is not None:
                layouts.append((filled.total_loss * (1 + WORTH), place, tried, filled))
    for _, _, tried, layout in sorted(layouts, key=lambda entry: entry[:2]):
        if layout.total_loss < sum(before.values()) and _admitted(guards, layout):
            expected = (
                Expected(curve.id, before[curve.id], layout.loss(number))
                for number, curve in enumerate(curves)
            )
            return Richer(layout.plan(), tried, tuple(expected))
    return None


def expected_of(curves: Sequence[LossCurve], plan: Plan) -> dict[str, float]:
    """The loss to expect of every PTK of a plan, as a share of its target."""
    by_id = {curve.id: curve for curve in curves}
    return {
        assignment.id: by_id[assignment.id].loss_at(assignment.level, assignment.samples)
        for assignment in plan.assignments
    }


def _tried(main: Sequence[int], coordinate: int, count: int) -> list[int]:
    """The coordinates to fill in: the plan's own and all others, or some all over with many PTKs."""
    others = [other for other in main if other != coordinate]
    step = 1 if count <= FEW else max(1, len(others) // TRIED)
    return [coordinate, *others[::step]]


def _room(guards: Sequence[Guard], coordinate: int) -> Room:
    """What is left everywhere, in a main coordinate and in the side coordinate."""
    _, side = roles(guards[0].privacy_filter)
    left = [room_of(guard.privacy_filter, guard.loss) for guard in guards]
    return Room(
        main=coordinate,
        most=min(room[coordinate] for room in left),
        side=side,
        most_beside=0 if side is None else min(room[side] for room in left),
    )


def _admitted(guards: Sequence[Guard], layout: Layout) -> bool:
    """What the filters themselves say to every partition, in all their coordinates."""
    demands = np.array(
        [curve.rungs[rung].demand for curve, rung in zip(layout.curves, layout.rungs, strict=True)],
        dtype=np.int64,
    )
    members = members_of(layout.plan())
    return all(
        peak_of(guard.privacy_filter, guard.loss, demands, members) is not None for guard in guards
    )
