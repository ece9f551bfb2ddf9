"""Tasks by themselves: what each costs, what a record moves in it, and what leaves when it fails.

Two runs of one task with the same planted noise differ by exactly what their records differ by.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest

from benchmarks._profiler.ptks import Mean
from profiler.measuring.bounds import UNIT
from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import (
    TOLERANCE,
    Answer,
    LookTask,
    TrainTask,
    cost_of_look,
    least_sum,
    look_release,
    lower_release,
    run,
)
from ptklib.encoding.error_place import failure_of
from ptklib.errors import InvalidInput
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.ptk import Arrays, Batches
from ptklib.testing.noise import planted_noise
from tests.profiler.small import Planted

PIECE = Piece("piece", Fraction(0), Fraction(1), 10)
STATES: tuple[Arrays, ...] = tuple({"f": np.array([one])} for one in (0.0, 0.5, 1.0))
SECRET = "record 4711"


@dataclass(frozen=True, kw_only=True)
class Told(Mean):
    """Its losses are the column itself, whatever numbers those are, plus what the state holds."""

    kind: ClassVar[str] = "told"

    def loss(self, arrays: Arrays, batches: Batches) -> np.ndarray[Any, np.dtype[np.float64]]:
        found = [one.column("x").to_numpy() for one in batches]
        return np.asarray(np.concatenate(found) + arrays["f"][0], dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Failing(Mean):
    """Raises what it has seen."""

    reason: str = ""

    def loss(self, arrays: Arrays, batches: Batches) -> np.ndarray[Any, np.dtype[np.float64]]:
        raise InvalidInput(self.reason, SECRET) if self.reason else ValueError(SECRET)


def look(losses: list[float], states: tuple[Arrays, ...] = STATES[:1], **changes: Any) -> Answer:
    release = look_release(Fraction(1), 1)
    fields: dict[str, Any] = {
        "ptk": Told(),
        "count": LaplaceRelease(epsilon=1, sensitivity=1),
        **changes,
    }
    charge = PieceCost("look", PIECE, cost_of_look(release, fields["count"]))
    task = LookTask(
        charge=charge, states=states, centre=0, release=release, noise=Planted(), **fields
    )
    with planted_noise():
        return run(task, lambda: iter([pa.record_batch({"x": np.array(losses)})]))


def test_a_look_costs_its_sum_and_its_count() -> None:
    release, count = look_release(Fraction(1, 2), 3), LaplaceRelease(epsilon="0.25", sensitivity=3)
    assert release.cost.basic() == (Fraction(1, 2), Fraction(0))
    assert cost_of_look(release, count).basic() == (Fraction(3, 4), Fraction(0))
    assert cost_of_look(release, None).basic() == (Fraction(1, 2), Fraction(0))


@pytest.mark.parametrize("records", [1, 2, 50])
def test_a_user_moves_as_much_as_all_of_its_records(records: int) -> None:
    assert look_release(Fraction(1), records).sensitivity == records * UNIT
    assert lower_release(Fraction(1), records).sensitivity >= (records + 2 * TOLERANCE) * UNIT


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf, 7.0, 1.0 + 1e-9, -0.25])
def test_a_loss_that_is_none_counts_as_one_record_and_as_the_worst(odd: float) -> None:
    found, worst = look([0.25, odd, 0.5]), look([0.25, 1.0, 0.5])
    assert (found.failure, worst.failure) == ("", "")
    assert found.value == worst.value
    assert (found.invalid or 0) - (worst.invalid or 0) == 1
    # In the lower test it counts for nothing, which errs to the other side.
    assert (
        least_sum(np.array([0.25, odd, 0.5])) == least_sum(np.array([0.25, 0.5])) == 3 * UNIT // 4
    )


def test_what_is_told_of_several_states_is_the_worst() -> None:
    assert look([0.0], STATES).value == look([0.0], STATES[2:]).value
    assert look([0.0], STATES).value == (look([0.0], STATES[:1]).value or 0) - UNIT


def test_a_record_moves_a_look_by_its_loss_alone() -> None:
    before = look([0.5, 0.125])
    for loss in (0.0, 0.3, 1.0):
        assert (before.value or 0) - (look([0.5, 0.125, loss]).value or 0) == math.ceil(loss * UNIT)


@pytest.mark.parametrize(
    ("reason", "told"), [("", "ValueError at"), ("PTK_MISMATCH", "InvalidInput PTK_MISMATCH at")]
)
def test_of_what_a_ptk_raises_only_the_type_and_the_place_leave(reason: str, told: str) -> None:
    failed = look([0.5], ptk=Failing(reason=reason))
    assert failed.failure.startswith(f"{told} test_tasks.py:")
    assert SECRET not in repr(failed)
    assert failure_of(ValueError(SECRET)) == "ValueError"


def test_what_a_training_raises_does_not_leave_either() -> None:
    charge = PieceCost("train", PIECE, lower_release(Fraction(1), 1).cost)
    task = TrainTask(
        charge=charge,
        ptk=Failing(),
        epsilon=Fraction(1),
        delta=Fraction(0),
        records_per_unit=1,
        lower=lower_release(Fraction(1), 1),
        lower_centre=0,
        noise=Planted(),
    )
    with planted_noise():
        failed = run(task, lambda: iter([pa.record_batch({"x": np.array([0.5])})]))
    assert failed.failure.startswith("ValueError at test_tasks.py:")
    assert SECRET not in repr(failed)
