"""Packing for fixed options, set by set: one tall PTK after the other gets those beside it that fill
a record best.

Where few tall PTKs fill a record, levelling (`allocator.strip.packing`) leaves room that nobody fits
into, and the linear program over sets is too slow for a thousand of them. Here the tallest PTK that
is left begins a set, and the others that come closest to what it leaves are looked for: up to three
of them, after the tallest that fit where there is room for more. The set holds until one of
its members has all its samples. Who needs nearly as many records as are left to come must be in
every set, so those go first. The flat ones are laid over it all in the end.

Whole numbers; deterministic: ties go to the first in the order of the table.
"""

from __future__ import annotations

import numpy as np

from allocator.effort import Effort
from allocator.strip.packing import Packed, pack
from allocator.table import Ints

__all__ = ["completed"]

# Below this part of the capacity a PTK is flat; one that needs more than this part of the records
# finds no room beside full sets, and counts as tall.
_FLAT, _LONG = 16, 4
# Who needs more than this part of the records to come is in every set.
_URGENT = 0.98
# A set is for this part of the records to come at least, if its members need as many.
_SHORTEST = 0.005
# A set that leaves this part of a record empty is as good as the best, tried one after the other.
_SLACKS = (10_000, 1_000, 300)
# Of many PTKs, so many are tried as the third beside all pairs.
_THIRDS = 32
# Lengths that are tried for the flat ones, each longer by this part, then by twice as much.
_TRIES, _LONGER = 8, 0.0005
# What a set costs for each PTK, in steps.
_SET = 2e2
# What a packing costs for each PTK.
_PACK = 4e4
# More sets than so many for each PTK lead nowhere.
_MOST_SETS = 4


def completed(samples: Ints, demands: Ints, capacity: int, effort: Effort) -> Packed | None:
    """All PTKs on as few records as this way finds; None where it finds none, or there is nothing
    left to spend.
    """
    area = float((samples * (demands / max(1, capacity))).sum())
    tall = np.flatnonzero((demands * _FLAT > capacity) | (samples * _LONG > area))
    shortest: Packed | None = None
    for part in _SLACKS:
        base = _tall_ones(tall, samples, demands, capacity, capacity // part, effort)
        if base is None or (shortest is not None and base.total >= shortest.total):
            continue
        shortest = _with_flat_ones(base, samples, demands, capacity, effort, shortest)
    return shortest


def _tall_ones(
    tall: Ints, samples: Ints, demands: Ints, capacity: int, slack: int, effort: Effort
) -> Packed | None:
    left = np.zeros(len(samples), dtype=np.int64)
    left[tall] = samples[tall]
    widths: list[int] = []
    members: list[Ints] = []
    while left.any():
        effort.spend(_SET * len(tall))
        if effort.over or len(widths) > _MOST_SETS * len(tall):
            return None
        rest = tall[left[tall] > 0]
        inside = _set(rest, left, demands, capacity, slack)
        widths.append(_width(rest, inside, left, demands, capacity))
        left[inside] -= widths[-1]
        members.append(inside)
    rows = np.zeros((len(widths), len(samples)), dtype=bool)
    for row, inside in zip(rows, members, strict=True):
        row[inside] = True
    return Packed(np.array(widths, dtype=np.int64), rows)


def _with_flat_ones(
    base: Packed,
    samples: Ints,
    demands: Ints,
    capacity: int,
    effort: Effort,
    below: Packed | None,
) -> Packed | None:
    """The others laid over it, on fewer records than ``below``; that one where it goes wrong."""
    if base.members.any(axis=0).all():
        return base
    area = float((samples * (demands / max(1, capacity))).sum())
    length, more = max(base.total, int(samples.max()), int(np.ceil(area))), _LONGER
    for _ in range(_TRIES):
        if effort.over or (below is not None and length >= below.total):
            break
        effort.spend(_PACK * len(samples))
        packed = pack(length, samples, demands, capacity, base)
        if packed is not None:
            return packed
        length += max(1, int(length * more))
        more *= 2
    return below


def _to_come(rest: Ints, left: Ints, demands: Ints, capacity: int) -> float:
    """Records that are needed at least for what is left."""
    area = float((left[rest] * (demands[rest] / capacity)).sum())
    return max(area, float(left[rest].max()))


def _width(rest: Ints, inside: Ints, left: Ints, demands: Ints, capacity: int) -> int:
    """As long as all members need records, and nobody else becomes urgent."""
    width = int(left[inside].min())
    outside = np.setdiff1d(rest, inside, assume_unique=True)
    if not len(outside):
        return width
    records = _to_come(rest, left, demands, capacity)
    spare = int(records - left[outside].max())
    return min(width, max(spare, int(records * _SHORTEST), 1))


def _set(rest: Ints, left: Ints, demands: Ints, capacity: int, slack: int) -> Ints:
    """Those that must be on the next record, the tallest if nobody must, and who fills it best."""
    records = _to_come(rest, left, demands, capacity)
    urgent = rest[left[rest] >= _URGENT * records]
    order = urgent[np.lexsort((urgent, -left[urgent]))]
    inside: list[int] = []
    room = capacity
    for ptk in order.tolist():
        if demands[ptk] <= room:
            inside.append(ptk)
            room -= int(demands[ptk])
    if not inside:
        first = int(rest[np.lexsort((rest, -left[rest], -demands[rest]))[0]])
        inside, room = [first], capacity - int(demands[first])
    others = np.setdiff1d(rest, inside, assume_unique=True)
    others = others[np.lexsort((-others, demands[others]))]
    while True:
        others = others[demands[others] <= room]
        if not len(others) or 4 * int(demands[others[0]]) > room:
            break
        inside.append(int(others[-1]))
        room -= int(demands[others[-1]])
        others = others[:-1]
    return np.array(
        inside + [int(others[k]) for k in _best(demands[others], room, slack)], dtype=np.int64
    )


def _best(heights: Ints, room: int, slack: int) -> list[int]:
    """Up to three places of rising ``heights`` that come closest to ``room``; none is above it."""
    count = len(heights)
    if not count:
        return []
    thirds = np.arange(count)
    if count > 2 * _THIRDS:
        thirds = np.unique(np.linspace(0, count - 1, _THIRDS).astype(np.int64))
    places = np.arange(count)
    # The first row is without a third one.
    taken = np.concatenate([[0], heights[thirds]])[:, None]
    own = np.concatenate([[-1], thirds])[:, None]
    after = room - taken - heights[None, :]
    # The highest that still fits, before the second one in the order and not the third.
    partner = np.minimum(np.searchsorted(heights, after, side="right") - 1, places - 1)
    partner = np.where(partner == own, partner - 1, partner)
    filled = taken + heights + np.where(partner >= 0, heights[np.maximum(partner, 0)], 0)
    filled = np.where((after >= 0) & (places != own), filled, -1)
    most = int(filled.max())
    if most < 0:
        return []
    # Of those that fill a record nearly as well the one whose lowest is highest: the low ones fit
    # anywhere, and are wanted in the end.
    lowest = np.where(partner >= 0, heights[np.maximum(partner, 0)], heights)
    lowest = np.where(own >= 0, np.minimum(lowest, taken), lowest)
    lowest = np.where(filled >= most - slack, lowest, -1)
    row, second = np.unravel_index(int(lowest.argmax()), lowest.shape)
    chosen = {int(own[row, 0]), int(second), int(partner[row, second])}
    return sorted(place for place in chosen if place >= 0)
