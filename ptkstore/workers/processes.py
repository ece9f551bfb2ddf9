"""Warm worker processes. Started once, as new interpreters (never forked: forked processes would
share noise and locks).

A worker is told what to import and nothing else: unlike those of `multiprocessing` it does not run
the program that opened the store again, so scripts and notebooks need no guard. It reads jobs from
a pipe until the pipe ends, as it does when the engine dies.

What becomes of the jobs of a process that dies is in the treaty (`protocol`). One that ends because
its jobs do not fit its memory says so: then they have failed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any, TypeVar

from profiler.measuring.tasks import Answer
from ptkstore.workers.confinement import plain_environment
from ptkstore.workers.loop import EXHAUSTED
from ptkstore.workers.memory import ENVIRONMENT, default_bytes
from ptkstore.workers.protocol import (
    KEEP_BYTES,
    PROFILE_LOST,
    PTK_FAILED,
    STOPPED,
    Opener,
    ProfileJob,
    ProfileOutcome,
    TrainJob,
    TrainOutcome,
    ValidateJob,
    ValidateOutcome,
)

__all__ = ["ProcessWorkers"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ptkstore.workers.loop import serve; serve(int(sys.argv[1]), int(sys.argv[3]), sys.argv[4])"
)
_STOP_SECONDS = 10
# For a process that has let its pipe go to be gone.
_DYING_SECONDS = 2

Job = TypeVar("Job", TrainJob, ValidateJob, ProfileJob)
Opened = TypeVar("Opened", TrainJob, ValidateJob)
Told = TypeVar("Told", TrainOutcome, ValidateOutcome)
Outcome = TrainOutcome | ValidateOutcome | ProfileOutcome


class ProcessWorkers:
    """`Workers` in processes of their own."""

    apart = True

    def __init__(
        self,
        workers: int | None = None,
        memory_bytes: int | None = None,
        store: str | Path | None = None,
    ) -> None:
        """``workers`` processes, as many as there are cores unless told; they start with the first
        use or `warm`.

        Each may take ``memory_bytes`` for its work; a part of the machine's memory unless told
        (`memory.default_bytes`). With a ``store`` they are confined to its block files
        (`confinement`).
        """
        self.store = "" if store is None else str(Path(store).absolute())
        self.workers = (os.cpu_count() or 1) if workers is None else workers
        self.memory_bytes = default_bytes(self.workers) if memory_bytes is None else memory_bytes
        self._processes: list[_Process] = []

    def warm(self) -> None:
        """Start the processes and let them import what training needs."""
        processes = self._started(self.workers)
        for process in processes:
            process.send([], 0)
        for process in processes:
            process.receive()

    def train(
        self, jobs: Sequence[TrainJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[TrainOutcome]:
        """See `Workers.train`.

        A process that died, or whose jobs were not waited for, is started anew the next time.
        """
        return self._grouped(jobs, keep_bytes, TrainOutcome)

    def validate(
        self, jobs: Sequence[ValidateJob], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[ValidateOutcome]:
        """See `Workers.validate`."""
        return self._grouped(jobs, keep_bytes, ValidateOutcome)

    def profile(self, jobs: Iterable[ProfileJob]) -> Iterator[ProfileOutcome]:
        """See `Workers.profile`. A process has one job at a time."""
        for done in self._spread(([job] for job in jobs), 0):
            if isinstance(done, _Ended):
                failure = PTK_FAILED if done.exhausted else PROFILE_LOST
                yield ProfileOutcome(done.name, Answer(failure=failure), STOPPED)
            elif isinstance(done, ProfileOutcome):
                yield done

    def _grouped(self, jobs: Sequence[Opened], keep_bytes: int, kind: type[Told]) -> Iterator[Told]:
        """The jobs of each process at once: those that share an opener share its records."""
        ready = _with_keys(jobs)
        groups = (ready[k :: self.workers] for k in range(self.workers))
        for done in self._spread((group for group in groups if group), keep_bytes):
            if isinstance(done, _Ended):
                yield kind(done.name, None, PTK_FAILED, STOPPED)
            elif isinstance(done, kind):
                yield done

    def _spread(self, groups: Iterator[list[Job]], keep_bytes: int) -> Iterator[Outcome | _Ended]:
        """What became of each job, also of those whose process ended."""
        busy: dict[_Process, list[Job]] = {}
        idle = deque(self._started(self.workers))
        try:
            while True:
                while idle and (group := next(groups, None)) is not None:
                    process = idle.popleft()
                    busy[process] = group
                    process.send(group, keep_bytes)
                if not busy:
                    break
                for process in _Process.ready(list(busy)):
                    outcome = process.receive()
                    if outcome is not None:
                        busy[process] = [job for job in busy[process] if job.name != outcome.name]
                        yield outcome
                        continue
                    for job in busy.pop(process):
                        yield _Ended(job.name, process.exhausted)
                    if process in self._processes:
                        idle.append(process if process.alive else self._replaced(process))
            # There are some left where the pool was closed meanwhile.
            for left in groups:
                for job in left:
                    yield _Ended(job.name)
        finally:
            for process in busy:
                process.close()

    def close(self) -> None:
        """Stop the processes."""
        for process in self._processes:
            process.close()
        self._processes = []

    def _started(self, wanted: int) -> list[_Process]:
        if self.store:
            # What is to be read beneath it must be there when they are confined.
            (Path(self.store) / "streams").mkdir(mode=0o700, parents=True, exist_ok=True)
        self._processes = [process for process in self._processes if process.alive]
        self._processes += [
            _Process(self.memory_bytes, self.store) for _ in range(wanted - len(self._processes))
        ]
        return self._processes[:wanted]

    def _replaced(self, dead: _Process) -> _Process:
        """A new process in the place of one that died."""
        self._processes[self._processes.index(dead)] = fresh = _Process(
            self.memory_bytes, self.store
        )
        return fresh


@dataclass(frozen=True)
class _Ended:
    """A job whose process ended before it had told of it; ``exhausted`` where its memory was too
    small for its jobs.
    """

    name: str
    exhausted: bool = False


def _with_keys(jobs: Sequence[Opened]) -> list[Opened]:
    """The same for processes that cannot read keys. Jobs that share an opener still do."""
    openers: dict[int, Opener] = {}
    ready: list[Opened] = []
    for job in jobs:
        if job.opener is not None:
            if id(job.opener) not in openers:
                openers[id(job.opener)] = job.opener.for_worker()
            job = replace(job, opener=openers[id(job.opener)])
        ready.append(job)
    return ready


class _Process:
    """One worker and the pipe to it."""

    def __init__(self, memory_bytes: int, store: str) -> None:
        self._pipe: Connection[Any, Any]
        self._pipe, other = Pipe()
        with other:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter
                [
                    sys.executable,
                    "-c",
                    _START,
                    str(other.fileno()),
                    json.dumps(sys.path),
                    str(memory_bytes),
                    store,
                ],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=plain_environment() | ENVIRONMENT,
            )
        self.alive = True

    def send(
        self,
        jobs: Sequence[TrainJob] | Sequence[ValidateJob] | Sequence[ProfileJob],
        keep_bytes: int,
    ) -> None:
        try:
            self._pipe.send((jobs, keep_bytes))
        except OSError:
            self.alive = False

    @staticmethod
    def ready(processes: Sequence[_Process]) -> list[_Process]:
        """Wait until some of them have something to tell, or are dead."""
        dead = [process for process in processes if not process.alive]
        if dead:
            return dead
        by_pipe = {process._pipe: process for process in processes}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe))]  # type: ignore[index]

    def receive(self) -> Outcome | None:
        """What it has done next; None after the last, or if it died."""
        if self.alive:
            try:
                outcome: Outcome | None = self._pipe.recv()
                return outcome
            except (EOFError, OSError):
                self.alive = False
        self.close()
        return None

    @property
    def exhausted(self) -> bool:
        """True for one that has ended because its memory was too small for its jobs."""
        return not self.alive and self._child.returncode == EXHAUSTED

    def close(self) -> None:
        """End the pipe, at which an idle worker leaves; one that is busy or stuck is killed."""
        self._pipe.close()
        try:
            self._child.wait(_STOP_SECONDS if self.alive else _DYING_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self.alive = False
