"""Costs in every currency: against closed forms, brute force, high precision and dp-accounting."""

from __future__ import annotations

import itertools
import json
import math
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import dp_accounting
import mpmath
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy import curves
from ptklib.privacy.costs import (
    ApproxCost,
    BestOfNegativeBinomialCost,
    BestOfPoissonCost,
    Composed,
    Cost,
    DiscreteLaplaceCost,
    ExponentialCost,
    GaussianCost,
    GdpCost,
    LaplaceCost,
    ParallelCost,
    PureCost,
    RenyiCost,
    ReshuffledGaussianCost,
    SampledGaussianCost,
    SampledRunCost,
    ZcdpCost,
    cost_from_json,
)
from ptklib.privacy.costs.base import KINDS
from ptklib.privacy.curves import Floats

ORDERS = np.array([1.01, 1.5, 2.0, 3.0, 7.5, 16.0, 64.0, 1000.0])
WHOLE = np.array([2.0, 3.0, 4.0, 8.0, 16.0, 32.0, 64.0, 200.0])

EXAMPLES: list[Cost] = [
    PureCost(epsilon="0.1"),
    ApproxCost(epsilon="1/3", delta="1e-9"),
    ZcdpCost(rho="0.01"),
    GaussianCost(sigma="2.5", sensitivity=2),
    GdpCost(mu_squared="0.5"),
    LaplaceCost(scale=10, sensitivity="0.5"),
    DiscreteLaplaceCost(scale="12.5", sensitivity=3),
    ExponentialCost(epsilon="0.5"),
    SampledGaussianCost(rate="0.01", sigma="1.1", steps=100),
    ReshuffledGaussianCost(sigma=10, sensitivity=1, epochs=5),
    SampledRunCost(rate="0.05", sigmas=[2, "1.5"], steps=[30, 10]),
    ParallelCost(parts=[GaussianCost(sigma=3), PureCost(epsilon="0.1")]),
    BestOfNegativeBinomialCost(base=GaussianCost(sigma=5), shape=1, stop="0.1"),
    BestOfPoissonCost(base=GaussianCost(sigma=5), mean=3),
    RenyiCost(orders=[2, "4.5", 8], values=["0.1", "0.2", "0.4"]),
    PureCost(epsilon="0.1") + GaussianCost(sigma=3) + ApproxCost(epsilon=1, delta="1e-6"),
]
IDS = [cost.kind for cost in EXAMPLES]


def oracle(event: dp_accounting.DpEvent, orders: Floats) -> Floats:
    accountant = rdp.RdpAccountant(list(orders))
    accountant.compose(event)
    return (
        np.array(accountant.rdp(), dtype=np.float64)
        if callable(accountant.rdp)
        else np.array(accountant.rdp)
    )


def assert_just_above(found: Floats, true: Floats, relative: float = 1e-8) -> None:
    """An upper bound, and a tight one; the oracle itself is only good to about 1e-10."""
    assert np.all(found >= true * (1 - 1e-9) - 1e-15)
    np.testing.assert_allclose(found, true, rtol=relative, atol=1e-13)


# -- values
# --------------------------------------------------------------------------------------------------


def test_there_is_an_example_of_every_kind() -> None:
    assert set(IDS) == set(KINDS)


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_values_are_hashable_equal_and_round_trip_through_json(cost: Cost) -> None:
    again = cost_from_json(json.loads(json.dumps(cost.as_json())))
    assert again == cost
    assert hash(again) == hash(cost)
    assert again.as_json() == cost.as_json()


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_values_are_frozen(cost: Cost) -> None:
    with pytest.raises(AttributeError):
        cost.kind_of_thing = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "free"},
        {"kind": "pure"},
        {"kind": "pure", "epsilon": "0.1", "delta": "0"},
        {"kind": "pure", "stated_epsilon": "0.1"},
        {"kind": ["pure"], "epsilon": "0.1"},
        {},
        "pure",
        {"kind": "composed", "parts": [{"kind": "free"}]},
    ],
)
def test_an_unknown_form_is_refused(body: object) -> None:
    with pytest.raises(InvalidInput) as refusal:
        cost_from_json(body)  # type: ignore[arg-type]
    assert refusal.value.reason == "COST_UNKNOWN"


