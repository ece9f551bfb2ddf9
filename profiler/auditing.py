"""What the profiler releases, as subjects of the empirical audit: a look, a reading, and a training
with its lower test.

Tasks are made of a real schedule and run by `tasks.run`, as a bench runs them, on invented records:
a few at the lower bound of a mean, and on the other side one at the upper bound, whose loss is 1.
The claim is the price of the task's charge in that schedule, so that neither the noise of a release
nor what is charged for it can be halved unseen.

*Unit:* one record. *Neighbours:* one more record. No stream, no bench, no clock.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from profiler.measuring.bounds import lower_centre
from profiler.measuring.pieces import parts_of
from profiler.measuring.schedule import LevelSchedule, Schedule, schedule
from profiler.measuring.tasks import LookTask, SystemNoise, Task, TrainTask, run
from profiler.measuring.terms import Prices, ProfileTerms
from ptklib.auditing.kinds import chain_views
from ptklib.auditing.pairs import Chain
from ptklib.auditing.subject import Claim, OutputView, Subject, refused
from ptklib.columns.keys import IntegerRange
from ptklib.errors import InvalidInput
from ptklib.ptk import Arrays
from ptklib.ptks.statistics import Statistics

__all__ = ["GROUP", "profiler_subjects"]

GROUP = "profiler"
# So many that the least sum of losses moves by an odd number of units: its lowest bit must have
# something to tell.
_RECORDS, _RUNS = 28, 3_000
_MEAN = Statistics(
    keys=(IntegerRange(column="zone", first=0, last=0),),
    statistics=("mean",),
    value="x",
    lower=0.0,
    upper=1.0,
)
# Prices near 1.5 each, which some thousand runs tell from twice as much; readings have a small part
# of what looks have.
_LOOKS, _READINGS = Fraction(6), Fraction(25)
# The lower test is most of what its task costs: half of its noise is more than the whole task may
# tell.
_LOWER, _LEVEL = Fraction(2), Fraction(1, 4)
_EXPECTED = 10**6


def profiler_subjects() -> list[Subject]:
    """A look, a reading, and a training with the lower test."""
    plan, dear = _plan(_LOOKS), _plan(_READINGS)
    tasks: list[tuple[str, Task]] = [
        ("profiler look", _look(plan.levels[0])),
        ("profiler reading", _reading(dear.levels[0])),
        ("profiler training and lower test", _train(plan, plan.levels[0])),
    ]
    return [_subject(name, task) for name, task in tasks]


def _plan(looks: Fraction) -> Schedule:
    """A schedule of one level with looks, readings and a lower test."""
    prices = Prices(looks=looks, lower=_LOWER)
    terms = ProfileTerms.of("0.02", looks, n_max=32, first=8, repeats=1, states=6, prices=prices)
    return schedule(_MEAN, terms, [_LEVEL], _EXPECTED)


def _subject(name: str, task: Task) -> Subject:
    try:
        chain = Chain(lambda side: _answered(task, side), "")
    except InvalidInput as error:
        return refused(name, GROUP, error)

    def sample(count: int) -> list[OutputView]:
        return chain_views(chain, count)

    pair = f"{_RECORDS} records without loss, and with one of loss 1 besides"
    return Subject(name, GROUP, Claim.of(task.charge.cost), pair, sample, _RUNS)


def _answered(task: Task, side: int) -> Arrays:
    batch = _records(side)
    answer = run(task, lambda: iter([batch]))
    if answer.failure:
        raise InvalidInput("TASK_FAILED", f"a task of the audit must succeed: {answer.failure}")
    told = {"value": answer.value, "invalid": answer.invalid}
    return {
        **(answer.arrays or {}),
        **{name: np.array([value]) for name, value in told.items() if value is not None},
    }


def _records(side: int) -> pa.RecordBatch:
    values = [0.0] * _RECORDS + [1.0] * side
    return pa.RecordBatch.from_pydict({"zone": [0] * len(values), "x": values})


def _state() -> Arrays:
    """One that says 0 for all: exact totals of records that are all 0."""
    return _MEAN.exact([_records(0)])


def _look(level: LevelSchedule) -> LookTask:
    """The second: the first counts invalid losses besides, and has none to count here."""
    return LookTask(
        charge=level.looks[1],
        ptk=_MEAN,
        states=(_state(),),
        centre=level.test.centre,
        release=level.look,
        count=None,
        noise=SystemNoise(),
    )


def _reading(level: LevelSchedule) -> LookTask:
    assert level.read is not None
    return replace(
        _look(level),
        charge=level.readings[0],
        states=(_state(),) * 3,
        release=level.read,
        groups=3,
    )


def _train(plan: Schedule, level: LevelSchedule) -> TrainTask:
    charge = level.trains[0].charges[0]
    return TrainTask(
        charge=charge,
        ptk=_MEAN,
        epsilon=level.level,
        delta=plan.terms.delta,
        records_per_unit=plan.terms.records_per_unit,
        lower=level.lower,
        lower_centre=lower_centre(plan.terms.target),
        noise=SystemNoise(),
        part=parts_of(charge.piece, 1)[0],
    )
