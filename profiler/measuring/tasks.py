"""What touches raw records: two kinds of tasks, each on one piece, each with a price that is known
before it runs.

A task is a value that can travel to a worker process; `run` turns it and the records of its piece
into an answer that is DP.

**Proof notes.** *Unit:* one record, or a user with at most r records. *Neighbours:* add or remove
one.

*Train* runs `Ptk.train_dp` (its own cost) and, for a PTK whose `exact` minimises the loss, one
number: the least sum of losses minus c for each record, in units. Adding a record to S never lowers
the least sum (drop the record's loss, which is not negative, from the sum of the new minimiser) and
raises it by at most one loss, at most 1 (keep the old minimiser). So the number moves by between -c
and 1-c, at most one record in size, or r for a user. Rounding the sum down once keeps that; the
floating-point error of the computed minimum is allowed for with `TOLERANCE` records on both sides.
Without an exact minimiser this would not hold, and the number is not computed.

*Look* releases the least, over a few states of one sample size, of the sum of ``c - loss`` over the
records of the validation piece. Each loss is rounded up to units by itself and one that is not a
number from 0 to 1 counts as 1: exact integers, each at most `UNIT` in size, so r `UNIT` is the
sensitivity of each sum, and of the least of them. The first look of a level also releases how many
losses of its first state were not in [0, 1] (sensitivity r).

*Reading* is a look at many states that releases, instead of the least sum, the mean of the least
sums of all groups of a few of them. That is a weighted mean of the sums in their order. Where every
sum moves by at most r `UNIT`, so does each of the ordered ones, hence their mean; rounded down to a
whole number it moves by no more, for r `UNIT` is whole.

*Parts.* Tasks that share a charge run on disjoint parts of its piece (`charges_of` insists): a
record is in one part at most, so the price of one task is the price of all (parallel composition).

What a PTK raises may carry data: only its type and place leave (`failure_of`).

Reasons: LOSS_INVALID (a PTK whose losses are not one number for each record), PIECE_INVALID.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from profiler.measuring.bounds import UNIT
from profiler.measuring.pieces import Piece, PieceCost, check_disjoint
from ptklib.encoding.error_place import failure_of
from ptklib.errors import InvalidInput
from ptklib.privacy.costs import Cost
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.privacy.noise.source import BitSource
from ptklib.ptk import Arrays, Batches, Ptk
from ptklib.validators.loss import record_losses

__all__ = [
    "INVALID",
    "TOLERANCE",
    "Answer",
    "LookTask",
    "Noise",
    "Records",
    "SystemNoise",
    "Task",
    "TrainTask",
    "charges_of",
    "check_losses",
    "cost_of_look",
    "least_sum",
    "look_release",
    "lower_release",
    "run",
]

# Records that the computed minimum may be off by, for any number of records that fits a machine.
TOLERANCE = Fraction(1, 1024)

INVALID = "LOSS_INVALID: the PTK gives losses that are not numbers from 0 to 1"

Records = Callable[[], Batches]


class Noise(Protocol):
    """Where the noise of a task comes from; travels to workers."""

    def source(self, name: str) -> BitSource | None:
        """The source for the task of that name; None for the system's."""


class SystemNoise:
    """The system's source for every task: the only choice outside tests."""

    def source(self, name: str) -> None:  # noqa: ARG002
        """None: the system's."""
        return


@dataclass(frozen=True)
class TrainTask:
    """Train on one piece, or on a ``part`` of it; with ``lower``, also release the least sum for
    the lower test.
    """

    charge: PieceCost
    ptk: Ptk
    epsilon: Fraction
    delta: Fraction
    records_per_unit: int
    lower: LaplaceRelease | None
    lower_centre: int
    noise: Noise
    part: Piece | None = None

    @property
    def piece(self) -> Piece:
        """Whose records it gets."""
        return self.part or self.charge.piece

    @property
    def name(self) -> str:
        """Unique in a profile."""
        return self.charge.name if self.part is None else self.part.name


@dataclass(frozen=True)
class LookTask:
    """The noisy sum of losses of the worst state on the validation piece; with ``count``, also the
    number of invalid losses.

    With ``groups``, the mean of the worst of all groups of so many states.
    """

    charge: PieceCost
    ptk: Ptk
    states: tuple[Arrays, ...] = field(repr=False)
    centre: int
    release: LaplaceRelease
    count: LaplaceRelease | None
    noise: Noise
    groups: int | None = None

    @property
    def piece(self) -> Piece:
        """Whose records it gets."""
        return self.charge.piece

    @property
    def name(self) -> str:
        """Unique in a profile."""
        return self.charge.name


Task = TrainTask | LookTask


@dataclass(frozen=True)
class Answer:
    """What a task released. ``value`` is the noisy sum, ``invalid`` the noisy number of invalid
    losses.

    ``charged`` is False where the charge was refused and nothing ran.
    """

    arrays: Arrays | None = field(default=None, repr=False)
    value: int | None = None
    invalid: int | None = None
    failure: str = ""
    charged: bool = True


