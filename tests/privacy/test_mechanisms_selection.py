"""The exponential mechanism and report-noisy-max: exact laws, prices, refusals, and the path beyond
float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.costs import ExponentialCost, PureCost
from ptklib.privacy.mechanisms import gibbs
from ptklib.privacy.mechanisms.selection import ExponentialMechanism, NoisyMax
from ptklib.testing.audit import audit_epsilon, one_at_a_time
from ptklib.testing.distributions import check_pmf
from ptklib.testing.noise import PlantedSource, SeededSource, planted_noise

SURE = 0.999999
TOP = 2**64 - 1


@pytest.fixture
def source() -> Iterator[SeededSource]:
    with planted_noise():
        yield SeededSource(77)


def gibbs_pmf(scores: list[int], rate: float) -> dict[int, float]:
    weights = [math.exp(rate * (score - max(scores))) for score in scores]
    return {index: weight / sum(weights) for index, weight in enumerate(weights)}


def noisy_max_pmf(
    scores: list[int], scale: float, first_of_equals: bool = True
) -> dict[int, float]:
    """Sum over the winner's noise k of P(G_i = k) and of all others staying below (or equal, on the
    losing side).
    """
    reach = np.arange(int(60 * scale) + 60)

    def at_most(k: Any) -> Any:
        return np.where(k < 0, 0.0, -np.expm1(-(np.maximum(k, 0) + 1) / scale))

    pmf = {}
    for i, score in enumerate(scores):
        chance = np.exp(-reach / scale) * -np.expm1(-1 / scale)
        for j, other in enumerate(scores):
            if j != i:
                strict = (j < i) == first_of_equals
                chance = chance * at_most(score + reach - other - strict)
        pmf[i] = float(chance.sum())
    return pmf


SCORES = [[0, 0], [3, 1, 0, 3], [5, -5, 2, 0, 1], [-7]]


@pytest.mark.parametrize("scores", SCORES[:3])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("0.8", 2), (3, 5)])
def test_the_exponential_mechanism_has_its_law(
    source: SeededSource, scores: list[int], epsilon: Any, sensitivity: int
) -> None:
    mechanism = ExponentialMechanism(epsilon=epsilon, sensitivity=sensitivity)
    rate = float(mechanism.epsilon) / 2 / sensitivity
    scores = [score * sensitivity for score in scores]
    drawn = gibbs.draw_indices(np.array(scores), mechanism.rate, 200_000, source=source)
    wrong = [gibbs_pmf(scores, rate * 1.3), gibbs_pmf(scores, rate / 1.3)]
    if len(set(scores)) == 1:
        wrong = [{0: 0.52, 1: 0.48}]
    check_pmf(drawn, gibbs_pmf(scores, rate), against=wrong)


def test_a_release_of_the_exponential_mechanism_is_such_a_draw(source: SeededSource) -> None:
    mechanism = ExponentialMechanism(epsilon=2, sensitivity=3)
    scores = [0, 4, -3, 4]
    drawn = [mechanism.release(scores, source=source).index for _ in range(20_000)]
    check_pmf(
        drawn, gibbs_pmf(scores, 1 / 3), against=[gibbs_pmf(scores, 2 / 3), gibbs_pmf(scores, 0.43)]
    )


@pytest.mark.parametrize("scores", SCORES[:3])
@pytest.mark.parametrize(("epsilon", "sensitivity"), [(1, 1), ("0.8", 2)])
def test_noisy_max_has_its_law(
    source: SeededSource, scores: list[int], epsilon: Any, sensitivity: int
) -> None:
    mechanism = NoisyMax(epsilon=epsilon, sensitivity=sensitivity)
    scale = 2 * sensitivity / float(mechanism.epsilon)
    scores = [score * sensitivity for score in scores]
    drawn = [mechanism.release(scores, source=source).index for _ in range(30_000)]
    right = noisy_max_pmf(scores, scale)
    assert sum(right.values()) == pytest.approx(1, abs=1e-12)
    wrong = [noisy_max_pmf(scores, scale / 2)]
    if len(set(scores)) > 1:
        wrong += [noisy_max_pmf(scores, scale * 1.3), noisy_max_pmf(scores, scale / 1.3)]
    check_pmf(drawn, right, against=wrong)


def test_equal_noisy_scores_go_to_the_lowest_index(source: SeededSource) -> None:
    mechanism = NoisyMax(epsilon=4, sensitivity=1)
    drawn = [mechanism.release([1, 1, 0], source=source).index for _ in range(20_000)]
    check_pmf(
        drawn,
        noisy_max_pmf([1, 1, 0], 0.5),
        against=[noisy_max_pmf([1, 1, 0], 0.5, first_of_equals=False)],
    )


# One candidate gains what all others lose: the worst neighbours of a selection.
LOSES, GAINS = [0, *[2] * 9], [2, *[0] * 9]


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
def test_the_audit_stays_below_the_claim_and_catches_half_the_noise(
    source: SeededSource, kind: type[ExponentialMechanism | NoisyMax]
) -> None:
    def runs(epsilon: Any) -> Callable[[list[int], int], Any]:
        mechanism = kind(epsilon=epsilon, sensitivity=2)
        return one_at_a_time(lambda scores: mechanism.release(scores, source=source).index)

    honest = audit_epsilon(runs(1), GAINS, LOSES, count=20_000, confidence=SURE)
    assert 0.55 < honest.lower_bound <= 1
    assert audit_epsilon(runs(2), GAINS, LOSES, count=20_000, confidence=SURE).contradicts(1)


def test_exact_laws_obey_epsilon_on_all_small_neighbours() -> None:
    """All pairs of score vectors in {0..2}^3 that differ by at most 1 in each entry."""
    grid = [list(scores) for scores in np.ndindex(3, 3, 3)]
    laws: dict[str, Callable[[list[int]], dict[int, float]]] = {
        "exponential": lambda scores: gibbs_pmf(
            scores, float(ExponentialMechanism(epsilon=1, sensitivity=1).rate)
        ),
        "noisy max": lambda scores: noisy_max_pmf(
            scores, float(NoisyMax(epsilon=1, sensitivity=1).scale)
        ),
    }
    for name, law in laws.items():
        pmfs = [law(scores) for scores in grid]
        worst = 0.0
        for one, p in zip(grid, pmfs, strict=True):
            for other, q in zip(grid, pmfs, strict=True):
                if max(abs(a - b) for a, b in zip(one, other, strict=True)) <= 1:
                    worst = max(worst, *(math.log(p[i] / q[i]) for i in p))
        assert 0.6 < worst <= 1 + 1e-9, name


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
def test_huge_gaps_and_huge_scores(kind: type[ExponentialMechanism | NoisyMax]) -> None:
    mechanism = kind(epsilon=1000, sensitivity=2)
    assert mechanism.release([-(2**70), 2**59, -5]).index == 1
    assert mechanism.release(np.array([-(2**63), 0, 2**63 - 1])).index == 2
    assert mechanism.release([-7]).index == 0
    tiny = kind(epsilon="1e-6", sensitivity=1)
    assert {tiny.release([0, 0, 1]).index for _ in range(200)} == {0, 1, 2}


@given(
    scores=st.lists(st.integers(-40, 40), min_size=1, max_size=30),
    rate=st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100),
    word=st.integers(0, TOP),
)
def test_float64_agrees_with_exact_arithmetic_where_it_decides(
    scores: list[int], rate: Fraction, word: int
) -> None:
    gaps = max(scores) - np.array(scores)
    indices, decided = gibbs._fast(gaps, float(rate), np.array([word], dtype=np.uint64))
    exact = gibbs._settle(gaps, rate, word, PlantedSource([1 << 63] * 4))
    assert exact == indices[0] or not decided[0]


@given(
    scores=st.lists(st.integers(-40, 40), min_size=2, max_size=12),
    rate=st.fractions(min_value=Fraction(1, 100), max_value=3, max_denominator=100),
    boundary=st.integers(0, 10),
    step=st.integers(-3, 3),
)
def test_words_beside_a_boundary_are_decided_as_by_40_digits(
    scores: list[int], rate: Fraction, boundary: int, step: int
) -> None:
    """The hardest words: those next to a cumulative weight, where float64 must not decide."""
    gaps = max(scores) - np.array(scores)
    with mpmath.workdps(60):
        weights = [
            mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator * int(gap)) for gap in gaps
        ]
        upto = [sum(weights[: i + 1]) / sum(weights) for i in range(len(weights))]
        word = min(TOP, max(0, int(upto[boundary % (len(scores) - 1)] * 2**64) + step))
        u = (mpmath.mpf(word) + mpmath.mpf("0.5")) / 2**64
        expected = next(i for i, share in enumerate(upto) if u < share or i == len(upto) - 1)
    with planted_noise():
        drawn = gibbs.draw_indices(
            np.array(scores), rate, 1, source=PlantedSource([word, 1 << 63, 0, 0, 0])
        )
    assert drawn[0] == expected


def test_a_faint_candidate_has_its_true_chance() -> None:
    """Its weight exp(-60) is lost in a float64 sum; only the bits of U beyond the 64th can tell."""
    mechanism = ExponentialMechanism(epsilon=2, sensitivity=1)
    scores = [0, -60]
    with planted_noise():
        assert mechanism.release(scores, source=PlantedSource([TOP, TOP, TOP])).index == 1
        assert mechanism.release(scores, source=PlantedSource([TOP, 0])).index == 0
        chance = int(mpmath.mpf(2) ** 128 * mpmath.exp(-60))
        edge = 2**128 - chance
        for offset, index in ((-1_000, 0), (1_000, 1)):
            high, low = divmod(edge + offset, 2**64)
            assert mechanism.release(scores, source=PlantedSource([high, low])).index == index


def test_costs_are_exact_and_known_before_data(source: SeededSource) -> None:
    exponential = ExponentialMechanism(epsilon="0.3", sensitivity=4)
    assert exponential.rate == Fraction(3, 80)
    assert exponential.cost == ExponentialCost(epsilon="0.3")
    assert exponential.release([1, 2], source=source).cost == exponential.cost
    noisy = NoisyMax(epsilon="0.3", sensitivity=4)
    assert noisy.scale == Fraction(80, 3)
    assert noisy.cost == PureCost(epsilon="0.3")
    assert noisy.release([1, 2], source=source).cost == noisy.cost


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        ("AMOUNT_ZERO", {"epsilon": 0, "sensitivity": 1}),
        ("AMOUNT_NEGATIVE", {"epsilon": -1, "sensitivity": 1}),
        ("AMOUNT_NOT_FINITE", {"epsilon": float("nan"), "sensitivity": 1}),
        ("AMOUNT_NOT_FINITE", {"epsilon": float("inf"), "sensitivity": 1}),
        ("SENSITIVITY_NOT_POSITIVE", {"epsilon": 1, "sensitivity": 0}),
        ("SENSITIVITY_NOT_POSITIVE", {"epsilon": 1, "sensitivity": -1}),
        ("SENSITIVITY_NOT_INTEGER", {"epsilon": 1, "sensitivity": float("nan")}),
        ("SENSITIVITY_NOT_INTEGER", {"epsilon": 1, "sensitivity": "1"}),
    ],
)
def test_parameters_that_are_refused(kind: Any, reason: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind(**parameters)
    assert caught.value.reason == reason


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
@pytest.mark.parametrize(
    ("reason", "scores"),
    [
        ("DATA_EMPTY", []),
        ("DATA_NOT_INTEGER", [4711.5, 1]),
        ("DATA_NOT_INTEGER", np.array([4711.5, float("nan")])),
        ("DATA_NOT_INTEGER", [float("-inf"), 4711]),
        ("DATA_SHAPE_INVALID", np.array([[4711]])),
    ],
)
def test_scores_that_are_refused_are_not_quoted(kind: Any, reason: str, scores: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        kind(epsilon=1, sensitivity=1).release(scores)
    assert caught.value.reason == reason
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize("kind", [ExponentialMechanism, NoisyMax])
def test_seeded_noise_is_refused_outside_the_gate(kind: Any) -> None:
    with pytest.raises(InsecureNoise):
        kind(epsilon=1, sensitivity=1).release([1, 2], source=SeededSource(1))
