"""Warm worker processes. Started once, as new interpreters (never forked: forked processes would share noise and locks).

A worker is told what to import and nothing else: unlike those of `multiprocessing` it does not run the program that opened
the store again, so scripts and notebooks need no guard. It reads work from a pipe until the pipe ends, as it does when the
engine dies. With 0 workers training happens in the engine's own process: slower for many PTKs, and nothing to start.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from profiler.tasks import Answer
from ptkstore.streams.opened import Opened
from ptkstore.workers.profile import DIED, Chore, Done, do_each
from ptkstore.workers.train import Lesson, Trained, train_each

__all__ = ["WorkerPool"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ptkstore.workers.process import serve; serve(int(sys.argv[1]))"
)
_STOP_SECONDS = 10


class WorkerPool:
    """A pool of processes that train and profile. Not thread-safe: the engine runs one cycle at a time."""

    def __init__(self, workers: int | None = None) -> None:
        """``workers`` processes, as many as there are cores unless told; they start with the first use or `warm`."""
        self.workers = (os.cpu_count() or 1) if workers is None else workers
        self._processes: list[_Process] = []

    def warm(self) -> None:
        """Start the processes and let them import what training needs."""
        processes = self._started(self.workers)
        for process in processes:
            process.send(None, [])
        for process in processes:
            process.receive()

    def train(self, opened: Opened | None, lessons: Sequence[Lesson]) -> Iterator[Trained]:
        """Train all lessons and give each back when it is done, those of a process that dies as failures.

        A process that died, or whose lessons were not waited for, is started anew the next time.
        """
        if self.workers == 0:
            yield from train_each(opened, lessons)
            return
        for found in self._spread(opened, lessons):
            yield Trained(found.name, None, DIED) if isinstance(found, Lesson) else found

    def profile(self, chores: Sequence[Chore]) -> Iterator[Done]:
        """Do all chores of a profile and give each back when it is done; those of a process that dies have failed."""
        if self.workers == 0:
            yield from do_each(chores)
            return
        for found in self._spread(None, chores):
            yield Done(found.name, Answer(failure=DIED)) if isinstance(found, Chore) else found

    def _spread(self, opened: Opened | None, work: Sequence[Any]) -> Iterator[Any]:
        """What became of each piece of work, or the piece itself where its process died."""
        groups = [list(work[k :: self.workers]) for k in range(self.workers) if work[k :: self.workers]]
        busy = dict(zip(self._started(len(groups)), groups, strict=True))
        try:
            for process, group in busy.items():
                process.send(opened, group)
            while busy:
                for process in _Process.ready(list(busy)):
                    found = process.receive()
                    if found is not None:
                        busy[process] = [one for one in busy[process] if one.name != found.name]
                        yield found
                    else:
                        yield from busy.pop(process)
        finally:
            for process in busy:
                process.close()

    def close(self) -> None:
        """Stop the processes."""
        for process in self._processes:
            process.close()
        self._processes = []

    def _started(self, wanted: int) -> list[_Process]:
        self._processes = [one for one in self._processes if one.alive]
        self._processes += [_Process() for _ in range(wanted - len(self._processes))]
        return self._processes[:wanted]


class _Process:
    """One worker and the pipe to it."""

    def __init__(self) -> None:
        self._pipe: Connection[Any, Any]
        self._pipe, other = Pipe()
        with other:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", _START, str(other.fileno()), json.dumps(sys.path)],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
            )
        self.alive = True

    def send(self, opened: Opened | None, work: Sequence[Lesson] | Sequence[Chore]) -> None:
        try:
            self._pipe.send((opened, work))
        except OSError:
            self.alive = False

    @staticmethod
    def ready(processes: Sequence[_Process]) -> list[_Process]:
        """Wait until some of them have something to tell, or are dead."""
        dead = [one for one in processes if not one.alive]
        if dead:
            return dead
        by_pipe = {one._pipe: one for one in processes}
        return [by_pipe[pipe] for pipe in wait(list(by_pipe))]  # type: ignore[index]

    def receive(self) -> Trained | Done | None:
        """What it has done next; None after the last, or if it died."""
        if self.alive:
            try:
                found: Trained | Done | None = self._pipe.recv()
                return found
            except (EOFError, OSError):
                self.alive = False
        self.close()
        return None

    def close(self) -> None:
        """End the pipe, at which an idle worker leaves; one that is busy or stuck is killed."""
        self._pipe.close()
        try:
            self._child.wait(_STOP_SECONDS if self.alive else 0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self.alive = False
