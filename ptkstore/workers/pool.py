"""Warm worker processes. Started once, by spawning (never forking: forked processes would share noise and locks).

With 0 workers training happens in the engine's own process: slower for many PTKs, and nothing to start for small ones.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from ptkstore.streams.opened import Opened
from ptkstore.workers.train import Lesson, Trained, train_all

__all__ = ["WorkerPool"]


class WorkerPool:
    """A pool of processes that train. Not thread-safe: the engine runs one cycle at a time."""

    def __init__(self, workers: int | None = None) -> None:
        """``workers`` processes, as many as there are cores unless told; they start with the first use or `warm`."""
        self.workers = (os.cpu_count() or 1) if workers is None else workers
        self._pool: ProcessPoolExecutor | None = None

    def warm(self) -> None:
        """Start the processes and let them import what training needs."""
        for future in [self._started().submit(train_all, None, []) for _ in range(self.workers)]:
            future.result()

    def train(self, opened: Opened | None, lessons: Sequence[Lesson]) -> list[Trained]:
        """Train all lessons; those of a process that dies come back as failures, and the pool is made anew."""
        if self.workers == 0:
            return train_all(opened, lessons)
        groups = [list(lessons[k :: self.workers]) for k in range(self.workers) if lessons[k :: self.workers]]
        pool = self._started()
        futures: list[tuple[list[Lesson], Future[list[Trained]]]] = [
            (group, pool.submit(train_all, opened, group)) for group in groups
        ]
        trained: list[Trained] = []
        for group, future in futures:
            try:
                trained += future.result()
            except BrokenProcessPool:
                self.close()
                trained += [Trained(lesson.name, None, "the worker process died") for lesson in group]
        return trained

    def close(self) -> None:
        """Stop the processes."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self.workers, mp_context=get_context("spawn"), initializer=_settle_in)
        return self._pool


def _settle_in() -> None:
    """Ctrl-C is for the engine, which decides what becomes of the work; a worker dies with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
