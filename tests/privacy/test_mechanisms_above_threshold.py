"""AboveThreshold: its exact law, its price, and that a session says one True and nothing else."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise, InvalidInput, MechanismSpent
from ptklib.privacy.costs import PureCost
from ptklib.privacy.mechanisms.above_threshold import AboveThreshold
from ptklib.testing.audit import audit_epsilon, one_at_a_time
from ptklib.testing.distributions import check_pmf, discrete_laplace_cdf
from ptklib.testing.noise import SeededSource, planted_noise

SURE = 0.999999
NEVER = -1


@pytest.fixture
def source() -> Iterator[SeededSource]:
    with planted_noise():
        yield SeededSource(31)


def first_true(mechanism: AboveThreshold, queries: list[int], source: SeededSource) -> int:
    session = mechanism.start(source=source)
    return next((place for place, query in enumerate(queries) if session.ask(query)), NEVER)


def law(
    queries: list[int], threshold: int, threshold_scale: float, query_scale: float
) -> dict[int, float]:
    """P(first True at k), summed over the noise g of the threshold."""
    g = np.arange(-int(45 * threshold_scale) - 2, int(45 * threshold_scale) + 3)
    alive: NDArray[np.float64] = np.diff(
        discrete_laplace_cdf(np.append(g[0] - 1, g), threshold_scale)
    )
    pmf = {}
    for place, query in enumerate(queries):
        below = discrete_laplace_cdf(threshold + g - query - 1, query_scale)
        # By symmetry P(Z >= k) = P(Z <= -k), which keeps its digits in the tail.
        pmf[place] = float((alive * discrete_laplace_cdf(query - threshold - g, query_scale)).sum())
        alive = alive * below
    pmf[NEVER] = float(alive.sum())
    return pmf


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "threshold", "queries"),
    [(1, 1, 3, [0, 5, 2, 9, 3]), (4, 1, 0, [0, 0, 0]), ("1.5", 4, -10, [-30, -20, -10, 0, 20, -5])],
)
def test_it_has_its_law(
    source: SeededSource, epsilon: Any, sensitivity: int, threshold: int, queries: list[int]
) -> None:
    mechanism = AboveThreshold(epsilon=epsilon, sensitivity=sensitivity, threshold=threshold)
    level = float(mechanism.epsilon)
    bar, noise = 2 * sensitivity / level, 4 * sensitivity / level
    right = law(queries, threshold, bar, noise)
    assert sum(right.values()) == pytest.approx(1, abs=1e-9)
    drawn = [first_true(mechanism, queries, source) for _ in range(30_000)]
    wrong = [law(queries, threshold, bar, noise / 1.3), law(queries, threshold, bar, noise * 1.3)]
    wrong += [law(queries, threshold, bar / 2, noise), law(queries, threshold + 1, bar, noise)]
    if epsilon == 4:
        wrong = [law(queries, threshold, bar / 2, noise), law(queries, threshold + 1, bar, noise)]
    check_pmf(drawn, right, against=wrong)


def test_the_exact_law_obeys_epsilon_on_all_small_neighbours() -> None:
    """All query lists in {0, 1, 2}^4 against all neighbours in the same grid, each query moving by
    at most 1.
    """
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=2)
    scales = float(mechanism.threshold_scale), float(mechanism.query_scale)
    grid = list(product(range(3), repeat=4))
    laws = {queries: law(list(queries), 2, *scales) for queries in grid}
    worst = 0.0
    for one in grid:
        for other in product(*[range(max(0, q - 1), min(2, q + 1) + 1) for q in one]):
            worst = max(worst, *(math.log(p / laws[other][k]) for k, p in laws[one].items()))
    assert 0.5 < worst <= 1 + 1e-9


# All queries but the last go down on one side and up on the other, and the last one the other way.
LOW_THEN_HIGH, HIGH_THEN_LOW = [*[0] * 16, 6], [*[2] * 16, 4]


def test_the_audit_stays_below_the_claim_and_catches_half_the_noise(source: SeededSource) -> None:
    def runs(epsilon: Any) -> Callable[[list[int], int], Any]:
        mechanism = AboveThreshold(epsilon=epsilon, sensitivity=2, threshold=4)
        return one_at_a_time(lambda queries: first_true(mechanism, queries, source))

    honest = audit_epsilon(runs(2), LOW_THEN_HIGH, HIGH_THEN_LOW, count=20_000, confidence=SURE)
    assert 0.4 < honest.lower_bound <= 2
    assert audit_epsilon(
        runs(4), LOW_THEN_HIGH, HIGH_THEN_LOW, count=20_000, confidence=SURE
    ).contradicts(2)


def test_after_true_it_is_spent_and_stays_so() -> None:
    session = AboveThreshold(epsilon=10, sensitivity=1, threshold=0).start()
    assert session.ask(-(10**6)) is False
    assert session.ask(10**6) is True
    for value in (10**6, -(10**6), "anything"):
        with pytest.raises(MechanismSpent) as caught:
            session.ask(value)  # type: ignore[arg-type]
        assert caught.value.reason == "MECHANISM_SPENT"


def test_threads_share_one_true() -> None:
    session = AboveThreshold(epsilon=10, sensitivity=1, threshold=0).start()

    def ask(_: int) -> bool:
        try:
            return session.ask(10**6)
        except MechanismSpent:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(64))) == 1


def test_fresh_noise_beyond_the_first_batch_of_draws() -> None:
    """A session that asks the same query again and again must not meet the same noise again."""
    mechanism = AboveThreshold(epsilon=1, sensitivity=1, threshold=0)
    places = [first_true_of(mechanism, -20) for _ in range(60)]
    assert max(places) > 64
    assert len(set(places)) > 20


def first_true_of(mechanism: AboveThreshold, query: int) -> int:
    session = mechanism.start()
    return next(place for place in range(10**6) if session.ask(query))


def test_nothing_but_the_answer_comes_out(source: SeededSource) -> None:
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=4711).start(source=source)
    session.ask(-987_654)
    assert "987" not in repr(session)
    assert {name for name in dir(session) if not name.startswith("_")} == {
        "ask",
        "cost",
        "mechanism",
    }
    for take in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(InvalidInput) as caught:
            take(session)
        assert caught.value.reason == "SESSION_NOT_COPYABLE"


def test_the_cost_is_that_of_the_session_and_known_before_data() -> None:
    mechanism = AboveThreshold(epsilon="0.4", sensitivity=3, threshold=10)
    assert mechanism.threshold_scale == 15
    assert mechanism.query_scale == 30
    assert mechanism.cost == PureCost(epsilon="0.4")
    assert mechanism.start().cost == mechanism.cost


@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        ("AMOUNT_ZERO", {"epsilon": 0}),
        ("AMOUNT_NEGATIVE", {"epsilon": -1}),
        ("AMOUNT_NOT_FINITE", {"epsilon": float("nan")}),
        ("SENSITIVITY_NOT_POSITIVE", {"sensitivity": 0}),
        ("SENSITIVITY_NOT_POSITIVE", {"sensitivity": -1}),
        ("SENSITIVITY_NOT_INTEGER", {"sensitivity": float("nan")}),
        ("SCALE_TOO_LARGE", {"epsilon": "1e-9", "sensitivity": 10**4}),
        ("THRESHOLD_NOT_INTEGER", {"threshold": 0.5}),
        ("THRESHOLD_NOT_INTEGER", {"threshold": float("inf")}),
    ],
)
def test_parameters_that_are_refused(reason: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        AboveThreshold(**{"epsilon": 1, "sensitivity": 1, "threshold": 0, **parameters})
    assert caught.value.reason == reason


@pytest.mark.parametrize("value", [4711.5, "4711", None, True, float("nan"), [4711]])
def test_values_that_are_refused_are_not_quoted(value: Any) -> None:
    session = AboveThreshold(epsilon=1, sensitivity=1, threshold=0).start()
    with pytest.raises(InvalidInput) as caught:
        session.ask(value)
    assert caught.value.reason == "DATA_NOT_INTEGER"
    assert "4711" not in str(caught.value)


def test_seeded_noise_is_refused_outside_the_gate() -> None:
    with pytest.raises(InsecureNoise):
        AboveThreshold(epsilon=1, sensitivity=1, threshold=0).start(source=SeededSource(1))
