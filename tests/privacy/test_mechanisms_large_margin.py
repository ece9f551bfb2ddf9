"""The large margin mechanism: its exact law on small domains, its (epsilon, delta), its thresholds
and its use.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache, partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.costs import ApproxCost
from ptklib.privacy.mechanisms.large_margin import LargeMargin
from ptklib.privacy.noise.exact import laplace_tail, negative_exp
from ptklib.testing.audit import audit_epsilon, one_at_a_time
from ptklib.testing.distributions import check_pmf, discrete_laplace_cdf
from ptklib.testing.noise import SeededSource, planted_noise

SURE = 0.999999
Floats = NDArray[np.float64]


@pytest.fixture
def source() -> Iterator[SeededSource]:
    with planted_noise():
        yield SeededSource(5)


@lru_cache
def laplace_pmf(scale: float) -> tuple[NDArray[np.int64], Floats]:
    reach = int(40 * scale) + 2
    k = np.arange(-reach, reach + 1)
    weights = np.exp(-np.abs(k) / scale)
    return k, weights / weights.sum()


@lru_cache
def difference_pmf(one: float, other: float) -> tuple[NDArray[np.int64], Floats, Floats]:
    """Both noises of a stop test as one table: the differences X - G, and the joint weights."""
    (x, p), (g, q) = laplace_pmf(one), laplace_pmf(other)
    mass = np.convolve(p, q)
    return np.arange(x[0] + g[0], x[-1] + g[-1] + 1), mass, np.cumsum(mass)


def width_law(
    gaps: list[int], thresholds: list[int], scales: tuple[float, float, float]
) -> list[float]:
    """P(r) for r = 1 ..

    K, where gaps[r-1] = f(1) - f(r+1): sum over X - G, which all tests share.
    """
    shift, alive, _ = difference_pmf(scales[0], scales[1])
    law = []
    for gap, threshold in zip(gaps, thresholds, strict=True):
        # Stop iff Z >= threshold - gap - shift; by symmetry that is Z <= gap + shift - threshold.
        stop = discrete_laplace_cdf(gap + shift - threshold, scales[2])
        law.append(float((alive * stop).sum()))
        alive = alive * (1 - stop)
    return [*law, float(alive.sum())]


def output_law(
    scores: list[int], thresholds: list[int], scales: tuple[float, float, float], rate: float
) -> dict[int, float]:
    """The law of the index, from the definition in the module's docstring and nothing of its
    code.
    """
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    gaps = [scores[order[0]] - scores[i] for i in order[1:]]
    pmf = dict.fromkeys(range(len(scores)), 0.0)
    for r, chance in enumerate(width_law(gaps, thresholds, scales), start=1):
        weights = [math.exp(rate * (scores[i] - scores[order[0]])) for i in order[:r]]
        for i, weight in zip(order[:r], weights, strict=True):
            pmf[i] += chance * weight / sum(weights)
    return pmf


def law_of(mechanism: LargeMargin, scores: list[int], *, slower: float = 1.0) -> dict[int, float]:
    """The law as claimed (``slower`` stretches every noise, for alternatives that a test must
    reject).
    """
    epsilon, sensitivity = float(mechanism.epsilon), mechanism.sensitivity
    scales = tuple(slower * factor * sensitivity / epsilon for factor in (3, 6, 12))
    thresholds = mechanism.thresholds(len(scores)).tolist()
    return output_law(scores, thresholds, scales, epsilon / 6 / sensitivity / slower)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "delta", "scores"),
    [
        (3, 1, 0.1, [0, 25, 24, 10]),
        (3, 1, 0.1, [30, 30, 0, 31, 2, 30]),
        (6, 4, 0.05, [0, 10, 100, 60, 95]),
        (1, 1, 0.5, [0, 6]),
    ],
)
def test_it_has_its_law(
    source: SeededSource, epsilon: Any, sensitivity: int, delta: float, scores: list[int]
) -> None:
    mechanism = LargeMargin(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    right = law_of(mechanism, scores)
    assert sum(right.values()) == pytest.approx(1, abs=1e-9)
    drawn = [mechanism.release(scores, source=source).index for _ in range(10_000)]
    check_pmf(
        drawn,
        right,
        against=[law_of(mechanism, scores, slower=0.5), law_of(mechanism, scores, slower=2)],
    )


def test_the_number_of_candidates_kept_has_its_law(source: SeededSource) -> None:
    """Each of the three noises of steps 1 and 2 is seen: another scale for any of them is
    rejected.
    """
    mechanism = LargeMargin(epsilon=3, delta=0.1, sensitivity=1)
    thresholds = mechanism.thresholds(6).tolist()
    gaps = [
        threshold + offset for threshold, offset in zip(thresholds, (-6, -4, -2, 0, 2), strict=True)
    ]
    ranked = np.array([100, *[100 - gap for gap in gaps]])
    drawn = [mechanism._narrowed(ranked, source)[1] for _ in range(15_000)]

    def law(*noise: float) -> dict[int, float]:
        return dict(enumerate(width_law(gaps, thresholds, noise), start=1))  # type: ignore[arg-type]

    wrong = [(1.0, 2.0, 3.0), (1.0, 2.0, 5.2), (1.0, 4.0, 4.0), (1.0, 1.0, 4.0), (3.0, 2.0, 4.0)]
    check_pmf(drawn, law(1.0, 2.0, 4.0), against=[law(*noise) for noise in wrong])


def divergence(p: dict[int, float], q: dict[int, float], epsilon: float) -> float:
    """The least delta for which p is within (epsilon, delta) of q."""
    return sum(max(0.0, p[i] - math.exp(epsilon) * q[i]) for i in p)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.2), (3.0, 0.01), (6.0, 0.001)])
def test_the_exact_law_is_private_on_a_grid_of_neighbours(epsilon: float, delta: float) -> None:
    """Three candidates; gaps on a coarse grid up to where the thresholds stop mattering; all moves
    by at most 1.
    """
    mechanism = LargeMargin(epsilon=epsilon, delta=delta, sensitivity=1)
    reach = int(mechanism.thresholds(3)[-1] + 6)
    steps = sorted({*range(0, reach, max(1, reach // 12)), 1, 2, 3})
    moves = list(product((-1, 0, 1), repeat=3))
    law = lru_cache(lambda *scores: law_of(mechanism, list(scores)))
    worst = 0.0
    for second, third in product(steps, steps):
        here = (0, -second, -third)
        for move in moves:
            there = tuple(score + step for score, step in zip(here, move, strict=True))
            worst = max(
                worst,
                divergence(law(*here), law(*there), epsilon),
                divergence(law(*there), law(*here), epsilon),
            )
    assert worst <= delta


def worst_of_step_three(margin: int, r: int, rate: float, epsilon: float) -> float:
    """The largest exact delta of step 3 over second scores near the cut and all moves by at most 1;
    f(r+1) = 0.
    """

    def top(scores: list[int]) -> dict[int, float]:
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))[:r]
        weights = {i: math.exp(rate * scores[i]) for i in order}
        return {i: weights.get(i, 0.0) / sum(weights.values()) for i in range(len(scores))}

    worst = 0.0
    for second in range(min(4, margin + 1)):
        here = [margin, second, 0, 0]
        for move in product((-1, 0, 1), repeat=4):
            there = [score + step for score, step in zip(here, move, strict=True)]
            worst = max(worst, divergence(top(here), top(there), epsilon))
    return worst


def test_step_three_needs_its_margin_and_is_private_with_it() -> None:
    """Top-2 sets that differ are (epsilon/3, delta/4)-close at the margin t_2 of the proof, and not
    at margin 2.
    """
    epsilon, delta, r = 3.0, 0.1, 2
    rate = float(LargeMargin(epsilon=epsilon, delta=delta, sensitivity=1).rate)
    margin = math.ceil(2 + 6 / epsilon * math.log(r / (delta / 4)))
    assert 0.1 * delta / 4 < worst_of_step_three(margin, r, rate, epsilon / 3) <= delta / 4
    assert worst_of_step_three(2, r, rate, epsilon / 3) > 4 * delta / 4


@pytest.mark.parametrize(
    ("epsilon", "delta", "sensitivity"),
    [(1, 1e-6, 1), ("0.3", 0.01, 5), (30, 0.5, 1), ("0.01", 1e-18, 1000)],
)
def test_the_thresholds_are_rounded_up_from_exact_tails(
    epsilon: Any, delta: Any, sensitivity: int
) -> None:
    """Recomputed from enclosures of the tails: never below the proof's threshold, at most a few
    units above it.
    """
    mechanism = LargeMargin(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    part, bits = mechanism.delta / 4, 256
    level = mechanism.epsilon

    def tail_bound(scale: Fraction, chance: Fraction) -> int:
        """The least a with P(X > a) <= chance, P(X > a) being half of the two-sided tail at a +
        1.
        """
        return first(lambda a: Fraction(laplace_tail(scale)(a + 1, bits)[1], 2**bits) / 2 <= chance)

    def faint_enough(r: int, t: int) -> bool:
        return r * Fraction(negative_exp(t * level / (6 * sensitivity), bits)[1], 2**bits) <= part

    top = tail_bound(3 * sensitivity / level, part)
    bar = tail_bound(6 * sensitivity / level, part)
    for r, threshold in list(enumerate(mechanism.thresholds(2_000).tolist(), start=1))[::333]:
        gap = first(partial(faint_enough, r))
        needed = (
            2 * sensitivity
            + gap
            + top
            + bar
            + tail_bound(12 * sensitivity / level, part / (r * (r + 1)))
        )
        assert needed <= threshold <= needed + 4 + needed // 10**9


def first(holds: Callable[[int], bool]) -> int:
    high = 1
    while not holds(high):
        high *= 2
    low = -1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


# The winner gains what all others lose, and they are too near for the thresholds: step 3 sees them
# all.
LOSES, GAINS = [0, *[2] * 11], [2, *[0] * 11]


def test_the_audit_stays_below_the_claim_and_catches_a_sixth_of_the_noise(
    source: SeededSource,
) -> None:
    """On these neighbours only step 3, a third of epsilon, tells anything: the claim is met with
    room.
    """

    def runs(epsilon: Any) -> Callable[[list[int], int], Any]:
        mechanism = LargeMargin(epsilon=epsilon, delta="1e-6", sensitivity=2)
        return one_at_a_time(lambda scores: mechanism.release(scores, source=source).index)

    honest = audit_epsilon(runs(3), GAINS, LOSES, count=6_000, delta=1e-6, confidence=SURE)
    assert 0.15 < honest.lower_bound <= 1, "step 3 alone has a third of epsilon"
    assert audit_epsilon(
        runs(18), GAINS, LOSES, count=6_000, delta=1e-6, confidence=SURE
    ).contradicts(3)


def test_half_the_noise_of_step_three_exceeds_its_third() -> None:
    """By the exact law: at twice the epsilon the same neighbours are further apart than epsilon/3
    allows.
    """
    honest, halved = (LargeMargin(epsilon=level, delta="1e-6", sensitivity=2) for level in (3, 6))
    for mechanism, allowed in ((honest, True), (halved, False)):
        p, q = law_of(mechanism, GAINS), law_of(mechanism, LOSES)
        assert (max(math.log(p[i] / q[i]) for i in p) <= 1.0) is allowed


def test_noise_grows_as_epsilon_shrinks() -> None:
    small, large = (
        LargeMargin(epsilon=level, delta="1e-6", sensitivity=1) for level in ("0.1", 10)
    )
    for name in ("top_scale", "threshold_scale", "query_scale"):
        assert getattr(small, name) == 100 * getattr(large, name)
    assert np.all(small.thresholds(50) > 50 * large.thresholds(50))


def test_a_clear_winner_is_found_and_only_near_ones_are_kept() -> None:
    """200,000 candidates of which three are near the top: step 2 keeps three, and step 3 chooses
    among them.
    """
    scores = np.zeros(200_000, dtype=np.int64)
    scores[[5, 777, 123_456]] = 990, 1_000, 980
    mechanism = LargeMargin(epsilon=1, delta="1e-6", sensitivity=1)
    assert mechanism._narrowed(np.sort(scores)[::-1], None)[1] == 3
    assert {mechanism.release(scores).index for _ in range(3)} <= {5, 777, 123_456}
    scores[777] = 2_000
    assert {mechanism.release(scores).index for _ in range(3)} == {777}


def test_one_candidate_and_huge_scores() -> None:
    mechanism = LargeMargin(epsilon=1, delta="1e-6", sensitivity=1)
    assert mechanism.release([-5]).index == 0
    assert mechanism.release([-(10**30), 10**30, 0]).index == 1
    assert {mechanism.release([7, 7, 7]).index for _ in range(100)} == {0, 1, 2}


def test_the_cost_is_exact_and_known_before_data() -> None:
    mechanism = LargeMargin(epsilon="0.5", delta="1e-6", sensitivity=2)
    assert mechanism.top_scale == 12
    assert mechanism.threshold_scale == 24
    assert mechanism.query_scale == 48
    assert mechanism.rate == Fraction(1, 24)
    assert mechanism.cost == ApproxCost(epsilon="0.5", delta="1e-6")
    assert mechanism.release([1, 2]).cost == mechanism.cost


@pytest.mark.parametrize(
    ("reason", "parameters"),
    [
        ("AMOUNT_ZERO", {"epsilon": 0}),
        ("AMOUNT_NEGATIVE", {"epsilon": -1}),
        ("AMOUNT_NOT_FINITE", {"epsilon": float("nan")}),
        ("AMOUNT_ZERO", {"delta": 0}),
        ("AMOUNT_NEGATIVE", {"delta": -0.1}),
        ("AMOUNT_TOO_LARGE", {"delta": 1}),
        ("AMOUNT_TOO_SMALL", {"delta": "1e-19"}),
        ("AMOUNT_NOT_FINITE", {"delta": float("nan")}),
        ("SENSITIVITY_NOT_POSITIVE", {"sensitivity": 0}),
        ("SENSITIVITY_NOT_POSITIVE", {"sensitivity": -1}),
        ("SENSITIVITY_NOT_INTEGER", {"sensitivity": float("nan")}),
        ("SCALE_TOO_LARGE", {"epsilon": "1e-9", "sensitivity": 1000}),
    ],
)
def test_parameters_that_are_refused(reason: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as caught:
        LargeMargin(**{"epsilon": 1, "delta": 0.1, "sensitivity": 1, **parameters})
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("reason", "scores"),
    [
        ("DATA_EMPTY", []),
        ("DATA_NOT_INTEGER", [4711.5]),
        ("DATA_NOT_INTEGER", np.array([4711.0])),
        ("DATA_SHAPE_INVALID", np.array([[4711]])),
    ],
)
def test_scores_that_are_refused_are_not_quoted(reason: str, scores: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        LargeMargin(epsilon=1, delta=0.1, sensitivity=1).release(scores)
    assert caught.value.reason == reason
    assert "4711" not in str(caught.value)


def test_seeded_noise_is_refused_outside_the_gate() -> None:
    with pytest.raises(InsecureNoise):
        LargeMargin(epsilon=1, delta=0.1, sensitivity=1).release([1, 2], source=SeededSource(1))
