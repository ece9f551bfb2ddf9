"""Measure levels: the doubling loop of Fig. 3, for several levels side by side.

A level trains a few states on pieces of its smallest size, looks at the worst of them on its
validation piece, and goes on to twice the size until the upper test passes (REACHED, with a state
as witness), the lower test does (RISK_ABOVE_TARGET), or the pieces are used up (NOT_REACHED). Each
decision depends on DP numbers only, so what is charged next is post-processing of what was released
before.

Which size passes is a matter of luck: few states, and the first lucky ones end the way. So a level
that has passed is read: many fresh states of that size, and what the worst of three of them has as
risk in the mean. Where that is within what passes, the next smaller size is read, else the next
larger one, until the risk has crossed; the estimate is where it did, between two sizes. Sizes too
large to be read leave the estimate to the looks.

Rounds are the same whatever runs them: every active level trains the next ``ahead`` sizes, then
looks at the states in their order; or it takes one reading. ``ahead`` above 1 shortens the way at
the price of trainings that a longer way would have saved; it is part of the terms, not of the
machine, so that results and charges are the same for any number of workers.

A level that fails does not touch the others. Results: REACHED, RISK_ABOVE_TARGET, NOT_REACHED,
FAILED (type and place, or LOSS_INVALID), TOO_LITTLE_DATA, CANCELLED, REFUSED, SKIPPED (another
level's result says it all).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from profiler.measuring.bench import Bench
from profiler.measuring.bounds import UNIT, UPPER_FAILURE, lower_centre, upper_centre
from profiler.measuring.pieces import PieceCost, parts_of
from profiler.measuring.schedule import REPEATS, LevelSchedule, Read, Schedule
from profiler.measuring.tasks import INVALID, Answer, LookTask, Noise, TrainTask
from ptklib.privacy.amounts import exact, show
from ptklib.ptk import Arrays, Ptk

__all__ = [
    "CANCELLED",
    "CONFIDENCE",
    "FAILED",
    "NOT_REACHED",
    "REACHED",
    "REFUSED",
    "RISK_ABOVE_TARGET",
    "SKIPPED",
    "TOO_LITTLE_DATA",
    "LevelResult",
    "Look",
    "Progress",
    "measure",
]

REACHED = "REACHED"
RISK_ABOVE_TARGET = "RISK_ABOVE_TARGET"
NOT_REACHED = "NOT_REACHED"
FAILED = "FAILED"
TOO_LITTLE_DATA = "TOO_LITTLE_DATA"
CANCELLED = "CANCELLED"
REFUSED = "REFUSED"
SKIPPED = "SKIPPED"

CONFIDENCE = 1 - Fraction(UPPER_FAILURE).limit_denominator(1000)
# A right PTK is called invalid this often, at most.
_INVALID_FAILURE = 1e-6

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Look:
    """The risk of the worst of some states of one sample size, from the noisy sum and the planned
    number of records.

    Of a reading: the mean of the worst of all groups of three.
    """

    samples: int
    risk: float
    states: int = REPEATS


@dataclass(frozen=True)
class LevelResult:
    """What one level gave. ``samples`` have a witness; ``estimate`` is where the risk crossed what
    passes, between two sizes of the ``readings``, or of the looks where there are none. It is above
    ``samples`` where the witness was lucky.

    ``state`` is DP and may be published: its risk is at most ``promised`` with probability
    ``confidence``. ``charged`` names what was spent, in order.
    """

    level: Fraction
    status: str
    samples: int | None = None
    estimate: int | None = None
    promised: Fraction | None = None
    confidence: Fraction | None = None
    looks: tuple[Look, ...] = ()
    readings: tuple[Look, ...] = ()
    charged: tuple[str, ...] = ()
    reason: str = ""
    state: Arrays | None = field(default=None, repr=False, compare=False)

    @property
    def trainings(self) -> int:
        """How many DP trainings ran."""
        read = [one.rsplit("-", 1)[1] for one in self.charged if "/read-" in one]
        return sum("/train-" in one for one in self.charged) + sum(map(int, read))

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, without the state."""
        return {
            "level": show(self.level),
            "status": self.status,
            "samples": self.samples,
            "estimate": self.estimate,
            "promised": None if self.promised is None else show(self.promised),
            "confidence": None if self.confidence is None else show(self.confidence),
            "looks": [[look.samples, look.risk, look.states] for look in self.looks],
            "readings": [
                [reading.samples, reading.risk, reading.states] for reading in self.readings
            ],
            "charged": list(self.charged),
            "trainings": self.trainings,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, body: dict[str, Any]) -> LevelResult:
        """Read `as_json` back; without the state."""
        return cls(
            level=exact(body["level"], name="level"),
            status=body["status"],
            samples=body["samples"],
            estimate=body["estimate"],
            looks=tuple(Look(*one) for one in body["looks"]),
            readings=tuple(Look(*one) for one in body.get("readings", ())),
            charged=tuple(body["charged"]),
            reason=body["reason"],
            promised=None if body["promised"] is None else exact(body["promised"], name="promised"),
            confidence=None
            if body["confidence"] is None
            else exact(body["confidence"], name="confidence"),
        )


