"""The schedule of a profile, before anything runs: pieces, charges and the worst-case price. Public
numbers only.

For each measured level: one validation piece of m records, and for each sample size n = first, 2
first, 4 first, ... up to ``n_max`` a few train pieces (``repeats``). Every train piece may be
charged one training (the first of a size also one lower-bound number), the validation piece one
look for each sample size. All pieces are disjoint; sizes are those planned from the number of
records that the slice is expected to hold, which is public or DP.

*Repeats.* One state may be lucky: at a size where a third of all trainings succeed, Fig. 3 as
written stops once in three times. A size counts as enough when the worst of ``repeats`` states,
trained on different records, passes; one look tells. The first sizes train up to four times as
many, where their records are few beside the validation's: a guess passes a loose target easily, and
what a level is found to need is less a matter of luck.

*Readings.* How many samples are needed is told best by many trainings. Once a size has passed, the
estimate is read from up to `READINGS` sizes around it, some below the first one that is tested,
with up to ``states`` states of its own each: the mean of the worst of three. They are trained on
parts of one piece, with one charge; each reading has a charge of its own on the validation piece.
Sizes of which few states take half of that are not read. A slice too small for all of this keeps
its doublings and has fewer states to read, or none.

*First size.* A state that is epsilon-DP hardly depends on fewer than 1/epsilon records, and a
target t is about t n of them, so no doubling begins below 1/(2 epsilon t), rounded to a power of
two.

A level gets fewer doublings where the slice is too small for all of them; where not even its
validation and one training fit, its schedule is empty and the result will be TOO_LITTLE_DATA, at no
cost.

Reasons: PRICES_INVALID, LEVELS_INVALID, and those of `bounds` and `amounts`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from profiler.measuring import bounds
from profiler.measuring.pieces import Piece, PieceCost, check_disjoint, price_at
from profiler.measuring.tasks import cost_of_look, look_release, lower_release
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, delta_exact, epsilon_exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Ptk, count_of

__all__ = [
    "EARLY_SIZES",
    "READINGS",
    "REPEATS",
    "STATES",
    "LevelSchedule",
    "Prices",
    "ProfileTerms",
    "Read",
    "Schedule",
    "schedule",
]

REPEATS = 3
# So many of the first sizes of a level train up to so many times the states, as long as the records
# of one state of each time are together at most this share of the validation piece.
EARLY_SIZES = 3
_EARLY_TIMES = 4
_EARLY_SHARE = Fraction(1, 4)
# States of one reading, at most and at least; their records are at most this share of the
# validation piece, or down to an eighth of it in a slice that has no room.
STATES = 96
_LEAST_STATES = 6
_READ_SHARES = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
# Sizes that are read at a level, at most.
READINGS = 4
# Of the price of all looks, what the number of invalid losses may take, and all readings together.
_COUNT_PART = Fraction(1, 10)
_READ_PART = Fraction(1, 5)


@dataclass(frozen=True)
class Prices:
    """Epsilons of what a profile releases beside the trainings: of all looks at a level together,
    and of one lower test.
    """

    looks: Fraction
    lower: Fraction

    @classmethod
    def of(cls, epsilon: Number, *, looks: Number = "1/2", lower: Number = "1/8") -> Prices:
        """Shares of a stream's epsilon."""
        whole = epsilon_exact(epsilon)
        return cls(
            whole * epsilon_exact(looks, name="looks"), whole * epsilon_exact(lower, name="lower")
        )

    def __post_init__(self) -> None:
        """Both positive."""
        if not (self.looks > 0 and self.lower > 0):
            raise InvalidInput(
                "PRICES_INVALID", "the prices of looks and of the lower test must be positive"
            )


