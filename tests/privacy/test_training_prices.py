"""What a training costs by different ways of accounting: the figures that were published, the exact
prices beside them, and estimates that are no costs.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.costs import ApproxCost, Cost
from ptklib.privacy.filters import make_filter
from ptklib.privacy.schedules.estimates import (
    PlanningEstimate,
    moments_accountant,
    strong_composition,
    zcdp_of_reshuffling,
    zcdp_of_sampling,
)
from ptklib.privacy.schedules.runs import ReshuffledRun, SampledRun

DELTA = Fraction(1, 10**5)


def sampled(epochs: int, rate: str = "0.01", sigma: str = "6") -> SampledRun:
    steps = round(epochs / Fraction(rate))
    return SampledRun(rate=Fraction(rate), steps=steps, sigmas=(Fraction(sigma),))


def reshuffled(epochs: int, sigma: str = "6") -> ReshuffledRun:
    return ReshuffledRun(sigmas=(Fraction(sigma),) * epochs)


def test_figure_two_after_400_epochs() -> None:
    """Yu et al. 2019, Fig. 2: 21.5, 34.3, 2.37 and 1.67 at rate 0.01, sigma 6, delta 1e-5.

    The text does not say how strong composition shares its delta. Shared equally among all steps
    and the theorem, as elsewhere in that text, it gives 33.8.
    """
    run = sampled(400)
    assert zcdp_of_reshuffling(reshuffled(400), DELTA).planned_epsilon == pytest.approx(
        21.5, abs=0.06
    )
    assert strong_composition(run, DELTA).planned_epsilon == pytest.approx(34.3, rel=0.015)
    assert zcdp_of_sampling(run, DELTA).planned_epsilon == pytest.approx(2.37, abs=0.005)
    assert moments_accountant(run, DELTA).planned_epsilon == pytest.approx(1.67, abs=0.005)


def test_the_exact_prices_beside_figure_two() -> None:
    """Exact composition is below what was published, for both ways of batching."""
    assert reshuffled(400).cost.epsilon(DELTA) == pytest.approx(19.131, abs=0.001)
    exact = sampled(400).cost.epsilon(DELTA)
    assert exact == pytest.approx(1.283, abs=0.001)
    oracle = pld.from_gaussian_mechanism(
        6, sampling_prob=0.01, value_discretization_interval=2e-5, use_connect_dots=True
    ).self_compose(40_000)
    assert exact == pytest.approx(oracle.get_epsilon_for_delta(1e-5), rel=1e-3)


def test_the_gaussian_of_figure_two_is_0_808() -> None:
    """Sigma 6 is (0.808, 1e-5)-DP by the classical bound and rho = 0.0139; exactly it is less."""
    one = reshuffled(1)
    assert float(one.mu_squared) / 2 == pytest.approx(0.0139, abs=5e-5)
    assert one.cost.epsilon(DELTA) < 0.808


def test_figure_three_by_rate_and_noise() -> None:
    """Reshuffled prices do not depend on the batch, sampled ones do; more noise helps both, and
    reshuffled ones most.
    """
    prices = [sampled(200, rate).cost.epsilon(DELTA) for rate in ("0.002", "0.01", "0.04")]
    assert prices == sorted(prices)
    assert prices[-1] > 5 * prices[0]
    for rate in ("0.002", "0.01", "0.04"):
        run = sampled(200, rate)
        assert (
            run.cost.epsilon(DELTA)
            < moments_accountant(run, DELTA).planned_epsilon
            < zcdp_of_sampling(run, DELTA).planned_epsilon
            < reshuffled(200).cost.epsilon(DELTA)
        )
    estimates = [
        zcdp_of_reshuffling(reshuffled(200, sigma), DELTA).planned_epsilon for sigma in ("5", "14")
    ]
    assert estimates == pytest.approx([17.57, 5.36], abs=0.01)
    amplified = [sampled(200, sigma=sigma).cost.epsilon(DELTA) for sigma in ("5", "14")]
    assert estimates[0] - estimates[1] > 10 * (amplified[0] - amplified[1])


def test_figure_three_leaves_the_range_of_its_own_estimate() -> None:
    """Its condition is rate <= 1/(16 sigma); at rate 0.01 that ends at sigma 6.25, and at sigma 6
    at a rate of 0.0104: both parts of the figure go far beyond.
    """
    assert zcdp_of_sampling(sampled(200), DELTA).in_tried_range
    for run in (sampled(200, sigma="7"), sampled(200, rate="0.02")):
        assert not zcdp_of_sampling(run, DELTA).in_tried_range


def test_the_estimate_is_below_the_truth_for_little_noise() -> None:
    """Inside its condition, where sigma is below 1: that it fails there is why it is no cost."""
    wrong = 0
    for rate, sigma, steps in (("0.05", "0.4", 100), ("0.01", "0.5", 10_000), ("0.1", "0.5", 100)):
        run = SampledRun(rate=Fraction(rate), steps=steps, sigmas=(Fraction(sigma),))
        estimate = zcdp_of_sampling(run, DELTA)
        assert estimate.in_tried_range
        assert not estimate.proved
        wrong += estimate.planned_epsilon < run.cost.epsilon(DELTA)
    assert wrong == 3


def test_an_estimate_is_no_cost_and_no_number() -> None:
    assert not issubclass(PlanningEstimate, Cost)
    estimate: object = zcdp_of_sampling(sampled(10), DELTA)
    with pytest.raises(InvalidInput, match="AMOUNT_NOT_A_NUMBER"):
        ApproxCost(epsilon=estimate, delta=DELTA)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        _ = sampled(1).cost + estimate  # type: ignore[operator]
    for name in ("renyi", "basic", "gaussian"):
        with pytest.raises(AttributeError):
            make_filter(name, 1, "1e-6").demand(estimate)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", [moments_accountant, strong_composition])
@given(
    rate=st.sampled_from(["0.005", "0.02"]),
    sigma=st.sampled_from(["1.5", "3", "6"]),
    epochs=st.integers(1, 30),
)
@settings(max_examples=15, deadline=None)
def test_what_is_proved_is_above_the_exact_price(  # type: ignore[no-untyped-def]
    method, rate: str, sigma: str, epochs: int
) -> None:
    run = sampled(epochs, rate, sigma)
    estimate = method(run, DELTA)
    if estimate.proved:
        assert estimate.planned_epsilon >= run.cost.epsilon(DELTA) * (1 - 1e-9)


def test_the_loose_zcdp_price_is_above_the_exact_one() -> None:
    for epochs, sigma in ((1, "1"), (50, "4"), (100, "8")):
        run = reshuffled(epochs, sigma)
        loose = zcdp_of_reshuffling(run, DELTA)
        assert loose.planned_epsilon > 1.05 * run.cost.epsilon(DELTA)


def test_the_second_branch_of_theorem_three() -> None:
    """A delta so small that the best order lies beyond the range: the end of the range is used."""
    run = SampledRun(rate=Fraction(1, 100), steps=1, sigmas=(Fraction(1),))
    most = float(np.log(100)) + 1
    expected = 1e-4 * most + np.log(1e5) / (most - 1)
    assert zcdp_of_sampling(run, DELTA).planned_epsilon == pytest.approx(expected)


@pytest.mark.parametrize(
    "asked",
    [
        lambda: zcdp_of_sampling(sampled(1), 0),
        lambda: zcdp_of_sampling(sampled(1, rate="0.5", sigma="3"), DELTA),
        lambda: strong_composition(
            SampledRun(rate=Fraction(1, 10), steps=1, sigmas=(Fraction(2), Fraction(1))), DELTA
        ),
    ],
)
def test_what_an_estimate_does_not_cover_is_refused(asked) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidInput, match="ESTIMATE_OUT_OF_RANGE"):
        asked()
