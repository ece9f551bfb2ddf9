"""The mathematics of embeddings: information from noisy sums, features, exact sums over events, and
what they may move.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ptklib.price_first import Budget
from ptklib.ptks.embeddings import budget
from ptklib.ptks.embeddings import factorization as hpf
from ptklib.ptks.embeddings.events import EventTable
from ptklib.ptks.embeddings.releases import (
    COUNT_UNITS,
    PARTS,
    SQUARE_UNITS,
    STEPS,
    EmbeddingReleases,
    plan_of,
)
from ptklib.ptks.embeddings.side import Side
from ptklib.ptks.embeddings.training import Training
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.noise import SeededSource, planted_noise

Records = list[tuple[int, int, int]]
Log = list[tuple[Any, Any, Any]]
USERS, ITEMS = 3, 4
START = 5


def events(records: Records, *, pairs: bool = False) -> EventTable:
    columns = np.array(records, dtype=np.int64).reshape(-1, 3).T
    make = EventTable.pairs if pairs else EventTable.of
    return make([(columns[0], columns[1], columns[2].astype(np.float64))], USERS, ITEMS)


def test_a_noisy_sum_is_shrunk_to_the_best_linear_guess() -> None:
    generator = np.random.default_rng(1)
    rows, noise = 200_000, 3.0
    reach = generator.uniform(0, 200, rows)
    wanted = generator.normal(0, 0.2, rows)
    sums = reach * wanted + generator.normal(0, np.sqrt(reach * hpf.SPREAD + noise**2))
    told, weights = hpf.information(sums[:, None], reach, noise)
    variance = hpf.variance_of(told, weights)
    assert math.sqrt(variance[0]) == pytest.approx(0.2, rel=0.02)
    error = np.mean((hpf.shrunk(told, weights, variance)[:, 0] - wanted) ** 2)
    best = np.mean(1 / (1 / 0.04 + reach**2 / (reach * hpf.SPREAD + noise**2)))
    assert error == pytest.approx(best, rel=0.01)


def test_pure_noise_comes_out_as_nothing() -> None:
    sums = np.random.default_rng(2).normal(0, 5, (5000, 1))
    told, weights = hpf.information(sums, np.full(5000, 2.0), 5.0)
    assert np.abs(hpf.shrunk(told, weights, hpf.variance_of(told, weights))).max() < 0.05
    told, weights = hpf.information(sums, np.full(5000, -2.0), 5.0)
    assert not told.any()
    assert not weights.any()


def test_features_are_uncorrelated_and_no_longer_than_one() -> None:
    generator = np.random.default_rng(3)
    vectors = generator.normal(0, 1, (1000, 3)) @ np.array([[5, 1, 0], [0, 1, 0.5], [0, 0, 2.0]])
    weights = generator.integers(-2, 50, 1000).astype(np.float64)
    made = hpf.whitened(vectors, weights)
    uncut = made.features / made.kept[:, None]
    assert np.allclose(hpf.moment_of(uncut, weights), np.eye(3) / 3)
    assert np.all((made.features**2).sum(axis=1) <= 1 + 1e-12)
    assert np.allclose(uncut, vectors @ (made.axes / made.scales))


@settings(max_examples=200, deadline=None)
@given(
    row=st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=6),
    length=st.sampled_from([0.0, 1e-9, 0.3, 1.0, 1 + 1e-15, 7.0, 1e9]),
)
def test_whole_features_are_never_too_long(row: list[float], length: float) -> None:
    vector = np.array([row])
    size = float(np.linalg.norm(vector))
    vector = vector * (length / size) if size > 0 else vector
    found = hpf.whole(vector)[0]
    assert all(one == int(one) for one in found)
    assert sum(int(one) ** 2 for one in found) <= hpf.RESOLUTION**2


def test_products_by_pieces_are_the_products() -> None:
    generator = np.random.default_rng(4)
    vectors, matrix = generator.normal(0, 1, (20_000, 9)), generator.normal(0, 1, (9, 5))
    assert np.allclose(hpf.times(vectors, matrix), vectors @ matrix)
    weights = generator.uniform(-1, 1, 20_000)
    share = np.maximum(weights, 0)
    assert np.allclose(
        hpf.moment_of(vectors, weights), (vectors * share[:, None]).T @ vectors / share.sum()
    )


def test_the_balance_cuts_strong_directions_to_the_mean() -> None:
    features = np.array([[1.0, 0.0]] * 9 + [[0.0, 1.0]])
    square, evened = hpf.balance(features, np.ones(10))
    assert square == pytest.approx(0.5)
    assert np.allclose(evened, np.diag([0.5 / 0.9, 1.0]))


def test_old_sums_follow_a_rotation_and_are_added_to_new_ones() -> None:
    axes = np.array([[0.6, -0.8], [0.8, 0.6]])
    old, counts = np.array([[3.0, 4.0], [0.0, 5.0]]), np.full(2, 10.0)
    side = Side(counts, counts, old, np.array([2.0, 2.0]), hpf.SPREAD)
    side.turn(axes)
    side.learn(np.zeros((2, 2)), 1.0, 0.5, np.eye(2), None)
    assert np.allclose(side.sums, [[5.0, 0.0], [4.0, 3.0]])
    assert np.all(side.weights > 2)


def test_events_are_sorted_by_user_and_none_is_lost() -> None:
    records = [(2, 1, 5), (0, 3, 4096), (2, 1, 7), (2, 0, 0), (0, 3, 1)]
    found = events(records)
    assert found.starts.tolist() == [0, 2, 2, 5]
    users = np.repeat(np.arange(USERS), np.diff(found.starts))
    assert sorted(
        zip(users.tolist(), found.items.tolist(), found.steps.tolist(), strict=True)
    ) == sorted(records)
    many = EventTable.of([(np.array([1]), np.array([2**18 + 5]), np.array([4096.0]))], 2, 2**18 + 9)
    assert (many.items.tolist(), many.steps.tolist()) == ([2**18 + 5], [4096])
    assert events([]).starts.tolist() == [0, 0, 0, 0]


def test_pairs_count_once_with_the_mean_of_their_values() -> None:
    found = events([(1, 2, 10), (1, 2, 20), (1, 0, 7), (2, 2, 1)], pairs=True)
    assert (found.items.tolist(), found.steps.tolist(), found.starts.tolist()) == (
        [0, 2, 2],
        [7, 15, 1],
        [0, 0, 2, 3],
    )


def test_totals_and_residuals_are_exact() -> None:
    found = events([(0, 0, 4096), (0, 1, 0), (2, 1, 2048)])
    assert found.item_totals().tolist() == [
        [COUNT_UNITS, STEPS],
        [2 * COUNT_UNITS, -STEPS],
        [0, 0],
        [0, 0],
    ]
    made = found.residuals(np.full(ITEMS, 0.5), np.array([1.0, 1.0, 0.5]), 0.0, 0.4)
    # 1 and 0 are clipped at 0.4 around 0.5; 0.5 is 0.25 above 0.5 * 0.5.
    assert made.toarray().tolist() == [
        [STEPS, -STEPS, 0, 0],
        [0] * 4,
        [0, STEPS * 0.25 / 0.4, 0, 0],
    ]
    half = round(STEPS * 0.25 / 0.4)
    square = (2 * STEPS**2 + half**2) * SQUARE_UNITS // STEPS**2
    assert found.user_totals(made).tolist() == [
        [2 * COUNT_UNITS, 0],
        [0, 0],
        [COUNT_UNITS, half],
        [0, square],
    ]


@pytest.mark.parametrize("records", [1, 2, 7])
def test_the_price_is_what_was_asked_and_not_less(records: int) -> None:
    plan = plan_of(Budget.of("0.7", "1e-6", records), share=0.5, rounds=2)
    assert 0.7 * (1 - 1e-6) < plan.cost.epsilon("1e-6") <= 0.7
    # Each release at the whole budget costs no more than all may.
    wholes = (
        plan.activity(PARTS),
        plan.tastes(PARTS, products=False),
        plan.tastes(PARTS, products=True),
        plan.trust(PARTS),
    )
    spent = plan.cost.mu_squared()
    assert spent is not None
    for whole, square in zip(
        wholes,
        (
            STEPS**2 + COUNT_UNITS**2 + SQUARE_UNITS**2,
            (STEPS * hpf.RESOLUTION) ** 2,
            (STEPS * hpf.RESOLUTION) ** 2 + (STEPS * hpf.RESOLUTION // 2) ** 2,
            2 * STEPS**2,
        ),
        strict=True,
    ):
        assert 0 <= whole.sensitivity**2 - records * square < 3 * whole.sensitivity
        assert spent * Fraction(999, 1000) < whole.cost.mu_squared() <= spent
    assert (
        3.99 < plan.trust(PARTS).cost.mu_squared() / plan.trust(PARTS // 4).cost.mu_squared() < 4.01
    )


class Noted:
    """The releases of a plan, each of which notes its noise, what goes in and what comes out; with
    ``replay`` they give those outputs again.
    """

    def __init__(
        self,
        plan: EmbeddingReleases,
        noise: SeededSource,
        replay: Iterator[Any] | None,
        wrong: float,
    ) -> None:
        self._plan, self._noise, self._replay, self._wrong = plan, noise, replay, wrong
        self.log: Log = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plan, name)

    def activity(self, parts: int) -> Any:
        return self._recorder(self._plan.activity(parts))

    def tastes(self, parts: int, *, products: bool) -> Any:
        return self._recorder(self._plan.tastes(parts, products=products))

    def trust(self, parts: int) -> Any:
        return self._recorder(self._plan.trust(parts))

    def _recorder(self, release: Any) -> Any:
        def noted(values: NDArray[Any], *, source: Any) -> Any:
            del source
            if self._replay is None:
                # Noise of its own: the source of the training is the same in every run, for its
                # first features.
                noisy = release.release(values, source=self._noise).values
                noisy = values + np.rint((noisy - values) * self._wrong).astype(np.int64)
            else:
                noisy = next(self._replay)
            self.log.append((release, np.array(values), noisy))
            return SimpleNamespace(values=noisy)

        return SimpleNamespace(release=noted, sigma=release.sigma)


def run(
    data: EventTable,
    plan: EmbeddingReleases,
    noise: SeededSource,
    *,
    replay: list[Any] | None = None,
    wrong: float = 1.0,
    tastes: int = 2,
) -> Log:
    """Train, and give each release, what was summed for it and what came out."""
    noted = Noted(plan, noise, None if replay is None else iter(replay), wrong)
    Training(data, noted, 0.4, tastes, 0.25, SeededSource(START)).run(None)  # type: ignore[arg-type]
    return noted.log


RECORD = st.tuples(
    st.integers(0, USERS - 1), st.integers(0, ITEMS - 1), st.sampled_from([0, 1, 1000, 2048, 4096])
)


@settings(max_examples=60, deadline=None)
@given(
    base=st.lists(RECORD, max_size=12),
    added=RECORD,
    epsilon=st.sampled_from(["0.1", "3", "300"]),
    always=st.booleans(),
)
def test_a_record_moves_no_release_by_more_than_its_sensitivity(
    base: Records, added: Any, epsilon: str, always: bool
) -> None:
    """Given the same outputs so far: then all releases together are what the plan says, whatever
    was chosen in between.
    """
    plan = plan_of(Budget.of(epsilon, "1e-5", 1), share=0.5, rounds=2, always=always)
    with planted_noise():
        first = run(events(base), plan, SeededSource(7))
        second = run(
            events([*base, added]), plan, SeededSource(7), replay=[one[2] for one in first]
        )
    spent = 0.0
    for (release, one, _), (again, other, _) in zip(first, second, strict=True):
        assert again == release
        moved = int(np.square(one - other).sum())
        assert moved <= release.sensitivity**2
        spent += moved / float(release.sigma) ** 2
    assert spent <= float(plan.cost.mu_squared() or 0)
    # Of all releases at their worst.
    worst = sum(release.cost.mu_squared() for release, _, _ in first)
    assert 0.98 * float(plan.mu_squared) < worst <= plan.cost.mu_squared()


@settings(max_examples=60, deadline=None)
@given(
    base=st.lists(RECORD.filter(lambda one: one[0] > 0), max_size=12),
    added=st.lists(RECORD, min_size=1, max_size=5),
    epsilon=st.sampled_from(["0.1", "3", "300"]),
)
def test_a_user_moves_no_release_by_more_than_its_sensitivity(
    base: Records, added: Records, epsilon: str
) -> None:
    plan = plan_of(Budget.of(epsilon, "1e-5", 5), share=0.5, rounds=2)
    user = [(0, item, value) for _, item, value in added]
    with planted_noise():
        first = run(events(base, pairs=True), plan, SeededSource(7))
        second = run(
            events([*base, *user], pairs=True),
            plan,
            SeededSource(7),
            replay=[one[2] for one in first],
        )
    assert len(first) == 3
    for (release, one, _), (_, other, _) in zip(first, second, strict=True):
        assert int(np.square(one - other).sum()) <= release.sensitivity**2


def ratios(sides: tuple[EventTable, EventTable], plan: EmbeddingReleases, wrong: float) -> Any:
    """The log-likelihood ratio of all outputs of a run: nothing tells the two sides apart
    better.
    """
    noise = SeededSource(13)

    def one(side: int) -> float:
        log = run(sides[side], plan, noise, wrong=wrong, tastes=1)
        # Nothing is summed where there is nobody; what the one unit would have summed is found by a
        # replay.
        added = (
            log
            if side
            else run(sides[1], plan, noise, replay=[noisy for _, _, noisy in log], tastes=1)
        )
        return sum(
            float((np.square(noisy).sum() - np.square(noisy - b).sum()) / (2 * release.sigma**2))
            for release, b, noisy in added
        )

    return lambda side, count: np.array([one(side) for _ in range(count)])


@pytest.mark.parametrize("records", [1, 3], ids=["event", "user"])
def test_the_best_test_there_is_finds_no_more_than_the_price(
    records: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And it finds half of the noise.

    Nobody else is in the data; values are extreme, on the side of the first features.
    """
    monkeypatch.setattr(budget, "_PRODUCTS_WORTH", 0.0)
    plan = plan_of(Budget.of(2, "0.05", records), share=0.8, rounds=1, always=True)
    pairs = records > 1
    with planted_noise():
        start = Training(events([]), plan, 0.4, 1, 0.25, SeededSource(START))._start({}, ITEMS)[
            :, 0
        ]
        strongest = np.argsort(-np.abs(start))[:records]
        added = [(0, int(item), 4096 if start[item] > 0 else 0) for item in strongest]
        sides = events([], pairs=pairs), events(added, pairs=pairs)
        right = audit_epsilon(ratios(sides, plan, 1.0), 0, 1, count=300, delta=0.05)
        assert not right.contradicts(2), right
        half = audit_epsilon(ratios(sides, plan, 0.5), 0, 1, count=800, delta=0.05)
    assert half.contradicts(2), half