def lower_release(epsilon: Fraction, records_per_unit: int) -> LaplaceRelease:
    """The mechanism of the lower test. Unit: 1/`UNIT` of a loss. Sensitivity: see the module."""
    reach = records_per_unit * UNIT + math.ceil(2 * TOLERANCE * UNIT)
    return LaplaceRelease(epsilon=epsilon, sensitivity=reach)


def look_release(epsilon: Fraction, records_per_unit: int) -> LaplaceRelease:
    """The mechanism of one look. Unit: 1/`UNIT` of a loss. Sensitivity: see the module."""
    return LaplaceRelease(epsilon=epsilon, sensitivity=records_per_unit * UNIT)


def cost_of_look(release: LaplaceRelease, count: LaplaceRelease | None) -> Cost:
    """What a look costs."""
    return release.cost + count.cost if count is not None else release.cost


def charges_of(tasks: Sequence[Task]) -> list[PieceCost]:
    """The charges of tasks that run together, each once.

    Refuses tasks that share one and a record (PIECE_INVALID).
    """
    by_charge: dict[str, list[Task]] = {}
    for task in tasks:
        by_charge.setdefault(task.charge.name, []).append(task)
    for sharing in by_charge.values():
        whole = sharing[0].charge.piece
        check_disjoint(task.piece for task in sharing)
        if any(task.piece.start < whole.start or task.piece.stop > whole.stop for task in sharing):
            raise InvalidInput(
                "PIECE_INVALID", f"a task of {whole.name!r} must stay inside that piece"
            )
    return [sharing[0].charge for sharing in by_charge.values()]


def run(task: Task, records: Records) -> Answer:
    """Do the task on the records of its piece, which may be read more than once.

    What comes back is DP at its charge.
    """
    try:
        return _train(task, records) if isinstance(task, TrainTask) else _look(task, records)
    except (
        Exception
    ) as error:  # whatever a PTK raises may carry data: only its type and place leave
        return Answer(failure=failure_of(error))


def check_losses(ptk: Ptk, epsilon: Fraction, delta: Fraction, *, rows: int = 64) -> str:
    """Rehearse on invented records, where the PTK has some: what is wrong with it, or nothing.

    No data, no cost.
    """
    try:
        batch = ptk.example(rows)
        if batch is None:
            return ""
        losses = record_losses(ptk, ptk.train_dp([batch], epsilon=epsilon, delta=delta), [batch])
        return "" if _valid(losses).all() else INVALID
    except Exception as error:  # on invented records, but one rule for all
        return failure_of(error)


def _train(task: TrainTask, records: Records) -> Answer:
    arrays = task.ptk.train_dp(
        records(),
        epsilon=task.epsilon,
        delta=task.delta,
        noise=task.noise.source(f"{task.name}/train"),
        records_per_unit=task.records_per_unit,
    )
    task.ptk.validate(arrays)
    if task.lower is None:
        return Answer(arrays=arrays)
    least = task.ptk.exact(records())
    losses = np.zeros(0) if least is None else record_losses(task.ptk, least, records())
    value = least_sum(losses) - task.lower_centre * len(losses)
    noisy = task.lower.release(
        [value], source=task.noise.source(f"{task.charge.name}/lower")
    ).values
    return Answer(arrays=arrays, value=int(noisy[0]))


def least_sum(losses: NDArray[np.float64]) -> int:
    """The sum of the losses in units, rounded down once. A loss that is none counts as 0: the test
    errs to the safe side.

    Summed exactly: the order of the records, and who else is among them, moves no bit of what a
    record adds.
    """
    return math.floor(Fraction(math.fsum(np.where(_valid(losses), losses, 0.0))) * UNIT)


def _look(task: LookTask, records: Records) -> Answer:
    sums, wrong = [], 0
    for place, arrays in enumerate(task.states):
        losses = record_losses(task.ptk, arrays, records())
        valid = _valid(losses)
        units = np.ceil(np.where(valid, losses, 1.0) * UNIT).astype(np.int64)
        sums.append(int(task.centre * len(units) - units.sum()))
        wrong = int(len(losses) - valid.sum()) if place == 0 else wrong
    told = min(sums) if task.groups is None else _typical(sums, task.groups)
    noisy = task.release.release([told], source=task.noise.source(f"{task.charge.name}/sum")).values
    invalid = None
    if task.count is not None:
        invalid = int(
            task.count.release(
                [wrong], source=task.noise.source(f"{task.charge.name}/count")
            ).values[0]
        )
    return Answer(value=int(noisy[0]), invalid=invalid)


def _typical(sums: Sequence[int], groups: int) -> int:
    """The mean of the least of all groups of so many sums, rounded down: a sum is the least of
    those with larger ones only.
    """
    size = min(groups, len(sums))
    falling = sorted(sums, reverse=True)
    return sum(math.comb(k, size - 1) * total for k, total in enumerate(falling)) // math.comb(
        len(sums), size
    )


def _valid(losses: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        valid: NDArray[np.bool_] = (losses >= 0) & (losses <= 1)
    return valid
