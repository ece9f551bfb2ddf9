"""Prices of whole runs, against an accountant that is not ours, and noise that follows them."""

from __future__ import annotations

from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import rdp
from scipy import stats

from ptklib.errors import InvalidInput
from ptklib.models.sgd.encoded import Encoder
from ptklib.models.sgd.heads import Logistic
from ptklib.models.sgd.noise import StepNoise, deviation
from ptklib.models.sgd.optimiser import Optimiser
from ptklib.models.sgd.plan import Pace, SgdPlan, Stage, plan_of
from ptklib.models.sgd.run import Run
from ptklib.models.sgd.settings import NoisySteps, settled
from ptklib.models.sgd.whole import CLIP
from ptklib.price_first import Budget
from ptklib.privacy.costs import ReshuffledGaussianCost, SampledGaussianCost
from tests.models.sgd.nets import net

BUDGET = Budget(Fraction(1), Fraction(1, 10**5), 1)
UNIFORM = (Stage(100, 1.0),)
FALLING = (Stage(40, 2.0), Stage(60, 1.0), Stage(20, 0.5))


def event_of(plan: SgdPlan) -> dp_accounting.DpEvent:
    """The run as the other accountant takes it."""
    events: list[dp_accounting.DpEvent] = []
    for stage in plan.pace.stages:
        noise, steps = dp_accounting.GaussianDpEvent(stage.noise), stage.steps
        if plan.pace.rate == 1:
            events.append(dp_accounting.SelfComposedDpEvent(noise, steps))
        elif plan.pace.batching == "tags":
            passes = steps // plan.pace.batches
            events.append(dp_accounting.SelfComposedDpEvent(noise, passes))
        else:
            sampled = dp_accounting.PoissonSampledDpEvent(float(plan.pace.rate), noise)
            events.append(dp_accounting.SelfComposedDpEvent(sampled, steps))
    return dp_accounting.ComposedDpEvent(events)


@pytest.mark.parametrize("stages", [UNIFORM, FALLING], ids=["uniform", "falling"])
@pytest.mark.parametrize("rate", ["1/20", "1/5", "1"])
@pytest.mark.parametrize("batching", ["poisson", "tags"])
def test_a_run_costs_what_was_asked(stages: tuple[Stage, ...], rate: str, batching: str) -> None:
    """Not more by another accountant, and not much less."""
    pace = Pace(batching, Fraction(rate), stages)  # type: ignore[arg-type]
    plan = plan_of(pace, BUDGET)
    spent = plan.cost.epsilon(BUDGET.delta)
    assert 0.99 < spent <= 1
    accountant = rdp.RdpAccountant()
    accountant.compose(event_of(plan))
    theirs = accountant.get_epsilon(float(BUDGET.delta))
    # Renyi orders tell a Gaussian by a few percent more than it costs.
    assert spent <= theirs * 1.001
    assert theirs < 1.12
    ratios = {
        stage.noise / given.noise for stage, given in zip(plan.pace.stages, stages, strict=True)
    }
    assert max(ratios) / min(ratios) == pytest.approx(1, abs=1e-6)


def test_nothing_is_amplified_by_shuffling() -> None:
    """Batches by tag cost one Gaussian an epoch, whatever their number; Poisson batches less."""
    noises = {}
    for rate in ("1/2", "1/20"):
        steps = (Stage(20 * round(1 / Fraction(rate)), 1.0),)
        plan = plan_of(Pace("tags", Fraction(rate), steps), BUDGET)
        assert isinstance(plan.cost, ReshuffledGaussianCost)
        assert plan.cost.epochs == 20
        noises[rate] = plan.pace.stages[0].noise
        poisson = plan_of(Pace("poisson", Fraction(rate), steps), BUDGET)
        assert isinstance(poisson.cost, SampledGaussianCost)
        assert (poisson.cost.rate, poisson.cost.steps) == (Fraction(rate), steps[0].steps)
    assert noises["1/2"] == pytest.approx(noises["1/20"])
    assert poisson.pace.stages[0].noise < noises["1/20"] / 2