def measure(
    ptk: Ptk,
    plan: Schedule,
    levels: Sequence[Fraction],
    bench: Bench,
    noise: Noise,
    *,
    first: int = 0,
    ahead: int = 1,
    progress: Progress | None = None,
    cancelled: Callable[[], bool] | None = None,
    finished: Callable[[LevelResult], None] | None = None,
) -> list[LevelResult]:
    """Measure these levels of a schedule whose charges are reserved; sizes below ``first`` are left
    out.

    Costs what the results' ``charged`` name. Charges that were not used are left to the caller to
    release. ``finished`` hears of each level whose end came from data, as it ends.
    """
    chains = [_Chain(ptk, plan, plan.at(level), noise, first) for level in levels]
    while active := [chain for chain in chains if chain.result is None]:
        if cancelled is not None and cancelled():
            for chain in active:
                chain.end(CANCELLED)
            break
        trains = [(chain, task) for chain in active for task in chain.trains(ahead)]
        for (chain, task), answer in zip(
            trains, bench.run([task for _, task in trains]), strict=True
        ):
            chain.trained(task, answer)
        for turn in range(ahead):
            looks = [(chain, look) for chain in active if (look := chain.look(turn)) is not None]
            for (chain, look), answer in zip(
                looks, bench.run([look for _, look in looks]), strict=True
            ):
                chain.looked(look, answer)
        for chain in active:
            chain.advance(ahead)
            if progress is not None:
                progress(chain.told())
            if finished is not None and chain.result is not None:
                finished(chain.result)
    level_results = [chain.result for chain in chains]
    return [level_result for level_result in level_results if level_result is not None]


