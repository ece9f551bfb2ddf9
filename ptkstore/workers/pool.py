"""Warm worker processes. Started once, as new interpreters (never forked: forked processes would share noise and locks).

A worker is told what to import and nothing else: unlike those of `multiprocessing` it does not run the program that opened
the store again, so scripts and notebooks need no guard. It reads work from a pipe until the pipe ends, as it does when the
engine dies. With 0 workers training happens in the engine's own process: slower for many PTKs, and nothing to start.

A process that dies is told like any failure of the PTKs that it had (`PTK_FAILED`), and none of them is tried again: an outcome
that was waited for until it is a success would be another distribution than the one that was charged.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import Any

from profiler.tasks import Answer
from ptkstore.streams.opened import Opened, with_keys
from ptkstore.workers.confinement import plain_environment
from ptkstore.workers.memory import ENVIRONMENT, default_bytes
from ptkstore.workers.profile import Chore, Done, do_each
from ptkstore.workers.train import KEEP_BYTES, PTK_FAILED, STOPPED, Lesson, Trained, train_each

__all__ = ["WorkerPool"]

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]); "
    "from ptkstore.workers.process import serve; serve(int(sys.argv[1]), int(sys.argv[3]), sys.argv[4])"
)
_STOP_SECONDS = 10


class WorkerPool:
    """A pool of processes that train and profile. Not thread-safe: the engine runs one cycle at a time."""

    def __init__(
        self, workers: int | None = None, memory_bytes: int | None = None, store: str | Path | None = None
    ) -> None:
        """``workers`` processes, as many as there are cores unless told; they start with the first use or `warm`.

        Each may take ``memory_bytes`` for its work; a part of the machine's memory unless told (`memory.default_bytes`).
        With a ``store`` they are confined to its block files (`confinement`).
        """
        self.store = "" if store is None else str(Path(store).absolute())
        self.workers = (os.cpu_count() or 1) if workers is None else workers
        self.memory_bytes = default_bytes(self.workers) if memory_bytes is None else memory_bytes
        self._processes: list[_Process] = []

    def warm(self) -> None:
        """Start the processes and let them import what training needs."""
        processes = self._started(self.workers)
        for process in processes:
            process.send(None, [], 0)
        for process in processes:
            process.receive()

    def train(
        self, opened: Opened | None, lessons: Sequence[Lesson], keep_bytes: int = KEEP_BYTES
    ) -> Iterator[Trained]:
        """Train all lessons and give each back when it is done, those of a process that dies as failures.

        A process that died, or whose lessons were not waited for, is started anew the next time.
        """
        if self.workers == 0:
            yield from train_each(opened, lessons, keep_bytes)
            return
        opened = None if opened is None else with_keys(opened)
        groups = (list(lessons[k :: self.workers]) for k in range(self.workers))
        for found in self._spread(opened, (one for one in groups if one), keep_bytes):
            yield Trained(found.name, None, PTK_FAILED, STOPPED) if isinstance(found, Lesson) else found

    def profile(self, chores: Iterable[Chore]) -> Iterator[Done]:
        """Do all chores of a profile and give each back when it is done; those of a process that dies have failed.

        A process has one at a time, and no more are made than there are processes: they hold records.
        """
        if self.workers == 0:
            yield from do_each(chores)
            return
        for found in self._spread(None, ([one] for one in chores), 0):
            yield Done(found.name, Answer(failure=PTK_FAILED), STOPPED) if isinstance(found, Chore) else found

    def _spread(self, opened: Opened | None, groups: Iterator[list[Any]], keep_bytes: int) -> Iterator[Any]:
        """What became of each piece of work, or the piece itself where its process died."""
        busy: dict[_Process, list[Any]] = {}
        idle = deque(self._started(self.workers))
        try:
            while True:
                while idle and (group := next(groups, None)) is not None:
                    process = idle.popleft()
                    busy[process] = group
                    process.send(opened, group, keep_bytes)
                if not busy:
                    return
                for process in _Process.ready(list(busy)):
                    found = process.receive()
                    if found is not None:
                        busy[process] = [one for one in busy[process] if one.name != found.name]
                        yield found
                        continue
                    yield from busy.pop(process)
                    idle.append(process if process.alive else self._replaced(process))
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
        self._processes = [one for one in self._processes if one.alive]
        self._processes += [_Process(self.memory_bytes, self.store) for _ in range(wanted - len(self._processes))]
        return self._processes[:wanted]

    def _replaced(self, dead: _Process) -> _Process:
        """A new process in the place of one that died."""
        self._processes[self._processes.index(dead)] = fresh = _Process(self.memory_bytes, self.store)
        return fresh


class _Process:
    """One worker and the pipe to it."""

    def __init__(self, memory_bytes: int, store: str) -> None:
        self._pipe: Connection[Any, Any]
        self._pipe, other = Pipe()
        with other:
            self._child = subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", _START, str(other.fileno()), json.dumps(sys.path), str(memory_bytes), store],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                env=plain_environment() | ENVIRONMENT,
            )
        self.alive = True

    def send(self, opened: Opened | None, work: Sequence[Lesson] | Sequence[Chore], keep_bytes: int) -> None:
        try:
            self._pipe.send((opened, work, keep_bytes))
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