def test_a_user_has_a_member_at_most_as_often_as_priced() -> None:
    """Rate times records, and noise times records."""
    pace = Pace("poisson", Fraction(1, 20), UNIFORM)
    plan = plan_of(pace, Budget(Fraction(1), Fraction(1, 10**5), 4))
    assert isinstance(plan.cost, SampledGaussianCost)
    assert plan.cost.rate == Fraction(1, 5)
    assert float(plan.cost.rate) >= 1 - (1 - 1 / 20) ** 4
    assert deviation(2.0, 4) == 8 * CLIP
    often = plan_of(pace, Budget(Fraction(1), Fraction(1, 10**5), 40))
    assert isinstance(often.cost, ReshuffledGaussianCost)
    assert often.cost.epochs == 100


def test_every_step_is_priced_and_no_other() -> None:
    plan = plan_of(Pace("poisson", Fraction(1, 20), FALLING), BUDGET)
    assert plan.steps == 120
    noises = [plan.multiplier(step) for step in range(120)]
    assert [left for _, left in noises[:41]] == [*range(40, 0, -1), 60]
    falling = [noises[step][0] for step in (0, 40, 119)]
    assert np.divide(falling, falling[2]) == pytest.approx([4, 2, 1])
    with pytest.raises(AssertionError):
        plan.multiplier(120)


def test_a_budget_without_delta_is_refused() -> None:
    with pytest.raises(InvalidInput) as refused:
        plan_of(Pace("poisson", Fraction(1, 20), UNIFORM), Budget(Fraction(1), Fraction(0), 1))
    assert refused.value.reason == "DELTA_NEEDED"


@pytest.mark.parametrize("records", [1, 3])
def test_noise_of_every_stage_is_as_loud_as_priced(records: int) -> None:
    """Of an empty stream weights move by noise alone; the deviation of each stage is seen within
    10%.
    """
    network = net(40, Logistic())
    budget = Budget(Fraction(1), Fraction(1, 10**5), records)
    plan = plan_of(Pace("poisson", Fraction(1, 2), FALLING), budget)
    moves: list[np.ndarray] = []

    class Watched(Optimiser):
        def move(self, place, gradient, step, steps):  # type: ignore[no-untyped-def]
            moves.append(gradient.astype(np.float64))

    run = Run(network, plan, Watched(1.0), (0.25,), 1000, 0)
    run.train(Encoder(40, 12).done())
    assert len(moves) == plan.steps == 120
    start = 0
    for stage in plan.pace.stages:
        seen = np.concatenate(moves[start : start + stage.steps]) * 500 / 0.25
        start += stage.steps
        claimed = stage.noise * records
        squares = float(np.square(seen / claimed).sum())
        assert 1e-6 < stats.chi2.cdf(squares, len(seen)) < 1 - 1e-6
        for wrong in (0.7, 1.3):
            assert not 1e-6 < stats.chi2.cdf(squares / wrong**2, len(seen)) < 1 - 1e-6


def test_noise_that_is_drawn_ahead_is_used_once() -> None:
    noise = StepNoise(5, 1, None)
    drawn = [noise.draw(1.5, 10 - step).tobytes() for step in range(10)]
    drawn += [noise.draw(0.5, 1).tobytes(), noise.draw(1.5, 3).tobytes()]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"rate": 0.0}, "rate must be above 0"),
        ({"rate": 0.995}, "rate of Poisson batches"),
        ({"steps": 0}, "steps must be"),
        ({"clip": 0.0}, "clip must be"),
        ({"clip": (1.0, -1.0)}, "clip must be"),
        ({"clip": ()}, "clip must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"momentum": 1.0}, "momentum must be"),
        ({"noise": (0.0,)}, "noise must be"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_settings_outside_their_limits_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words) as refused:
        NoisySteps(**given)  # type: ignore[arg-type]
    assert refused.value.reason == "CONFIG_INVALID"


def test_what_is_left_open_follows_from_public_numbers() -> None:
    network = net(10, Logistic())
    many, few = (settled(NoisySteps(), network, n, BUDGET) for n in (10**6, 300))
    assert many.pace.rate == Fraction(1, 5)
    assert few.pace.rate > many.pace.rate
    assert many.optimiser.learning_rate > few.optimiser.learning_rate
    tagged = settled(NoisySteps(batching="tags", rate=0.3, steps=10), network, 500, BUDGET)
    assert tagged.pace.batches == 3
    assert [stage.steps for stage in tagged.pace.stages] == [12]
    parts = settled(NoisySteps(steps=10, noise=(2.0, 1.0, 0.5)), network, 500, BUDGET)
    assert [stage.steps for stage in parts.pace.stages] == [3, 3, 4]
    assert [stage.noise for stage in parts.pace.stages] == [2.0, 1.0, 0.5]
