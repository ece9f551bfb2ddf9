"""The schedule of a profile, before anything runs: pieces, charges and the worst-case price. Public
numbers only.

For each measured level: one validation piece of m records, and for each sample size n = first, 2
first, 4 first, ... up to ``n_max`` the pieces of a few trainings. What training at a size may do is
in `retraining`: between 2 and 16 states, whose worst must pass. Sizes are searched by halving, so a
level takes about the logarithm of their number in looks, and one to confirm what was found with the
records of sizes that were never tried; each has its part of the price.
Every train piece may be charged one training (the first of a size also one lower-bound number), the
validation piece one look after the other. All pieces are disjoint; sizes are those planned from the
number of records that the slice is expected to hold, which is public or DP.

*Pieces of a size.* The first state has a piece of its own, for the lower-bound number; the others
share a piece and a charge and lie side by side on it.

*Readings.* How many samples are needed is told best by many trainings. Once a size has passed, the
estimate is read from up to `READINGS` sizes around it, some below the first one that is tested,
with up to ``states`` states of its own each: the mean of the worst of three. They are trained on
parts of one piece, with one charge; each reading has a charge of its own on the validation piece.
Sizes of which few states take half of that are not read. A slice too small for all of this keeps
its doublings and has fewer states to read, or none.

*Small slices.* The highest level has half of the slice, for it is what every plan can use. A level
gets fewer doublings, fewer states and less validation (a larger margin) where the slice is small;
`profiler.fitting` measures fewer levels before that costs them their doublings. Where not even a
coarse validation and two trainings of the first size fit, the schedule of a level is empty and the
result will be TOO_LITTLE_DATA, at no cost.

Reasons: LEVELS_INVALID, and those of `bounds` and `amounts`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from profiler.measuring import bounds
from profiler.measuring.constant import RECORDS, ConstantCharges, constant_charges, label_of
from profiler.measuring.pieces import Piece, PieceCost, check_disjoint, parts_of, price_at
from profiler.measuring.retraining import LEAST_STATES, states_for
from profiler.measuring.tasks import cost_of_look, look_release, lower_release
from profiler.measuring.terms import ProfileTerms
from ptklib.errors import InvalidInput
from ptklib.privacy.amounts import Number, epsilon_exact, show
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Ptk

__all__ = [
    "GROUP",
    "READINGS",
    "LevelSchedule",
    "Read",
    "Schedule",
    "Trains",
    "schedule",
]

# States whose worst is one number of a reading.
GROUP = 3
# Validation: the margin is at most this part of the target, and need not be less than that one; of a
# small slice it takes this share.
_COARSE, _FINE, _VALIDATION = Fraction(1, 2), Fraction(1, 8), Fraction(2, 5)
# States of one reading, at least; their records are at most this share of the validation piece, or
# down to an eighth of it in a slice that has no room.
_LEAST_STATES = 6
_READ_SHARES = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 8))
# A constant is learnt where the level has so many times its records.
_ROOM = 5
# Sizes that are read at a level, at most.
READINGS = 4
# Of the price of all looks, what the number of invalid losses may take, and all readings together.
_COUNT_PART = Fraction(1, 10)
_READ_PART = Fraction(1, 5)


@dataclass(frozen=True)
class Read:
    """A sample size that may be read: so many states, trained side by side on parts of one
    piece.
    """

    size: int
    states: int
    train: PieceCost


@dataclass(frozen=True)
class Trains:
    """A sample size that may be tested: so many states, the first on a piece of its own, the others
    on parts of another.
    """

    size: int
    states: int
    charges: tuple[PieceCost, ...]

    def parts(self) -> tuple[tuple[PieceCost, Piece | None], ...]:
        """The charge and the part of each state; None where the whole piece is its own."""
        first, *rest = self.charges
        shared = [
            (charge, part) for charge in rest for part in parts_of(charge.piece, self.states - 1)
        ]
        return (first, None), *shared


@dataclass(frozen=True)
class LevelSchedule:
    """One level: its pieces with their charges (trainings of each sample size and the looks, then
    sizes that may be read and as many readings as may be), and the thresholds of its tests.

    ``needed_records`` is what the schedule takes, or for an empty one what the least schedule
    would.
    """

    level: Fraction
    sizes: tuple[int, ...]
    validation: Piece | None
    trains: tuple[Trains, ...]
    looks: tuple[PieceCost, ...]
    look: LaplaceRelease
    count: LaplaceRelease
    lower: LaplaceRelease | None
    test: bounds.RiskTest
    lower_threshold: int
    needed_records: int
    read: LaplaceRelease | None = None
    reads: tuple[Read, ...] = ()
    readings: tuple[PieceCost, ...] = ()

    @property
    def charges(self) -> tuple[PieceCost, ...]:
        """All charges in the worst case. Not every size that may be read is, but each may be."""
        trains = tuple(charge for size in self.trains for charge in size.charges)
        return trains + self.looks + tuple(read.train for read in self.reads) + self.readings


@dataclass(frozen=True)
class Schedule:
    """All levels of a profile. What it can cost at most is known from here."""

    terms: ProfileTerms
    levels: tuple[LevelSchedule, ...]
    expected_records: int
    constant: ConstantCharges | None = None

    @property
    def charges(self) -> tuple[PieceCost, ...]:
        """Everything that may be charged: reserve it as a whole before anything runs."""
        levels = tuple(charge for level in self.levels for charge in level.charges)
        return levels if self.constant is None else levels + self.constant.charges

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
    """Lay out the pieces of all levels: the highest has half of the slice, the others share the
    rest evenly. A supervised PTK is held against the best constant at the highest level, where there
    is room (`constant`).
    """
    grid = tuple(epsilon_exact(level, name="level") for level in levels)
    if not grid or list(grid) != sorted(set(grid)):
        raise InvalidInput(
            "LEVELS_INVALID", "levels must be epsilons in rising order, at least one"
        )
    half = max(0, expected_records) // min(2, len(grid))
    told = RECORDS if label_of(ptk) is not None and half >= _ROOM * RECORDS else 0
    schedules = []
    begin = Fraction(0)
    for level in grid:
        part = half - told if level == grid[-1] else half // (len(grid) - 1)
        level_schedule, begin = _level(ptk, terms, level, part, begin, max(1, expected_records))
        schedules.append(level_schedule)
    validation, constant = schedules[-1].validation, None
    if told and validation is not None:
        width = Fraction(told, max(1, expected_records))
        constant = constant_charges(ptk, terms, grid[-1], validation, begin, width)
    whole = Schedule(terms, tuple(schedules), expected_records, constant)
    check_disjoint({charge.piece for charge in whole.charges})
    return whole


@dataclass(frozen=True)
class _Room:
    """How a level's part of the slice is used: its sizes, their states, records for validation."""

    sizes: tuple[int, ...]
    states: tuple[int, ...]
    validation: int

    @property
    def records(self) -> int:
        return self.validation + sum(map(int.__mul__, self.sizes, self.states))


