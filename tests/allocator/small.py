"""Small problems by the thousand, and the answers by trying everything: code of its own, nothing of
the solvers in it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import product

from allocator.problem import Option, Problem, PtkOptions

__all__ = ["best_shelf", "best_strip", "small_problems"]


def small_problems(seed: int, count: int) -> Iterator[Problem]:
    """Up to four PTKs with up to three options; capacities and n_max that are sometimes too
    small.
    """
    rng = random.Random(seed)
    for _ in range(count):
        capacity = rng.choice((0, 3, 6, 8, 10, 12))
        ptks = []
        for i in range(rng.choice((0, 1, 2, 3, 3, 4))):
            options = [
                (rng.randrange(0, 9), rng.randrange(1, 7))
                for _ in range(rng.choice((0, 1, 2, 2, 2, 3)) or (i > 0))
            ]
            ptks.append(
                PtkOptions(f"p{i}", tuple(Option(str(j), d, n) for j, (d, n) in enumerate(options)))
            )
        yield Problem(capacity, rng.choice((None, None, None, 4, 8)), tuple(ptks))


def best_shelf(problem: Problem) -> int | None:
    """The fewest samples over all ways to sort PTKs into partitions and all options."""
    count = len(problem.ptks)

    @cache
    def cost(members: int) -> int | None:
        rows = [problem.ptks[i].options for i in range(count) if members >> i & 1]
        for size in sorted({one.samples for row in rows for one in row}):
            least = [
                min((one.demand for one in row if one.samples <= size), default=None)
                for row in rows
            ]
            if None not in least and sum(d for d in least if d is not None) <= problem.capacity:
                return size
        return None

    @cache
    def best(left: int) -> int | None:
        if not left:
            return 0
        first = left & -left
        found = None
        rest = left ^ first
        companions = rest
        while True:
            here, there = cost(first | companions), best(rest ^ companions)
            if here is not None and there is not None and (found is None or here + there < found):
                found = here + there
            if not companions:
                return found
            companions = (companions - 1) & rest

    answer = best((1 << count) - 1)
    return answer if answer is None or problem.n_max is None or answer <= problem.n_max else None


def best_strip(problem: Problem) -> int | None:
    """The fewest records over all options: record by record, who trains on the next one."""
    answer: int | None = None
    for chosen in product(*(ptk.options for ptk in problem.ptks)):
        if any(one.demand > problem.capacity for one in chosen):
            continue
        most = max((one.samples for one in chosen), default=0)
        if answer is not None and most >= answer:
            continue
        found = _records(tuple((one.demand, one.samples) for one in chosen), problem.capacity)
        answer = found if answer is None else min(answer, found)
    return answer if answer is None or problem.n_max is None or answer <= problem.n_max else None


def _records(chosen: tuple[tuple[int, int], ...], capacity: int) -> int:
    demands = [d for d, _ in chosen]
    count = len(chosen)
    carried = [
        mask
        for mask in range(1, 1 << count)
        if sum(demands[i] for i in range(count) if mask >> i & 1) <= capacity
    ]

    @cache
    def least(left: tuple[int, ...]) -> int:
        wanting = sum(1 << i for i, n in enumerate(left) if n)
        if not wanting:
            return 0
        here = [mask for mask in carried if mask & wanting == mask]
        # A set to which somebody could be added is never better.
        full = [
            mask
            for mask in here
            if not any(other & mask == mask and other != mask for other in here)
        ]
        return 1 + min(
            least(tuple(n - (mask >> i & 1) for i, n in enumerate(left))) for mask in full
        )

    return least(tuple(n for _, n in chosen))
