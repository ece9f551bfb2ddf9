"""Private selection: laws of how often to try, prices of the best, and audits that catch a price
for one run only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import (
    ApproxCost,
    BestOfNegativeBinomialCost,
    BestOfPoissonCost,
    Cost,
    ExponentialCost,
    GaussianCost,
    PureCost,
    RenyiCost,
    SampledRunCost,
    cost_from_json,
)
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.selection.best import BestOfRuns
from ptklib.privacy.selection.coins import coin, geometric_from_one, uniform_below
from ptklib.privacy.selection.disjoint import DisjointSelection
from ptklib.privacy.selection.stopping import NegativeBinomialRuns, PoissonRuns, Stopping
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_pmf
from ptklib.testing.noise import PlantedSource, SeededSource, planted_noise

SURE = 0.999999
GEOMETRIC = NegativeBinomialRuns(shape=Fraction(1), stop=Fraction(1, 5))
HALF = NegativeBinomialRuns(shape=Fraction(1, 2), stop=Fraction(1, 5))
LOGARITHMIC = NegativeBinomialRuns(shape=Fraction(0), stop=Fraction(1, 5))
POISSON = PoissonRuns(average=Fraction(7, 2))
LAWS: list[Stopping] = [GEOMETRIC, HALF, LOGARITHMIC, POISSON]
# Means a third off, and what is none of the laws.
WRONG: list[Stopping] = [
    NegativeBinomialRuns(shape=Fraction(1, 4), stop=Fraction(1, 7)),
    PoissonRuns(average=Fraction(5)),
]
NAMES = ["geometric", "half", "logarithmic", "poisson"]


@pytest.fixture
def source() -> Iterator[SeededSource]:
    with planted_noise():
        yield SeededSource(21)


def pmf(law: Stopping, most: int = 400) -> dict[int, float]:
    """The law of the number of runs, from its definition."""
    if isinstance(law, PoissonRuns):
        return {
            k: math.exp(-law.mean + k * math.log(law.mean) - math.lgamma(k + 1))
            for k in range(most)
        }
    stop, shape = float(law.stop), float(law.shape)
    weights = {}
    for k in range(1, most):
        product = math.prod((place + shape) / (place + 1) for place in range(1, k))
        weights[k] = (1 - stop) ** k * product
    total = sum(weights.values())
    return {k: weight / total for k, weight in weights.items()}


# -- laws
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("law", LAWS, ids=NAMES)
def test_the_number_of_runs_has_its_law(law: Stopping, source: SeededSource) -> None:
    drawn = [law.draw(source) for _ in range(20_000)]
    expected = pmf(law)
    check_pmf(drawn, expected, against=[pmf(wrong) for wrong in WRONG])
    assert law.mean == pytest.approx(sum(k * chance for k, chance in expected.items()), rel=1e-9)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 2**64, 2**64 + 1, 10**30])
def test_a_number_below_a_bound_is_below_it_and_uniform(bound: int, source: SeededSource) -> None:
    drawn = [uniform_below(bound, source) for _ in range(2000)]
    assert 0 <= min(drawn) <= max(drawn) < bound
    if 1 < bound <= 10:
        # Twice the chance for the first, as a remainder of too few bits would have it.
        skewed = {value: (1 + (value == 0)) / (bound + 1) for value in range(bound)}
        check_pmf(drawn, dict.fromkeys(range(bound), 1 / bound), against=[skewed])
    elif bound > 10:
        assert abs(np.mean([value / bound for value in drawn]) - 0.5) < 6 / math.sqrt(12 * 2000)


def test_coins_are_decided_by_their_leading_bits() -> None:
    with planted_noise():
        assert coin(Fraction(1, 3), PlantedSource([0]))
        # The first two bits are the answer: 2 is not below 1.
        assert not coin(Fraction(1, 3), PlantedSource([2 << 62]))
        # 3 is no number below 3: another word.
        assert coin(Fraction(1, 3), PlantedSource([3 << 62, 0]))
        assert geometric_from_one(Fraction(1, 2), PlantedSource([1 << 62, 1 << 62, 0])) == 3


# -- prices
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [0, "0.5", 1])
def test_the_best_of_pure_runs_costs_two_and_the_shape_times_one(shape: int | str) -> None:
    cost = BestOfNegativeBinomialCost(base=PureCost(epsilon="0.3"), shape=shape, stop="0.001")
    assert cost.basic() == ((2 + Fraction(shape)) * Fraction("0.3"), Fraction(0))
    assert cost.renyi(np.array([np.inf]))[0] == pytest.approx(
        float((2 + Fraction(shape)) * Fraction("0.3"))
    )


def laws_of_best(
    weights: dict[int, float], one: np.ndarray, two: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The exact laws of the best of K, of outputs in rising order; with "nothing" first."""
    sides = []
    for chances in (one, two):
        upto = np.minimum(np.concatenate([[0.0], np.cumsum(chances)]), 1.0)
        best = sum(weight * np.diff(upto**k) for k, weight in weights.items() if k)
        sides.append(np.concatenate([[weights.get(0, 0.0)], best]))
    return sides[0], sides[1]


