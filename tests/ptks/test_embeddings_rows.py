"""What noisy counts and sums say of each row: shrunken biases."""

from __future__ import annotations

import numpy as np
import pytest

from ptklib.price_first import Budget
from ptklib.ptks.embeddings.activities import Level
from ptklib.ptks.embeddings.factorization import information
from ptklib.ptks.embeddings.reading import activity_of
from ptklib.ptks.embeddings.releases import plan_of
from ptklib.ptks.embeddings.rows import guessed, likely_counts
from tests.ptks.test_embeddings import invented, make, train

V = 0.04


def test_guesses_are_nearer_than_plain_means_zero_and_one_variance_for_all() -> None:
    generator = np.random.default_rng(1)
    counts = np.floor(generator.pareto(1.0, 400) * 30)
    # Most rows are alike; a few are far away.
    truth = generator.normal(0, 0.01, 400) + np.where(np.arange(400) % 40 == 0, 0.4, 0.0)
    noise, errors = 6.0, []
    for _ in range(20):
        sums = counts * truth + generator.normal(0, np.sqrt(counts * V + noise**2))
        noisy = counts + generator.normal(0, 12.0, 400)
        likely, _ = likely_counts(noisy, 12.0**2)
        told, weights = information(sums[:, None], likely, noise, V)
        # The best in hindsight of one variance for all, and with the true counts.
        known, reach = information(sums[:, None], counts, noise, V)
        one = min(
            float((counts * (known[:, 0] / (reach + V / spread) - truth) ** 2).sum())
            for spread in np.geomspace(1e-6, 0.1, 30)
        )
        guess = guessed(told[:, 0], weights, V)
        plain = sums / np.maximum(noisy, 1)
        errors.append(
            [float((counts * (found - truth) ** 2).sum()) for found in (guess, plain, 0 * truth)]
            + [one]
        )
    mine, plain_error, zero, one_variance = np.mean(errors, axis=0)
    assert mine < 0.5 * min(plain_error, zero)
    assert mine < one_variance


def test_nothing_is_made_of_noise_and_nothing_is_lost_without_it() -> None:
    generator = np.random.default_rng(2)
    told, weights = information(generator.normal(0, 50, (500, 1)), np.full(500, 1000.0), 50.0, V)
    # The plain means of nothing but noise are 0.05 away from 0.
    assert np.square(guessed(told[:, 0], weights, V)).mean() < 0.01 * 0.05**2
    means = generator.uniform(-0.4, 0.4, 500)
    told, weights = information((1e6 * means)[:, None], np.full(500, 1e6), 1e-3, V)
    assert np.allclose(guessed(told[:, 0], weights, V), means, atol=1e-4)
    assert np.all(guessed(np.zeros(3), np.zeros(3), V) == 0)


def test_counts_are_what_they_are_without_noise_and_not_negative_with_it() -> None:
    counts = np.array([0.0, 1.0, 7.0, 300.0, 1e6])
    assert np.allclose(likely_counts(counts, 1e-6)[0], counts, atol=0.01, rtol=0.01)
    generator = np.random.default_rng(3)
    truth = np.where(np.arange(2000) % 10 == 0, 500.0, 5.0)
    noisy = truth + generator.normal(0, 60, 2000)
    likely, spread = likely_counts(noisy, 3600.0)
    assert likely.min() >= 0
    # It says about how wrong it is.
    assert 0.5 < np.square(likely - truth).mean() / spread.mean() < 1.5
    # Nearer than the noisy ones, and than those cut at 0.
    assert np.square(likely - truth).mean() < 0.5 * np.square(np.maximum(noisy, 0) - truth).mean()


@pytest.mark.parametrize("share", [0.05, 0.5, 0.9])
def test_the_reach_grows_with_epsilon_up_to_all_that_a_value_can_be_away(share: float) -> None:
    level = Level(share, 1e5, 1e5 * ((share - 0.5) ** 2 + V), 0.4)
    assert level.spread == pytest.approx(0.8 * V)
    reaches = [
        level.reach(plan_of(Budget.of(epsilon, "1e-6", 1), share=0.65, rounds=2), 300, 4000)
        for epsilon in ("0.01", "0.3", "3", "1000")
    ]
    farthest = max(share, 1 - share)
    assert reaches == sorted(reaches)
    assert reaches[0] == pytest.approx(0.64 * farthest, rel=0.01)
    assert reaches[-1] == pytest.approx(farthest, rel=0.01)
    assert max(reaches) <= farthest


def test_states_from_before_rows_are_read_as_they_were_and_learned_from() -> None:
    ptk = make(60, 50, factors=3)
    first = train(ptk, invented(60, 50, 20_000, 1), 10)
    old = {name: first[name] for name in first if name != "values"}
    ptk.validate(old)
    told, weights = old["item_activity"].T
    assert not np.array_equal(activity_of(old, "item", 0.25), activity_of(first, "item", 0.25))
    assert activity_of(old, "item", 0.25).shape == told.shape == weights.shape
    second = train(ptk, invented(60, 50, 20_000, 2), 10, previous=old)
    ptk.validate(second)
    fresh = invented(60, 50, 5_000, 3).to_batches()
    assert ptk.eval(second, fresh) < 1.01 * ptk.eval(old, fresh)


def test_a_window_of_much_noise_hardly_changes_what_was_known() -> None:
    ptk = make(60, 50, factors=3)
    fresh = invented(60, 50, 5_000, 3).to_batches()
    first = train(ptk, invented(60, 50, 20_000, 1), 10)
    losses = [ptk.eval(first, fresh)]
    for window in range(3):
        first = train(ptk, invented(60, 50, 500, window), "0.1", previous=first)
        losses.append(ptk.eval(first, fresh))
    assert max(losses) < 1.02 * losses[0]
