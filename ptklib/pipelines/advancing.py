"""Attempt after attempt, until the pipeline is at an end or needs more data.

`advance` decides nothing by itself: it asks the strategy, hands the bench a job, and writes down
what came of it. Give it the trail so far and it goes on from there; ``kept`` is told each attempt
before the next one begins, so that a trail can be made durable.

**Proof note.** *Cost:* what the bench charges: at most the pipeline's ``epsilon`` to any record by
a plain sum over attempts (each block is offered with what is left of that), and what the stream's
filter admits. *Validity of an ACCEPT:* `attempts`.

Reasons: those of `pipeline` and `power`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ptklib.pipelines.attempts import (
    ACCEPTED,
    FAILED,
    LOOK,
    REFUSED,
    RETRIED,
    SEEN,
    Attempt,
    NextAttempt,
    Situation,
    Trail,
    Wait,
)
from ptklib.pipelines.bench import AttemptAnswer, Job, PipelineBench
from ptklib.pipelines.pipeline import Pipeline
from ptklib.state import State
from ptklib.validators.betting import LossTest
from ptklib.validators.interval import LossInterval, ToldLosses
from ptklib.validators.power import planned_test
from ptklib.validators.verdict import ACCEPT, LossVerdict, eta_of_attempt

__all__ = ["GAVE_UP", "RELEASED", "WAITING", "Advance", "advance"]

# How it stands with a pipeline.
RELEASED, WAITING, GAVE_UP = "RELEASED", "WAITING", "GAVE_UP"
# How sure the interval of a look is: what it says only chooses the next attempt.
_LOOK_ETA = Fraction(1, 10)


@dataclass(frozen=True)
class Advance:
    """How it stands: RELEASED with a state, WAITING for data (how many records, where that is
    known), or GAVE_UP after as many attempts as are allowed or one that failed.
    """

    status: str
    trail: Trail
    state: State | None = None
    reason: str = ""
    records: int | None = None


def advance(
    pipeline: Pipeline,
    bench: PipelineBench,
    trail: Trail | None = None,
    *,
    kept: Callable[[Attempt], None] = lambda _: None,
) -> Advance:
    """Go on until there is an end, or nothing is worth trying with what there is."""
    trail = trail or Trail()
    while True:
        ended = _ended(pipeline, trail)
        if ended is not None:
            return ended
        situation = _situation(pipeline, bench, trail)
        step = pipeline.strategy.next(situation)
        if isinstance(step, Wait):
            return Advance(WAITING, trail, reason=step.reason, records=step.records)
        job, records = _job(pipeline, bench, trail, situation, step)
        answer = bench.attempt(job)
        attempt = _attempt(job, records, answer)
        kept(attempt)
        trail = trail.with_(attempt)
        if attempt.outcome == REFUSED:
            return Advance(WAITING, trail, reason=attempt.reason)
        if attempt.outcome == ACCEPTED:
            return Advance(RELEASED, trail, _state(job, bench, records, answer))


def _ended(pipeline: Pipeline, trail: Trail) -> Advance | None:
    last = trail.attempts[-1] if len(trail) else None
    if last is not None and last.outcome == ACCEPTED:
        return Advance(RELEASED, trail, reason="released before")
    if last is not None and last.outcome == FAILED:
        return Advance(GAVE_UP, trail, reason=last.reason)
    if len(trail) >= pipeline.most_attempts:
        return Advance(GAVE_UP, trail, reason=f"{len(trail)} attempts, and none was accepted")
    return None


def _situation(pipeline: Pipeline, bench: PipelineBench, trail: Trail) -> Situation:
    return Situation(
        target=Fraction(pipeline.target),
        eta=eta_of_attempt(pipeline.eta, trail.tests + 1),
        limit=Fraction(pipeline.epsilon),
        tests=pipeline.split.tests,
        records_per_unit=bench.records_per_unit,
        tried=tuple(attempt.known() for attempt in trail.attempts),
        offer=bench.offer(pipeline, trail),
    )


def _job(
    pipeline: Pipeline, bench: PipelineBench, trail: Trail, situation: Situation, step: NextAttempt
) -> tuple[Job, int]:
    used = situation.offer.at(step.epsilon)
    records = sum(block.records for block in used)
    share = pipeline.split.looks if step.purpose == LOOK else pipeline.split.tests
    judged = max(1, int(share * records))
    test: LossTest | LossInterval
    if step.purpose == LOOK:
        test = LossInterval(
            epsilon=step.epsilon,
            eta=_LOOK_ETA,
            records=judged,
            records_per_unit=bench.records_per_unit,
        )
    else:
        test = planned_test(
            target=situation.target,
            epsilon=step.epsilon,
            eta=situation.eta,
            records=judged,
            records_per_unit=bench.records_per_unit,
        )
    names = tuple(block.name for block in used)
    return Job(pipeline, len(trail) + 1, step.purpose, step.epsilon, names, test), records


def _attempt(job: Job, records: int, answer: AttemptAnswer) -> Attempt:
    attempt = Attempt(
        job.number, job.purpose, job.epsilon, job.blocks, records, FAILED, answer.failure
    )
    if not answer.charged:
        return replace(attempt, outcome=REFUSED)
    if isinstance(answer.told, ToldLosses):
        assert isinstance(job.test, LossInterval)
        told = {"losses": answer.told.losses, "rest": answer.told.rest}
        seen = job.test.read(answer.told)
        return replace(attempt, outcome=SEEN, seen=seen, evidence=_evidence(job, told))
    if isinstance(answer.told, LossVerdict):
        outcome = ACCEPTED if answer.told.outcome == ACCEPT else RETRIED
        told = {"evidence": answer.told.evidence, "threshold": answer.told.threshold}
        return replace(attempt, outcome=outcome, evidence=_evidence(job, told))
    return attempt


def _evidence(job: Job, told: dict[str, int]) -> dict[str, Any]:
    return {"test": job.test.as_json(), **told}


def _state(job: Job, bench: PipelineBench, records: int, answer: AttemptAnswer) -> State:
    assert answer.arrays is not None
    assert isinstance(answer.told, LossVerdict)
    pipeline = job.pipeline
    state = State.make(
        pipeline.ptk,
        answer.arrays,
        name=pipeline.name,
        epsilon=job.epsilon,
        delta=Fraction(pipeline.delta),
        stream=bench.stream,
        unit=bench.unit,
        records_per_unit=bench.records_per_unit,
        samples=int((1 - pipeline.split.looks - pipeline.split.tests) * records),
        target=float(Fraction(pipeline.target)),
    )
    validation = {
        "outcome": answer.told.outcome,
        "attempt": job.number,
        "eta": str(pipeline.eta),
        **_evidence(job, {"evidence": answer.told.evidence, "threshold": answer.told.threshold}),
    }
    return replace(state, manifest=replace(state.manifest, validation=validation))