def renyi(one: np.ndarray, two: np.ndarray, order: float) -> float:
    some = (one > 0) | (two > 0)
    p, q = np.log(one[some]), np.log(two[some])
    return float(np.logaddexp.reduce(order * p + (1 - order) * q) / (order - 1))


outputs = st.lists(st.floats(0.02, 1.0), min_size=2, max_size=6)


@given(data=st.data(), law=st.sampled_from(LAWS), order=st.sampled_from([1.3, 2.0, 4.0, 12.0]))
@settings(max_examples=120, deadline=None)
def test_the_bound_holds_for_random_pairs_of_outputs(
    data: st.DataObject, law: Stopping, order: float
) -> None:
    """The true divergence of the best, computed from its exact law, for outputs and scores in any
    order; the base is the true curve of one run.
    """
    first = np.array(data.draw(outputs))
    second = np.array(
        data.draw(st.lists(st.floats(0.02, 1.0), min_size=len(first), max_size=len(first)))
    )
    first, second = first / first.sum(), second / second.sum()
    orders = [1.2, 1.3, 2.0, 3.0, 4.0, 8.0, 12.0, 40.0, 200.0]
    curve = [max(renyi(first, second, at), renyi(second, first, at)) + 1e-12 for at in orders]
    cost = law.cost_of_best(RenyiCost(orders=orders, values=[f"{value:.15f}" for value in curve]))
    one, two = laws_of_best(pmf(law), first, second)
    true = max(renyi(one, two, order), renyi(two, one, order))
    assert true <= cost.renyi(np.array([order]))[0] * (1 + 1e-9) + 1e-9


def test_what_one_run_costs_is_not_enough_for_the_best() -> None:
    """Were it charged once, the bound would be below the truth: so the check above can fail."""
    first = np.array([0.95, 0.05])
    second = np.array([0.05, 0.95])
    epsilon = math.log(19)
    one, two = laws_of_best(pmf(GEOMETRIC), first, second)
    true = float(np.max(np.abs(np.log(one[1:] / two[1:]))))
    assert epsilon * 1.2 < true <= 3 * epsilon


def test_the_price_of_the_best_beside_that_of_all() -> None:
    base = GaussianCost(sigma=4)
    best = BestOfNegativeBinomialCost(base=base, shape=0, stop="0.01").epsilon("1e-6")
    law = NegativeBinomialRuns(shape=Fraction(0), stop=Fraction(1, 100))
    runs = round(law.mean)
    every = base
    for _ in range(runs - 1):
        every = every + base  # type: ignore[assignment]
    assert runs == 21
    assert base.epsilon("1e-6") < best < 0.4 * every.epsilon("1e-6")


def test_more_runs_and_a_dearer_base_cost_more() -> None:
    def price(sigma: int, stop: str, shape: int) -> float:
        base = GaussianCost(sigma=sigma)
        return BestOfNegativeBinomialCost(base=base, shape=shape, stop=stop).epsilon("1e-6")

    assert price(8, "0.1", 1) < price(4, "0.1", 1) < price(4, "0.01", 1)
    assert price(4, "0.1", 0) < price(4, "0.1", 1)
    base = GaussianCost(sigma=8)
    assert BestOfPoissonCost(base=base, mean=2).epsilon("1e-6") < BestOfPoissonCost(
        base=base, mean=20
    ).epsilon("1e-6")


