"""An accuracy is judged by the law of noisy counts: thresholds are those of brute force, the true
number of records is inside its range as often as is said, and what leaves noise out is noticed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import DiscreteLaplaceCost, GaussianCost
from ptklib.privacy.noise.sampler import discrete_laplace
from ptklib.validators.accuracy import AccuracyTest
from ptklib.validators.noises import Gaussian, Laplace, Noise
from ptklib.validators.noisy_law import NoisyLaw, chance_of_reaching
from ptklib.validators.published.accuracy import PublishedAccuracyTest

ETA = 0.1
RUNS = 10_000


def made(**options: Any) -> AccuracyTest:
    plain: dict[str, Any] = {"target": "0.8", "eta": str(ETA)}
    plain |= {} if "noise" in options else {"epsilon": "0.5"}
    return AccuracyTest(**plain | options)


def laplace(epsilon: float, most: int = 400) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    noise = np.arange(-most, most + 1)
    law = np.exp(-np.abs(noise) * epsilon)
    return noise, law / law.sum()


def brute_force(threshold: float, records: int, target: float, epsilon: float) -> float:
    """P(p R - (1 - p) K >= threshold), one term for each number of errors and each two draws."""
    noise, law = laplace(epsilon)
    allowed = 1 - target
    sums = allowed * noise[:, None] - (1 - allowed) * noise[None]
    chances = law[:, None] * law[None]
    total = 0.0
    for wrong in range(records + 1):
        reached = sums >= threshold - (allowed * records - wrong) - 1e-9
        total += binom.pmf(wrong, records, allowed) * float(chances[reached].sum())
    return total


@pytest.mark.parametrize(("records", "epsilon"), [(0, 0.3), (7, 0.3), (40, 0.5), (25, 3.0)])
def test_chances_are_those_of_brute_force_or_a_little_more(records: int, epsilon: float) -> None:
    law = NoisyLaw.of(Laplace(epsilon=epsilon), 0.2, 0.8)
    for threshold in (-3.0, 0.0, 2.3, 6.0, 11.5):
        true = brute_force(threshold, records, 0.8, epsilon)
        told = chance_of_reaching(law, threshold, records, Fraction("0.8"))
        assert true * (1 - 1e-9) <= told <= true * 1.15 + 1e-6


@pytest.mark.parametrize("told", [0, 12, 60])
def test_a_threshold_keeps_eta_for_every_number_of_records_of_its_range(told: int) -> None:
    test = made()
    low, high = test.records_within(told)
    assert low <= told <= high
    threshold = test.threshold(low, high)
    law = NoisyLaw.of(test.noise, 0.2, 0.8)
    chances = [
        chance_of_reaching(law, threshold, records, test.target) for records in range(low, high + 1)
    ]
    assert max(chances) <= ETA * 31 / 32
    # And it is near the least that does.
    assert max(chances) > ETA * 0.75


@pytest.mark.parametrize("epsilon", ["0.1", "1"])
def test_the_number_of_records_is_in_its_range_as_often_as_is_said(epsilon: str) -> None:
    test = made(epsilon=epsilon)
    off = test.records_within(10**6)[1] - 10**6
    noise, law = laplace(float(epsilon), 1200)
    both = np.convolve(law, law)
    middle = len(both) // 2
    outside = 1 - both[middle - off : middle + off + 1].sum()
    assert outside <= ETA / 32
    # The control: a number that is taken as exact, or for half of its noise, is not.
    half = off // 2
    assert 1 - both[middle - half : middle + half + 1].sum() > ETA / 32
    assert len(noise) < len(both)


def too_often(accepted: int) -> bool:
    """More often than eta, beyond luck."""
    return accepted > RUNS * ETA + 5 * math.sqrt(RUNS * ETA * (1 - ETA))


def accepts(test: AccuracyTest, right: NDArray[np.int64], records: int, scale: float) -> int:
    """Of many runs at once, with the noise of production."""
    noise = [discrete_laplace(RUNS, Fraction(scale)) for _ in range(2)]
    told, count = np.unique(
        np.stack([right + noise[0], records - right + noise[1]], axis=1), axis=0, return_counts=True
    )
    return sum(
        int(times)
        for (good, bad), times in zip(told.tolist(), count.tolist(), strict=True)
        if test.judged(good, bad).outcome == "ACCEPT"
    )


@pytest.mark.parametrize(("records", "epsilon"), [(0, "0.5"), (30, "0.5"), (2000, "1")])
def test_a_broken_promise_is_accepted_no_more_often_than_stated(records: int, epsilon: str) -> None:
    right = np.random.default_rng(1).binomial(records, 0.8, RUNS)
    test = made(epsilon=epsilon)
    accepted = accepts(test, right, records, 1 / float(epsilon))
    assert not too_often(accepted)
    # It is no empty promise: the test is nearly exact.
    assert accepted > RUNS * ETA / 3


def test_half_of_the_noise_is_noticed() -> None:
    """The control: judged as if the noise were half of what it is."""
    right = np.random.default_rng(2).binomial(30, 0.8, RUNS)
    assert too_often(accepts(made(epsilon=1), right, 30, 2.0))


def test_so_many_records_are_enough_and_a_third_is_not() -> None:
    rng = np.random.default_rng(3)
    test = made(target="0.8", epsilon=1)
    needed = test.needed("0.85")
    assert needed is not None
    shares = [
        np.mean([test.verdict(rng.random(count) < 0.85).outcome == "ACCEPT" for _ in range(150)])
        for count in (needed, needed // 3)
    ]
    # Five standard deviations below what is said.
    assert shares[0] > 0.77
    assert shares[1] < 0.77
    assert test.needed("0.8") is None


def test_it_needs_fewer_than_the_published_test() -> None:
    terms: dict[str, Any] = {"target": "0.77", "epsilon": "0.05", "eta": "0.05"}
    test, published = AccuracyTest(**terms), PublishedAccuracyTest(**terms)
    needed = test.needed("0.78")
    assert needed is not None

    def right(records: int) -> int:
        return round(records * 0.78)

    # Where this test accepts in nine of ten cases, that one does not in half of them: not with twice as many.
    assert test.judged(right(needed), needed - right(needed)).outcome == "ACCEPT"
    assert not published.bounded(right(2 * needed), 2 * needed)
    assert published.bounded(right(6 * needed), 6 * needed)


@pytest.mark.parametrize(
    ("noise", "cost"),
    [
        (Laplace(epsilon="0.5"), DiscreteLaplaceCost(scale=2, sensitivity=1)),
        (Gaussian(mu="0.5"), GaussianCost(sigma=2)),
    ],
)
def test_the_price_covers_whatever_a_record_adds(noise: Noise, cost: object) -> None:
    """Accounting: a record moves one of the two counts by one."""
    test = made(noise=noise)
    assert test.cost == cost
    assert test.release.sensitivity == 1


def test_gaussian_noise_keeps_eta_too() -> None:
    test = made(noise=Gaussian(mu="0.2"))
    rng = np.random.default_rng(4)
    right = rng.binomial(40, 0.8, RUNS)
    told = test.release.release(np.stack([right, 40 - right], axis=1)).values
    accepted = sum(test.judged(int(a), int(b)).outcome == "ACCEPT" for a, b in told)
    assert not too_often(accepted)
    assert accepted > RUNS * ETA / 3


def test_it_is_written_and_read() -> None:
    test = made(noise=Gaussian(mu="0.25"))
    assert AccuracyTest.from_json(test.as_json()) == test
    assert set(made().judged(100, 3).as_json()) == {"outcome", "right", "wrong", "threshold"}


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": 1}, "ACCURACY_INVALID"),
        ({"target": 0}, "ACCURACY_INVALID"),
        ({"eta": 1}, "ETA_INVALID"),
        ({"epsilon": 0}, "AMOUNT_ZERO"),
    ],
)
def test_what_makes_no_test_is_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        made(**options)
    assert caught.value.reason == reason
