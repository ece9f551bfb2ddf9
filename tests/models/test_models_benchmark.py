"""The frame of the benchmark of models: problems with public domains, intervals that can fail, runs
from public numbers.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from benchmarks._models import decays, digits, patients, problems
from benchmarks._models.intervals import half_width, least_gain, shown
from ptklib.privacy.schedules.decays import Uniform
from ptklib.privacy.schedules.solving import affordable_epochs


def test_invented_problems_are_the_same_every_time_and_within_their_domains() -> None:
    pairs = [
        [problems.taxi(None, train=500, test=100, seed=1) for _ in range(2)],
        [problems.adult(None, seed=1) for _ in range(2)],
    ]
    for problem, again in pairs:
        assert problem.train.equals(again.train)
        rows = problem.matrix(problem.test)
        assert set(np.unique(rows)) == {0.0, 1.0}
        # Every record is in one cell of each domain.
        assert (rows.sum(axis=1) == len(problem.inputs)).mean() > 0.99
        labels = problem.labels(problem.test)
        assert labels.min() >= 0
        assert labels.max() <= 1
        assert labels.std() > 0.01


def test_a_smaller_problem_has_some_of_the_records() -> None:
    whole = problems.taxi(None, train=500, test=100)
    some = whole.sampled(50, seed=3)
    assert some.train.num_rows == 50
    assert some.train.equals(whole.sampled(50, seed=3).train)
    assert not some.train.equals(whole.sampled(50, seed=4).train)
    assert some.test.equals(whole.test)


def test_an_interval_widens_with_the_spread_and_a_gain_within_chance_does_not_hold() -> None:
    near, far = np.array([1.0, 1.1, 0.9, 1.0]), np.array([2.0, 2.1, 1.9, 2.0])
    assert half_width(near) == pytest.approx(0.1299, abs=1e-3)
    assert half_width(2 * near) == pytest.approx(2 * half_width(near))
    assert shown(near) == "1±0.13"
    assert least_gain(far, near) == pytest.approx(1.0)
    assert least_gain(near, near[[1, 2, 3, 0]]) < 0
    assert "one seed" in shown(near[:1])


def test_runs_follow_from_public_numbers() -> None:
    little = digits.settings(60_000, Fraction(1), digits.DELTA)
    much = digits.settings(60_000, Fraction(8), digits.DELTA)
    assert little.steps is not None
    assert much.steps is not None
    assert 50 <= little.steps < much.steps <= 400
    few, more = patients.few_steps(100, Fraction(1, 100)), patients.few_steps(200, Fraction(1, 100))
    assert few.learning_rate is not None
    assert more.learning_rate == pytest.approx(2 * few.learning_rate)


def test_schedules_last_about_as_long_as_published() -> None:
    epochs = {
        name: affordable_epochs(schedule, budget=decays.MU_SQUARED)
        for name, (schedule, _) in decays.SCHEDULES.items()
        if schedule is not None
    }
    assert epochs["uniform"] == 100
    published = {"time": 38, "step": 31, "exponential": 71, "polynomial": 44}
    assert all(abs(epochs[name] - published[name]) <= 1 for name in published), epochs


def test_noisy_components_of_digits_make_rows_that_can_be_learned() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 6_400)
    patterns = rng.random((10, 784)) < 0.2
    images = (patterns[labels] * rng.uniform(100, 255, (6_400, 1))).astype(np.uint8)
    held = decays.Digits.of(images, labels, np.arange(6_400) >= 6_000)
    norms = np.linalg.norm(held.test[0], axis=1)
    assert norms.max() <= decays._BOUND
    trial = decays.Trial(20, learning_rate=0.5)
    weak = Uniform(sigma=Fraction(1, 10))
    assert trial.accuracy(held, weak, 8, 0) > 0.8
    assert trial.accuracy(held, Uniform(sigma=Fraction(1000)), 8, 0) < 0.5