BAD = [
    (float("nan"), "AMOUNT_NOT_FINITE"),
    (float("inf"), "AMOUNT_NOT_FINITE"),
    (-1, "AMOUNT_NEGATIVE"),
    (0, "AMOUNT_ZERO"),
    ("1" * 400, "AMOUNT_TOO_LONG"),
    (10**400, "AMOUNT_TOO_LONG"),
    ("1e29", "AMOUNT_TOO_LARGE"),
    (True, "AMOUNT_NOT_A_NUMBER"),
    (None, "AMOUNT_NOT_A_NUMBER"),
]
MAKERS = [
    lambda bad: PureCost(epsilon=bad),
    lambda bad: ApproxCost(epsilon=bad, delta="1e-6"),
    lambda bad: ApproxCost(epsilon=1, delta=bad),
    lambda bad: ZcdpCost(rho=bad),
    lambda bad: GdpCost(mu_squared=bad),
    lambda bad: GaussianCost(sigma=bad),
    lambda bad: GaussianCost(sigma=1, sensitivity=bad),
    lambda bad: LaplaceCost(scale=bad),
    lambda bad: LaplaceCost(scale=1, sensitivity=bad),
    lambda bad: DiscreteLaplaceCost(scale=bad, sensitivity=1),
    lambda bad: DiscreteLaplaceCost(scale=1, sensitivity=bad),
    lambda bad: ExponentialCost(epsilon=bad),
    lambda bad: SampledGaussianCost(rate=bad, sigma=1, steps=1),
    lambda bad: SampledGaussianCost(rate="0.1", sigma=bad, steps=1),
    lambda bad: SampledGaussianCost(rate="0.1", sigma=1, steps=bad),
    lambda bad: ReshuffledGaussianCost(sigma=bad, epochs=1),
    lambda bad: ReshuffledGaussianCost(sigma=1, sensitivity=1, epochs=bad),
    lambda bad: RenyiCost(orders=[bad], values=[1]),
]


