"""Measure levels: the search of Fig. 3, for several levels side by side.

A level trains a few states on pieces of a sample size in the middle of its sizes, and looks at the
worst of them on its validation piece. Where the upper test passes it goes on with smaller sizes,
else with larger ones, until the least size that passes is found (REACHED, with a state as witness,
and as many samples as training needs, see `retraining`), the lower test passes (RISK_ABOVE_TARGET),
or not even the largest does (NOT_REACHED).

What was found is *confirmed*: the records of sizes that were not tried are there still, and their
charges pay for one training at each point. They are cut into trainings of the size that was found,
and one look at the worst of these says whether that size may be planned as it is. If not, four times
as many samples are planned.

Each decision depends on DP numbers only, so what is charged next is post-processing of what was
released before.

Which size passes is a matter of luck still. So a level that has passed is read: many fresh states
of that size, and what the worst of three of them has as risk in the mean. Where that is within what
passes, the next smaller size is read, else the next larger one, until the risk has crossed; the
estimate is where it did, between two sizes. Sizes too large to be read leave the estimate to the
looks. Readings decide nothing else.

Rounds are the same whatever runs them: every active level trains its next size, then looks at the
states; or it takes one reading.

A level that fails does not touch the others. Results: REACHED, RISK_ABOVE_TARGET, NOT_REACHED,
FAILED (type and place, or LOSS_INVALID), TOO_LITTLE_DATA, CANCELLED, REFUSED, SKIPPED (another
level's result says it all).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction

from profiler.measuring.bench import Bench
from profiler.measuring.bounds import lower_centre
from profiler.measuring.pieces import PieceCost, parts_of
from profiler.measuring.results import (
    CANCELLED,
    CONFIDENCE,
    FAILED,
    NOT_REACHED,
    REACHED,
    RISK_ABOVE_TARGET,
    TOO_LITTLE_DATA,
    LevelResult,
    Look,
)
from profiler.measuring.retraining import MOST_STATES, lifted
from profiler.measuring.schedule import GROUP, LevelSchedule, Read, Schedule
from profiler.measuring.tasks import INVALID, Answer, LookTask, Noise, TrainTask
from ptklib.privacy.amounts import show
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Ptk

__all__ = ["Progress", "measure"]

# A right PTK is called invalid this often, at most.
_INVALID_FAILURE = 1e-6

Progress = Callable[[str], None]


def measure(
    ptk: Ptk,
    plan: Schedule,
    levels: Sequence[Fraction],
    bench: Bench,
    noise: Noise,
    *,
    first: int = 0,
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
        trains = [(chain, task) for chain in active for task in chain.trains()]
        for (chain, task), answer in zip(
            trains, bench.run([task for _, task in trains]), strict=True
        ):
            chain.trained(task, answer)
        looks = [(chain, look) for chain in active if (look := chain.look()) is not None]
        for (chain, look), answer in zip(
            looks, bench.run([look for _, look in looks]), strict=True
        ):
            chain.looked(look, answer)
        for chain in active:
            if progress is not None:
                progress(chain.told())
            if finished is not None and chain.result is not None:
                finished(chain.result)
    level_results = [chain.result for chain in chains]
    return [level_result for level_result in level_results if level_result is not None]


class _Chain:
    """One level on its way: to the least size that passes, then readings around it."""

    def __init__(
        self, ptk: Ptk, plan: Schedule, level: LevelSchedule, noise: Noise, first: int
    ) -> None:
        self._ptk, self._plan, self._level, self._noise = ptk, plan, level, noise
        sizes = level.sizes
        # The places that may be the least that passes; the last one is always among them.
        self._low = min(sum(size < first for size in sizes), max(0, len(sizes) - 1))
        self._high = len(sizes)
        self._states: list[Answer] = []
        self._looks: list[Look] = []
        self._charged: list[str] = []
        self._reached: int | None = None
        self._witness: Arrays | None = None
        # The size that is read, and what was read so far.
        self._read: int | None = None
        self._readings: list[Look] = []
        self._trained, self._run = 0, set[int]()
        # None before what was found is looked at once more; then whether it was confirmed.
        self._confirming: list[TrainTask] = []
        self._confirmed: int | None = None
        self.result: LevelResult | None = None
        if not sizes:
            needed = f"at least {level.needed_records} records are needed at this level"
            self.end(TOO_LITTLE_DATA, reason=needed)

    def end(self, status: str, *, reason: str = "") -> None:
        place = self._reached if status == REACHED else None
        size = None if place is None else self._level.sizes[place]
        self.result = LevelResult(
            level=self._level.level,
            status=status,
            samples=None if place is None else self._samples(place),
            size=size,
            estimate=self._estimate(size) if size is not None else None,
            promised=self._plan.terms.promised if size is not None else None,
            confidence=CONFIDENCE if size is not None else None,
            looks=tuple(self._looks),
            readings=tuple(self._readings),
            charged=tuple(self._charged),
            trainings=self._trained,
            reason=reason,
            state=self._witness if size is not None else None,
        )

    def trains(self) -> list[TrainTask]:
        if self._read is not None:
            read = self._level.reads[self._read]
            return [
                replace(self._train(read.train), part=part)
                for part in parts_of(read.train.piece, read.states)
            ]
        if self._confirming:
            return self._confirming
        trains = self._level.trains[self._middle]
        self._run.add(self._middle)
        return [
            replace(self._train(charge), part=part, lower=None if k else self._level.lower)
            for k, (charge, part) in enumerate(trains.parts())
        ]

    def trained(self, task: TrainTask, answer: Answer) -> None:
        self._spent(task.charge, answer)
        self._trained += answer.charged
        self._states.append(answer)

    def look(self) -> LookTask | None:
        failed = [state.failure for state in self._states if state.arrays is None]
        if failed:
            if self._read is not None:
                self._unread(failed[0])
            else:
                self.end(FAILED, reason=failed[0])
            return None
        states = tuple(state.arrays for state in self._states if state.arrays is not None)
        if self._read is not None:
            return self._reading(states)
        charge = self._level.looks[len(self._looks)]
        task = self._looking(charge, states, self._level.look)
        return task if self._looks else replace(task, count=self._level.count)

    def looked(self, task: LookTask, answer: Answer) -> None:
        self._spent(task.charge, answer)
        states, self._states = self._states, []
        if self._read is not None:
            self._was_read(self._level.reads[self._read], task, answer)
            return
        if answer.value is None:
            self.end(FAILED, reason=answer.failure)
            return
        if answer.invalid is not None and answer.invalid > self._most_invalid():
            self.end(FAILED, reason=INVALID)
            return
        test, middle, risk = self._level.test, self._middle, self._risk(answer.value)
        margin = round(test.margin, 6)
        if self._confirming and self._reached is not None:
            size, self._confirming = self._level.sizes[self._reached], []
            self._looks.append(Look(size, risk, len(task.states), margin))
            self._confirmed = len(task.states) if answer.value >= test.threshold else 0
            self._go_reading()
            return
        self._looks.append(Look(self._level.sizes[middle], risk, len(task.states), margin))
        lower = states[0].value
        if answer.value >= test.threshold:
            self._high = self._reached = middle
            self._witness = states[0].arrays
        elif lower is not None and lower >= self._level.lower_threshold and self._reached is None:
            self.end(
                RISK_ABOVE_TARGET,
                reason="no state of this kind can reach the target, with confidence 99.99%",
            )
            return
        else:
            self._low = middle + 1
        if self._low >= self._high:
            self._found()

    def told(self) -> str:
        size = self._looks[-1].samples if self._looks else self._level.sizes[self._middle]
        going = "going on" if self._read is None else "reading how many are needed"
        status = self.result.status if self.result is not None else going
        return f"epsilon {show(self._level.level)}, {size} samples: {status}"

    @property
    def _middle(self) -> int:
        """The place that is tried next."""
        return min((self._low + self._high) // 2, len(self._level.sizes) - 1)

    def _found(self) -> None:
        """The search is over."""
        if self._reached is None:
            largest = len(self._level.sizes) - 1
            size, planned = self._level.sizes[largest], self._planned(largest)
            self.end(NOT_REACHED, reason=f"not reached by {size} samples, to plan with {planned}")
            return
        self._confirming = self._unused(self._level.sizes[self._reached])
        if not self._confirming:
            self._go_reading()

    def _unused(self, size: int) -> list[TrainTask]:
        """Trainings of that size on the records of sizes that were not tried: enough for no lift."""
        assert self._reached is not None
        wanted = MOST_STATES - self._level.trains[self._reached].states
        tasks: list[TrainTask] = []
        for place, trains in enumerate(self._level.trains):
            if place in self._run or len(tasks) >= wanted:
                continue
            # The first piece has another price.
            for charge in trains.charges[1:]:
                count = min(wanted - len(tasks), charge.piece.planned_records // size)
                whole = charge.piece.planned_records // size
                parts = parts_of(charge.piece, whole)[:count] if whole else ()
                tasks += [replace(self._train(charge), part=part) for part in parts]
        return tasks

    def _go_reading(self) -> None:
        assert self._reached is not None
        size = self._level.sizes[self._reached]
        self._read = next(
            (k for k, read in enumerate(self._level.reads) if read.size == size), None
        )
        if self._read is None:
            self.end(REACHED)

    def _planned(self, place: int) -> int:
        trains = self._level.trains[place]
        return lifted(trains.size, trains.states)

    def _samples(self, place: int) -> int:
        """What to plan where the size at that place is the least that passed."""
        trains = self._level.trains[place]
        if self._confirmed is None:
            return self._planned(place)
        if self._confirmed:
            return lifted(trains.size, trains.states + self._confirmed)
        # One of 16 missed, say: at four times the size that is one in thousands, as misses fall.
        return max(self._planned(place), 4 * trains.size)

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

    def _reading(self, states: tuple[Arrays, ...]) -> LookTask | None:
        if self._level.read is None:
            self._unread("")
            return None
        charge = self._level.readings[len(self._readings)]
        return replace(self._looking(charge, states, self._level.read), groups=GROUP)

    def _looking(
        self, charge: PieceCost, states: tuple[Arrays, ...], release: LaplaceRelease
    ) -> LookTask:
        return LookTask(
            charge=charge,
            ptk=self._ptk,
            states=states,
            centre=self._level.test.centre,
            release=release,
            count=None,
            noise=self._noise,
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
        # States that lie side by side share a charge.
        if answer.charged and charge.name not in self._charged[-1:]:
            self._charged.append(charge.name)

    def _risk(self, value: int) -> float:
        return round(min(1.0, max(0.0, self._level.test.risk(value))), 6)

    @property
    def _passes(self) -> float:
        """The largest risk that passes."""
        return self._risk(self._level.test.threshold)

    def _most_invalid(self) -> int:
        return math.ceil(float(self._level.count.scale) * -math.log(_INVALID_FAILURE))

    def _estimate(self, size: int) -> int:
        """Where the risk crossed what passes, between the last two sizes that were read or else the
        largest that missed and the least that passed.
        """
        last = self._readings[-2:] or self._around(size)
        if len(last) < 2:
            return last[0].samples if last else size
        smaller, larger = sorted(last, key=lambda reading: reading.samples)
        if smaller.risk <= self._passes:
            return smaller.samples
        if larger.risk >= self._passes:
            return larger.samples
        along = (smaller.risk - self._passes) / (smaller.risk - larger.risk)
        crossing = math.ceil(float(smaller.samples * (larger.samples / smaller.samples) ** along))
        return max(1, min(larger.samples, crossing))

    def _around(self, size: int) -> list[Look]:
        below = [look for look in self._looks if look.samples < size]
        missed = sorted(below, key=lambda look: look.samples)[-1:]
        return missed + [look for look in self._looks if look.samples == size][:1]
