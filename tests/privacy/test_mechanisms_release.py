"""Laplace, Gaussian and count releases: their law, their price, what they refuse and what they
never say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.errors import InsecureNoise, InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost, GaussianCost
from ptklib.privacy.mechanisms.inputs import LIMIT, integer_array, saturated_sum
from ptklib.privacy.mechanisms.release import CountRelease, GaussianRelease, LaplaceRelease
from ptklib.testing.audit import audit_epsilon
from ptklib.testing.distributions import check_scale, discrete_laplace_cdf, rounded_gaussian_cdf
from ptklib.testing.noise import SeededSource, planted_noise

Integers = NDArray[np.int64]
SURE = 0.999999


@pytest.fixture
def source() -> Iterator[SeededSource]:
    with planted_noise():
        yield SeededSource(20_240_501)


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "scale"),
    [("0.5", 3, 6), (2, 1, 0.5), (0.1, 7, 70), ("1/3", 1000, 3000)],
)
def test_laplace_noise_has_its_scale(
    source: SeededSource, epsilon: Any, sensitivity: int, scale: float
) -> None:
    mechanism = LaplaceRelease(epsilon=epsilon, sensitivity=sensitivity)

    def draw(count: int) -> Integers:
        return (
            mechanism.release(np.full((2, count // 2), 1_000), source=source).values.ravel() - 1_000
        )

    check_scale(draw, discrete_laplace_cdf, scale, count=20_000)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(6, 3), ("0.8", 1), (5000, "1.4143")])
def test_gaussian_noise_has_its_scale(source: SeededSource, sigma: Any, sensitivity: Any) -> None:
    mechanism = GaussianRelease(sigma=sigma, sensitivity=sensitivity)

    def draw(count: int) -> Integers:
        return mechanism.release(np.full(count, -1_000), source=source).values + 1_000

    check_scale(draw, rounded_gaussian_cdf, float(mechanism.sigma), count=20_000)


def test_count_noise_has_its_scale(source: SeededSource) -> None:
    mechanism = CountRelease(epsilon="0.25")

    def draw(count: int) -> Integers:
        return np.array([mechanism.release(12, source=source).value - 12 for _ in range(count)])

    check_scale(draw, discrete_laplace_cdf, 4, count=10_000)


@pytest.mark.parametrize(
    "mechanism", [LaplaceRelease(epsilon=1, sensitivity=5), GaussianRelease(sigma=5, sensitivity=5)]
)
def test_every_entry_has_its_own_noise(
    source: SeededSource, mechanism: LaplaceRelease | GaussianRelease
) -> None:
    first, second = mechanism.release(np.zeros((2, 40_000), dtype=np.int32), source=source).values
    assert abs(float(np.corrcoef(first, second)[0, 1])) < 6 / 200
    assert np.mean(first != 0) > 0.5
    assert np.mean(second != 0) > 0.5


def laplace_runs(epsilon: Any, source: SeededSource) -> Callable[[int, int], Integers]:
    """Runs of a release whose sensitivity is 3; the audit compares values that differ by 3."""
    mechanism = LaplaceRelease(epsilon=epsilon, sensitivity=3)
    return lambda value, count: mechanism.release(np.full(count, value), source=source).values


def test_laplace_audit_stays_below_the_claim_and_catches_half_the_noise(
    source: SeededSource,
) -> None:
    honest = audit_epsilon(laplace_runs("0.5", source), 10, 13, count=100_000, confidence=SURE)
    assert 0.4 < honest.lower_bound <= 0.5
    assert audit_epsilon(
        laplace_runs(1, source), 10, 13, count=100_000, confidence=SURE
    ).contradicts(0.5)


def test_laplace_audit_of_a_vector_through_its_sum(source: SeededSource) -> None:
    """The L1 change of 3 spread over three entries: the sum is one projection, its bound must stay
    below the claim.
    """

    def runs(epsilon: Any) -> Callable[[list[int], int], Integers]:
        mechanism = LaplaceRelease(epsilon=epsilon, sensitivity=3)
        return lambda values, count: (
            mechanism.release(np.tile(values, (count, 1)), source=source).values
            @ np.array([1, 1, 1])
        )

    assert not audit_epsilon(
        runs(1), [5, 5, 5], [6, 6, 6], count=100_000, confidence=SURE
    ).contradicts(1)


def test_gaussian_audit_stays_below_the_claim_and_catches_half_the_noise(
    source: SeededSource,
) -> None:
    def runs(sigma: Any) -> Callable[[int, int], Integers]:
        mechanism = GaussianRelease(sigma=sigma, sensitivity=4)
        return lambda value, count: mechanism.release(np.full(count, value), source=source).values

    delta = 0.01
    claim = GaussianCost(sigma=8, sensitivity=4).epsilon(delta)
    honest = audit_epsilon(runs(8), 0, 4, count=400_000, delta=delta, confidence=SURE)
    assert 0.5 * claim < honest.lower_bound <= claim
    assert audit_epsilon(runs(4), 0, 4, count=400_000, delta=delta, confidence=SURE).contradicts(
        claim
    )


def test_count_audit_stays_below_the_claim_and_catches_half_the_noise(source: SeededSource) -> None:
    def runs(epsilon: Any) -> Callable[[int, int], Integers]:
        mechanism = CountRelease(epsilon=epsilon)
        return lambda value, count: np.array(
            [mechanism.release(value, source=source).value for _ in range(count)]
        )

    honest = audit_epsilon(runs(1), 7, 8, count=10_000, confidence=SURE)
    assert 0.6 < honest.lower_bound <= 1
    assert audit_epsilon(runs(2), 7, 8, count=10_000, confidence=SURE).contradicts(1)


def test_costs_are_exact_and_known_before_data() -> None:
    laplace = LaplaceRelease(epsilon=0.1, sensitivity=3)
    assert laplace.scale == 30
    assert laplace.cost == DiscreteLaplaceCost(scale=30, sensitivity=3)
    assert laplace.cost.basic() == (Fraction(1, 10), Fraction(0))
    gaussian = GaussianRelease(sigma="2.5", sensitivity="1.5")
    assert gaussian.cost == GaussianCost(sigma="2.5", sensitivity="1.5")
    count = CountRelease(epsilon="0.2")
    assert count.cost == DiscreteLaplaceCost(scale=5, sensitivity=1)
    assert count.cost.basic() == (Fraction(1, 5), Fraction(0))
    assert CountRelease(epsilon=3).scale == Fraction(1, 3)


def test_a_release_carries_the_cost_of_its_mechanism(source: SeededSource) -> None:
    for mechanism in (
        LaplaceRelease(epsilon=1, sensitivity=1),
        GaussianRelease(sigma=1, sensitivity=1),
    ):
        assert mechanism.release([1], source=source).cost == mechanism.cost
    assert CountRelease(epsilon=1).release(1, source=source).cost == CountRelease(epsilon=1).cost


def test_shape_is_kept_and_the_result_is_read_only() -> None:
    data = np.zeros((3, 4, 5), dtype=np.uint8)
    released = LaplaceRelease(epsilon=1, sensitivity=1).release(data)
    assert released.values.shape == (3, 4, 5)
    assert released.values.dtype == np.int64
    assert not data.any()
    with pytest.raises(ValueError, match="read-only"):
        released.values[0] = 0


@pytest.mark.parametrize(
    ("values", "clamped"),
    [
        ([10**30, -(10**30), 5], [LIMIT, -LIMIT, 5]),
        (np.array([2**63 - 1, -(2**63), 7]), [LIMIT, -LIMIT, 7]),
        (np.array([2**64 - 1, 3], dtype=np.uint64), [LIMIT, 3]),
        (np.array([-128, 127], dtype=np.int8), [-128, 127]),
        (range(3), [0, 1, 2]),
    ],
)
def test_no_magnitude_is_refused_or_overflows(values: Any, clamped: list[int]) -> None:
    """A refusal would be an output without noise; clamping keeps every sensitivity."""
    assert integer_array(values, name="values").tolist() == clamped
    released = LaplaceRelease(epsilon=1, sensitivity=1).release(values).values
    assert np.all(np.abs(released - np.array(clamped)) < 1_000)


def test_noise_of_any_size_saturates() -> None:
    ends = np.array([LIMIT, LIMIT, -LIMIT, -LIMIT, 0])
    noise = np.array([2**63 - 1, -(2**63), 2**63 - 1, -(2**63), 9])
    assert saturated_sum(ends, noise).tolist() == [LIMIT, -LIMIT, LIMIT, -LIMIT, 9]


NAN = float("nan")


@pytest.mark.parametrize(
    ("reason", "make"),
    [
        *(
            ("AMOUNT_ZERO", make)
            for make in (
                lambda: LaplaceRelease(epsilon=0, sensitivity=1),
                lambda: CountRelease(epsilon=0),
            )
        ),
        ("AMOUNT_NEGATIVE", lambda: LaplaceRelease(epsilon=-1, sensitivity=1)),
        ("AMOUNT_NEGATIVE", lambda: CountRelease(epsilon="-0.1")),
        ("AMOUNT_NOT_FINITE", lambda: LaplaceRelease(epsilon=NAN, sensitivity=1)),
        ("AMOUNT_NOT_FINITE", lambda: CountRelease(epsilon=float("inf"))),
        ("AMOUNT_TOO_LARGE", lambda: CountRelease(epsilon=1001)),
        ("AMOUNT_NOT_A_NUMBER", lambda: LaplaceRelease(epsilon=None, sensitivity=1)),  # type: ignore[arg-type]
        ("SENSITIVITY_NOT_POSITIVE", lambda: LaplaceRelease(epsilon=1, sensitivity=0)),
        ("SENSITIVITY_NOT_POSITIVE", lambda: LaplaceRelease(epsilon=1, sensitivity=-3)),
        ("SENSITIVITY_NOT_INTEGER", lambda: LaplaceRelease(epsilon=1, sensitivity=NAN)),  # type: ignore[arg-type]
        ("SENSITIVITY_NOT_INTEGER", lambda: LaplaceRelease(epsilon=1, sensitivity=0.5)),  # type: ignore[arg-type]
        ("SENSITIVITY_NOT_INTEGER", lambda: LaplaceRelease(epsilon=1, sensitivity=True)),
        ("SENSITIVITY_TOO_LARGE", lambda: LaplaceRelease(epsilon=1, sensitivity=2**50 + 1)),
        ("SCALE_TOO_LARGE", lambda: LaplaceRelease(epsilon="1e-9", sensitivity=10**6)),
        ("SCALE_TOO_SMALL", lambda: GaussianRelease(sigma="0.0001", sensitivity="0.0001")),
        ("SCALE_TOO_SMALL", lambda: GaussianRelease(sigma=0, sensitivity=1)),
        ("AMOUNT_NEGATIVE", lambda: GaussianRelease(sigma=-1, sensitivity=1)),
        ("AMOUNT_NOT_FINITE", lambda: GaussianRelease(sigma=NAN, sensitivity=1)),
        ("SENSITIVITY_NOT_POSITIVE", lambda: GaussianRelease(sigma=1, sensitivity=0)),
        ("SENSITIVITY_NOT_POSITIVE", lambda: GaussianRelease(sigma=1, sensitivity=-2)),
        ("SENSITIVITY_NOT_POSITIVE", lambda: GaussianRelease(sigma=1, sensitivity="0")),
        ("AMOUNT_NOT_FINITE", lambda: GaussianRelease(sigma=1, sensitivity=NAN)),
        ("AMOUNT_NOT_A_NUMBER", lambda: GaussianRelease(sigma=1, sensitivity=True)),
        ("AMOUNT_TOO_LARGE", lambda: GaussianRelease(sigma=1, sensitivity=2000)),
    ],
)
def test_parameters_that_are_refused(reason: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("reason", "values"),
    [
        ("DATA_NOT_INTEGER", [4711.5]),
        ("DATA_NOT_INTEGER", ["secret-4711"]),
        ("DATA_NOT_INTEGER", "4711"),
        ("DATA_NOT_INTEGER", [4711, True]),
        ("DATA_NOT_INTEGER", np.array([4711.0])),
        ("DATA_NOT_INTEGER", np.array([NAN])),
        ("DATA_NOT_INTEGER", np.array([True])),
        ("DATA_NOT_INTEGER", np.array([4711], dtype=object)),
        ("DATA_NOT_INTEGER", [[4711]]),
        ("DATA_NOT_INTEGER", {4711}),
        ("DATA_SHAPE_INVALID", np.array(4711)),
        ("DATA_EMPTY", []),
        ("DATA_EMPTY", np.zeros(0, dtype=np.int64)),
    ],
)
def test_data_that_is_refused_is_not_quoted(reason: str, values: Any) -> None:
    for mechanism in (
        LaplaceRelease(epsilon=1, sensitivity=1),
        GaussianRelease(sigma=1, sensitivity=1),
    ):
        with pytest.raises(InvalidInput) as caught:
            mechanism.release(values)
        assert caught.value.reason == reason
        assert "4711" not in str(caught.value) + repr(dict(caught.value.details))


@pytest.mark.parametrize("count", [4711.0, "4711", None, True, NAN])
def test_counts_that_are_refused_are_not_quoted(count: Any) -> None:
    with pytest.raises(InvalidInput) as caught:
        CountRelease(epsilon=1).release(count)
    assert caught.value.reason == "DATA_NOT_INTEGER"
    assert "4711" not in str(caught.value)


@pytest.mark.parametrize(
    "release",
    [
        lambda source: LaplaceRelease(epsilon=1, sensitivity=1).release([1], source=source),
        lambda source: GaussianRelease(sigma=1, sensitivity=1).release([1], source=source),
        lambda source: CountRelease(epsilon=1).release(1, source=source),
    ],
)
def test_seeded_noise_is_refused_outside_the_gate(
    release: Callable[[SeededSource], object],
) -> None:
    with pytest.raises(InsecureNoise):
        release(SeededSource(1))


class _Quiet(np.ndarray[Any, Any]):
    """An array that ignores what is added to it."""

    def __add__(self, other: object) -> _Quiet:
        return self


@pytest.mark.parametrize(
    "values",
    [
        np.ma.array([1000, 77777, 5], mask=[False, True, False]),
        np.array([1, 2, 3]).view(_Quiet),
        np.matrix([[1, 2]]),
    ],
    ids=["masked", "subclass", "matrix"],
)
@pytest.mark.parametrize(
    "mechanism", [LaplaceRelease(epsilon=1, sensitivity=1), GaussianRelease(sigma=5, sensitivity=1)]
)
def test_arrays_that_might_add_in_their_own_way_are_refused(
    values: NDArray[Any], mechanism: LaplaceRelease
) -> None:
    with pytest.raises(InvalidInput) as refusal:
        mechanism.release(values)
    assert refusal.value.reason == "DATA_NOT_INTEGER"
