"""A neighbouring pair through the whole profiler: everything it releases, against what its book
says was charged.

All numbers of a run that can depend on the record (states, least sums, looks, counts of invalid
losses, and which of them came at all) go into one score: the sum of the logarithms of their
likelihood ratios, which is the best there is for telling the two apart. The claim is read from the
book of the run, at the point where the record lies. Two planted faults must be caught: looks that
are charged a tenth of their price, and trainings that read the same records though each is charged
on a piece of its own, or is a part of one charge. On few records nothing passes; where the
validation piece holds what was planned, the first size does, and is read.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from benchmarks._profiler.ptks import Mean, _column
from profiler.measuring import schedule as scheduling
from profiler.measuring.bench import MemoryBench
from profiler.measuring.bounds import UNIT, lower_centre
from profiler.measuring.pieces import Piece, parts_of, price_at
from profiler.measuring.schedule import Schedule, schedule
from profiler.measuring.tasks import Answer, LookTask, Task
from profiler.measuring.terms import Prices, ProfileTerms
from profiler.profiles import measured_profile
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Batches
from ptklib.testing.audit import AuditResult, audit_epsilon
from tests.profiler.small import WatchingBench, require_caught

# Runs of each side; those that pass take longer.
COUNT, PASSING = 700, 500
EXPECTED = 5_000
# Every piece holds so many records, all without loss: what is released without noise is known.
EACH = 3
ORDINARY, WRONG, INVALID = 0.0, 0.75, 1.0
STATES = 6
TERMS = ProfileTerms.of(
    "0.4",
    6,
    n_max=32,
    first=8,
    repeats=1,
    states=STATES,
    prices=Prices(looks=Fraction(6), lower=Fraction(1, 2)),
)


@dataclass(frozen=True, kw_only=True)
class Tally(Mean):
    """Counts the records from 1/2 on; their loss is 1, and that of 1 is no loss at all."""

    kind: ClassVar[str] = "tally"

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit).cost

    def train_dp(self, batches: Batches, *, epsilon: Number, **_options: Any) -> Arrays:
        release = LaplaceRelease(epsilon=epsilon, sensitivity=1)
        return {
            "f": release.release([int((_column(batches, "x") >= 0.5).sum())]).values.astype(
                np.float64
            )
        }

    def exact(self, batches: Batches) -> Arrays:
        return {"f": np.zeros(1)}

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        x = _column(batches, "x")
        return np.where(x == INVALID, 2.0, (x >= 0.5).astype(np.float64))


class Right(WatchingBench):
    """Every task reads its own piece, or part of one."""

    def reads(self, task: Task, piece: Piece) -> bool:
        return task.piece.start <= piece.start < task.piece.stop


class Overlapping(WatchingBench):
    """Every training reads the records of the first, though each is charged on a piece of its
    own.
    """

    def _held(self, piece: Piece) -> tuple[pa.RecordBatch, ...]:
        first = plan().levels[0].trains[1].charges[0].piece
        return super()._held(first if "/train-" in piece.name else piece)

    def reads(self, task: Task, piece: Piece) -> bool:
        return "/train-" in task.charge.piece.name and "/train-" in piece.name


class SharingParts(WatchingBench):
    """Every training for a reading reads the records of the first, though all of them share one
    charge.
    """

    def _held(self, piece: Piece) -> tuple[pa.RecordBatch, ...]:
        whole = next(
            (
                one.train.piece
                for one in plan().levels[0].reads
                if piece.name.startswith(one.train.name)
            ),
            None,
        )
        return super()._held(piece if whole is None else parts_of(whole, STATES)[0])

    def reads(self, task: Task, piece: Piece) -> bool:
        return task.charge.piece.start <= piece.start < task.charge.piece.stop


@cache
def plan() -> Schedule:
    return schedule(Tally(), TERMS, ["1"], EXPECTED)


def ratio(value: float, shift: float, release: LaplaceRelease) -> float:
    """The logarithm of the likelihood with the record over that without it; ``value`` is off what
    it is without.
    """
    return (abs(value) - abs(value - shift)) / float(release.scale)


def score(whole: Schedule, answers: Iterable[tuple[Task, Answer]], looked_at: int) -> float:
    """Of what was released. Positive: the record is there."""
    level, terms = whole.levels[0], whole.terms
    assert level.lower is not None
    train = LaplaceRelease(epsilon=level.level, sensitivity=1)
    upper, lower = level.test.centre, lower_centre(terms.target)
    found = 0.0
    for task, answer in answers:
        if isinstance(task, LookTask):
            assert level.read is not None
            release = level.look if task.groups is None else level.read
            found += ratio((answer.value or 0) - looked_at * upper, upper - UNIT, release)
            found += (
                ratio(answer.invalid or 0, 1, level.count) if answer.invalid is not None else 0.0
            )
        else:
            assert answer.arrays is not None
            found += ratio(float(answer.arrays["f"][0]), 1, train)
            found += (
                ratio(answer.value + EACH * lower, UNIT - lower, level.lower)
                if answer.value is not None
                else 0.0
            )
    return found


def audited(
    place: str,
    extra: float,
    kind: type[MemoryBench],
    confidence: float,
    *,
    passes: bool,
    count: int,
) -> tuple[AuditResult, float]:
    """A lower bound on the loss at one point, and what the book says was charged there at most."""
    whole = plan()
    reads = {one.train.piece for one in whole.levels[0].reads}
    pieces = sorted({charge.piece for charge in whole.charges}, key=lambda one: one.start)
    point = next(one for one in pieces if one.name.endswith(place))
    parts = [part for one in pieces for part in (parts_of(one, STATES) if one in reads else (one,))]
    validation = whole.levels[0].validation
    assert validation is not None
    looked_at = validation.planned_records if passes else EACH
    counts = [looked_at if one == validation else EACH for one in parts]
    middles = [float(one.start + one.stop) / 2 for one in parts]
    where = middles[[one.start for one in parts].index(point.start)]
    claim, most = 0.0, 0

    def runs(side: int, count: int) -> NDArray[np.float64]:
        nonlocal claim, most
        tags = np.repeat(middles, counts)
        x = np.full(len(tags), ORDINARY)
        if side:
            x, tags = np.append(x, extra), np.append(tags, where)
        found = []
        for _ in range(count):
            bench: Any = kind(pa.table({"x": x}), tags)
            measured_profile(Tally(), TERMS, ["1"], bench, EXPECTED, plan=whole)
            seen = [one for one in bench.asked.values() if bench.reads(one[0], point)]
            found.append(score(whole, seen, looked_at))
            charged = [one for one in bench.spent if one.piece == point]
            if len(charged) > most:
                # What a run pays at the point only grows with the looks it takes.
                most, claim = len(charged), price_at(charged)[point].epsilon(0)
        return np.array(found)

    return audit_epsilon(runs, 0, 1, count=count, confidence=confidence), claim


def cheap(release: LaplaceRelease, count: LaplaceRelease | None) -> Cost:
    """A tenth of what a look costs."""
    parts = [
        LaplaceRelease(epsilon=one.epsilon / 10, sensitivity=1).cost
        for one in (release, count)
        if one is not None
    ]
    return sum(parts[1:], parts[0])


# Of the 6 for the validation piece, looks take 7/10 (two of three run), counts 1/10 and readings 2/10.
CASES: list[tuple[str, float, bool, float]] = [
    ("validation", INVALID, False, 3.4),
    ("train-16-1", WRONG, False, 1.5),
    ("validation", INVALID, True, 4.6),
    ("read-8-6", WRONG, True, 1.0),
]


@pytest.mark.parametrize(("place", "extra", "passes", "price"), CASES)
def test_neighbours_stay_within_what_the_book_says(
    place: str, extra: float, passes: bool, price: float
) -> None:
    bounds = []
    for factor in (1, 1, 2, 4):
        count = factor * (PASSING if passes else COUNT)
        result, claim = audited(place, extra, Right, 1 - 1e-4, passes=passes, count=count)
        assert claim == pytest.approx(price)
        assert not result.contradicts(claim), result
        bounds.append(result.lower_bound)
        if bounds[-1] > price / 20:
            return
    # An event is chosen from few runs, and may be a poor one once.
    raise AssertionError(f"the score must tell something, or nothing would be caught: {bounds}")


def plant_cheap_looks(monkeypatch: pytest.MonkeyPatch) -> type[MemoryBench]:
    monkeypatch.setattr(scheduling, "cost_of_look", cheap)
    whole = plan.__wrapped__()
    level = whole.levels[0]
    assert level.read is not None
    readings = tuple(replace(one, cost=cheap(level.read, None)) for one in level.readings)
    planted = replace(whole, levels=(replace(level, readings=readings),))
    monkeypatch.setattr(sys.modules[__name__], "plan", lambda: planted)
    return Right


def plant_overlap(_monkeypatch: pytest.MonkeyPatch) -> type[MemoryBench]:
    return Overlapping


def plant_shared_parts(_monkeypatch: pytest.MonkeyPatch) -> type[MemoryBench]:
    return SharingParts


@pytest.mark.parametrize(
    ("place", "extra", "passes", "plant"),
    [
        ("validation", INVALID, False, plant_cheap_looks),
        ("train-16-1", WRONG, False, plant_overlap),
        ("validation", INVALID, True, plant_cheap_looks),
        ("read-8-6", WRONG, True, plant_shared_parts),
    ],
)
def test_a_planted_undercharge_is_caught(
    place: str,
    extra: float,
    passes: bool,
    plant: Callable[..., type[MemoryBench]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    planted = plant(monkeypatch)
    require_caught(
        lambda count: audited(place, extra, planted, 0.99, passes=passes, count=count),
        PASSING if passes else COUNT,
    )
