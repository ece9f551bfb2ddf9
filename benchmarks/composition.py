"""How many queries does one block admit? Each composition beside the best any accountant could do.

At a promise of (1, 1e-6) one kind of query is asked again and again until the filter refuses. The
optimum is computed by an accountant of privacy-loss distributions (``dp_accounting.pld``) for
queries fixed in advance; a filter must hold for adaptive analysts, so it may fall short of it and
must never exceed it. Basic and strong composition take a Gaussian as (epsilon, delta) with the
delta that admits most.
"""

from __future__ import annotations

import math
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from dp_accounting.pld import privacy_loss_distribution as pld

from benchmarks.bars import Bar, Report, Say, at_least, at_most
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import (
    ApproxCost,
    Cost,
    GaussianCost,
    LaplaceCost,
    PureCost,
    SampledGaussianCost,
)
from ptklib.privacy.filters import Filter, make_filter

__all__ = ["run"]

EPSILON, DELTA = 1, "1e-6"
POINTS = 32_000
COMPOSITIONS = ("basic", "strong", "renyi", "gaussian")
_DELTAS = [float(f"{one:.2e}") for one in np.geomspace(1e-16, 1e-8, 25)]
_INTERVAL = 5e-5


@dataclass(frozen=True, kw_only=True)
class Query:
    """One kind of query, and its privacy-loss distribution."""

    name: str
    cost: Cost
    distribution: Callable[[], Any]


QUERIES = (
    Query(
        name="Laplace, epsilon 0.01",
        cost=LaplaceCost(scale=100),
        distribution=partial(
            pld.from_laplace_mechanism, 100, value_discretization_interval=_INTERVAL
        ),
    ),
    Query(
        name="Gaussian, sigma 80",
        cost=GaussianCost(sigma=80),
        distribution=partial(
            pld.from_gaussian_mechanism, 80, value_discretization_interval=_INTERVAL
        ),
    ),
    Query(
        name="sampled Gaussian, rate 0.01, sigma 2",
        cost=SampledGaussianCost(rate="0.01", sigma=2, steps=1),
        distribution=partial(
            pld.from_gaussian_mechanism,
            2,
            sampling_prob=0.01,
            value_discretization_interval=_INTERVAL,
        ),
    ),
)


def run(say: Say) -> Report:
    """Fill a block with each query under each composition."""
    filters = {name: make_filter(name, EPSILON, DELTA) for name in COMPOSITIONS}
    table: list[dict[str, object]] = []
    for query in QUERIES:
        say(query.name)
        counts = {name: _admitted(one, query.cost) for name, one in filters.items()}
        best = _last(partial(_promised, query.distribution()))
        table.append({"query": query.name, **counts, "optimum": best})
    gaussian, laplace, sampled = (_shares(row) for row in (table[1], table[0], table[2]))
    return Report(
        bars=[
            at_least("gaussian queries: renyi / PLD optimum", gaussian["renyi"], 0.85),
            at_least("gaussian queries: Gaussian-DP / PLD optimum", gaussian["gaussian"], 0.99),
            at_least("sampled gaussian queries: renyi / PLD optimum", sampled["renyi"], 0.8),
            at_least("laplace queries: renyi / PLD optimum", laplace["renyi"], 0.8),
            *_sound({"gaussian": gaussian, "laplace": laplace, "sampled gaussian": sampled}),
        ],
        figures={
            "epsilon": EPSILON,
            "delta": DELTA,
            "queries admitted": table,
            "points judged at once": POINTS,
            "milliseconds to judge them": {
                name: _milliseconds(one) for name, one in filters.items()
            },
        },
    )


def _sound(all_shares: dict[str, dict[str, float]]) -> Iterable[Bar]:
    for name, shares in all_shares.items():
        yield at_most(
            f"{name} queries: the most generous filter / PLD optimum", max(shares.values()), 1.0
        )


def _shares(row: dict[str, object]) -> dict[str, float]:
    best = row["optimum"]
    assert isinstance(best, int)
    return {name: count / best for name in COMPOSITIONS if isinstance(count := row[name], int)}


def _promised(one: Any, times: int) -> bool:
    return bool(one.self_compose(times).get_delta_for_epsilon(EPSILON) <= float(DELTA))


def _admitted(one: Filter, cost: Cost) -> int | str:
    """How many such costs fit; basic forms are chosen where the filter needs them."""
    try:
        return _fill(one, cost)
    except InvalidInput as refusal:
        if refusal.reason != "COST_UNSUPPORTED":
            raise
    if one.composition == "gaussian":
        return "refused"
    forms = [(cost.epsilon(delta), delta) for delta in _DELTAS]
    return max(_fill(one, ApproxCost(epsilon=e, delta=d)) for e, d in forms if 0 < e < math.inf)


def _milliseconds(one: Filter) -> float:
    """The best of several rounds: others share the machine."""
    losses = np.zeros((POINTS, one.width), dtype=np.int64)
    demand = one.demand(PureCost(epsilon="0.01"))
    rounds = timeit.repeat(lambda: one.admits(losses, demand), number=5, repeat=7)
    return round(min(rounds) / 5 * 1000, 2)


def _fill(one: Filter, cost: Cost) -> int:
    demand = np.array(one.demand(cost), dtype=np.int64)
    return _last(lambda n: bool(one.admits(demand[None, :] * (n - 1), demand)[0]))


def _last(holds: Callable[[int], bool]) -> int:
    """The largest n for which a falling predicate holds; 0 when it never does."""
    high = 1
    while holds(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
