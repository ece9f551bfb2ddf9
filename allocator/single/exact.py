"""The best plan with one partition, by exact integer arithmetic; no solver needed.

*Dominance.* In a partition of N samples a PTK needs no more than d_i(N) = min{ d_ij : n_ij <= N },
which falls as N rises. So the least exposure is the smallest N among the n_ij with sum_i d_i(N) <=
capacity: a binary search, and its own proof.

*Ties.* Among the plans of that exposure: least sum of samples, then least sum of demands, then the
smallest demands in the order of ids (the first PTK's, then the second's, ...). This is a
multiple-choice knapsack. It is solved by the list of undominated (demand, samples) sums, built from
the last id to the first, so that equal sums keep the choice whose first differing PTK demands less.
Two things keep the list short, and neither removes a plan as good as the best one known: options
whose Lagrangian bound exceeds it are dropped first, and sums whose linear bound exceeds it later.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from allocator.problem import Option, Problem

__all__ = ["STATES", "Choice", "best_choice", "greedy_choice", "least_exposure"]

# Undominated sums kept at a time: a bound on work that no realistic instance reaches (they need
# hundreds).
STATES = 20_000
_FIRST_STATES = 300

_Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Choice:
    """One option per PTK, in the order of the problem.

    ``proved``: the ties are broken as stated, not only well.
    """

    options: tuple[Option, ...]
    proved: bool


def least_exposure(problem: Problem) -> int | None:
    """The smallest N within n_max for which one partition has room for every PTK; None when there
    is none, 0 without PTKs.
    """
    if not problem.ptks:
        return 0
    most = problem.n_max
    sizes = sorted(
        {
            option.samples
            for ptk in problem.ptks
            for option in ptk.options
            if most is None or option.samples <= most
        }
    )
    position = bisect_left(sizes, True, key=lambda size: _fits(problem, size))
    return sizes[position] if position < len(sizes) else None


def _fits(problem: Problem, size: int) -> bool:
    demand = 0
    for ptk in problem.ptks:
        least = min(
            (option.demand for option in ptk.options if option.samples <= size), default=None
        )
        if least is None:
            return False
        demand += least
    return demand <= problem.capacity


def greedy_choice(problem: Problem, exposure: int) -> Choice:
    """A good choice with samples up to ``exposure``, which must be feasible: the linear relaxation
    rounded down.
    """
    order = sorted(range(len(problem.ptks)), key=lambda i: problem.ptks[i].id)
    known, _ = _linear(
        [_undominated(problem.ptks[i].options, exposure) for i in order], problem.capacity
    )
    return _restored(order, known, proved=False)


def best_choice(problem: Problem, exposure: int, *, states: int = STATES) -> Choice:
    """The best options with samples up to ``exposure``, which must be feasible (see
    `least_exposure`).
    """
    order = sorted(range(len(problem.ptks)), key=lambda i: problem.ptks[i].id)
    rows = [_undominated(problem.ptks[i].options, exposure) for i in order]
    capacity = problem.capacity
    known, slope = _linear(rows, capacity)
    for _ in range(2):
        # A short list first gives a bound that lets the long one drop nearly everything.
        rows = _worthwhile(rows, capacity, slope, sum(option.samples for option in known))
        known, proved = _listed(rows, capacity, known, _FIRST_STATES)
        if proved:
            break
    else:
        known, proved = _listed(rows, capacity, known, states)
    return _restored(order, known, proved=proved)


def _restored(order: Sequence[int], options: Sequence[Option], *, proved: bool) -> Choice:
    chosen = dict(zip(order, options, strict=True))
    return Choice(options=tuple(chosen[i] for i in range(len(order))), proved=proved)


def _undominated(options: Sequence[Option], exposure: int) -> list[Option]:
    """By rising demand and falling samples; of equal options the one listed first."""
    kept: list[Option] = []
    for candidate in sorted(options, key=lambda option: (option.demand, option.samples)):
        if candidate.samples <= exposure and (not kept or candidate.samples < kept[-1].samples):
            kept.append(candidate)
    return kept


def _hull(options: Sequence[Option]) -> list[Option]:
    """The lower convex hull of undominated options."""
    hull: list[Option] = []
    for option in options:
        while len(hull) > 1 and _gain(hull[-2], hull[-1]) <= _gain(hull[-1], option):
            hull.pop()
        hull.append(option)
    return hull


def _gain(option: Option, other: Option) -> Fraction:
    """Samples saved per unit of demand."""
    return Fraction(option.samples - other.samples, other.demand - option.demand)


def _steps(rows: Sequence[Sequence[Option]]) -> list[tuple[Fraction, int, Option, Option]]:
    """All moves along the hulls, best gain first."""
    steps = [
        (_gain(option, other), i, option, other)
        for i, options in enumerate(rows)
        for hull in [_hull(options)]
        for option, other in pairwise(hull)
    ]
    return sorted(steps, key=lambda step: (-step[0], step[1], step[2].demand))


def _linear(rows: Sequence[Sequence[Option]], capacity: int) -> tuple[list[Option], Fraction]:
    """A good choice from the linear relaxation, and the price of a unit of demand there."""
    chosen = [options[0] for options in rows]
    left = capacity - sum(option.demand for option in chosen)
    price = Fraction(0)
    full: set[int] = set()
    for gain, i, option, other in _steps(rows):
        if i in full:
            continue
        if other.demand - option.demand <= left:
            chosen[i], left = other, left - (other.demand - option.demand)
        else:
            full.add(i)
            price = price or gain
    return chosen, price


def _worthwhile(
    rows: list[list[Option]], capacity: int, price: Fraction, best: int
) -> list[list[Option]]:
    """Without the options that no plan of at most ``best`` samples contains (Lagrangian bound at
    ``price``).
    """
    # In units of the denominator, so that everything stays an integer.
    weigh, scale = price.numerator, price.denominator
    values = [
        [option.samples * scale + option.demand * weigh for option in options] for options in rows
    ]
    least = [min(row) for row in values]
    spare = best * scale - (sum(least) - capacity * weigh)
    return [
        [option for option, value in zip(options, row, strict=True) if value - low <= spare]
        for options, row, low in zip(rows, values, least, strict=True)
    ]


def _bounds(rows: Sequence[Sequence[Option]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Corners (demand, samples) of the linear relaxation of these rows."""
    demand = sum(options[0].demand for options in rows)
    samples = sum(options[0].samples for options in rows)
    corners = [(demand, samples)]
    for _, _, option, other in _steps(rows):
        demand += other.demand - option.demand
        samples += other.samples - option.samples
        corners.append((demand, samples))
    return np.array([d for d, _ in corners], dtype=np.float64), np.array(
        [n for _, n in corners], dtype=np.float64
    )