@pytest.mark.parametrize(("make", "bad"), list(itertools.product(MAKERS, BAD)))
def test_bad_numbers_are_refused_at_construction(make: object, bad: tuple[object, str]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make(bad[0])  # type: ignore[operator]
    assert refusal.value.reason == bad[1]


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: SampledGaussianCost(rate="1.5", sigma=1, steps=1), "AMOUNT_TOO_LARGE"),
        (
            lambda: SampledGaussianCost(rate="0.5", sigma=1, steps=Fraction(3, 2)),  # type: ignore[arg-type]
            "AMOUNT_NOT_A_NUMBER",
        ),
        (lambda: LaplaceCost(scale="0.0001"), "AMOUNT_TOO_LARGE"),
        (lambda: GaussianCost(sigma="0.0001"), "AMOUNT_TOO_LARGE"),
        (lambda: RenyiCost(orders=[1], values=[1]), "COST_INVALID"),
        (lambda: RenyiCost(orders=[3, 2], values=[1, 1]), "COST_INVALID"),
        (lambda: RenyiCost(orders=[2], values=[1, 1]), "COST_INVALID"),
        (lambda: RenyiCost(orders=[], values=[]), "COST_INVALID"),
        (lambda: RenyiCost(orders=[2], values=["inf"]), "AMOUNT_NOT_FINITE"),
        (lambda: Composed(parts=[]), "COST_INVALID"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: object, reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        make()  # type: ignore[operator]
    assert refusal.value.reason == reason


# -- sums
# --------------------------------------------------------------------------------------------------


def test_sums_are_flat_canonical_and_merge_only_what_is_exact() -> None:
    pure, laplace = PureCost(epsilon="0.1"), LaplaceCost(scale=1)
    assert pure + laplace == laplace + pure
    assert (pure + laplace) + pure == pure + (laplace + pure)
    assert ZcdpCost(rho="0.1") + ZcdpCost(rho="0.2") == ZcdpCost(rho="0.3")
    assert GaussianCost(sigma=2) + GaussianCost(sigma=1) == GdpCost(mu_squared="1.25")
    assert ReshuffledGaussianCost(sigma=1, epochs=3) + GaussianCost(sigma=1) == GdpCost(
        mu_squared=4
    )
    one = SampledGaussianCost(rate="0.1", sigma=2, steps=1)
    assert one + one == SampledGaussianCost(rate="0.1", sigma=2, steps=2)
    assert isinstance(pure + pure, Composed)


def test_two_pure_costs_are_cheaper_than_one_of_their_sum() -> None:
    two, one = PureCost(epsilon="0.1") + PureCost(epsilon="0.1"), PureCost(epsilon="0.2")
    assert two.basic() == one.basic()
    assert np.all(two.renyi(ORDERS) < one.renyi(ORDERS))


def test_a_sum_too_long_to_keep_as_one_stays_a_sum() -> None:
    total: Cost = ZcdpCost(rho=Fraction(1, 10**17 + 3))
    for prime in (10**17 + 13, 10**17 + 19, 10**17 + 21):
        total = total + ZcdpCost(rho=Fraction(1, prime))
    assert isinstance(total, Composed)
    assert cost_from_json(total.as_json()) == total
    assert isinstance(PureCost(epsilon=600) + PureCost(epsilon=600), Composed)


def test_a_sum_knows_a_currency_only_if_all_its_parts_do() -> None:
    pure, gaussian, approx = (
        PureCost(epsilon="0.1"),
        GaussianCost(sigma=1),
        ApproxCost(epsilon=1, delta="1e-6"),
    )
    assert (pure + approx).basic() == (Fraction(11, 10), Fraction(1, 10**6))
    assert (pure + gaussian).basic() is None
    assert (pure + approx).mu_squared() is None
    assert (pure + approx).slack() == Fraction(1, 10**6)
    total = (pure + gaussian).mu_squared()
    assert total is not None
    assert total > 1 + (pure.mu_squared() or 0) * 0.999


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_currencies_add_up(cost: Cost) -> None:
    both = cost + LaplaceCost(scale=7)
    expected = cost.renyi(ORDERS) + LaplaceCost(scale=7).renyi(ORDERS)
    np.testing.assert_allclose(both.renyi(ORDERS), expected, rtol=1e-11)
    assert np.all(both.renyi(ORDERS) >= expected)


# -- Renyi
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-9", "1e-4", "0.1", "1", "5", "50", "1000"])
def test_pure_renyi_is_randomized_response(epsilon: str) -> None:
    found = PureCost(epsilon=epsilon).renyi(ORDERS)
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        for order, value in zip(ORDERS, found, strict=True):
            a = mpmath.mpf(float(order))
            true = mpmath.log((mpmath.sinh(a * e) - mpmath.sinh((a - 1) * e)) / mpmath.sinh(e)) / (
                a - 1
            )
            assert true <= value <= true * (1 + 1e-10)


def brute_force(scale: float, sensitivity: int, order: float) -> float:
    with mpmath.workdps(40):
        r = mpmath.exp(-1 / mpmath.mpf(scale))
        reach = int(60 * scale) + 2 * sensitivity
        keys = range(-reach, reach + 1)
        mass = (1 - r) / (1 + r)
        total = mpmath.fsum(
            mass * r ** (order * abs(k) + (1 - order) * abs(k - sensitivity)) for k in keys
        )
        return float(mpmath.log(total) / (order - 1))


@pytest.mark.parametrize("sensitivity", [1, 2, 3, 10])
@pytest.mark.parametrize("scale", [0.5, 3.0, 20.0])
def test_discrete_laplace_renyi_is_the_sum_over_the_integers(
    scale: float, sensitivity: int
) -> None:
    orders = np.array([1.5, 2.0, 5.0, 17.0])
    found = DiscreteLaplaceCost(scale=scale, sensitivity=sensitivity).renyi(orders)
    true = np.array([brute_force(scale, sensitivity, float(order)) for order in orders])
    assert np.all(found >= true * (1 - 1e-14))
    np.testing.assert_allclose(found, true, rtol=1e-11)


def test_discrete_laplace_of_one_unit_is_randomized_response_and_worse_than_continuous() -> None:
    discrete, continuous = DiscreteLaplaceCost(scale=2, sensitivity=1), LaplaceCost(scale=2)
    np.testing.assert_allclose(
        discrete.renyi(ORDERS), PureCost(epsilon="0.5").renyi(ORDERS), rtol=1e-11
    )
    assert np.all(discrete.renyi(ORDERS) > continuous.renyi(ORDERS) * 1.0001)


def test_discrete_laplace_on_a_fine_grid_is_the_continuous_one() -> None:
    fine = DiscreteLaplaceCost(scale=10**12, sensitivity=10**11).renyi(ORDERS)
    np.testing.assert_allclose(fine, LaplaceCost(scale=10).renyi(ORDERS), rtol=1e-9)


@given(
    changes=st.lists(st.integers(1, 30), min_size=2, max_size=5),
    scale=st.floats(0.5, 100),
    order=st.floats(1.05, 200),
)
@settings(max_examples=50, deadline=None)
def test_one_coordinate_is_the_worst_case_for_discrete_laplace(
    changes: list[int], scale: float, order: float
) -> None:
    at = np.array([order])
    spread = sum(
        float(DiscreteLaplaceCost(scale=scale, sensitivity=c).renyi(at)[0]) for c in changes
    )
    whole = float(DiscreteLaplaceCost(scale=scale, sensitivity=sum(changes)).renyi(at)[0])
    assert spread <= whole * (1 + 1e-11)


def test_renyi_of_laplace_and_gaussian_agree_with_dp_accounting() -> None:
    assert_just_above(
        LaplaceCost(scale=2).renyi(WHOLE), oracle(dp_accounting.LaplaceDpEvent(2.0), WHOLE)
    )
    assert_just_above(
        GaussianCost(sigma=2).renyi(WHOLE), oracle(dp_accounting.GaussianDpEvent(2.0), WHOLE)
    )


@pytest.mark.parametrize(
    ("rate", "sigma"), [(0.01, 1.0), (0.001, 0.7), (0.1, 4.0), (0.5, 2.0), (1.0, 3.0), (1e-5, 1.0)]
)
def test_sampled_gaussian_renyi_agrees_with_dp_accounting_at_whole_orders(
    rate: float, sigma: float
) -> None:
    event = dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma))
    true = oracle(dp_accounting.SelfComposedDpEvent(event, 7), WHOLE)
    found = SampledGaussianCost(rate=rate, sigma=sigma, steps=7).renyi(WHOLE)
    # At small rates the oracle loses digits to cancellation; the next test is the exact one.
    np.testing.assert_allclose(found, true, rtol=1e-6, atol=1e-13)


