"""Neighbours through the whole profiler: no easier to tell apart than the charges say, and a third
of the noise is caught.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from benchmarks._profiler.ptks import Threshold
from profiler.measuring import schedule as scheduling
from profiler.measuring.bounds import UNIT
from profiler.measuring.pieces import Piece
from profiler.measuring.schedule import Schedule, schedule
from profiler.measuring.tasks import (
    Answer,
    LookTask,
    SystemNoise,
    _typical,
    look_release,
    lower_release,
)
from profiler.measuring.terms import Prices, ProfileTerms
from profiler.profiles import measured_profile
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.testing.audit import audit_epsilon
from tests.profiler.small import WatchingBench, require_caught

RUNS = 700
RECORDS = 6_000
PTK = Threshold(grid=4)
TERMS = ProfileTerms.of(
    "0.2",
    1,
    n_max=8,
    first=8,
    repeats=2,
    states=0,
    prices=Prices(looks=Fraction(2), lower=Fraction(2)),
)


def plan() -> Schedule:
    return schedule(PTK, TERMS, ["1"], RECORDS)


def outputs(
    piece: Piece, number: Callable[[dict[str, Answer]], int]
) -> Callable[[int, int], NDArray[np.float64]]:
    """A number that the profiler released, from runs without and with one more record in a piece.

    The record is wrong under every state that these records give, so it moves all sums as far as it
    can.
    """

    def runs(side: int, count: int) -> NDArray[np.float64]:
        x, y = np.full(40, 0.9), np.ones(40)
        tags = np.tile([float(one.piece.start + one.piece.stop) / 2 for one in plan().charges], 40)[
            :40
        ]
        if side:
            x, y, tags = (
                np.append(x, 0.9),
                np.append(y, 0.0),
                np.append(tags, float(piece.start + piece.stop) / 2),
            )
        whole = plan()
        found = []
        for _ in range(count):
            bench = WatchingBench(pa.table({"x": x, "y": y}), tags)
            measured_profile(PTK, TERMS, ["1"], bench, RECORDS, plan=whole)
            found.append(number(bench.answers) / UNIT)
        return np.array(found)

    return runs


def look(answers: dict[str, Answer]) -> int:
    return answers["level 1/look-1"].value or 0


def lower(answers: dict[str, Answer]) -> int:
    return answers["level 1/train-8-1"].value or 0


def less(right: Callable[..., LaplaceRelease]) -> Callable[..., LaplaceRelease]:
    """A third of the noise."""

    def release(epsilon: Fraction, units: int) -> LaplaceRelease:
        whole = right(epsilon, units)
        return LaplaceRelease(epsilon=epsilon, sensitivity=-(-whole.sensitivity // 3))

    return release


def test_a_reading_tells_no_more_than_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """All states of a reading at once: one more record of the validation piece moves the sums of
    every one of them.
    """
    terms = ProfileTerms.of(
        "0.2",
        1,
        n_max=8,
        first=8,
        repeats=2,
        states=6,
        prices=Prices(looks=Fraction(20), lower=Fraction(2)),
    )

    def whole() -> Schedule:
        return schedule(PTK, terms, ["1"], RECORDS)

    level = whole().levels[0]
    assert level.read is not None
    assert level.validation is not None
    place = float(level.validation.start + level.validation.stop) / 2

    def runs(side: int, count: int) -> NDArray[np.float64]:
        x, y = np.full(200 + side, 0.9), np.ones(200 + side)
        y[200:] = 0
        found = []
        for _ in range(count):
            bench = WatchingBench(pa.table({"x": x, "y": y}), np.full(len(x), place))
            task = LookTask(
                charge=level.readings[0],
                ptk=PTK,
                states=({"f": np.array([0.25])},) * 4,
                centre=level.test.centre,
                release=whole().levels[0].read,  # type: ignore[arg-type]
                count=None,
                noise=SystemNoise(),
                groups=3,
            )
            bench.reserve([task.charge])
            found.append((bench.run([task])[0].value or 0) / UNIT)
        return np.array(found)

    share = float(level.read.epsilon)
    assert level.readings[0].cost.epsilon(0) == pytest.approx(share)
    assert not audit_epsilon(runs, 0, 1, count=RUNS, confidence=1 - 1e-4).contradicts(share)
    monkeypatch.setattr(scheduling, "look_release", less(look_release))
    require_caught(
        lambda count: (audit_epsilon(runs, 0, 1, count=count, confidence=1 - 1e-2), share), RUNS
    )


@pytest.mark.parametrize(
    ("name", "number", "place", "right"),
    [
        ("look_release", look, "validation", look_release),
        ("lower_release", lower, "train-8-1", lower_release),
    ],
)
def test_neighbours_cannot_be_told_apart_beyond_the_claim(
    name: str, number: Any, place: str, right: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges = [one for one in plan().charges if one.piece.name.endswith(place)]
    claim = sum(one.cost.epsilon(0) for one in charges)
    # The number that is looked at is one of what the piece pays for: the count and the training
    # have their own.
    share = float(plan().levels[0].look.epsilon if number is look else TERMS.prices.lower)
    assert share < claim
    runs = outputs(charges[0].piece, number)
    fair = audit_epsilon(runs, 0, 1, count=RUNS, confidence=1 - 1e-4)
    assert not fair.contradicts(share)
    monkeypatch.setattr(scheduling, name, less(right))
    require_caught(
        lambda count: (audit_epsilon(runs, 0, 1, count=count, confidence=1 - 1e-2), share), RUNS
    )


def test_what_one_record_moves_stays_within_the_claimed_sensitivity() -> None:
    """Exact values, without noise: any record in any data set moves the least sum and the looks by
    at most one record.
    """
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(0, 12))
        x, y = rng.random(n + 1), rng.integers(0, 2, n + 1).astype(float)
        sums = []
        for m in (n, n + 1):
            batches = [pa.RecordBatch.from_pydict({"x": x[:m], "y": y[:m]})]
            sums.append(float(PTK.loss(PTK.exact(batches), batches).sum()))
        assert 0 <= sums[1] - sums[0] <= 1


def test_what_one_record_moves_in_a_reading() -> None:
    """Exact values: whatever the sums of the states are, moving each by at most a record moves what
    is told by no more.
    """
    rng = np.random.default_rng(0)
    for _ in range(300):
        states = int(rng.integers(1, 9))
        before = rng.integers(-5 * UNIT, 5 * UNIT, states)
        after = before + rng.integers(-UNIT, UNIT + 1, states)
        told = [_typical([int(one) for one in sums], 3) for sums in (before, after)]
        assert abs(told[1] - told[0]) <= UNIT
        groups = list(combinations(before.tolist(), min(3, states)))
        assert told[0] == sum(min(one) for one in groups) // len(groups), (
            "the mean of the worst of each three"
        )