def _listed(
    rows: list[list[Option]], capacity: int, known: list[Option], states: int
) -> tuple[list[Option], bool]:
    """The best choice by lists of undominated sums; (best found, False) when more than ``states``
    were needed.
    """
    best = sum(option.samples for option in known)
    demands: _Ints = np.zeros(1, dtype=np.int64)
    samples: _Ints = np.zeros(1, dtype=np.int64)
    trail: list[tuple[_Ints, _Ints]] = []
    proved = True
    for i in reversed(range(len(rows))):
        more_d = np.array([row.demand for row in rows[i]], dtype=np.int64)
        more_n = np.array([row.samples for row in rows[i]], dtype=np.int64)
        # Only sums that fit are formed, so none overflows.
        pick, parent = np.nonzero(demands[None, :] <= capacity - more_d[:, None])
        new_d, new_n = demands[parent] + more_d[pick], samples[parent] + more_n[pick]
        if i:
            corner_d, corner_n = _bounds(rows[:i])
            least_d = sum(options[0].demand for options in rows[:i])
            fits = new_d <= capacity - least_d
            rest = np.interp((capacity - new_d).astype(np.float64), corner_d, corner_n)
            # The slack outweighs every rounding of the floats.
            fits &= new_n + rest * (1 - 1e-9) <= best * (1 + 1e-9) + 1
            pick, parent, new_d, new_n = pick[fits], parent[fits], new_d[fits], new_n[fits]
        kept = _front(new_d, new_n, pick)
        if len(kept) > states:
            proved = False
            kept = kept[_spread(new_n[kept], new_d[kept], rows[:i], capacity, states)]
        if not len(kept):
            return known, False
        demands, samples = new_d[kept], new_n[kept]
        trail.append((pick[kept], parent[kept]))
    # The front falls in samples: its last sum has the fewest.
    position = len(demands) - 1
    if not proved and (int(samples[position]), int(demands[position])) >= (
        best,
        sum(option.demand for option in known),
    ):
        return known, False
    chosen = []
    for options, (pick, parent) in zip(rows, reversed(trail), strict=True):
        chosen.append(options[int(pick[position])])
        position = int(parent[position])
    return chosen, proved


def _front(demands: _Ints, samples: _Ints, pick: _Ints) -> NDArray[Any]:
    """Positions of the undominated sums by rising demand; of equal sums the one with the smallest
    own demand.
    """
    order = np.lexsort((pick, samples, demands))
    falling = np.minimum.accumulate(samples[order])
    first = np.ones(len(order), dtype=bool)
    first[1:] = samples[order][1:] < falling[:-1]
    return order[first]


def _spread(
    samples: _Ints, demands: _Ints, rest: Sequence[Sequence[Option]], capacity: int, states: int
) -> NDArray[Any]:
    """The ``states`` most promising sums by the bound on what they end as, in their order."""
    if not rest:
        return np.arange(len(samples))[-states:]
    corner_d, corner_n = _bounds(rest)
    score = samples + np.interp((capacity - demands).astype(np.float64), corner_d, corner_n)
    return np.sort(np.argsort(score, kind="stable")[:states])
