"""Attempt after attempt: what is released keeps its target, nobody pays more than was said, and
what failed stays spent.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptklib.pipelines.advancing import GAVE_UP, RELEASED, WAITING, Advance, advance
from ptklib.pipelines.aggressive import Aggressive
from ptklib.pipelines.attempts import LOOK, TEST, Attempt, Trail
from ptklib.pipelines.bench import FAILURE
from ptklib.pipelines.conserve import Conserve
from ptklib.pipelines.held import HeldStream
from ptklib.pipelines.pipeline import Pipeline
from ptklib.pipelines.planned import PlanAhead
from ptklib.pipelines.strategies import STRATEGIES
from tests.pipelines.rough import Rough, records, spent_at, true_loss

PURE = Policy(epsilon=1, delta=0)
KINDS = [Aggressive(), Conserve(), PlanAhead()]


def made(**changes: Any) -> Pipeline:
    fields: dict[str, Any] = {
        "name": "mean",
        "ptk": Rough(rough=100),
        "target": "0.04",
        "epsilon": "0.9",
    }
    return Pipeline(**(fields | changes))


def held(*counts: int, policy: Policy = PURE, first_seed: int = 0) -> HeldStream:
    stream = HeldStream(policy)
    for seed, count in enumerate(counts, start=first_seed):
        stream.add(records(count, seed))
    return stream


def until_the_end(pipeline: Pipeline, stream: HeldStream, blocks: int = 12) -> Advance:
    """With one block more whenever the pipeline waits."""
    result = advance(pipeline, stream)
    for seed in range(100, 100 + blocks):
        if result.status != WAITING:
            break
        stream.add(records(20_000, seed))
        result = advance(pipeline, stream, result.trail)
    return result


@pytest.mark.parametrize("strategy", KINDS, ids=lambda strategy: strategy.kind)
def test_it_is_released_with_its_evidence_and_keeps_its_target(strategy: Any) -> None:
    stream = held(20_000)
    result = until_the_end(made(strategy=strategy), stream)
    assert result.status == RELEASED
    assert result.state is not None
    assert true_loss(result.state.arrays) <= 0.04
    last = result.trail.attempts[-1]
    validation = result.state.manifest.validation
    assert validation is not None
    assert (validation["outcome"], validation["attempt"]) == ("ACCEPT", last.number)
    assert validation["evidence"] >= validation["threshold"]
    assert result.state.manifest.epsilon == str(float(last.epsilon)).rstrip("0")
    # Going on with a pipeline that is released changes nothing.
    again = advance(made(strategy=strategy), stream, result.trail)
    assert (again.status, again.state, again.trail) == (RELEASED, None, result.trail)


@pytest.mark.parametrize("strategy", KINDS, ids=lambda strategy: strategy.kind)
def test_no_record_pays_more_than_the_limit_and_the_book_has_it_all(strategy: Any) -> None:
    # So tight that there is no end to it.
    pipeline = made(strategy=strategy, target="0.0195", epsilon="0.5", most_attempts=200)
    stream = held(5_000, 5_000)
    result = until_the_end(pipeline, stream, blocks=3)
    assert result.status == WAITING
    assert len(result.trail) > 1
    for block in stream._tables:
        assert max(spent_at(stream, block)) <= 0.51 + 1e-6
        charged = {LOOK: Fraction("0.01"), TEST: Fraction("0.01")}
        for attempt in result.trail.attempts:
            if block in attempt.blocks:
                charged[attempt.purpose] += attempt.epsilon
        # Training pays for every attempt, the tags of looks and tests for their own.
        trained = charged[LOOK] + charged[TEST] - Fraction("0.01")
        split = pipeline.split
        for tags, epsilon in (
            (split.training, trained),
            (split.looking, charged[LOOK]),
            (split.testing, charged[TEST]),
        ):
            assert spent_at(stream, block, tags) == [pytest.approx(float(epsilon), abs=1e-6)]


def test_conserving_spends_at_most_four_times_what_is_accepted() -> None:
    for seed in range(12):
        pipeline = made(strategy=Conserve(), ptk=Rough(rough=(1, 100, 400)[seed % 3]))
        result = until_the_end(pipeline, held(20_000, first_seed=1000 * seed))
        used = [attempt.epsilon * attempt.records for attempt in result.trail.attempts]
        assert all(later >= 2 * used[0] for later in used[1:])
        assert sum(used) <= 4 * used[-1]
        if result.status == RELEASED:
            assert sum(used[:-1]) <= used[-1] * Fraction(11, 10)  # counts of blocks are noisy


def test_a_stream_of_its_own_promise_has_the_last_word() -> None:
    """Two pipelines with a limit of 0.9 each on a stream of 1: together they pay at most 1."""
    stream = held(20_000)
    first = advance(made(name="first", strategy=Aggressive()), stream)
    assert first.status == RELEASED
    second = advance(made(name="second", strategy=Aggressive()), stream)
    assert max(spent_at(stream, "block-1")) <= 1
    for attempt in second.trail.attempts:
        assert attempt.epsilon <= Fraction("0.1")


@pytest.mark.parametrize("composition", ["basic", "renyi"])
def test_every_composition_that_a_ledger_keeps(composition: str) -> None:
    policy = Policy(epsilon=1, delta="1e-6", composition=composition)
    result = advance(made(strategy=Conserve()), held(40_000, policy=policy))
    assert result.status == RELEASED


def test_what_fails_stays_spent_and_is_told_as_one_word() -> None:
    stream = held(20_000)
    result = advance(made(ptk=Rough(fails=True), strategy=Conserve()), stream)
    assert (result.status, result.reason) == (GAVE_UP, FAILURE)
    (attempt,) = result.trail.attempts
    assert (attempt.outcome, attempt.evidence) == ("FAILED", None)
    assert max(spent_at(stream, "block-1")) == pytest.approx(0.01 + float(attempt.epsilon))
    # It is not tried again: whether it raises may tell what the records are.
    again = advance(made(ptk=Rough(fails=True), strategy=Conserve()), stream, result.trail)
    assert (again.status, len(again.trail)) == (GAVE_UP, 1)


def test_a_trail_that_was_kept_goes_on_where_it_was() -> None:
    class Died(Exception):
        pass

    pipeline, stream = made(strategy=Conserve()), held(20_000)
    kept: list[Attempt] = []

    def dying(attempt: Attempt) -> None:
        kept.append(attempt)
        if len(kept) == 2:
            raise Died

    with pytest.raises(Died):
        advance(pipeline, stream, kept=dying)
    body = json.loads(json.dumps(Trail(tuple(kept)).as_json()))
    result = advance(pipeline, stream, Trail.from_json(body))
    assert result.status == RELEASED
    epsilons = [attempt.epsilon for attempt in result.trail.attempts]
    assert epsilons == [epsilons[0] * 2**place for place in range(len(epsilons))]
    assert max(spent_at(stream, "block-1")) == pytest.approx(0.01 + float(sum(epsilons)))


def test_an_attempt_that_was_charged_is_not_charged_again_under_its_number() -> None:
    """A trail that lost its last attempt: the book knows the key, and refuses."""
    pipeline, stream = made(strategy=Aggressive(), target="0.0195"), held(20_000)
    first = advance(pipeline, stream)
    assert len(first.trail) == 1
    before = max(spent_at(stream, "block-1"))
    again = advance(pipeline, stream, Trail())
    assert max(spent_at(stream, "block-1")) <= 1
    assert all(attempt.outcome == "REFUSED" for attempt in again.trail.attempts)
    assert max(spent_at(stream, "block-1")) == before


def test_eta_is_spent_over_the_tests_and_not_by_looks() -> None:
    pipeline = made(strategy=PlanAhead(), target="0.0195", most_attempts=6)
    result = until_the_end(pipeline, held(20_000), blocks=4)
    etas = [
        Fraction(attempt.evidence["test"]["eta"])
        for attempt in result.trail.attempts
        if attempt.purpose != LOOK and attempt.evidence is not None
    ]
    assert etas == [Fraction(1, 20) / (i * (i + 1)) for i in range(1, len(etas) + 1)]
    assert [attempt.purpose for attempt in result.trail.attempts[:2]] == [LOOK, LOOK]


def test_an_empty_stream_waits() -> None:
    for strategy in KINDS:
        result = advance(made(strategy=strategy), HeldStream(PURE))
        assert (result.status, len(result.trail)) == (WAITING, 0)


def test_json_round_trips_and_refusals() -> None:
    body = {
        "name": "speed",
        "kind": "statistics",
        "config": {
            "keys": [{"kind": "integers", "column": "hour", "first": 0, "last": 23}],
            "statistics": ["mean"],
            "value": "speed",
            "lower": 0.0,
            "upper": 60.0,
        },
        "target": "1/50",
        "epsilon": 0.5,
        "strategy": {"kind": "conserve", "first": 0.01},
    }
    pipeline = Pipeline.from_json(body)
    assert pipeline.target == Fraction(1, 50)
    assert pipeline.strategy == Conserve(first=0.01)
    assert Pipeline.from_json(json.loads(json.dumps(pipeline.as_json()))) == pipeline
    assert Pipeline.from_json({**body, "strategy": "planned"}).strategy == PlanAhead()
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"target": 0}, "PIPELINE_INVALID"),
        ({"target": "1"}, "PIPELINE_INVALID"),
        ({"epsilon": 0}, "AMOUNT_ZERO"),
        ({"eta": 2}, "ETA_INVALID"),
        ({"looks": "0.5", "tests": "0.5"}, "PIPELINE_INVALID"),
        ({"most_attempts": 0}, "PIPELINE_INVALID"),
        ({"strategy": {"kind": "hopeful"}}, "STRATEGY_UNKNOWN"),
        ({"strategy": {"kind": "planned", "first": 2.0}}, "STRATEGY_INVALID"),
        ({"strategy": {"kind": "planned", "second": 2.0}}, "CONFIG_FIELDS"),
        ({"kind": "oracle"}, "PTK_KIND_UNKNOWN"),
        ({"retries": 3}, "PIPELINE_FIELDS"),
    ]
    for change, reason in wrong:
        with pytest.raises(InvalidInput) as refused:
            Pipeline.from_json({**body, **change})
        assert refused.value.reason == reason, change
    with pytest.raises(InvalidInput, match="UNIT_UNSUPPORTED"):
        HeldStream(Policy(unit="user", epsilon=1, delta=0))
    with pytest.raises(InvalidInput, match="BLOCK_COLUMNS"):
        held(10).add(records(10, 1).rename_columns(["x"]))
    with pytest.raises(InvalidInput, match="TRAIL_UNREADABLE"):
        Trail.from_json([{"number": 1}])
    assert set(STRATEGIES) == {strategy.kind for strategy in KINDS}