def test_a_scheduled_run_can_be_chosen_from() -> None:
    base = SampledRunCost(rate="0.01", sigmas=["1.2"], steps=[300])
    cost = HALF.cost_of_best(base)
    assert base.epsilon("1e-6") < cost.epsilon("1e-6") < 4 * base.epsilon("1e-6")
    assert cost_from_json(cost.as_json()) == cost


@pytest.mark.parametrize(
    "make",
    [
        lambda: NegativeBinomialRuns(shape=Fraction(3, 2), stop=Fraction(1, 5)),
        lambda: NegativeBinomialRuns(shape=Fraction(1), stop=Fraction(1)),
        lambda: NegativeBinomialRuns(shape=Fraction(1), stop=Fraction(1, 10**6)),
        lambda: GEOMETRIC.cost_of_best(ApproxCost(epsilon=1, delta="1e-6")),
        lambda: POISSON.cost_of_best(ApproxCost(epsilon=1, delta="1e-6")),
    ],
)
def test_what_has_no_bound_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match="COST_INVALID"):
        make()


# -- the best of random runs
# --------------------------------------------------------------------------------------------------


def test_the_best_is_released_with_its_candidate_and_nothing_else(source: SeededSource) -> None:
    choice = BestOfRuns(stopping=GEOMETRIC, base=PureCost(epsilon=1), candidates=5)
    tried: list[int] = []

    def run(candidate: int) -> tuple[float, str]:
        tried.append(candidate)
        return (math.nan if candidate == 4 else float(candidate)), f"model {candidate}"

    answers = [choice.release(run, source=source) for _ in range(300)]
    assert len(tried) == pytest.approx(300 * GEOMETRIC.mean, rel=0.25)
    assert set(tried) == set(range(5))
    for best in answers:
        assert best is not None
        assert best.answer == f"model {best.candidate}"
    assert any(best.candidate != 3 for best in answers if best)
    assert sum(best.candidate == 3 for best in answers if best) > 100


def test_nothing_may_be_run_under_a_poisson_law(source: SeededSource) -> None:
    choice = BestOfRuns(
        stopping=PoissonRuns(average=Fraction(1, 2)), base=PureCost(epsilon=1), candidates=1
    )
    answers = [choice.release(lambda at: (1.0, at), source=source) for _ in range(200)]
    share = sum(best is None for best in answers) / len(answers)
    assert share == pytest.approx(math.exp(-0.5), abs=0.15)


def test_a_choice_without_candidates_is_refused() -> None:
    with pytest.raises(InvalidInput, match="SELECTION_INVALID"):
        BestOfRuns(stopping=GEOMETRIC, base=PureCost(epsilon=1), candidates=0)


EPSILON = 1.5


Run = Callable[[int], tuple[float, int]]


def audited(choose: Callable[[Run], int]) -> float:
    """A lower bound of the epsilon of a choice among answers that count 0 or 1 with Laplace noise,
    which is their score: at the low end every run must have been low.
    """
    release = LaplaceRelease(epsilon=Fraction(3, 2), sensitivity=1)

    def mechanism(truth: int, count: int) -> list[int]:
        def pool() -> Iterator[int]:
            while True:
                yield from release.release(np.full(50_000, truth, dtype=np.int64)).values.tolist()

        values = pool()

        def run(_candidate: int) -> tuple[float, int]:
            value = next(values)
            return float(value), value

        return [choose(run) for _ in range(count)]

    return audit_epsilon(mechanism, 0, 1, count=20_000, confidence=SURE).lower_bound


def test_the_audit_of_the_best_is_below_its_price_and_above_that_of_one_run() -> None:
    """The planted fault is a price for one run: the audit contradicts it. It does not contradict
    the price that is charged, and sees a good part of it.
    """
    law = NegativeBinomialRuns(shape=Fraction(1), stop=Fraction(1, 8))
    choice = BestOfRuns(stopping=law, base=PureCost(epsilon="1.5"), candidates=1)
    basic = choice.cost.basic()
    assert basic is not None

    def choose(run: Run) -> int:
        best = choice.release(run)
        assert best is not None
        return best.answer

    seen = audited(choose)
    assert EPSILON < seen <= float(basic[0])
    assert seen >= float(basic[0]) / 3


