"""PTKs on trial: where a try is planned, what a test changes, and what is not tried."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiler.analytic import Profile
from profiler.levels import privacy_levels
from profiler.measuring.results import (
    FAILED,
    NOT_REACHED,
    REACHED,
    TOO_LITTLE_DATA,
    TRIED,
    LevelResult,
    Look,
)
from profiler.measuring.terms import FLOOR, ProfileTerms
from profiler.on_trial import (
    ETA,
    TriedState,
    kept_target,
    largest_try,
    likely_loss,
    next_try,
    on_trial,
    try_level,
)
from profiler.profiles import CERTIFIES, ON_TRIAL, MeasuredProfile
from ptklib.testing.noise import SeededSource, planted_noise
from ptklib.validators.betting import LossTest
from ptklib.validators.power import planned_test
from ptklib.validators.verdict import eta_of_attempt

LEVELS = privacy_levels(1)[:-1]
TOP = LEVELS[-1]
TERMS = ProfileTerms.of("0.3", 1)
ROOM: dict[str, Any] = {"trainable": 40_000, "test_records": 15_000, "test_epsilon": "0.9"}


def curve(n: int, c: float = 0.2, b: float = 5.0) -> float:
    return c + b / math.sqrt(n)


def looks(*sizes: int, c: float = 0.2, b: float = 5.0) -> tuple[Look, ...]:
    return tuple(Look(size, curve(size, c, b), 4, 0.02) for size in sizes)


def measured(
    status: str = NOT_REACHED, *seen: Look, samples: int | None = None, size: int | None = None
) -> MeasuredProfile:
    promised = TERMS.promised
    known = tuple(None if samples is None else math.ceil(samples * TOP / level) for level in LEVELS)
    profile = Profile(LEVELS, known, promised, Fraction(19, 20), source="measured")
    result = LevelResult(TOP, status, samples=samples, size=size, looks=seen)
    return MeasuredProfile(profile, (result,), None, {}, 15_000)


def test_a_profile_that_fits_stays_as_it_is() -> None:
    fits = measured(REACHED, *looks(256, 512), samples=2_304, size=512)
    assert on_trial(fits, TERMS, **ROOM) is None
    assert fits.certifies == CERTIFIES


def test_a_try_is_twice_where_the_curve_meets_what_a_test_accepts() -> None:
    seen = looks(256, 512, 1024)
    trial = on_trial(measured(NOT_REACHED, *seen), TERMS, **ROOM)
    assert trial is not None
    aim = likely_loss(TERMS, records=15_000, epsilon="0.9")
    assert aim is not None
    assert trial.profile.samples[-1] == math.ceil(2 * (5.0 / (aim - 0.2)) ** 2)
    assert (trial.status, trial.certifies) == (TRIED, ON_TRIAL)
    assert trial.as_json()["certifies"] == ON_TRIAL
    # Lower levels need as many times more, and none more than a window has room for.
    for level, samples in zip(LEVELS, trial.profile.samples, strict=True):
        wanted = math.ceil((trial.profile.samples[-1] or 0) * TOP / level)
        assert samples == (wanted if wanted <= largest_try(40_000) else None)


@pytest.mark.parametrize(
    "found",
    [
        measured(TOO_LITTLE_DATA),
        measured(NOT_REACHED, *looks(512)),
        measured(NOT_REACHED, *looks(256, 512, c=0.29)),
        measured(REACHED, *looks(2048), samples=100_000, size=2048),
    ],
    ids=["nothing seen", "one look", "no place on the curve", "certified for too many"],
)
def test_where_the_curve_says_nothing_all_there_is_is_tried(found: MeasuredProfile) -> None:
    trial = on_trial(found, TERMS, **ROOM)
    assert trial is not None
    assert trial.profile.samples[-1] == largest_try(40_000) == 30_000


@pytest.mark.parametrize(
    ("found", "room"),
    [
        (measured(NOT_REACHED, *looks(256, 512, 1024, c=0.9, b=0.1)), {}),
        (measured(FAILED), {}),
        (measured(TOO_LITTLE_DATA), {"test_records": 40}),
        (measured(TOO_LITTLE_DATA), {"trainable": FLOOR}),
    ],
    ids=["out of reach", "it failed", "no test could accept", "no training is worth it"],
)
def test_what_is_not_tried(found: MeasuredProfile, room: dict[str, Any]) -> None:
    assert on_trial(found, TERMS, **(ROOM | room)) is None


def test_a_likely_loss_is_accepted_nine_times_of_ten_and_the_target_is_not() -> None:
    aim = likely_loss(TERMS, records=4_000, epsilon="0.5")
    assert aim is not None
    assert 0.18 < aim < 0.3
    test = planned_test(target="0.3", epsilon="0.5", eta=ETA / 2, records=4_000)
    rng = np.random.default_rng(5)

    def accepted(loss: float) -> float:
        with planted_noise():
            runs = [
                test.verdict(
                    rng.random(rng.poisson(4_000)) < loss,
                    source=SeededSource(k * 7 + int(loss * 1e6)),
                ).outcome
                for k in range(300)
            ]
        return runs.count("ACCEPT") / len(runs)

    assert accepted(aim) > 0.86, "nine of ten, less what 300 runs may be off by"
    assert accepted(0.3) < 0.06


@pytest.mark.parametrize("loss", [0.05, 0.2, 0.28, 0.4])
def test_the_loss_is_read_from_what_was_released(loss: float) -> None:
    test = planned_test(target="0.3", epsilon="0.9", eta=eta_of_attempt(ETA, 1), records=10_000)
    losses = np.random.default_rng(1).normal(loss, 0.03, 10_000)
    with planted_noise():
        verdict = test.verdict(losses, source=SeededSource(3))
    tested = TriedState.of(test, verdict, epsilon=TOP, samples=700, records=10_000)
    assert tested.loss == pytest.approx(loss, abs=0.01)
    assert tested.accepted is (loss < 0.29)
    assert TriedState.from_json(tested.as_json()) == tested


def trial_of(samples: int) -> Profile:
    known = tuple(
        wanted if (wanted := math.ceil(samples * TOP / level)) <= 30_000 else None
        for level in LEVELS
    )
    return Profile(LEVELS, known, TERMS.promised, Fraction(19, 20), source="measured")


@pytest.mark.parametrize("loss", [0.31, 0.285])
def test_after_a_failure_at_least_twice_as_many_are_tried_until_there_are_no_more(
    loss: float,
) -> None:
    seen, profile = looks(256, 512, b=2.0), trial_of(4_000)
    tests: list[TriedState] = []
    tried = [profile.samples[-1]]
    while True:
        tests.append(TriedState(TOP, tried[-1] or 0, loss, 0.5))
        after = next_try(profile, seen, tests, aim=0.28, trainable=40_000)
        if after is None:
            break
        profile = after
        tried.append(profile.samples[-1])
    steps = [later / (before or 1) for before, later in pairwise(tried) if later]
    assert all(step >= 2 for step in steps[:-1])
    assert (tried[0], tried[-1]) == (4_000, 30_000)


def test_after_a_success_fewer_are_planned_where_that_is_half_or_less() -> None:
    seen, profile = looks(256, 512), trial_of(30_000)
    well = TriedState(TOP, 30_000, curve(30_000), 1.6)
    after = next_try(profile, seen, [well], aim=0.28, trainable=40_000)
    assert after is not None
    assert after.samples[-1] == pytest.approx(2 * (5.0 / 0.08) ** 2, rel=0.01)
    # Far more evidence than it takes: a test of such losses sees the target from nearer by.
    strong = TriedState(TOP, 30_000, curve(30_000), 16.0)
    fewer = next_try(profile, seen, [strong], aim=0.28, trainable=40_000)
    assert fewer is not None
    assert (fewer.samples[-1] or 0) < 0.8 * (after.samples[-1] or 0)
    # Hardly fewer: levels and samples stay as they were.
    near = trial_of(9_000)
    assert next_try(near, seen, [well], aim=0.28, trainable=40_000) is near
    # Never back to where a try has failed.
    failed = TriedState(TOP, 12_000, 0.31, 0.5)
    after = next_try(profile, seen, [failed, well], aim=0.28, trainable=40_000)
    assert after is not None
    assert (after.samples[-1] or 0) >= 24_000


def test_a_try_at_another_level_counts_as_what_it_is_worth() -> None:
    profile = trial_of(5_000)
    level = try_level(profile)
    assert level == TOP
    assert TriedState(TOP / 2, 10_000, 0.3, 0.5).at(TOP) == 5_000
    assert TriedState(min(Fraction(1), TOP * 3 / 2), 10_000, 0.3, 0.5).at(TOP) == 10_000


def test_the_target_that_would_have_been_kept() -> None:
    terms = ProfileTerms.of("0.2", 1)
    failed = [TriedState(TOP, 20_000, loss, 0.5) for loss in (0.235, 0.245)]
    nearest = kept_target(terms, failed, records=9_000, epsilon="0.9")
    assert nearest is not None
    assert 0.24 < nearest < 0.27
    again = planned_test(
        target=repr(nearest), epsilon="0.9", eta=eta_of_attempt(ETA, 1), records=9_000
    )
    rng = np.random.default_rng(2)
    with planted_noise():
        outcomes = [
            again.verdict(rng.random(9_000) < 0.24, source=SeededSource(k)).outcome
            for k in range(200)
        ]
    assert outcomes.count("ACCEPT") >= 170
    worst = [TriedState(TOP, 1, 1.0, 0.5)]
    assert kept_target(terms, worst, records=9_000, epsilon="0.9") is None


risks = st.floats(0, 1, allow_nan=False)


@given(
    seen=st.lists(st.tuples(st.integers(64, 1 << 16), risks), max_size=6),
    tests=st.lists(
        st.tuples(st.sampled_from(LEVELS), st.integers(64, 60_000), risks, st.floats(0.1, 20)),
        min_size=1,
        max_size=4,
    ),
    trainable=st.integers(FLOOR * 2, 100_000),
)
def test_whatever_was_seen_the_profile_is_one(
    seen: list[tuple[int, float]],
    tests: list[tuple[Fraction, int, float, float]],
    trainable: int,
) -> None:
    found = measured(NOT_REACHED, *(Look(size, risk, 3, 0.02) for size, risk in seen))
    trial = on_trial(found, TERMS, **(ROOM | {"trainable": trainable}))
    if trial is None:
        return
    most = largest_try(trainable)
    history = [TriedState(*test) for test in tests]
    after = next_try(trial.profile, found.results[-1].looks, history, aim=0.28, trainable=trainable)
    for profile in (trial.profile, after or trial.profile):
        known = [samples for samples in profile.samples if samples is not None]
        assert known
        assert all(1 <= samples <= most for samples in known)


def test_a_test_of_another_price_tells_the_same_loss() -> None:
    """What is read does not hang on the stake or the price."""
    read = []
    for epsilon, stake in (("0.5", "0.2"), ("0.9", "0.8")):
        test = LossTest(target="0.3", epsilon=epsilon, eta="0.025", stake=stake)
        with planted_noise():
            verdict = test.verdict(np.full(20_000, 0.24), source=SeededSource(1))
        read.append(TriedState.of(test, verdict, epsilon=TOP, samples=1, records=20_000).loss)
    assert read == pytest.approx([0.24, 0.24], abs=0.003)
