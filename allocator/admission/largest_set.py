"""Who trains where not all can: the rule, over any answer to the question whether some PTKs have a
plan together.

PTKs stand in a line (``turns``), those that have waited longest first; ``overdue`` are those that
were left out before and have been in no plan since. The set that trains, each line before the next:

1. A PTK that has no plan by itself is not in it.
2. The first overdue one of the others is in it.
3. It has as many members as any set that keeps to 1 and 2 and has a plan.
4. Of the sets with as many it is the one that is first in the line: whoever comes first in the line
   and is in one of the two sets alone decides for that set.

*Nobody starves.* Who is left out takes the last place among the overdue and keeps it in front of
all that come later; by 2 one of those in front of it, or it itself, leaves the line in every window
that is large enough for it alone. So it trains in the k-th such window at the latest, where k is
its place. By 3 alone a PTK as large as two others would never train.

*How far this is proven.* Whoever has a plan has one without any of its members too. Up to `EXACT`
PTKs that have a plan by themselves every set is looked at that may be larger or come first, and the
rule holds to the letter. With more of them 1 and 2 hold to the letter; how many train is found with
the smallest ones first, then places in the line decide who, and nobody who was left out would fit
beside those chosen. ``looks`` bounds the questions for these; when it is used up the set is the
best one found, which has a plan in any case. Work is counted, not timed: the same question gets the
same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from ptklib.privacy.bisection import last_true

__all__ = ["EXACT", "LOOKS", "Chosen", "HasPlan", "largest_set"]

HasPlan = Callable[[Sequence[str]], bool]

EXACT = 8
# More than the sets of `EXACT` PTKs.
LOOKS = 300


@dataclass(frozen=True)
class Chosen:
    """Who trains, in the order of the line; who has a plan by itself; and whether the rule is known
    to hold to the letter.
    """

    members: tuple[str, ...]
    alone: tuple[str, ...]
    proven: bool


class _Looks:
    """Asks each question once, and so many in all; beyond that the answer is no."""

    def __init__(self, turns: Sequence[str], has_plan: HasPlan, most: int) -> None:
        self._place = {name: place for place, name in enumerate(turns)}
        self._has_plan = has_plan
        self._left = most
        self._known: dict[tuple[str, ...], bool] = {}
        self.ended = False

    def in_line(self, names: Collection[str]) -> tuple[str, ...]:
        return tuple(sorted(names, key=self._place.__getitem__))

    def __call__(self, names: Collection[str]) -> bool:
        asked = self.in_line(names)
        if asked not in self._known:
            if self._left <= 0:
                self.ended = True
                return False
            self._left -= 1
            self._known[asked] = self._has_plan(asked)
        return self._known[asked]


def largest_set(
    turns: Sequence[str],
    overdue: Collection[str],
    has_plan: HasPlan,
    *,
    sizes: Mapping[str, float],
    looks: int = LOOKS,
) -> Chosen:
    """The set of the rule.

    ``sizes`` says who is small: it guides the search among many and decides nothing among few.
    """
    # These are not counted: rule 1 is about each of them.
    alone = tuple(name for name in turns if has_plan((name,)))
    head = next((name for name in alone if name in overdue), None)
    look = _Looks(alone, has_plan, looks)
    if len(alone) <= EXACT:
        members = _every(alone, head, look)
        return Chosen(members, alone, proven=not look.ended)
    members = _many(alone, head, sizes, look)
    return Chosen(members, alone, proven=len(members) == len(alone))


def _every(alone: Sequence[str], head: str | None, look: _Looks) -> tuple[str, ...]:
    """The largest sets first, each size in the order of the line."""
    for size in range(len(alone), 1, -1):
        for some in combinations(alone, size):
            if (head is None or head in some) and look(some):
                return some
    # One has a plan by itself: that was asked already.
    return tuple(alone[:1]) if head is None else (head,)


def _many(
    alone: Sequence[str], head: str | None, sizes: Mapping[str, float], look: _Looks
) -> tuple[str, ...]:
    first = [] if head is None else [head]
    small = sorted((name for name in alone if name != head), key=lambda name: sizes[name])
    count = len(first) + _most(len(small), lambda many: look([*first, *small[:many]]))
    best = [*first, *small][:count] or [alone[0]]
    taken, rest = list(first), [name for name in alone if name != head]

    def filled(front: Sequence[str]) -> list[str]:
        """So many with these in front, the others as small as can be."""
        inside = set(front)
        return [*front, *(name for name in small if name not in inside)][: len(best)]

    while rest and len(taken) < len(best) and not look.ended:
        room = min(len(rest), len(best) - len(taken))
        more = _most(room, lambda many: look(filled([*taken, *rest[:many]])))  # noqa: B023 - asked at once
        taken += rest[:more]
        if more:
            best = filled(taken)
        # The next one would cost somebody else's place.
        rest = rest[more + 1 :]
    for name in alone:
        if name not in best and look([*best, name]):
            best.append(name)
    return look.in_line(best)


def _most(many: int, holds: Callable[[int], bool]) -> int:
    """The largest number up to ``many`` that holds, where all smaller ones do; 0 always does."""
    return many if not many or holds(many) else last_true(holds, 0, many)
