"""What every policy for single blocks promises, one suite over all of them."""

from __future__ import annotations

import copy
import json
import math
from typing import Any

import numpy as np
import pytest

from allocator.scheduling.forecasting.guard import guaranteed
from allocator.scheduling.online.pool import Pool
from allocator.scheduling.online.protocol import REASONS, BlockDecision, BlockRequest
from allocator.scheduling.online.replay import replay
from allocator.scheduling.policies.names import DEFAULT, POLICIES
from allocator.scheduling.policies.phi import competitive_ratio
from allocator.scheduling.problem.outlook import Outlook
from allocator.scheduling.problem.singles import Singles
from allocator.scheduling.solve import solve
from allocator.scheduling.verify import faults
from benchmarks._scheduling.families import FAMILIES
from benchmarks._scheduling.families import drawn as family
from tests.allocator.scheduling.small import best_of_all, body, drawn

NAMES = sorted(POLICIES)


def clock() -> float:
    return 0.0


def pairs(problem: Singles, name: str, seed: int = 0) -> tuple[tuple[int, int], ...]:
    return replay(problem, POLICIES[name](problem.outlook, seed)).pairs


def value(problem: Singles, name: str) -> int:
    return sum(int(problem.significance[i, j]) for i, j in pairs(problem, name))


@pytest.mark.parametrize("name", [*NAMES, "optimal"])
def test_answers_are_sound_on_instances_of_all_sorts(name: str) -> None:
    for seed in range(60):
        instance = body(seed)
        problem = Singles.from_json(instance)
        answer = solve(problem, policy=name, clock=clock).as_json()
        assert faults(instance, answer) == ()
        assert json.loads(json.dumps(answer)) == answer
        best = best_of_all(problem)
        assert answer["value"] <= best <= answer["upper_bound"]
        if name == "optimal":
            assert answer["value"] == best


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["uniform", "recency", "drift"])
def test_the_future_changes_nothing(name: str, kind: str) -> None:
    """Queries after the fortieth in another order: the first forty are decided alike."""
    instance = family(kind, 3, blocks=8, queries=90, load=3)
    other = copy.deepcopy(instance)
    order = [*range(40), *np.random.default_rng(1).permutation(np.arange(40, 90)).tolist()]
    other["queries"] = [instance["queries"][j] for j in order]
    other["significance"] = [[row[j] for j in order] for row in instance["significance"]]
    stated = {"queries": 90, "ratios": [0.01, 10_000]}
    for promise in (None, stated, {"queries": None, "ratios": None}):
        instance["outlook"] = other["outlook"] = promise
        first, second = (Singles.from_json(form) for form in (instance, other))
        if promise is None and kind == "recency":
            # A pair that comes before its block is worth nothing, so another order is another range.
            continue
        ours, theirs = (
            [pair for pair in pairs(problem, name) if pair[1] < 40] for problem in (first, second)
        )
        assert ours == theirs


def test_a_policy_that_looks_ahead_is_noticed() -> None:
    """The check above can fail: the optimum decides the past by the future."""
    instance = {
        "blocks": [{"id": 0, "budget": 10}],
        "queries": [{"id": j, "cost": 10, "limit": 1} for j in range(3)],
        "significance": [[5, 1, 9]],
    }
    granted = solve(Singles.from_json(instance), policy="optimal", clock=clock).assignment
    assert granted == ((0, 2),)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_promised_is_enough_to_decide(name: str) -> None:
    instance = {**family("uniform", 1, blocks=5, queries=60), "outlook": {}}
    problem = Singles.from_json(instance)
    assert problem.outlook == Outlook()
    assert value(problem, name) > 0


@pytest.mark.parametrize("name", NAMES)
def test_equal_seeds_decide_alike(name: str) -> None:
    problem = Singles.from_json(family("low rank", 2, blocks=6, queries=80))
    assert pairs(problem, name, 5) == pairs(problem, name, 5)


@pytest.mark.parametrize("name", NAMES)
def test_every_decision_has_a_reason(name: str) -> None:
    told: set[str] = set()

    def hear(pool: Pool, request: BlockRequest, decision: BlockDecision) -> None:
        told.add(decision.reason(pool, request))
        if decision.prices is not None:
            assert len(decision.prices) == pool.count

    for seed in range(30):
        problem = drawn(seed)
        replay(problem, POLICIES[name](problem.outlook, 0), told=hear)
    assert told <= set(REASONS)
    assert {"GRANTED", "NOT_ELIGIBLE"} <= told


