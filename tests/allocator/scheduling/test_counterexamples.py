"""Where the paper's theorems fail: the instances that show it."""

from __future__ import annotations

import math

import numpy as np

from allocator.scheduling.online.replay import replay
from allocator.scheduling.policies.names import POLICIES
from allocator.scheduling.problem.singles import Singles


def _value(problem: Singles, name: str) -> float:
    runs = [
        sum(
            int(problem.significance[i, j])
            for i, j in replay(problem, POLICIES[name](problem.outlook, seed)).pairs
        )
        for seed in range(5)
    ]
    return sum(runs) / len(runs)


def _one_good_block(blocks: int) -> Singles:
    """One block at U, the others at L = U / 100; each query takes one block, the load is light."""
    queries = 100
    worth = np.ones((blocks, queries), dtype=np.int64)
    worth[0] = 100
    return Singles(
        tuple(range(blocks)),
        tuple(range(queries)),
        np.full(blocks, 100),
        np.zeros(blocks, dtype=np.int64),
        np.ones(queries, dtype=np.int64),
        np.ones(queries, dtype=np.int64),
        worth,
    )


def test_theorem_4_is_false_and_phi_keeps_its_own() -> None:
    """Alg. 2 chooses among willing blocks at random: 1 + ln(U/L) = 5.61 is claimed."""
    claimed = 1 + math.log(100)
    for blocks, least in ((20, 10.0), (100, 20.0)):
        problem = _one_good_block(blocks)
        best = 100 * 100
        assert best / _value(problem, "threshold") > least > claimed
        assert best / _value(problem, "phi") <= 5.70


def test_theorem_5_is_false() -> None:
    """All ratios below the constant threshold: nothing is served."""
    problem = Singles(
        (0,),
        tuple(range(20)),
        np.array([100]),
        np.array([0]),
        np.full(20, 5),
        np.ones(20, dtype=np.int64),
        # One query, too dear for the block, makes U; it can never be granted.
        np.full((1, 20), 50),
    )
    from allocator.scheduling.online.pool import Pool
    from allocator.scheduling.online.protocol import BlockRequest
    from allocator.scheduling.problem.outlook import Outlook

    policy = POLICIES["partial"](Outlook(requests=20, least_ratio=10, most_ratio=1000), 0)
    pool = Pool()
    pool.open(100, before=0)
    served = 0
    for j in range(20):
        served += len(policy.decide(pool, BlockRequest(j, 5, 1, problem.significance[:, j])).blocks)
    assert served == 0


def test_the_budget_is_checked_where_the_threshold_is_not_asked() -> None:
    """As written, Alg. 1 grants 0.8 of a budget at 0.15 of it spent and then again."""
    problem = Singles(
        (0,),
        (0, 1, 2),
        np.array([100]),
        np.array([0]),
        np.array([15, 80, 80]),
        np.ones(3, dtype=np.int64),
        np.array([[15, 80, 80]]),
    )
    done = replay(problem, POLICIES["threshold"](problem.outlook, 0))
    assert done.pairs == ((0, 0), (0, 1))
