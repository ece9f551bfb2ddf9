"""Problems for the tests: small ones for brute force, realistic ones, and the taxi PTKs of the
paper's Tab. 3.
"""

from __future__ import annotations

import random
from itertools import product

from hypothesis import strategies as st

from allocator.plan import Plan
from allocator.problem import Option, Problem, PtkOptions

NANO = 10**9


def _ptks(options: st.SearchStrategy[tuple[int, int]]) -> st.SearchStrategy[tuple[PtkOptions, ...]]:
    rows = st.lists(st.lists(options, max_size=4), max_size=4)

    def named(table: list[list[tuple[int, int]]]) -> tuple[PtkOptions, ...]:
        # Not in the order of ids, so that ties by id are not ties by position.
        names = [f"p{(7 * i + 3) % 11}" for i in range(len(table))]
        return tuple(
            PtkOptions(name, tuple(Option(str(j), d, n) for j, (d, n) in enumerate(row)))
            for name, row in zip(names, table, strict=True)
        )

    return rows.map(named)


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    """Small numbers, hence many ties; PTKs without options, options in any order and dominated ones
    included.
    """
    ptks = draw(_ptks(st.tuples(st.integers(0, 9), st.integers(1, 9))))
    return Problem(draw(st.integers(0, 24)), draw(st.none() | st.integers(1, 10)), ptks)


Key = tuple[int, int, int, tuple[int, ...], tuple[int, ...]]


def brute_force(problem: Problem) -> tuple[Key, dict[str, str]] | None:
    """Every combination, judged by the stated order; (its key, level by id) or None."""
    order = sorted(problem.ptks, key=lambda ptk: ptk.id)
    best: tuple[Key, dict[str, str]] | None = None
    for positions in product(*(range(len(ptk.options)) for ptk in order)):
        chosen = [ptk.options[j] for ptk, j in zip(order, positions, strict=True)]
        demands = tuple(one.demand for one in chosen)
        samples = [one.samples for one in chosen]
        exposure = max(samples, default=0)
        if sum(demands) <= problem.capacity and (
            problem.n_max is None or exposure <= problem.n_max
        ):
            key = (exposure, sum(samples), sum(demands), demands, positions)
            if best is None or key < best[0]:
                best = key, {ptk.id: one.level for ptk, one in zip(order, chosen, strict=True)}
    return best


def sums(plan: Plan) -> tuple[int | None, int, int]:
    """What the first three objectives come to."""
    return (
        plan.total_samples,
        sum(one.samples for one in plan.assignments),
        sum(one.demand for one in plan.assignments),
    )


def realistic(seed: int, ptks: int, levels: int, *, uneven: bool) -> Problem:
    """PTKs whose samples fall as a power of epsilon, on a log grid; ``uneven`` demands are those of
    a Renyi order.
    """
    rng = random.Random(seed)
    rows = []
    for i in range(ptks):
        scale, power = rng.lognormvariate(8, 1.5), rng.uniform(0.5, 2)
        options = []
        for j in range(levels):
            epsilon = round(10 ** (-2 + 2 * j / (levels - 1)), 2)
            demand = round(epsilon * NANO) + (rng.randrange(10**5) if uneven else 0)
            options.append(Option(f"{epsilon:g}", demand, int(scale * (1 + epsilon**-power)) + 1))
        rows.append(PtkOptions(f"ptk-{i:02}", tuple(options)))
    return Problem(NANO, None, tuple(rows))


# Tab. 3: (how many, samples, epsilon in hundredths). Only the chosen points are published.
TAXI = (
    (1, 3005, 1),
    (2, 1224, 1),
    (2, 357009, 20),
    (2, 199, 1),
    (3, 16942, 1),
    (1, 41628, 1),
    (1, 15674, 1),
    (1, 88401, 50),
)


def taxi(capacity: int = NANO) -> Problem:
    """The 13 taxi PTKs at their published points, and at every larger epsilon of the grid with the
    same samples.
    """
    grid = (1, 2, 5, 10, 20, 50, 100)
    points = [(n, epsilon) for count, n, epsilon in TAXI for _ in range(count)]
    ptks = tuple(
        PtkOptions(
            f"taxi-{i:02}",
            tuple(Option(f"{e / 100:g}", e * NANO // 100, n) for e in grid if e >= epsilon),
        )
        for i, (n, epsilon) in enumerate(points)
    )
    return Problem(capacity, None, ptks)
