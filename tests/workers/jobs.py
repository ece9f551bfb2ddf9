"""Jobs for workers, and openers and noise that do as a test wants, wherever they run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import safetensors.numpy

from profiler.measuring.pieces import Piece, PieceCost
from profiler.measuring.tasks import Noise, SystemNoise, TrainTask
from ptklib import registry
from ptklib.errors import GrantRefused
from ptklib.privacy.costs import PureCost
from ptklib.validators.power import planned_test
from ptkstore.streams.reading.opened import Tagged
from ptkstore.workers.protocol import Opener, ProfileJob, TrainJob, ValidateJob

__all__ = [
    "COUNTS",
    "KEYS",
    "WHOLE",
    "DyingNoise",
    "Planted",
    "job",
    "profile_job",
    "rides",
    "validate_job",
]

COUNTS = {
    "keys": [{"kind": "integers", "column": "zone", "first": 0, "last": 9}],
    "statistics": ["count"],
}
WHOLE = (0, 2**64)
# What a store has; a grant is for the first.
KEYS = {"granted": b"g" * 32, "other": b"o" * 32}


@dataclass(frozen=True)
class Planted:
    """An opener of records that a test made. ``deed`` is what happens in the worker before the
    first of them is given out.
    """

    batches: tuple[Tagged, ...] = ()
    deed: str = ""
    open: tuple[int, int] = WHOLE
    keys: dict[str, bytes] = field(default_factory=lambda: dict(KEYS), repr=False)

    def require(self, start: int, stop: int) -> None:
        if not self.open[0] <= start <= stop <= self.open[1]:
            raise GrantRefused(
                "OPENED_TOO_FAR", "the range of tags is wider than what was spent for"
            )

    def read(self) -> Iterator[Tagged]:
        if self.deed == "raise":
            raise ValueError("a text with records in it")
        if self.deed == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.deed == "leave":
            os._exit(3)
        if self.deed == "take too much":
            raise_if_it_fits = np.ones(1 << 33)
            raise AssertionError(len(raise_if_it_fits))
        if self.deed == "count keys":
            # As many records as there are keys here.
            yield Tagged(
                pa.RecordBatch.from_pydict({"zone": [0] * len(self.keys)}),
                np.zeros(len(self.keys), dtype=np.uint64),
            )
        yield from self.batches

    def for_worker(self) -> Planted:
        return replace(self, keys={"granted": self.keys["granted"]})


class DyingNoise:
    """Ends the process that asks for noise."""

    def source(self, name: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def rides(*zones: int) -> Tagged:
    """Records in these zones; the tag of each is its place."""
    return Tagged(
        pa.RecordBatch.from_pydict({"zone": np.array(zones)}),
        np.arange(len(zones), dtype=np.uint64),
    )


def job(name: str, *ends: int, opener: Opener | None = None, **changes: Any) -> TrainJob:
    """A training that counts records by zone."""
    # So much epsilon that noise is rounded away: what is counted shows.
    ranges = tuple(zip(ends[::2], ends[1::2], strict=True)) or (WHOLE,)
    made = TrainJob(name, "statistics", COUNTS, "50", "0", ranges, 1, None, opener)
    return replace(made, **changes)


def profile_job(
    name: str, *zones: int, noise: Noise | None = None, column: str = "zone"
) -> ProfileJob:
    """A task of a profile that counts records by zone."""
    charge = PieceCost(name, Piece(name, Fraction(0), Fraction(1), 10), PureCost(epsilon=1))
    ptk = registry.make("statistics", COUNTS)
    task = TrainTask(charge, ptk, Fraction(50), Fraction(0), 1, None, 0, noise or SystemNoise())
    return ProfileJob(name, task, (pa.RecordBatch.from_pydict({column: np.array(zones)}),))


def validate_job(
    name: str, *ends: int, opener: Opener | None = None, **changes: Any
) -> ValidateJob:
    """A test of a state that has counted nothing, with records each of which has some loss."""
    ranges = tuple(zip(ends[::2], ends[1::2], strict=True)) or (WHOLE,)
    test = planned_test(target="0.5", epsilon=1, eta="0.05", records=100)
    ptk = registry.make("statistics", COUNTS)
    state = safetensors.numpy.save(dict(ptk.train_dp(iter(()), epsilon="50", delta="0")))
    made = ValidateJob(name, "statistics", COUNTS, state, test.as_json(), ranges, opener)
    return replace(made, **changes)