def _level(
    ptk: Ptk, terms: ProfileTerms, level: Fraction, part: int, begin: Fraction, expected: int
) -> tuple[LevelSchedule, Fraction]:
    room, least = _fit(terms, terms.sizes(level), part, Fraction(0))
    if room is None:
        return _numbers(ptk, terms, level, _Room((), (), 1), least, Fraction(0)), begin
    read_part, readable = Fraction(0), []
    with_reads, _ = _fit(terms, room.sizes, part, _READ_PART)
    if with_reads is not None and with_reads.sizes == room.sizes:
        left = part - with_reads.records
        readable = _readable(terms, room.sizes, with_reads.validation, left)
    if readable:
        room, read_part = with_reads or room, _READ_PART
    taken = room.records + sum(size * states for size, states in readable)
    plan = _numbers(ptk, terms, level, room, taken, read_part)
    price = ptk.cost(level, terms.delta, records_per_unit=terms.records_per_unit)
    return _laid(plan, room, readable, price, begin, expected)


def _laid(
    plan: LevelSchedule,
    room: _Room,
    readable: Sequence[tuple[int, int]],
    price: Cost,
    begin: Fraction,
    expected: int,
) -> tuple[LevelSchedule, Fraction]:
    """The pieces of a level, side by side from ``begin`` on, and where they end."""
    name = f"level {show(plan.level)}"

    def piece(what: str, records: int) -> Piece:
        nonlocal begin
        start, begin = begin, begin + Fraction(records, expected)
        return Piece(f"{name}/{what}", start, begin, records)

    validation = piece("validation", room.validation)
    tested = price if plan.lower is None else price + plan.lower.cost
    trains = []
    for size, states in zip(room.sizes, room.states, strict=True):
        first = piece(f"train-{size}-1", size)
        charges = [PieceCost(first.name, first, tested)]
        if states > 1:
            more = piece(f"train-{size}-more-{states - 1}", size * (states - 1))
            charges.append(PieceCost(more.name, more, price))
        trains.append(Trains(size, states, tuple(charges)))
    looks = tuple(
        PieceCost(
            f"{name}/look-{k + 1}", validation, cost_of_look(plan.look, None if k else plan.count)
        )
        for k in range(_looks(room.sizes))
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
    done = replace(plan, sizes=room.sizes, validation=validation, trains=tuple(trains), looks=looks)
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
        readable = [(size, count) for size, count in states.items() if count >= _LEAST_STATES]
        if sum(size * count for size, count in readable) <= room:
            return readable
    return []


def _looks(sizes: Sequence[int]) -> int:
    """Looks of a search by halving, at most, and one that confirms."""
    return len(sizes).bit_length() + 1


def _look(terms: ProfileTerms, looks: int, read_part: Fraction) -> LaplaceRelease:
    each = terms.prices.looks * (1 - _COUNT_PART - read_part) / looks
    return look_release(each, terms.records_per_unit)


def _fit(
    terms: ProfileTerms, sizes: Sequence[int], part: int, read_part: Fraction
) -> tuple[_Room | None, int]:
    """As many of the first sizes as fit into a part, and how to use it; else how many records the
    first size would take.
    """
    least = 0
    for count in range(len(sizes), 0, -1):
        few = tuple(sizes[:count])
        looks = _looks(few)
        scale = _look(terms, looks, read_part).scale

        def records(share: Fraction, scale: Fraction = scale, looks: int = looks) -> int:
            units = terms.records_per_unit
            return bounds.validation_records(terms.target, scale, looks, share, units)

        coarse = records(_COARSE)
        least = coarse + sum(few) * min(LEAST_STATES, terms.repeats)
        if least > part:
            continue
        fine = records(_FINE)
        most = part - (least - coarse)
        validation = min(fine, most, max(coarse, math.floor(part * _VALIDATION)))
        states = states_for(few, part - validation, terms.repeats)
        assert states is not None
        left = part - _Room(few, states, validation).records
        return _Room(few, states, min(fine, validation + left)), least
    return None, least


def _numbers(
    ptk: Ptk, terms: ProfileTerms, level: Fraction, room: _Room, needed: int, read_part: Fraction
) -> LevelSchedule:
    """The mechanisms and thresholds of a level; no pieces yet."""
    units, looks = terms.records_per_unit, _looks(room.sizes)
    count = LaplaceRelease(epsilon=terms.prices.looks * _COUNT_PART, sensitivity=units)
    look = _look(terms, looks, read_part)
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
        test=bounds.risk_test(terms.target, look.scale, looks, room.validation, units),
        lower_threshold=bounds.lower_threshold(terms.target, lower.scale, looks, units)
        if lower is not None
        else 0,
        needed_records=needed,
        read=look_release(terms.prices.looks * read_part / READINGS, units) if read_part else None,
    )
