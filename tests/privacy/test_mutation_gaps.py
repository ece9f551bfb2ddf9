"""Facts recomputed from first principles, so that a wrong rounding or a forgotten term in the
privacy core is noticed.

Each test states one formula again, independently of the code, for the mutations of
`tests.mutations`.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

from ptklib.privacy.amounts import ATTO, NANO, ceil_units, floor_units
from ptklib.privacy.costs import (
    ApproxCost,
    DiscreteLaplaceCost,
    ExponentialCost,
    GaussianCost,
    PureCost,
)
from ptklib.privacy.filters import make_filter
from ptklib.privacy.filters.renyi import SLACK_SHARE, RenyiFilter, shares
from ptklib.privacy.filters.strong import PICO, StrongFilter
from ptklib.privacy.fixed_point import FixedPoint
from ptklib.privacy.noise.sampler import discrete_laplace, geometric, rounded_gaussian
from ptklib.testing.distributions import (
    check_scale,
    discrete_laplace_cdf,
    geometric_cdf,
    rounded_gaussian_cdf,
)
from ptklib.testing.noise import PlantedSource, SeededSource, planted_noise

MP: Any = mpmath.MPContext()
MP.dps = 60
THIRD = Fraction(1, 3)


def mp(value: Fraction) -> Any:
    return MP.mpf(value.numerator) / value.denominator


def test_charges_round_up_and_capacities_down() -> None:
    assert ceil_units(THIRD, NANO) == 333_333_334
    assert floor_units(THIRD, NANO) == 333_333_333
    assert ceil_units(Fraction(1, 2), NANO) == floor_units(Fraction(1, 2), NANO) == NANO // 2


def test_a_basic_capacity_is_rounded_down_and_its_demand_up() -> None:
    basic = make_filter("basic", THIRD, THIRD)
    assert basic.capacity == (333_333_333, 333_333_333_333_333_333)
    big = make_filter("basic", 1, "0.9")
    assert big.demand(ApproxCost(epsilon=THIRD, delta=THIRD)) == (
        333_333_334,
        333_333_333_333_333_334,
    )


def gaussian_delta(mu_squared: Fraction, epsilon: Fraction) -> Any:
    """The exact privacy profile of the Gaussian mechanism (Balle and Wang 2018)."""
    mu, level = MP.sqrt(mp(mu_squared)), mp(epsilon)
    return MP.ncdf(mu / 2 - level / mu) - MP.exp(level) * MP.ncdf(-mu / 2 - level / mu)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.3", "1e-9"), ("8", "1e-5")])
def test_a_gaussian_capacity_is_the_last_that_fits(epsilon: str, delta: str) -> None:
    level, chance = Fraction(epsilon), Fraction(delta)
    (most,) = make_filter("gaussian", epsilon, delta).capacity
    assert gaussian_delta(Fraction(most, NANO), level) <= mp(chance)
    assert gaussian_delta(Fraction(most + 1, NANO), level) > mp(chance)


def test_a_gaussian_demand_is_rounded_up() -> None:
    assert make_filter("gaussian", 8, "1e-5").demand(GaussianCost(sigma=3, sensitivity=1)) == (
        111_111_112,
    )


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("0.3", "1e-9"), ("8", "1e-5")])
def test_a_renyi_capacity_is_the_conversion_at_its_share_rounded_down(
    epsilon: str, delta: str
) -> None:
    level, chance = Fraction(epsilon), Fraction(delta)
    guard = make_filter("renyi", epsilon, delta)
    assert isinstance(guard, RenyiFilter)
    parts = shares(level, chance)
    assert sum(parts.values()) + SLACK_SHARE <= 1
    for order, capacity in zip(guard.orders, guard.capacity, strict=False):
        if order is None:
            assert capacity == int(level * NANO)
            continue
        a = mp(order)
        room = (
            mp(level)
            + MP.log(a / (a - 1))
            + (MP.log(mp(chance * parts[order])) + MP.log(a)) / (a - 1)
        )
        assert capacity == int(MP.floor(room * NANO))
    assert guard.capacity[-1] == int(chance * SLACK_SHARE * ATTO)


@pytest.mark.parametrize("composition", ["renyi", "gaussian"])
def test_what_a_filter_admits_of_gaussians_keeps_the_promise(composition: str) -> None:
    """Charge one Gaussian again and again until refused: the exact profile of all of them is within
    (1, 1e-6).
    """
    guard = make_filter(composition, 1, "1e-6")
    demand = np.array(guard.demand(GaussianCost(sigma=50, sensitivity=1)))
    admitted = next(n for n in range(10_000) if not guard.admits((demand * n)[None, :], demand)[0])
    assert admitted > 50
    assert gaussian_delta(Fraction(admitted, 2_500), Fraction(1)) <= 1e-6


def test_a_renyi_demand_is_not_below_the_curve() -> None:
    guard = make_filter("renyi", 1, "1e-6")
    assert isinstance(guard, RenyiFilter)
    demand = guard.demand(GaussianCost(sigma=7, sensitivity=1))
    for order, units in zip(guard.orders, demand, strict=False):
        if order is not None and units < guard.ceiling[guard.orders.index(order)]:
            assert Fraction(units, NANO) >= order / 98 > Fraction(units - 2, NANO)


@pytest.mark.parametrize(("epsilon", "delta"), [("1", "1e-6"), ("3", "1e-9")])
def test_strong_composition_is_the_theorem_rounded_down(epsilon: str, delta: str) -> None:
    """Rogers, Roth, Ullman and Vadhan, Thm 5.1, at every step of the table."""
    level, chance = mp(Fraction(epsilon)), mp(Fraction(delta))
    guard = make_filter("strong", epsilon, delta)
    assert isinstance(guard, StrongFilter)
    weight = MP.mpf("28.04") * MP.log(1 / chance) / level**2
    for square, linear in list(zip(guard.squares, guard.linears, strict=True))[::25]:
        spent = MP.mpf(square) / PICO
        root = MP.sqrt(
            2 * (spent + 1 / weight) * (1 + MP.log(weight * spent + 1) / 2) * MP.log(2 / chance)
        )
        assert linear == int(MP.floor((level - root) * NANO))
    assert all(a < b for a, b in pairwise(guard.squares))


def test_the_renyi_curve_of_discrete_laplace_is_that_of_its_probabilities() -> None:
    k = np.arange(-3_000, 3_001)
    for scale, shift in ((2.0, 1), (2.0, 5), (30.0, 3)):
        p = np.exp(-np.abs(k) / scale)
        q = np.exp(-np.abs(k - shift) / scale)
        orders = np.array([1.5, 2.0, 8.0, 40.0])
        cost = DiscreteLaplaceCost(scale=Fraction(scale), sensitivity=shift)
        with np.errstate(under="ignore"):
            moments = [
                float(
                    (p * np.exp((a - 1) * (np.abs(k - shift) - np.abs(k)) / scale)).sum() / q.sum()
                )
                for a in orders
            ]
        assert cost.renyi(orders) == pytest.approx(np.log(moments) / (orders - 1), rel=1e-9)


def test_an_exponential_cost_bounds_the_worst_bounded_range_pair() -> None:
    """Two answers with odds t and t exp(-epsilon), over all t: no divergence exceeds the curve, and
    it is near.
    """
    epsilon, orders = 1.0, np.array([1.5, 2.0, 4.0, 16.0, 64.0])
    bound = ExponentialCost(epsilon=1).renyi(orders)
    worst = np.zeros(orders.size)
    for t in np.geomspace(1e-3, 1e4, 4_000):
        p, q = t / (1 + t), t * np.exp(-epsilon) / (1 + t * np.exp(-epsilon))
        for place, a in enumerate(orders):
            moment = p**a * q ** (1 - a) + (1 - p) ** a * (1 - q) ** (1 - a)
            worst[place] = max(worst[place], np.log(moment) / (a - 1))
    assert np.all(worst <= bound)
    assert np.all(worst >= 0.5 * bound)


def test_a_pure_cost_is_randomised_response() -> None:
    p = np.e / (1 + np.e)
    orders = np.array([1.5, 2.0, 16.0])
    moments = p**orders * (1 - p) ** (1 - orders) + (1 - p) ** orders * p ** (1 - orders)
    assert PureCost(epsilon=1).renyi(orders) == pytest.approx(
        np.log(moments) / (orders - 1), rel=1e-9
    )


@pytest.mark.parametrize(
    ("draw", "cdf", "scale"),
    [
        (discrete_laplace, discrete_laplace_cdf, 0.9),
        (discrete_laplace, discrete_laplace_cdf, 12.0),
        (geometric, geometric_cdf, 0.9),
        (geometric, geometric_cdf, 12.0),
        (rounded_gaussian, rounded_gaussian_cdf, 0.9),
        (rounded_gaussian, rounded_gaussian_cdf, 12.0),
    ],
)
def test_samplers_have_their_law(draw: Any, cdf: Any, scale: float) -> None:
    with planted_noise():
        source = SeededSource(9)
        check_scale(lambda count: draw(count, scale, source=source), cdf, scale, count=100_000)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_a_word_on_the_edge_of_two_draws_is_decided_by_the_next_one(k: int) -> None:
    """Geometric noise of scale 5:

    U just below or above exp(-k/5), told apart only by the bits beyond the first word.
    """
    edge = MP.exp(-MP.mpf(k) / 5) * 2**63
    u = int(MP.floor(edge))
    rest = int(MP.floor((edge - u) * 2**64))
    with planted_noise():
        for word, draw in ((rest - 1, k), (rest + 1, k - 1)):
            assert geometric(1, 5, source=PlantedSource([u, word]))[0] == draw


def test_no_encoded_value_exceeds_the_sensitivity_where_rounding_goes_up() -> None:
    for lower, upper, resolution in (
        ("-1.5", 0, 1),
        (0, "3.5", 1),
        (0, Fraction(83, 20), Fraction(1, 30)),
    ):
        code = FixedPoint(lower, upper, resolution)
        extremes = code.encode(np.array([-1e9, 1e9, float(code.lower), float(code.upper)]))
        assert np.abs(extremes).max() <= code.sensitivity
    assert FixedPoint("-1.5", 0, 1).sensitivity == 2
    assert FixedPoint(0, 2, 1).encode([0.4, 0.6, 1.7]).tolist() == [0, 1, 2]