@pytest.mark.parametrize(
    ("rate", "sigma"), [("0.01", "1"), ("1e-6", "3"), ("0.3", "50"), ("0.001", "0.5")]
)
def test_sampled_gaussian_renyi_keeps_its_digits(rate: str, sigma: str) -> None:
    orders = np.array([2.0, 5.0, 40.0, 500.0])
    found = SampledGaussianCost(rate=rate, sigma=sigma, steps=1).renyi(orders)
    with mpmath.workdps(80):
        q, s = mpmath.mpf(rate), mpmath.mpf(sigma)
        for order, value in zip((2, 5, 40, 500), found, strict=True):
            terms = (
                mpmath.binomial(order, k)
                * q**k
                * (1 - q) ** (order - k)
                * mpmath.exp(k * (k - 1) / (2 * s * s))
                for k in range(order + 1)
            )
            true = mpmath.log(mpmath.fsum(terms)) / (order - 1)
            assert true <= value <= true * (1 + 3e-9)


def test_sampled_gaussian_between_whole_orders_is_above_the_exact_curve() -> None:
    orders = np.array([1.3, 2.5, 3.7, 10.2])
    event = dp_accounting.PoissonSampledDpEvent(0.05, dp_accounting.GaussianDpEvent(1.5))
    found = SampledGaussianCost(rate="0.05", sigma="1.5", steps=1).renyi(orders)
    true = oracle(event, orders)
    assert np.all(found >= true * (1 - 1e-9))
    assert np.all(found <= true * 1.7)