class _Chain:
    """One level on its way: up to the size that passes, then readings around it."""

    def __init__(
        self, ptk: Ptk, plan: Schedule, level: LevelSchedule, noise: Noise, first: int
    ) -> None:
        self._ptk, self._plan, self._level, self._noise = ptk, plan, level, noise
        sizes = level.sizes
        # Never past the last one: that one is always tried.
        self._next = min(sum(size < first for size in sizes), max(0, len(sizes) - 1))
        self._states: dict[int, list[Answer]] = {}
        self._looks: list[Look] = []
        self._charged: list[str] = []
        self._reached: int | None = None
        self._witness: Arrays | None = None
        # The size that is read, its states, and what was read so far.
        self._read: int | None = None
        self._fresh: list[Answer] = []
        self._readings: list[Look] = []
        self.result: LevelResult | None = None
        if not sizes:
            needed = f"at least {level.needed_records} records are needed at this level"
            self.end(TOO_LITTLE_DATA, reason=needed)

    def end(self, status: str, *, reason: str = "") -> None:
        size = self._reached if status == REACHED else None
        self.result = LevelResult(
            level=self._level.level,
            status=status,
            samples=size,
            estimate=self._estimate(size) if size is not None else None,
            promised=self._plan.terms.promised if size is not None else None,
            confidence=CONFIDENCE if size is not None else None,
            looks=tuple(self._looks),
            readings=tuple(self._readings),
            charged=tuple(self._charged),
            reason=reason,
            state=self._witness if size is not None else None,
        )

    def trains(self, ahead: int) -> list[TrainTask]:
        if self._read is not None:
            read = self._level.reads[self._read]
            return [
                replace(self._train(read.train), part=part)
                for part in parts_of(read.train.piece, read.states)
            ]
        return [
            replace(self._train(charge), lower=self._level.lower if k == 0 else None)
            for size in self._level.trains[self._next : self._next + ahead]
            for k, charge in enumerate(size)
        ]

    def trained(self, task: TrainTask, answer: Answer) -> None:
        self._spent(task.charge, answer)
        if self._read is not None:
            self._fresh.append(answer)
            return
        place = next(k for k, size in enumerate(self._level.trains) if task.charge in size)
        self._states.setdefault(place, []).append(answer)

    def look(self, turn: int) -> LookTask | None:
        if self._read is not None:
            return self._reading() if turn == 0 else None
        place = self._next + turn
        if self.result is not None or self._reached is not None or place not in self._states:
            return None
        states = [state.arrays for state in self._states[place] if state.arrays is not None]
        if len(states) < len(self._states[place]):
            self.end(
                FAILED,
                reason=next(state.failure for state in self._states[place] if state.arrays is None),
            )
            return None
        return LookTask(
            charge=self._level.looks[place],
            ptk=self._ptk,
            states=tuple(states),
            centre=upper_centre(self._plan.terms.target),
            release=self._level.look,
            count=self._level.count if place == 0 else None,
            noise=self._noise,
        )

    def looked(self, task: LookTask, answer: Answer) -> None:
        self._spent(task.charge, answer)
        if self._read is not None:
            self._was_read(self._level.reads[self._read], task, answer)
            return
        place = self._level.looks.index(task.charge)
        if answer.value is None:
            self.end(FAILED, reason=answer.failure)
            return
        if answer.invalid is not None and answer.invalid > self._most_invalid():
            self.end(FAILED, reason=INVALID)
            return
        self._looks.append(
            Look(self._level.sizes[place], self._risk(answer.value), len(task.states))
        )
        lower = self._states[place][0].value
        if answer.value >= self._level.upper_threshold:
            self._reached, self._witness = self._level.sizes[place], self._states[place][0].arrays
        elif lower is not None and lower >= self._level.lower_threshold:
            self.end(
                RISK_ABOVE_TARGET,
                reason="no state of this kind can reach the target, with confidence 99.99%",
            )

    def advance(self, ahead: int) -> None:
        self._states = {}
        self._next += ahead
        if self.result is not None or self._read is not None:
            return
        if self._reached is not None:
            self._read = next(
                (k for k, one in enumerate(self._level.reads) if one.size == self._reached), None
            )
            if self._read is None:
                self.end(REACHED)
        elif self._next >= len(self._level.sizes):
            self.end(NOT_REACHED, reason=f"not reached by {self._level.sizes[-1]} samples")

    def told(self) -> str:
        going = "going on" if self._reached is None else "reading how many are needed"
        size = self._reached or self._level.sizes[min(self._next, len(self._level.sizes)) - 1]
        status = self.result.status if self.result is not None else going
        return f"epsilon {show(self._level.level)}, {size} samples: {status}"

    def _train(self, charge: PieceCost) -> TrainTask:
        terms = self._plan.terms
        return TrainTask(
            charge=charge,
            ptk=self._ptk,
            epsilon=self._level.level,
            delta=terms.delta,
            records_per_unit=terms.records_per_unit,
            lower=None,
            lower_centre=lower_centre(terms.target),
            noise=self._noise,
        )

    def _reading(self) -> LookTask | None:
        states = [answer.arrays for answer in self._fresh if answer.arrays is not None]
        failure = next((answer.failure for answer in self._fresh if answer.arrays is None), "")
        self._fresh = []
        if failure or self._level.read is None:
            self._unread(failure)
            return None
        return LookTask(
            charge=self._level.readings[len(self._readings)],
            ptk=self._ptk,
            states=tuple(states),
            centre=upper_centre(self._plan.terms.target),
            release=self._level.read,
            count=None,
            noise=self._noise,
            groups=REPEATS,
        )

    def _was_read(self, read: Read, task: LookTask, answer: Answer) -> None:
        if answer.value is None:
            self._unread(answer.failure)
            return
        assert self._read is not None
        self._readings.append(Look(read.size, self._risk(answer.value), len(task.states)))
        within = [reading.risk <= self._passes for reading in self._readings]
        self._read += -1 if within[0] else 1
        crossed = within[-1] != within[0]
        if (
            crossed
            or len(within) == len(self._level.readings)
            or not 0 <= self._read < len(self._level.reads)
        ):
            self.end(REACHED)

    def _unread(self, failure: str) -> None:
        """The witness stands all the same."""
        self.end(REACHED, reason=f"a reading failed: {failure}")

    def _spent(self, charge: PieceCost, answer: Answer) -> None:
        # States of a reading share a charge.
        if answer.charged and charge.name not in self._charged[-1:]:
            self._charged.append(charge.name)

    def _risk(self, value: int) -> float:
        assert self._level.validation is not None
        risk = (
            upper_centre(self._plan.terms.target) - value / self._level.validation.planned_records
        ) / UNIT
        return round(min(1.0, max(0.0, risk)), 6)

    @property
    def _passes(self) -> float:
        """The largest risk that passes."""
        return self._risk(self._level.upper_threshold)

    def _most_invalid(self) -> int:
        return math.ceil(float(self._level.count.scale) * -math.log(_INVALID_FAILURE))

    def _estimate(self, size: int) -> int:
        """Where the risk crossed what passes, between the last two sizes that were read or else
        looked at.
        """
        last = (self._readings or self._looks)[-2:]
        if len(last) < 2:
            return last[0].samples if last else size
        smaller, larger = sorted(last, key=lambda one: one.samples)
        if smaller.risk <= self._passes:
            return smaller.samples
        if larger.risk >= self._passes:
            return larger.samples
        along = (smaller.risk - self._passes) / (smaller.risk - larger.risk)
        found = math.ceil(float(smaller.samples * (larger.samples / smaller.samples) ** along))
        return max(1, min(larger.samples, found))
