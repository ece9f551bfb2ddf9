"""The loop of a worker process: lessons or chores come in by a pipe, what became of them goes back one by one and None after
the last, until the pipe ends.

All kinds are imported before the first work, so that the limit of memory is for work alone (`ptkstore.workers.memory`)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ptklib import registry
from ptklib.errors import SageError
from ptkstore.workers.confinement import confine, hush
from ptkstore.workers.memory import hold_to
from ptkstore.workers.profile import Chore, do_each
from ptkstore.workers.train import train_each

__all__ = ["serve"]


def serve(descriptor: int, memory_bytes: int, store: str) -> None:
    """Do what comes in through this end of a pipe, with so much memory for it and, of a store, its block files alone."""
    # Ctrl-C is for the engine, which decides what becomes of the work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe: Connection[Any, Any] = Connection(descriptor)
    _prepare()
    if store:
        confine(Path(store))
    hush()
    hold_to(memory_bytes)
    while True:
        try:
            opened, work, keep_bytes = pipe.recv()
            chores = bool(work) and isinstance(work[0], Chore)
            found: Iterator[Any] = do_each(work) if chores else train_each(opened, work, keep_bytes)
            for done in found:
                pipe.send(done)
                del done
            # Nothing of this work is held while the next is read.
            del work, opened, found
            pipe.send(None)
        except (EOFError, OSError):
            return


def _prepare() -> None:
    """Take now what every work needs: modules, buffers, threads."""
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    square = np.ones((64, 64))
    np.matmul(square, square)
    try:
        registry.kinds()
        import scipy.sparse  # noqa: F401
    except (ImportError, SageError):
        return  # Told by the lesson that needs it.
