"""Runs audited by a canary: no easier to tell than they claim, and not much harder; faults are
seen.

The canary is a record whose clipped gradient is always the same and as long as can be, in a stream
of nothing. What tells it best is how far all noisy gradients together went its way.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from ptklib.models.inputs import STEPS
from ptklib.models.sgd.encoded import EncodedRecords, Encoder
from ptklib.models.sgd.forward import Forward
from ptklib.models.sgd.heads import Logistic
from ptklib.models.sgd.members import KEY_BYTES, TaggedBatches, tags_of
from ptklib.models.sgd.network import Network
from ptklib.models.sgd.noise import StepNoise
from ptklib.models.sgd.optimiser import Optimiser
from ptklib.models.sgd.plan import SgdPace, SgdPlan, SgdStage, plan_of
from ptklib.models.sgd.run import Run
from ptklib.price_first import Budget
from ptklib.privacy.costs import SampledGaussianCost
from ptklib.testing.audit import AuditResult, audit_epsilon

DELTA = Fraction(1, 100)
RUNS = 3000
INPUTS = 4
KEY = bytes(KEY_BYTES)

# A row along the first axis; its error stays near one half while weights hardly move.
NETWORK = Network(INPUTS, (), "relu", Logistic(), 1.0)


class Told(Optimiser):
    """Weights stay; what each step tells of the canary is kept."""

    def move(self, place, gradient, step, steps):  # type: ignore[no-untyped-def]
        self.seen.append(float(gradient[0]))  # type: ignore[attr-defined]


class Repeated(SgdPlan):
    """The same run again and again: weights stay, so runs are independent."""

    times = RUNS

    @property
    def steps(self) -> int:
        return self.length * self.times

    @property
    def length(self) -> int:
        return sum(stage.steps for stage in self.pace.stages)

    def multiplier(self, step: int) -> tuple[float, int]:
        return super().multiplier(step % self.length)


def told(
    plan: SgdPlan, data: EncodedRecords, count: int, *, alike: bool = False
) -> NDArray[np.float64]:
    """One number of each run: what all of its releases say of the canary; all steps ``alike``, or
    each by its noise.
    """
    again, optimiser = Repeated(plan.pace, plan.budget, plan.cost), Told(1.0)
    object.__setattr__(optimiser, "seen", [])
    object.__setattr__(again, "times", count)
    Run(NETWORK, again, optimiser, (0.05,), 1, 0).train(data)
    levels = np.array([1.0 if alike else plan.multiplier(step)[0] for step in range(plan.steps)])
    seen: NDArray[np.float64] = np.array(optimiser.seen).reshape(count, -1)  # type: ignore[attr-defined]
    of_canary: NDArray[np.float64] = (seen / levels**2)[:, _with_canary(plan)].sum(axis=1)
    return of_canary


def _with_canary(plan: SgdPlan) -> NDArray[np.bool_]:
    """The steps that may have it: batches by tag are no secret, and here keys are known."""
    steps = np.arange(plan.steps)
    if plan.pace.batching == "poisson":
        return steps >= 0
    canary = stream(1)
    tags = tags_of(canary.shelves[0], canary.labels, KEY)
    epoch = TaggedBatches(tags, KEY, plan.pace.batches)
    sizes = np.array([len(epoch.batch(place)) for place in range(plan.pace.batches)])
    return sizes[steps % plan.pace.batches] > 0


@pytest.fixture(autouse=True)
def _known_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptklib.models.sgd.run.new_key", lambda _: KEY)


def stream(canaries: int) -> EncodedRecords:
    encoder = Encoder(INPUTS, Forward(NETWORK).bits[0])
    rows = np.zeros((canaries, INPUTS))
    rows[:, 0] = STEPS
    encoder.add(rows, np.ones(canaries))
    return encoder.done()


def audited(
    plan: SgdPlan, records: int = 1, *, alike: bool = False, runs: int = RUNS
) -> AuditResult:
    return audit_epsilon(
        lambda canaries, count: told(plan, stream(canaries), count, alike=alike),
        records,
        0,
        count=runs,
        delta=float(DELTA),
        confidence=0.999,
    )


PACES = {
    "one step": SgdPace("poisson", Fraction(1), (SgdStage(1, 1.0),)),
    "falling noise": SgdPace(
        "poisson", Fraction(1), (SgdStage(2, 2.0), SgdStage(2, 1.0), SgdStage(1, 0.5))
    ),
    "batches by tag": SgdPace("tags", Fraction(1, 3), (SgdStage(6, 1.0),)),
    "poisson batches": SgdPace("poisson", Fraction(1, 2), (SgdStage(4, 1.0),)),
}


@pytest.mark.parametrize("name", PACES)
def test_a_canary_is_as_hard_to_tell_as_is_claimed(name: str) -> None:
    budget = Budget(Fraction(2), DELTA, 1)
    plan = plan_of(PACES[name], budget)
    claim = plan.cost.epsilon(DELTA)
    bounds = []
    # An event is chosen from few runs, and may be a poor one once: then there are more.
    for factor in (1, 1, 2, 4):
        seen = audited(plan, runs=factor * RUNS)
        assert not seen.contradicts(claim)
        bounds.append(seen.lower_bound)
        if seen.lower_bound > claim / 4:
            return
    raise AssertionError(f"no bound is above a quarter of {claim}: {bounds}")


def test_a_user_of_several_canaries_is_as_hard_to_tell() -> None:
    plan = plan_of(PACES["one step"], Budget(Fraction(2), DELTA, 3))
    bounds = [audited(plan, records=3, runs=factor * RUNS).lower_bound for factor in (1, 1, 2)]
    assert 0.5 < max(bounds) <= 2


def test_amplification_claimed_for_batches_by_tag_is_caught() -> None:
    """The price of Poisson batches for a run that has none."""
    pace = SgdPace("tags", Fraction(1, 20), (SgdStage(20, 1.0),))
    claimed = plan_of(SgdPace("poisson", pace.rate, pace.stages), Budget(Fraction(1, 4), DELTA, 1))
    assert isinstance(claimed.cost, SampledGaussianCost)
    wrong = SgdPlan(SgdPace("tags", pace.rate, claimed.pace.stages), claimed.budget, claimed.cost)
    claim = wrong.cost.epsilon(DELTA)
    assert any(audited(wrong, runs=factor * RUNS).contradicts(claim) for factor in (1, 1, 2, 4))


def test_noise_that_does_not_follow_its_stages_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """All steps with the least noise of the run."""
    pace = SgdPace("poisson", Fraction(1), (SgdStage(8, 4.0), SgdStage(1, 1.0)))
    plan = plan_of(pace, Budget(Fraction(1), DELTA, 1))
    least, draw = plan.pace.stages[-1].noise, StepNoise.draw
    monkeypatch.setattr(StepNoise, "draw", lambda self, _, left: draw(self, least, left))
    assert any(audited(plan, alike=True, runs=k * RUNS).contradicts(1.0) for k in (1, 1, 2))


def test_half_of_the_noise_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_of(PACES["one step"], Budget(Fraction(1), DELTA, 1))
    draw = StepNoise.draw
    monkeypatch.setattr(StepNoise, "draw", lambda self, noise, left: draw(self, noise / 2, left))
    assert any(audited(plan, runs=k * RUNS).contradicts(1.0) for k in (1, 1, 2))


def test_clipping_by_layers_with_the_noise_of_the_largest_is_caught() -> None:
    """Two layers, each clipped at C, and noise for C: what two layers move is sqrt(2) C."""
    joint = math.hypot(1.0, 1.0)
    sigma = plan_of(PACES["one step"], Budget(Fraction(1), DELTA, 1)).pace.stages[0].noise
    generator = np.random.default_rng(1)

    def release(present: int, count: int) -> NDArray[np.float64]:
        return present * joint + generator.normal(size=count) * sigma

    result = audit_epsilon(release, 1, 0, count=200_000, delta=float(DELTA), confidence=0.999)
    assert result.contradicts(1.0)
