"""The planned run: made of public numbers, within its promise, and moved by them the right way."""

from __future__ import annotations

import inspect
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptklib.errors import InvalidInput
from ptklib.privacy.schedules.calibration import Accounting, epsilon_under, noise_multiplier
from ptklib.privacy.schedules.planning import LossKind, RunPlan, plan_run

DELTA = Fraction(1, 10**6)


def planned(
    records: int = 10_000,
    numbers: int = 100,
    epsilon: str = "1",
    loss: LossKind = LossKind.LOGISTIC,
    row_bound: str = "1",
    accounting: Accounting = Accounting.BEST,
) -> RunPlan:
    return plan_run(
        records=records,
        numbers=numbers,
        epsilon=epsilon,
        delta=DELTA,
        loss=loss,
        row_bound=row_bound,
        accounting=accounting,
    )


@given(
    records=st.integers(100, 10**7),
    numbers=st.integers(1, 10**5),
    epsilon=st.sampled_from(["0.1", "1", "8"]),
    loss=st.sampled_from(list(LossKind)),
)
@settings(max_examples=25, deadline=None)
def test_a_planned_run_is_within_its_promise(
    records: int, numbers: int, epsilon: str, loss: LossKind
) -> None:
    plan = planned(records, numbers, epsilon, loss)
    assert 0.99 * float(epsilon) <= plan.cost.epsilon(DELTA) <= float(epsilon)
    assert 0 < plan.rate <= 1
    assert 60 <= plan.steps <= 200
    assert plan.learning_rate > 0
    assert plan.clip > 0
    assert math.isfinite(plan.epochs)


def test_it_is_made_of_public_numbers_only() -> None:
    """No data goes in: numbers, a kind of loss and an accounting."""
    for parameter in inspect.signature(plan_run).parameters.values():
        assert parameter.kind is parameter.KEYWORD_ONLY
        assert parameter.annotation in {"int", "Number", "LossKind", "Accounting"}


@pytest.mark.parametrize("accounting", [Accounting.BEST, Accounting.RENYI, Accounting.PLD])
def test_it_keeps_its_promise_in_the_currency_that_was_asked_for(accounting: Accounting) -> None:
    plan = planned(records=10**7, numbers=10**4, accounting=accounting)
    assert plan.rate < 1
    assert 0.99 < epsilon_under(plan.cost, DELTA, accounting) <= 1


def reach(plan: RunPlan) -> float:
    return plan.learning_rate / (1 - plan.momentum) * plan.steps * float(plan.clip)


def test_weights_go_farther_the_more_signal_there_is() -> None:
    far = [reach(planned(records=records)) for records in (1_000, 3_000, 10_000)]
    assert far == sorted(far)
    assert far[0] < far[-1]
    assert reach(planned(numbers=1_000)) < reach(planned(numbers=100))
    assert reach(planned(epsilon="0.1")) < reach(planned(epsilon="1"))


@pytest.mark.parametrize(
    ("records", "numbers", "epsilon"),
    [(1_000, 100, "1"), (10_000, 1_000, "0.5"), (2_000, 50, "0.2")],
)
def test_noise_at_the_end_has_the_same_length_wherever_noise_decides(
    records: int, numbers: int, epsilon: str
) -> None:
    """By simulation of the noise alone, with momentum: about the 6 that the rule says; momentum
    has not carried on the last of it.
    """
    plan = planned(records, numbers, epsilon)
    random = np.random.default_rng(4)
    weights, velocity = np.zeros((2, numbers))
    for sigma in plan.run.sigmas * plan.steps:
        noise = random.normal(scale=float(sigma * plan.clip), size=numbers)
        velocity = plan.momentum * velocity + noise / (float(plan.rate) * records)
        weights = weights - plan.learning_rate * velocity
    assert 4 < np.linalg.norm(weights) < 8


def test_rows_of_another_length_are_the_same_problem() -> None:
    """Weights shrink as rows grow: the scores move alike."""
    plan, longer = planned(), planned(row_bound="10")
    assert float(longer.clip) == pytest.approx(10 * float(plan.clip), rel=0.11)
    assert longer.learning_rate == pytest.approx(plan.learning_rate / 100, rel=1e-9)
    assert longer.steps == plan.steps


def test_all_records_are_in_every_step_where_that_is_not_too_much_work() -> None:
    assert planned(records=10**5, numbers=100).rate == 1
    much = planned(records=10**7, numbers=10**4)
    assert much.rate < 1
    full = noise_multiplier(rate=1, steps=much.steps, epsilon=1, delta=DELTA)
    sampled = much.run.sigmas[0] / much.rate
    assert full < sampled <= Fraction("1.13") * full


def test_the_json_form_comes_back_and_is_json() -> None:
    plan = planned(loss=LossKind.SOFTMAX)
    assert RunPlan.from_json(json.loads(json.dumps(plan.as_json()))) == plan


@pytest.mark.parametrize(
    "body",
    [{}, {"records": 3}, {**planned().as_json(), "loss": "none"}, {**planned().as_json(), "x": 1}],
)
def test_what_is_no_plan_is_refused(body: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="RUN_PLAN_INVALID"):
        RunPlan.from_json(body)


def test_rows_without_a_bound_are_refused() -> None:
    with pytest.raises(InvalidInput, match="RUN_PLAN_INVALID"):
        planned(row_bound="0")