@dataclass(frozen=True, kw_only=True)
class ProfileTerms:
    """What is asked of a profile. ``target`` is that of Fig. 3: a witness promises a risk of at
    most twice as much.

    ``states`` are those of a reading, at most; with 0 nothing is read, and estimates come from the
    looks.
    """

    target: Fraction
    delta: Fraction = Fraction(0)
    records_per_unit: int = 1
    prices: Prices
    first: int | None = None
    repeats: int = REPEATS
    states: int = STATES
    n_max: int = 1 << 20

    @classmethod
    def of(
        cls,
        target: Number,
        epsilon: Number,
        *,
        promise: str = "2tau",
        delta: Number = 0,
        records_per_unit: int = 1,
        n_max: int = 1 << 20,
        first: int | None = None,
        repeats: int = REPEATS,
        states: int = STATES,
        prices: Prices | None = None,
    ) -> ProfileTerms:
        """Terms on a stream of that epsilon.

        ``promise="tau"`` profiles at half the target, to promise the target itself.
        """
        if promise not in ("2tau", "tau"):
            raise InvalidInput(
                "PRICES_INVALID", f"promise must be '2tau' or 'tau', got {promise!r:.40}"
            )
        wanted = bounds.target_exact(target)
        return cls(
            target=wanted if promise == "2tau" else wanted / 2,
            delta=delta_exact(delta),
            records_per_unit=count_of(records_per_unit),
            prices=prices or Prices.of(epsilon),
            first=None if first is None else count_of(first, name="first"),
            repeats=count_of(repeats, name="repeats"),
            states=count_of(states, name="states") if states else 0,
            n_max=count_of(n_max, name="n_max"),
        )

    @property
    def promised(self) -> Fraction:
        """The risk that a witness stays within."""
        return min(Fraction(1), 2 * self.target)

    def repeats_at(self, sizes: Sequence[int], validation: int) -> tuple[int, ...]:
        """How many states are trained at each size of a level, beside so many records for
        validation.
        """
        room = [math.floor(validation * _EARLY_SHARE / size) for size in sizes[:EARLY_SIZES]]
        times = [max(1, min(_EARLY_TIMES, one)) for one in room] + [1] * (len(sizes) - len(room))
        return tuple(self.repeats * time for time in times)

    def sizes(self, level: Fraction) -> tuple[int, ...]:
        """The sample sizes at a level: doublings of the first up to ``n_max``."""
        size = self.first or 2 ** max(0, round(-math.log2(2 * level * self.target)))
        found = []
        while size <= self.n_max:
            found.append(size)
            size *= 2
        return tuple(found)


@dataclass(frozen=True)
class Read:
    """A sample size that may be read: so many states, trained side by side on parts of one
    piece.
    """

    size: int
    states: int
    train: PieceCost


@dataclass(frozen=True)
class LevelSchedule:
    """One level: its pieces with their charges (trainings and one look for each sample size, then
    sizes that may be read and as many readings as may be), and the thresholds of its tests.

    ``needed_records`` is what the schedule takes, or for an empty one what the least schedule
    would.
    """

    level: Fraction
    sizes: tuple[int, ...]
    validation: Piece | None
    trains: tuple[tuple[PieceCost, ...], ...]
    looks: tuple[PieceCost, ...]
    look: LaplaceRelease
    count: LaplaceRelease
    lower: LaplaceRelease | None
    upper_threshold: int
    lower_threshold: int
    needed_records: int
    read: LaplaceRelease | None = None
    reads: tuple[Read, ...] = ()
    readings: tuple[PieceCost, ...] = ()

    @property
    def charges(self) -> tuple[PieceCost, ...]:
        """All charges in the worst case. Not every size that may be read is, but each may be."""
        trains = tuple(charge for size in self.trains for charge in size)
        return trains + self.looks + tuple(read.train for read in self.reads) + self.readings


@dataclass(frozen=True)
class Schedule:
    """All levels of a profile. What it can cost at most is known from here."""

    terms: ProfileTerms
    levels: tuple[LevelSchedule, ...]
    expected_records: int

    @property
    def charges(self) -> tuple[PieceCost, ...]:
        """Everything that may be charged: reserve it as a whole before anything runs."""
        return tuple(charge for level in self.levels for charge in level.charges)

    @property
    def worst_case(self) -> dict[Piece, Cost]:
        """The price at the points of each piece if everything runs."""
        return price_at(self.charges)

    def at(self, level: Fraction) -> LevelSchedule:
        """The schedule of one level."""
        return next(
            level_schedule for level_schedule in self.levels if level_schedule.level == level
        )


def schedule(
    ptk: Ptk, terms: ProfileTerms, levels: Sequence[Number], expected_records: int
) -> Schedule:
    """Lay out the pieces of all levels.

    Levels share the slice evenly: each gets as many doublings as fit its part.
    """
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    if not grid or list(grid) != sorted(set(grid)):
        raise InvalidInput(
            "LEVELS_INVALID", "levels must be epsilons in rising order, at least one"
        )
    part = max(0, expected_records) // len(grid)
    found = []
    begin = Fraction(0)
    for level in grid:
        level_schedule, begin = _level(ptk, terms, level, part, begin, max(1, expected_records))
        found.append(level_schedule)
    whole = Schedule(terms, tuple(found), expected_records)
    check_disjoint({charge.piece for charge in whole.charges})
    return whole


