"""A neighbouring pair through the whole profiler: everything it releases, against what its book says was charged.

All numbers of a run that can depend on the record (states, least sums, looks, counts of invalid losses, and which of them
came at all) go into one score: the sum of the logarithms of their likelihood ratios, which is the best there is for telling
the two apart. The claim is read from the book of the run, at the point where the record lies. Two planted faults must be
caught: looks that are charged a sixth of their price, and trainings that read the same records though each is charged on a
piece of its own. Nothing passes on so few records, so nothing is read; readings have an audit of their own
(`test_profiler_privacy`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from benchmarks._profiler.ptks import Mean, _column
from profiler import schedule as scheduling
from profiler.bench import MemoryBench
from profiler.bounds import UNIT, lower_centre, upper_centre
from profiler.pieces import Piece, price_at
from profiler.profiles import measured_profile
from profiler.schedule import Prices, Schedule, Terms, schedule
from profiler.tasks import Answer, LookTask, Task
from ptklib.privacy.amounts import Number
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Batches
from ptklib.testing.audit import AuditResult, audit_epsilon
from tests.profiler.small import WatchingBench

COUNT = 700
EXPECTED = 5_000
# Every piece holds so many records, all without loss: what is released without noise is known.
EACH = 3
ORDINARY, WRONG, INVALID = 0.0, 0.75, 1.0
TERMS = Terms.of(
    "0.1", 6, n_max=32, first=8, repeats=1, states=0, prices=Prices(looks=Fraction(6), lower=Fraction(1, 2))
)


@dataclass(frozen=True, kw_only=True)
class Tally(Mean):
    """Counts the records from 1/2 on; their loss is 1, and that of 1 is no loss at all."""

    kind: ClassVar[str] = "tally"

    def cost(self, epsilon: Number, delta: Number = 0, *, records_per_unit: int = 1) -> Cost:
        return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit).cost

    def train_dp(self, batches: Batches, *, epsilon: Number, **_options: Any) -> Arrays:
        release = LaplaceRelease(epsilon=epsilon, sensitivity=1)
        return {"f": release.release([int((_column(batches, "x") >= 0.5).sum())]).values.astype(np.float64)}

    def exact(self, batches: Batches) -> Arrays:
        return {"f": np.zeros(1)}

    def loss(self, arrays: Arrays, batches: Batches) -> NDArray[np.float64]:
        x = _column(batches, "x")
        return np.where(x == INVALID, 2.0, (x >= 0.5).astype(np.float64))


class Right(WatchingBench):
    """Every task reads its own piece."""

    def reads(self, task: Task, piece: Piece) -> bool:
        return task.charge.piece == piece


class Overlapping(WatchingBench):
    """Every training reads the records of the first, though each is charged on a piece of its own."""

    def _held(self, piece: Piece) -> tuple[pa.RecordBatch, ...]:
        first = plan().levels[0].trains[0][0].piece
        return super()._held(first if "/train-" in piece.name else piece)

    def reads(self, task: Task, piece: Piece) -> bool:
        return "/train-" in task.charge.piece.name and "/train-" in piece.name


@cache
def plan() -> Schedule:
    return schedule(Tally(), TERMS, ["1"], EXPECTED)


def ratio(value: float, shift: float, release: LaplaceRelease) -> float:
    """The logarithm of the likelihood with the record over that without it; ``value`` is off what it is without."""
    return (abs(value) - abs(value - shift)) / float(release.scale)


def score(whole: Schedule, answers: Iterable[tuple[Task, Answer]]) -> float:
    """Of what was released. Positive: the record is there."""
    level, terms = whole.levels[0], whole.terms
    assert level.lower is not None
    train = LaplaceRelease(epsilon=level.level, sensitivity=1)
    upper, lower = upper_centre(terms.target), lower_centre(terms.target)
    found = 0.0
    for task, answer in answers:
        if isinstance(task, LookTask):
            found += ratio((answer.value or 0) - EACH * upper, upper - UNIT, level.look)
            found += ratio(answer.invalid or 0, 1, level.count) if answer.invalid is not None else 0.0
        else:
            assert answer.arrays is not None
            found += ratio(float(answer.arrays["f"][0]), 1, train)
            found += ratio(answer.value + EACH * lower, UNIT - lower, level.lower) if answer.value is not None else 0.0
    return found


def audited(place: str, extra: float, kind: type[MemoryBench], confidence: float) -> tuple[AuditResult, float]:
    """A lower bound on the loss at one point, and what the book says was charged there at most."""
    whole = plan()
    pieces = sorted({charge.piece for charge in whole.charges}, key=lambda one: one.start)
    point = next(one for one in pieces if one.name.endswith(place))
    middles = [float(one.start + one.stop) / 2 for one in pieces]
    claim, most = 0.0, 0

    def runs(side: int, count: int) -> NDArray[np.float64]:
        nonlocal claim, most
        tags = np.repeat(middles, EACH)
        x = np.full(len(tags), ORDINARY)
        if side:
            x, tags = np.append(x, extra), np.append(tags, float(point.start + point.stop) / 2)
        found = []
        for _ in range(count):
            bench: Any = kind(pa.table({"x": x}), tags)
            measured_profile(Tally(), TERMS, ["1"], bench, EXPECTED, plan=whole)
            found.append(score(whole, [one for one in bench.asked.values() if bench.reads(one[0], point)]))
            charged = [one for one in bench.spent if one.piece == point]
            if len(charged) > most:
                # What a run pays at the point only grows with the looks it takes.
                most, claim = len(charged), price_at(charged)[point].epsilon(0)
        return np.array(found)

    return audit_epsilon(runs, 0, 1, count=COUNT, confidence=confidence), claim


def cheap(release: LaplaceRelease, count: LaplaceRelease | None) -> Cost:
    """A sixth of what a look costs."""
    parts = [LaplaceRelease(epsilon=one.epsilon / 6, sensitivity=1).cost for one in (release, count) if one is not None]
    return sum(parts[1:], parts[0])


CASES: list[tuple[str, float, float]] = [("validation", INVALID, 6.0), ("train-8-1", WRONG, 1.5)]


@pytest.mark.parametrize(("place", "extra", "price"), CASES)
def test_neighbours_stay_within_what_the_book_says(place: str, extra: float, price: float) -> None:
    found, claim = audited(place, extra, Right, 1 - 1e-4)
    assert claim == pytest.approx(price)
    assert not found.contradicts(claim), found
    assert found.lower_bound > price / 8, "the score must tell something, or nothing would be caught"


def plant_cheap_looks(monkeypatch: pytest.MonkeyPatch) -> type[MemoryBench]:
    monkeypatch.setattr(scheduling, "cost_of_look", cheap)
    monkeypatch.setattr(sys.modules[__name__], "plan", plan.__wrapped__)
    return Right


def plant_overlap(_monkeypatch: pytest.MonkeyPatch) -> type[MemoryBench]:
    return Overlapping


@pytest.mark.parametrize(
    ("place", "extra", "plant"),
    [("validation", INVALID, plant_cheap_looks), ("train-8-1", WRONG, plant_overlap)],
)
def test_a_planted_undercharge_is_caught(
    place: str, extra: float, plant: Callable[..., type[MemoryBench]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found, claim = audited(place, extra, plant(monkeypatch), 0.99)
    assert found.contradicts(claim), (found, claim)