def test_a_policy_that_grants_what_is_not_there_is_a_bug() -> None:
    pool = Pool()
    pool.open(5, before=0)
    with pytest.raises(AssertionError, match="more than a block has left"):
        pool.charge(np.array([0]), np.array([6]), np.array([1]))


def test_phi_solves_its_equation() -> None:
    for ratio, expected in ((1, 1.58), (10, 3.48), (100, 5.70)):
        assert competitive_ratio(math.log(ratio)) == pytest.approx(expected, abs=0.005)


def small_costs(seed: int) -> Singles:
    """Costs of at most a twentieth of a budget, ratios over two orders of magnitude, an order of
    queries that is bad for whoever is greedy in half of the instances.
    """
    rng = np.random.default_rng([seed, 99])
    m, n = int(rng.integers(1, 4)), int(rng.integers(5, 60))
    cost = rng.integers(1, 6, n)
    ratio = 100 ** rng.random(n)
    if seed % 2:
        ratio = np.sort(ratio)
    worth = np.maximum(1, np.rint(ratio * cost * rng.uniform(0.5, 1, (m, n)) * 10))
    return Singles(
        tuple(range(m)),
        tuple(range(n)),
        rng.integers(100, 121, m),
        np.zeros(m, dtype=np.int64),
        cost,
        rng.integers(1, 3, n),
        worth.astype(np.int64),
    )


@pytest.mark.parametrize("name", ["phi", DEFAULT, "guarded"])
def test_never_below_the_theorem(name: str) -> None:
    for seed in range(30):
        problem = small_costs(seed)
        outlook = problem.outlook
        assert outlook.most_ratio
        assert outlook.least_ratio
        spread = math.log(outlook.most_ratio / outlook.least_ratio)
        factor = competitive_ratio(spread) if name == "phi" else guaranteed(spread)
        most = solve(problem, policy="fcfs", clock=clock).upper_bound
        assert value(problem, name) * factor >= most


def test_the_default_is_good_on_every_family() -> None:
    limits = {"increasing": 0.34, "heavy": 0.85, "switch": 0.6, "rotating": 0.25, "drift": 0.8}
    for kind in FAMILIES:
        problem = Singles.from_json(family(kind, 1, blocks=20, queries=500, load=1.5))
        answer = solve(problem, clock=clock, time_limit_seconds=5)
        assert answer.policy == DEFAULT
        assert answer.value >= limits.get(kind, 0.88) * answer.upper_bound, kind


def test_partial_charges_public_amounts_only() -> None:
    """The literal Alg. 3 charges ``p / T - e0``: the ledger tells p. Ours charges the cost or the
    least part, whatever p is.
    """
    outlook = Outlook(requests=10, least_ratio=1.0, most_ratio=100.0)
    threshold = 100 / (1 + math.log(100))
    literal, ours = set(), set()
    for worth in range(100, 400, 7):
        pool = Pool()
        pool.open(1000, before=0)
        request = BlockRequest(0, 20, 1, np.array([worth]), least=5)
        decision = POLICIES["partial"](outlook, 0).decide(pool, request)
        ours |= set(decision.amounts.tolist())
        literal.add(min(worth / threshold - 0.01, 20))
    assert ours == {5, 20}
    told = {round((charge + 0.01) * threshold) for charge in literal if charge < 20}
    assert len(told) > 30
    assert told <= set(range(100, 400, 7))


def test_what_a_request_is_given_never_exceeds_its_limit_or_its_ties() -> None:
    same: dict[str, Any] = {
        "blocks": [{"id": i, "budget": 100} for i in range(10)],
        "queries": [{"id": j, "cost": 7, "limit": 3} for j in range(50)],
        "significance": [[5] * 50 for _ in range(10)],
    }
    for name in NAMES:
        answer = solve(Singles.from_json(same), policy=name, clock=clock).as_json()
        assert faults(same, answer) == ()
        assert answer["upper_bound"] == 5 * 10 * 14