def test_sampling_never_costs_more_than_no_sampling() -> None:
    orders = np.array([2.0, 100.0, 16_384.0, 16_385.0, 1e6])
    sampled = SampledGaussianCost(rate="0.9", sigma=5, steps=3).renyi(orders)
    assert np.all(sampled <= 3 * GaussianCost(sigma=5).renyi(orders) * (1 + 1e-8))
    assert np.all(np.isfinite(sampled))


def test_a_reshuffled_epoch_is_one_whole_gaussian() -> None:
    reshuffled = ReshuffledGaussianCost(sigma=3, sensitivity=2, epochs=4)
    np.testing.assert_allclose(
        reshuffled.renyi(ORDERS), 4 * GaussianCost(sigma=3, sensitivity=2).renyi(ORDERS)
    )
    assert reshuffled.mu_squared() == 4 * Fraction(4, 9)


def test_the_exponential_mechanism_is_cheaper_than_pure_where_its_range_helps() -> None:
    cost, pure = ExponentialCost(epsilon="0.5"), PureCost(epsilon="0.5")
    np.testing.assert_allclose(cost.renyi(ORDERS[:5]), ORDERS[:5] * 0.25 / 8, rtol=1e-10)
    assert np.all(cost.renyi(ORDERS) <= pure.renyi(ORDERS))
    assert cost.renyi(np.array([np.inf]))[0] == pytest.approx(0.5)


def test_a_given_curve_is_filled_in_from_above() -> None:
    exact = GaussianCost(sigma=2)
    cost = RenyiCost(orders=[2, 4, 16], values=[Fraction(order, 8) for order in (2, 4, 16)])
    inside = np.array([1.5, 2.0, 3.0, 4.0, 10.0, 16.0])
    assert np.all(cost.renyi(inside) >= exact.renyi(inside) * (1 - 1e-11))
    np.testing.assert_allclose(cost.renyi(np.array([2.0, 4.0, 16.0])), [0.25, 0.5, 2.0])
    assert cost.renyi(np.array([1.1]))[0] == pytest.approx(0.25)
    assert np.all(np.isinf(cost.renyi(np.array([16.5, np.inf]))))


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_curves_rise_with_the_order_and_end_at_the_pure_epsilon(cost: Cost) -> None:
    orders = np.concatenate([ORDERS, [np.inf]])
    curve = cost.renyi(orders)
    assert np.all(np.diff(curve[np.isfinite(curve)]) >= 0)
    basic = cost.basic()
    if basic is not None:
        assert float(basic[0]) <= curve[-1] <= float(basic[0]) * (1 + 1e-11)
    else:
        assert math.isinf(curve[-1])


# -- Gaussian DP
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", ["1e-9", "0.001", "0.1", "1", "3.9", "4.1", "30", "700"])
def test_pure_implies_gaussian_dp(epsilon: str) -> None:
    with mpmath.workdps(400):
        e = mpmath.mpf(epsilon)
        mu = mpmath.sqrt(curves.mu_squared_of_pure(Fraction(epsilon)))
        # Phi(-mu/2) at most 1/(1 + exp(e)), and barely so.
        point, kink = mpmath.erfc(mu / 2 / mpmath.sqrt(2)) / 2, 1 / (1 + mpmath.exp(e))
        assert point <= kink
        assert mpmath.erfc(mu * (1 - mpmath.mpf("1e-8")) / 2 / mpmath.sqrt(2)) / 2 >= kink


@given(st.floats(0.01, 8), st.floats(0.001, 0.999))
@settings(max_examples=100, deadline=None)
def test_the_gaussian_trade_off_is_below_the_pure_one(epsilon: float, x: float) -> None:
    mu = math.sqrt(curves.mu_squared_of_pure(epsilon))
    gaussian = float(mpmath.ncdf(mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * x) - mu))
    pure = max(0.0, 1 - math.exp(epsilon) * x, math.exp(-epsilon) * (1 - x))
    assert gaussian <= pure + 1e-12


def test_who_has_a_gaussian_dp_bound() -> None:
    known = {cost.kind for cost in EXAMPLES[:-1] if cost.mu_squared() is not None}
    assert known == {
        "pure",
        "gaussian",
        "gdp",
        "laplace",
        "discrete_laplace",
        "exponential",
        "parallel",
        "reshuffled_gaussian",
    }


