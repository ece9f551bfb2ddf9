"""The treaty between the engine and whatever works for it: jobs, what becomes of them, and how they
reach records.

The engine has spent the charges of all jobs, durably, before it hands them over. A job is a value
that can travel: to another process, or to another machine. It never holds a path or a key beyond
what its charges paid for: a training carries an `Opener`, which opens the blocks of its grants
wherever they lie, and a profile the records of its piece themselves (the engine reads a profile
slice once and cuts it into many small pieces; a worker that opened blocks would read all of them
again for each).

What every kind of `Workers` promises (`tests/workers/suite.py`):

- Every job gets exactly one outcome, as soon as it is known, in any order. What comes of a job does
  not depend on the others, nor on how many workers there are.
- A failure is an outcome. After the first record was read it is told as `PTK_FAILED` whatever it
  was; type and place of it are for the log, never a text: texts may carry data.
- A worker that dies (killed, or by itself) fails the jobs that it had. None is tried again: an
  outcome that was waited for until it is a success would be another distribution than the one that
  was charged. A training or a test that dies is told as
  `PTK_FAILED`. A task of a profile is told as
  `PROFILE_LOST`: the end of a process is no verdict about the PTK.
- A job that needs more than `memory_bytes` fails, and takes nothing else with it.
- A worker gets an opener's `for_worker` and nothing else that opens anything.
- `close` ends everything at once; jobs that were under way are told as failures.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from profiler.measuring.tasks import Answer, Task
from ptklib.validators.interval import ToldLosses
from ptklib.validators.verdict import LossVerdict
from ptkstore.streams.reading.opened import Tagged

__all__ = [
    "KEEP_BYTES",
    "PROFILE_LOST",
    "PTK_FAILED",
    "STOPPED",
    "Opener",
    "ProfileJob",
    "ProfileOutcome",
    "TrainJob",
    "TrainOutcome",
    "ValidateJob",
    "ValidateOutcome",
    "Workers",
]

KEEP_BYTES = 512 * 1024 * 1024
# Of every failure after the first record was read.
PTK_FAILED = "PTK_FAILED"
# Of a task of a profile whose charge was spent and whose result nobody has: a process died.
PROFILE_LOST = "PROFILE_LOST"
# How the log calls the end of a process and the end of its memory alike.
STOPPED = "the worker stopped"


class Opener(Protocol):
    """Opens the blocks of some grants whose charges are spent, and no others. A small value that
    can travel; its text shows no key.
    """

    def require(self, start: int, stop: int) -> None:
        """Refuse a range of tags that is not open in every block (OPENED_TOO_FAR)."""

    def read(self) -> Iterator[Tagged]:
        """The records of the open blocks with their tags: choose those of a range that `require`
        lets through.
        """

    def for_worker(self) -> Opener:
        """The same for a process that cannot read keys: it brings those of its blocks, and no
        others.
        """


@dataclass(frozen=True)
class TrainJob:
    """One PTK to train on disjoint ranges of tags of what ``opener`` opens; on no record without
    one. ``previous`` are the arrays of its last state, as safetensors.
    """

    name: str
    kind: str
    config: dict[str, Any]
    epsilon: str
    delta: str
    ranges: tuple[tuple[int, int], ...]
    records_per_unit: int
    previous: bytes | None
    opener: Opener | None = None


@dataclass(frozen=True)
class TrainOutcome:
    """The arrays of one PTK as safetensors, or what may be told of a failure, and what is for the
    log.
    """

    name: str
    arrays: bytes | None
    failure: str = ""
    logged: str = ""


@dataclass(frozen=True)
class ValidateJob:
    """One state to test on disjoint ranges of tags of what ``opener`` opens. ``state`` are its
    arrays as safetensors, ``test`` is a `LossTest` or a `LossInterval` as JSON.
    """

    name: str
    kind: str
    config: dict[str, Any]
    state: bytes = field(repr=False)
    test: dict[str, Any]
    ranges: tuple[tuple[int, int], ...]
    opener: Opener | None = None


@dataclass(frozen=True)
class ValidateOutcome:
    """What a test released, or what may be told of a failure, and what is for the log."""

    name: str
    verdict: LossVerdict | ToldLosses | None
    failure: str = ""
    logged: str = ""


@dataclass(frozen=True)
class ProfileJob:
    """One task of a profile and the records of its piece."""

    name: str
    task: Task
    records: tuple[pa.RecordBatch, ...] = field(repr=False)


@dataclass(frozen=True)
class ProfileOutcome:
    """What the task of a job released; of a failure, what is for the log."""

    name: str
    answer: Answer
    logged: str = ""


class Workers(Protocol):
    """Where jobs run. The engine runs one cycle at a time: calls need not be thread-safe."""

    @property
    def memory_bytes(self) -> int:
        """What a worker may take for its work. The engine asks of it only what fits."""

    @property
    def apart(self) -> bool:
        """True where jobs run outside the process that keeps the book."""

    def warm(self) -> None:
        """Start now what the first job would start."""

    def train(
        self, jobs: Sequence[TrainJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[TrainOutcome]:
        """Train all, and give each back when it is done. Up to ``keep_bytes`` of opened records are
        kept in memory for the next job with the same opener; beyond that blocks are read again.
        """

    def validate(
        self, jobs: Sequence[ValidateJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[ValidateOutcome]:
        """Test all, and give each verdict back when it is there; like `train`."""

    def profile(self, jobs: Iterable[ProfileJob]) -> Iterator[ProfileOutcome]:
        """Do all, and give each back when it is done. No more of them are made than there are
        workers: they hold records.
        """

    def close(self) -> None:
        """Stop. Safe to call twice, and while jobs are under way."""