def test_the_best_of_a_fixed_number_is_caught_when_it_is_charged_once() -> None:
    def choose(run: Run) -> int:
        return max(run(0) for _ in range(4))[1]

    assert audited(choose) > 1.5 * EPSILON


# -- disjoint parts
# --------------------------------------------------------------------------------------------------

TRAININGS: tuple[Cost, ...] = (
    GaussianCost(sigma=2),
    GaussianCost(sigma=1),
    PureCost(epsilon="0.1"),
)


def test_a_choice_on_disjoint_parts_costs_the_dearest_part() -> None:
    choice = DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS)
    assert choice.part_costs == (*TRAININGS, ExponentialCost(epsilon=1))
    orders = np.array([2.0, 5.0])
    np.testing.assert_array_equal(choice.cost.renyi(orders), TRAININGS[1].renyi(orders))


def test_every_tag_has_one_part_and_parts_are_alike() -> None:
    choice = DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS)
    tags = np.random.default_rng(3).integers(0, 2**64, 20_000, dtype=np.uint64).tolist()
    check_pmf(
        [choice.part_of(tag) for tag in tags],
        dict.fromkeys(range(4), 0.25),
        against=[{0: 0.3, 1: 0.2, 2: 0.25, 3: 0.25}],
    )
    assert choice.part_of(0) == 0
    assert choice.part_of(2**64 - 1) == 3


def test_the_choice_has_its_law_and_its_price_is_that_of_its_range(source: SeededSource) -> None:
    choice = DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS)

    def law(mistakes: list[int]) -> np.ndarray:
        weights = np.exp(-np.array(mistakes, dtype=float))
        return np.asarray(weights / weights.sum())

    drawn = np.array([choice.release([3, 1, 2], source=source).index for _ in range(20_000)])
    # Half of the rate is what the same price would buy for scores that move either way.
    check_pmf(
        drawn,
        dict(enumerate(law([3, 1, 2]).tolist())),
        against=[{0: 0.186, 1: 0.506, 2: 0.308}],
    )
    # One record more: every candidate makes 0 or 1 mistakes more. The loss has range 1.
    for more in ([0, 0, 1], [1, 0, 0], [1, 1, 0], [1, 1, 1]):
        loss = np.log(law([3, 1, 2]) / law([3 + more[0], 1 + more[1], 2 + more[2]]))
        assert loss.max() - loss.min() <= 1 + 1e-12
        assert np.abs(loss).max() <= 1


def test_a_user_with_many_records_is_paid_for() -> None:
    choice = DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS, records_per_unit=4)
    one, two = np.exp(-np.array([0, 0, 4]) / 4), np.exp(-np.array([0, 0, 0]) / 4)
    loss = np.log((one / one.sum()) / (two / two.sum()))
    assert loss.max() - loss.min() <= 1 + 1e-12
    with planted_noise():
        source = SeededSource(8)
        drawn = [choice.release([0, 4, 8], source=source).index for _ in range(20_000)]
    weights = np.exp(-np.array([0.0, 1.0, 2.0]))
    check_pmf(
        drawn,
        dict(enumerate((weights / weights.sum()).tolist())),
        against=[{0: 0.982, 1: 0.0177, 2: 0.0003}],
    )


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (
            lambda: DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS[:1]),
            "SELECTION_INVALID",
        ),
        (
            lambda: DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS, records_per_unit=0),
            "SELECTION_INVALID",
        ),
        (lambda: DisjointSelection(epsilon=Fraction(0), trainings=TRAININGS), "AMOUNT_ZERO"),
        (
            lambda: DisjointSelection(epsilon=Fraction(1), trainings=TRAININGS).release([1, 2]),
            "DATA_SHAPE_INVALID",
        ),
    ],
)
def test_what_is_no_choice_is_refused(make: Callable[[], object], reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make()
    assert refusal.value.reason == reason
