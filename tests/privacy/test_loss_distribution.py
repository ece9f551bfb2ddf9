"""The privacy-loss distribution of a run: above the truth, near it, and right where tails are
thin.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy import curves, loss_distribution
from ptklib.privacy.costs import (
    GaussianCost,
    ParallelCost,
    PureCost,
    SampledGaussianCost,
    SampledRunCost,
    cost_from_json,
)
from ptklib.privacy.filters import make_filter
from ptklib.privacy.loss_distribution import SampledSteps, delta_of_run, epsilon_of_run

RUNS = [
    pytest.param(0.01, [(6.0, 4000)], 1e-5, id="many quiet steps"),
    pytest.param(0.01, [(1.0, 1000)], 1e-6, id="some steps"),
    pytest.param(0.1, [(2.0, 200)], 1e-5, id="large batches"),
    pytest.param(0.5, [(5.0, 100)], 1e-5, id="half of all"),
    pytest.param(0.001, [(0.6, 1000)], 1e-7, id="little noise"),
    pytest.param(0.25, [(0.5, 3)], 1e-5, id="few loud steps"),
    pytest.param(0.02, [(1.5, 300), (1.2, 300), (0.9, 100)], 1e-6, id="noise that falls"),
    pytest.param(0.9, [(20.0, 30)], 1e-5, id="nearly all"),
    pytest.param(0.01, [(1.0, 1)], 1e-5, id="a single step"),
]


def segments(run: list[tuple[float, int]]) -> tuple[SampledSteps, ...]:
    return tuple(SampledSteps(sigma, steps) for sigma, steps in run)


def optimistic(rate: float, run: list[tuple[float, int]], delta: float) -> float:
    """A lower bound of the true epsilon, by dp-accounting."""
    total = None
    for sigma, steps in run:
        part = pld.from_gaussian_mechanism(
            sigma,
            sampling_prob=rate,
            pessimistic_estimate=False,
            value_discretization_interval=1e-4,
            use_connect_dots=False,
        ).self_compose(steps)
        total = part if total is None else total.compose(part)
    assert total is not None
    return float(total.get_epsilon_for_delta(delta))


def pessimistic(rate: float, run: list[tuple[float, int]], delta: float) -> float:
    """An upper bound, by dp-accounting, on a fine grid."""
    total = None
    for sigma, steps in run:
        part = pld.from_gaussian_mechanism(
            sigma, sampling_prob=rate, value_discretization_interval=1e-4, use_connect_dots=True
        ).self_compose(steps)
        total = part if total is None else total.compose(part)
    assert total is not None
    return float(total.get_epsilon_for_delta(delta))


@pytest.mark.parametrize(("rate", "run", "delta"), RUNS)
def test_it_is_above_the_truth_and_within_a_thousandth_of_it(
    rate: float, run: list[tuple[float, int]], delta: float
) -> None:
    ours = epsilon_of_run(rate, segments(run), delta)
    assert ours >= optimistic(rate, run, delta)
    assert ours == pytest.approx(pessimistic(rate, run, delta), rel=1e-3)


def one_step_delta(rate: float, sigma: float, epsilon: float) -> float:
    """The delta of one step, by quadrature of the two densities: the worse of both directions."""
    x = np.linspace(-14 * sigma, 1 + 14 * sigma, 400_001)
    plain = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    moved = np.exp(-((x - 1) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    mixed = (1 - rate) * plain + rate * moved
    gap = x[1] - x[0]
    return float(
        max(
            np.sum(np.maximum(mixed - math.exp(epsilon) * plain, 0)) * gap,
            np.sum(np.maximum(plain - math.exp(epsilon) * mixed, 0)) * gap,
        )
    )


@pytest.mark.parametrize("rate", [0.001, 0.05, 0.5, 0.99])
@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.0])
def test_the_delta_of_one_step_is_that_of_its_densities(rate: float, sigma: float) -> None:
    for epsilon in (0.01, 0.1, 1.0):
        true = one_step_delta(rate, sigma, epsilon)
        found = delta_of_run(rate, (SampledSteps(sigma, 1),), epsilon)
        assert found >= true * (1 - 1e-6) - 1e-16
        assert found <= true * 1.01 + 1e-14


def test_both_directions_count() -> None:
    """At a large rate and a small epsilon adding a record is worse than removing it: a loss that
    looked one way only would be below the truth.
    """
    run, delta = (SampledSteps(0.8, 1),), 0.05
    gap = loss_distribution._directions(0.9, run, delta)
    each = [loss_distribution._epsilon(steps, delta) for steps in gap]
    assert max(each) == epsilon_of_run(0.9, run, delta)
    assert min(each) < 0.9 * max(each)


def test_a_rate_near_one_is_the_gaussian() -> None:
    ours = epsilon_of_run(0.999999, (SampledSteps(10.0, 25),), 1e-6)
    assert ours == pytest.approx(GaussianCost(sigma=2).epsilon("1e-6"), rel=1e-3)


@pytest.mark.parametrize("delta", [1e-9, 1e-12, 1e-15])
def test_thin_tails_keep_their_digits(delta: float) -> None:
    """Against a Renyi conversion, an upper bound of its own: below it, and not by much."""
    ours = epsilon_of_run(0.01, (SampledSteps(1.0, 1000),), delta)
    orders = np.arange(2, 200, dtype=np.float64)
    curve = 1000 * curves.sampled_gaussian_renyi(orders, 0.01, 1.0)
    renyi = curves.epsilon_of_renyi(orders, curve, delta)
    assert 0.85 * renyi < ours < renyi


@given(
    rate=st.sampled_from([0.01, 0.1, 0.4]),
    sigma=st.floats(0.6, 8),
    steps=st.integers(1, 300),
    more=st.floats(1.05, 1.5),
    delta=st.sampled_from([1e-3, 1e-5, 1e-8]),
)
@settings(max_examples=40, deadline=None)
def test_the_price_falls_with_noise_and_delta_and_rises_with_steps_and_rate(
    rate: float, sigma: float, steps: int, more: float, delta: float
) -> None:
    def price(rate: float = rate, sigma: float = sigma, steps: int = steps) -> float:
        return epsilon_of_run(rate, (SampledSteps(sigma, steps),), delta)

    # The grid of each run is its own: answers are good to a thousandth.
    near = 1 + 1e-3
    assert price() > 0 or delta == 1e-3
    assert price(sigma=sigma * more) <= price() * near + 1e-9
    assert price(steps=steps + 1 + steps // 10) * near + 1e-9 >= price()
    assert price(rate=rate * more) * near + 1e-9 >= price()
    assert epsilon_of_run(rate, (SampledSteps(sigma, steps),), delta / 10) >= price() / near - 1e-9


@given(
    rate=st.sampled_from([0.005, 0.05, 0.3]),
    levels=st.lists(st.tuples(st.floats(0.7, 6), st.integers(1, 60)), min_size=1, max_size=4),
)
@settings(max_examples=30, deadline=None)
def test_it_is_never_above_the_renyi_conversion_and_the_two_answers_are_inverse(
    rate: float, levels: list[tuple[float, int]]
) -> None:
    orders = np.concatenate([1 + np.geomspace(0.1, 1, 5), np.arange(2, 129, dtype=np.float64)])
    curve = sum(
        steps * curves.sampled_gaussian_renyi(orders, rate, sigma) for sigma, steps in levels
    )
    run = segments(levels)
    for delta in (1e-4, 1e-7):
        epsilon = epsilon_of_run(rate, run, delta)
        assert epsilon <= curves.epsilon_of_renyi(orders, np.asarray(curve), delta) * (1 + 1e-3)
        if epsilon > 0:
            assert delta_of_run(rate, run, epsilon) == pytest.approx(delta, rel=1e-3)


def test_many_different_steps_are_those_of_their_groups() -> None:
    """Rounding every sigma up or down to its group brackets the whole."""
    sigmas = [2.0 - 0.01 * step for step in range(100)]
    whole = epsilon_of_run(0.02, tuple(SampledSteps(sigma, 3) for sigma in sigmas), 1e-6)
    above = [(max(sigmas[at : at + 10]), 30) for at in range(0, 100, 10)]
    below = [(min(sigmas[at : at + 10]), 30) for at in range(0, 100, 10)]
    assert epsilon_of_run(0.02, segments(above), 1e-6) < whole
    assert whole < epsilon_of_run(0.02, segments(below), 1e-6)


# -- the cost of a run
# --------------------------------------------------------------------------------------------------


def test_a_uniform_run_is_the_sampled_gaussian_in_every_currency_but_better_by_itself() -> None:
    run = SampledRunCost(rate="0.01", sigmas=["1.1"], steps=[1000])
    steps = SampledGaussianCost(rate="0.01", sigma="1.1", steps=1000)
    orders = np.array([1.5, 2.0, 8.0, 33.0])
    np.testing.assert_allclose(run.renyi(orders), steps.renyi(orders), rtol=1e-11)
    assert run.basic() is None
    assert run.mu_squared() is None
    assert run.epsilon("1e-6") < 0.97 * steps.epsilon("1e-6")


def test_what_each_filter_takes_of_a_run() -> None:
    run = SampledRunCost(rate="0.01", sigmas=[3, 2], steps=[500, 500])
    renyi = make_filter("renyi", 2, "1e-6")
    finite = np.array([float(order) for order in renyi.orders if order is not None])  # type: ignore[attr-defined]
    charged = np.array(renyi.demand(run)[: len(finite)]) / 1e9
    room = np.array(renyi.capacity[: len(finite)]) / 1e9
    alive = charged <= room
    assert alive.any()
    assert np.all(charged[alive] >= run.renyi(finite)[alive])
    for composition in ("basic", "strong", "gaussian", "pure"):
        strict = make_filter(composition, 2, 0 if composition == "pure" else "1e-6")
        with pytest.raises(InvalidInput, match="COST_UNSUPPORTED"):
            strict.demand(run)


def test_a_sum_is_never_priced_as_if_it_were_one_run() -> None:
    """Two runs may be chosen one after the other: their sum is converted from Renyi curves."""
    run = SampledRunCost(rate="0.01", sigmas=[2], steps=[500])
    both = run + run
    assert both.kind == "composed"
    longer = SampledRunCost(rate="0.01", sigmas=[2], steps=[1000])
    assert both.epsilon("1e-6") > longer.epsilon("1e-6")
    np.testing.assert_allclose(both.renyi(np.array([2.0, 9.0])), longer.renyi(np.array([2.0, 9.0])))


def test_at_rate_one_every_step_is_a_gaussian() -> None:
    run = SampledRunCost(rate=1, sigmas=[4, 3], steps=[4, 9])
    assert run.mu_squared() == Fraction(4, 16) + Fraction(9, 9)
    assert run.epsilon("1e-6") == pytest.approx(
        curves.epsilon_of_gaussian(Fraction(5, 4), Fraction(1, 10**6)), rel=1e-9
    )


def test_neighbours_of_one_sigma_are_one_and_the_json_form_comes_back() -> None:
    run = SampledRunCost(rate="0.3", sigmas=["2.5", 2, 2], steps=[5, 6, 7])
    assert run == SampledRunCost(rate="0.3", sigmas=["2.5", 2], steps=[5, 13])
    assert cost_from_json(run.as_json()) == run
    assert hash(run) == hash(cost_from_json(run.as_json()))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"rate": 0, "sigmas": [1], "steps": [1]}, "AMOUNT_ZERO"),
        ({"rate": "1.1", "sigmas": [1], "steps": [1]}, "AMOUNT_TOO_LARGE"),
        ({"rate": "0.1", "sigmas": [], "steps": []}, "COST_INVALID"),
        ({"rate": "0.1", "sigmas": [1, 2], "steps": [1]}, "COST_INVALID"),
        ({"rate": "0.1", "sigmas": [1], "steps": ["0.5"]}, "AMOUNT_NOT_A_NUMBER"),
        ({"rate": "0.1", "sigmas": ["1e-9"], "steps": [1]}, "AMOUNT_TOO_LARGE"),
        ({"rate": "0.1", "sigmas": range(1, 1002), "steps": [1] * 1001}, "COST_INVALID"),
    ],
)
def test_what_is_no_run_is_refused(body: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        SampledRunCost(**body)  # type: ignore[arg-type]
    assert refusal.value.reason == reason


def test_parallel_costs_are_the_largest_in_every_currency() -> None:
    small, large = PureCost(epsilon="0.1"), PureCost(epsilon="0.7")
    both = ParallelCost(parts=[small, large, large])
    assert both.basic() == large.basic()
    assert both.epsilon("1e-6") == large.epsilon("1e-6")
    assert both.mu_squared() == pytest.approx(large.mu_squared())
    mixed = ParallelCost(parts=[GaussianCost(sigma=2), large])
    orders = np.array([1.5, 4.0, 50.0])
    np.testing.assert_array_equal(
        mixed.renyi(orders),
        np.maximum(GaussianCost(sigma=2).renyi(orders), large.renyi(orders)),
    )
    assert mixed.basic() is None