def _level(
    ptk: Ptk, terms: ProfileTerms, level: Fraction, part: int, begin: Fraction, expected: int
) -> tuple[LevelSchedule, Fraction]:
    sizes = terms.sizes(level)
    plan = _numbers(ptk, terms, level, len(sizes) or 1, Fraction(0))
    needed = _needed(terms, plan, sizes)
    while sizes and needed > part:
        sizes = sizes[:-1]
        plan = _numbers(ptk, terms, level, len(sizes) or 1, Fraction(0))
        needed = _needed(terms, plan, sizes) if sizes else needed
    if not sizes:
        return replace(plan, needed_records=needed), begin
    read = _numbers(ptk, terms, level, len(sizes), _READ_PART)
    readable = _readable(terms, sizes, read.needed_records, part - _needed(terms, read, sizes))
    if readable:
        plan, needed = read, _needed(terms, read, sizes)
    name = f"level {show(level)}"

    def piece(what: str, records: int) -> Piece:
        nonlocal begin
        start, begin = begin, begin + Fraction(records, expected)
        return Piece(f"{name}/{what}", start, begin, records)

    validation = piece("validation", plan.needed_records)
    price = ptk.cost(level, terms.delta, records_per_unit=terms.records_per_unit)
    tested = price if plan.lower is None else price + plan.lower.cost
    trains = []
    for size, repeats in zip(sizes, terms.repeats_at(sizes, plan.needed_records), strict=True):
        pieces = [piece(f"train-{size}-{k + 1}", size) for k in range(repeats)]
        trains.append(
            tuple(PieceCost(one.name, one, price if k else tested) for k, one in enumerate(pieces))
        )
    looks = tuple(
        PieceCost(
            f"{name}/look-{size}",
            validation,
            cost_of_look(plan.look, plan.count if size == sizes[0] else None),
        )
        for size in sizes
    )
    reads = []
    for size, states in readable:
        whole = piece(f"read-{size}-{states}", size * states)
        reads.append(Read(size, states, PieceCost(whole.name, whole, price)))
    readings = tuple(
        PieceCost(f"{name}/reading-{k + 1}", validation, plan.read.cost)
        for k in range(min(READINGS, len(reads)))
        if plan.read is not None
    )
    taken = needed + sum(read.size * read.states for read in reads)
    done = replace(
        plan,
        sizes=sizes,
        validation=validation,
        trains=tuple(trains),
        looks=looks,
        needed_records=taken,
    )
    return replace(done, reads=tuple(reads), readings=readings), begin


def _readable(
    terms: ProfileTerms, sizes: Sequence[int], validation: int, room: int
) -> list[tuple[int, int]]:
    """Sizes that may be read and their states, rising; a smaller room has fewer states at each
    size.
    """
    below = [sizes[0] >> k for k in range(READINGS - 1, 0, -1) if sizes[0] >> k]
    for share in _READ_SHARES:
        states = {
            size: min(terms.states, math.floor(validation * share / size))
            for size in [*below, *sizes]
        }
        found = [(size, one) for size, one in states.items() if one >= _LEAST_STATES]
        if sum(size * one for size, one in found) <= room:
            return found
    return []


def _needed(terms: ProfileTerms, plan: LevelSchedule, sizes: Sequence[int]) -> int:
    """Records for the validation piece and all trainings of these sizes."""
    repeats = terms.repeats_at(sizes, plan.needed_records)
    return plan.needed_records + sum(
        size * times for size, times in zip(sizes, repeats, strict=True)
    )


def _numbers(
    ptk: Ptk, terms: ProfileTerms, level: Fraction, looks: int, read_part: Fraction
) -> LevelSchedule:
    """The mechanisms and thresholds of a level with so many looks and that part of their price for
    readings; no pieces yet.
    """
    units = terms.records_per_unit
    count = LaplaceRelease(epsilon=terms.prices.looks * _COUNT_PART, sensitivity=units)
    each = terms.prices.looks * (1 - _COUNT_PART - read_part) / looks
    look = look_release(each, units)
    lower = lower_release(terms.prices.lower, units) if ptk.tags.exact_minimiser else None
    return LevelSchedule(
        level=level,
        sizes=(),
        validation=None,
        trains=(),
        looks=(),
        look=look,
        count=count,
        lower=lower,
        upper_threshold=bounds.upper_threshold(terms.target, look.scale, looks, units),
        lower_threshold=bounds.lower_threshold(terms.target, lower.scale, looks, units)
        if lower is not None
        else 0,
        needed_records=bounds.validation_records(terms.target, look.scale, looks, each, units),
        read=look_release(terms.prices.looks * read_part / READINGS, units) if read_part else None,
    )
