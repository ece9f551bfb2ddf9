"""Jobs in the engine's own process: slower for many PTKs, nothing to start, and nothing held apart.

For notebooks, small stores and tests. There is no limit of memory but the machine's, and a PTK that
ends the process ends the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from profiler.measuring.tasks import Answer
from ptkstore.workers.memory import default_bytes
from ptkstore.workers.profile import profile_each
from ptkstore.workers.protocol import (
    KEEP_BYTES,
    PROFILE_LOST,
    PTK_FAILED,
    STOPPED,
    ProfileJob,
    ProfileOutcome,
    TrainJob,
    TrainOutcome,
    ValidateJob,
    ValidateOutcome,
)
from ptkstore.workers.train import train_each
from ptkstore.workers.validate import validate_each

__all__ = ["InlineWorkers"]

Told = TypeVar("Told", TrainOutcome, ValidateOutcome)


class InlineWorkers:
    """`Workers` without a worker."""

    apart = False

    def __init__(self, memory_bytes: int | None = None) -> None:
        """``memory_bytes`` is what the engine plans with; a part of the machine's unless told."""
        self.memory_bytes = default_bytes(0) if memory_bytes is None else memory_bytes
        self._closed = 0

    def warm(self) -> None:
        """Nothing to start."""

    def train(
        self, jobs: Sequence[TrainJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[TrainOutcome]:
        """See `Workers.train`."""
        return self._until_closed(jobs, train_each(jobs, keep_bytes), TrainOutcome)

    def validate(
        self, jobs: Sequence[ValidateJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[ValidateOutcome]:
        """See `Workers.validate`."""
        return self._until_closed(jobs, validate_each(jobs, keep_bytes), ValidateOutcome)

    def profile(self, jobs: Iterable[ProfileJob]) -> Iterator[ProfileOutcome]:
        """See `Workers.profile`."""
        closed = self._closed
        for job in jobs:
            if closed == self._closed:
                yield from profile_each([job])
            else:
                yield ProfileOutcome(job.name, Answer(failure=PROFILE_LOST), STOPPED)

    def _until_closed(
        self,
        jobs: Sequence[TrainJob] | Sequence[ValidateJob],
        outcomes: Iterator[Told],
        kind: type[Told],
    ) -> Iterator[Told]:
        closed = self._closed
        for job in jobs:
            if closed == self._closed:
                yield next(outcomes)
            else:
                yield kind(job.name, None, PTK_FAILED, STOPPED)

    def close(self) -> None:
        """What is under way ends after the job that runs."""
        self._closed += 1