# -- profiles
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.5, 1.0, 4.2246, 50.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-10])
def test_gaussian_epsilon_agrees_with_dp_accounting(sigma: float, delta: float) -> None:
    found = GaussianCost(sigma=sigma).epsilon(delta)
    true = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert found == pytest.approx(true, rel=1e-6, abs=1e-9)
    assert GaussianCost(sigma=sigma).delta(found) <= delta * (1 + 1e-11)


@pytest.mark.parametrize(
    ("cost", "distribution"),
    [
        (LaplaceCost(scale=2), pld.from_laplace_mechanism(2.0)),
        (LaplaceCost(scale=5, sensitivity=3), pld.from_laplace_mechanism(5.0, sensitivity=3.0)),
        (DiscreteLaplaceCost(scale=2, sensitivity=1), pld.from_discrete_laplace_mechanism(0.5, 1)),
        (DiscreteLaplaceCost(scale=4, sensitivity=5), pld.from_discrete_laplace_mechanism(0.25, 5)),
        (PureCost(epsilon=1), pld.from_randomized_response(2 / (1 + math.e), 2)),
        (
            ApproxCost(epsilon=1, delta="0.01"),
            pld.from_privacy_parameters(
                dp_accounting.pld.common.DifferentialPrivacyParameters(1, 0.01)
            ),
        ),
    ],
)
def test_profiles_agree_with_privacy_loss_distributions(
    cost: Cost, distribution: pld.PrivacyLossDistribution
) -> None:
    for epsilon in (0.0, 0.1, 0.3, 0.45, 2.0):
        assert cost.delta(epsilon) == pytest.approx(
            distribution.get_delta_for_epsilon(epsilon), abs=2e-4
        )
    for delta in (0.02, 0.1):
        assert cost.epsilon(delta) == pytest.approx(
            distribution.get_epsilon_for_delta(delta), abs=5e-4
        )


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_epsilon_and_delta_are_inverse_and_on_the_safe_side(cost: Cost) -> None:
    for delta in ("1e-5", "0.001", "0.1"):
        epsilon = cost.epsilon(delta)
        assert epsilon >= 0
        assert cost.delta(epsilon) <= float(delta) * (1 + 1e-6)


@pytest.mark.parametrize("cost", EXAMPLES, ids=IDS)
def test_epsilon_falls_as_delta_rises(cost: Cost) -> None:
    values = [cost.epsilon(delta) for delta in (0, "1e-12", "1e-6", "0.001", "0.5")]
    assert values == sorted(values, reverse=True)


def test_epsilon_below_the_slack_is_infinite() -> None:
    assert ApproxCost(epsilon=1, delta="1e-6").epsilon("1e-7") == math.inf
    assert (ApproxCost(epsilon=1, delta="1e-6") + PureCost(epsilon=1)).epsilon("1e-7") == math.inf
    assert GaussianCost(sigma=1).epsilon(0) == math.inf


def test_a_composed_profile_holds_against_the_true_one() -> None:
    cost = Composed(parts=[LaplaceCost(scale=10)] * 20 + [GaussianCost(sigma=10)] * 5)
    true = (
        pld.from_laplace_mechanism(10.0)
        .self_compose(20)
        .compose(pld.from_gaussian_mechanism(10.0).self_compose(5))
    )
    for delta in (1e-9, 1e-6, 1e-3):
        least = true.get_epsilon_for_delta(delta)
        assert least * 0.999 <= cost.epsilon(delta) <= least * 1.35


def test_sampled_gaussian_epsilon_agrees_with_dp_accounting() -> None:
    accountant = rdp.RdpAccountant()
    event = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    accountant.compose(dp_accounting.SelfComposedDpEvent(event, 1000))
    found = SampledGaussianCost(rate="0.01", sigma=1, steps=1000).epsilon("1e-5")
    assert found == pytest.approx(accountant.get_epsilon(1e-5), rel=0.01)


def test_precision_survives_threads() -> None:
    costs = [GaussianCost(sigma=1 + n) for n in range(40)]
    alone = [cost.epsilon("1e-6") for cost in costs]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda cost: cost.epsilon("1e-6"), costs)) == alone
