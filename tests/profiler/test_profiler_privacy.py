"""Neighbours through the whole profiler: no easier to tell apart than the charges say, and a third of the noise is caught."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from benchmarks._profiler.ptks import Threshold
from profiler import schedule as scheduling
from profiler.bounds import UNIT
from profiler.pieces import Piece
from profiler.profiles import measured_profile
from profiler.schedule import Prices, Schedule, Terms, schedule
from profiler.tasks import Answer, look_release, lower_release
from ptklib.privacy.mechanisms.release import LaplaceRelease
from ptklib.testing.audit import audit_epsilon
from tests.profiler.small import WatchingBench

RUNS = 700
RECORDS = 6_000
PTK = Threshold(grid=4)
TERMS = Terms.of("0.2", 1, n_max=8, first=8, repeats=2, prices=Prices(looks=Fraction(2), lower=Fraction(2)))


def plan() -> Schedule:
    return schedule(PTK, TERMS, ["1"], RECORDS)


def outputs(piece: Piece, number: Callable[[dict[str, Answer]], int]) -> Callable[[int, int], NDArray[np.float64]]:
    """A number that the profiler released, from runs without and with one more record in a piece.

    The record is wrong under every state that these records give, so it moves all sums as far as it can.
    """

    def runs(side: int, count: int) -> NDArray[np.float64]:
        x, y = np.full(40, 0.9), np.ones(40)
        tags = np.tile([float(one.piece.start + one.piece.stop) / 2 for one in plan().charges], 40)[:40]
        if side:
            x, y, tags = np.append(x, 0.9), np.append(y, 0.0), np.append(tags, float(piece.start + piece.stop) / 2)
        whole = plan()
        found = []
        for _ in range(count):
            bench = WatchingBench(pa.table({"x": x, "y": y}), tags)
            measured_profile(PTK, TERMS, ["1"], bench, RECORDS, plan=whole)
            found.append(number(bench.answers) / UNIT)
        return np.array(found)

    return runs


def look(answers: dict[str, Answer]) -> int:
    return answers["level 1/look-8"].value or 0


def lower(answers: dict[str, Answer]) -> int:
    return answers["level 1/train-8-1"].value or 0


def less(right: Callable[..., LaplaceRelease]) -> Callable[..., LaplaceRelease]:
    """A third of the noise."""

    def release(epsilon: Fraction, units: int) -> LaplaceRelease:
        whole = right(epsilon, units)
        return LaplaceRelease(epsilon=epsilon, sensitivity=-(-whole.sensitivity // 3))

    return release


@pytest.mark.parametrize(
    ("name", "number", "place", "right"),
    [("look_release", look, "validation", look_release), ("lower_release", lower, "train-8-1", lower_release)],
)
def test_neighbours_cannot_be_told_apart_beyond_the_claim(
    name: str, number: Any, place: str, right: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    charges = [one for one in plan().charges if one.piece.name.endswith(place)]
    claim = sum(one.cost.epsilon(0) for one in charges)
    # The number that is looked at is one of what the piece pays for: the count and the training have their own.
    share = float(plan().levels[0].look.epsilon if number is look else TERMS.prices.lower)
    assert share < claim
    runs = outputs(charges[0].piece, number)
    fair = audit_epsilon(runs, 0, 1, count=RUNS, confidence=1 - 1e-4)
    assert not fair.contradicts(share)
    monkeypatch.setattr(scheduling, name, less(right))
    broken = audit_epsilon(runs, 0, 1, count=RUNS, confidence=1 - 1e-2)
    assert broken.contradicts(share), broken


def test_what_one_record_moves_stays_within_the_claimed_sensitivity() -> None:
    """Exact values, without noise: any record in any data set moves the least sum and the looks by at most one record."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(0, 12))
        x, y = rng.random(n + 1), rng.integers(0, 2, n + 1).astype(float)
        sums = []
        for m in (n, n + 1):
            batches = [pa.RecordBatch.from_pydict({"x": x[:m], "y": y[:m]})]
            sums.append(float(PTK.loss(PTK.exact(batches), batches).sum()))
        assert 0 <= sums[1] - sums[0] <= 1
