"""The loop of a worker process: jobs come in by a pipe, what became of them goes back
one by one and None after the last, until the pipe ends.

All kinds are imported before the first work, so that the limit of memory is for work alone
(`ptkstore.workers.memory`).
"""

from __future__ import annotations

import os
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
from ptkstore.workers.profile import profile_each
from ptkstore.workers.protocol import ProfileJob, ValidateJob
from ptkstore.workers.train import train_each
from ptkstore.workers.validate import validate_each

__all__ = ["EXHAUSTED", "serve"]

# What a process ends with whose memory was too small for its jobs.
EXHAUSTED = 77


def serve(descriptor: int, memory_bytes: int, store: str) -> None:
    """Do what comes in through this end of a pipe, with so much memory for it and, of a store, its
    block files alone.
    """
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
            jobs, keep_bytes = pipe.recv()
            outcomes = _outcomes(jobs, keep_bytes)
            for outcome in outcomes:
                pipe.send(outcome)
                del outcome
            # Nothing of this work is held while the next is read.
            del jobs, outcomes
            pipe.send(None)
        except (EOFError, OSError):
            return
        except MemoryError:
            # Jobs that do not even fit have failed; what is left in the pipe is of no use.
            os._exit(EXHAUSTED)


def _outcomes(jobs: Any, keep_bytes: int) -> Iterator[Any]:
    if jobs and isinstance(jobs[0], ProfileJob):
        return profile_each(jobs)
    if jobs and isinstance(jobs[0], ValidateJob):
        return validate_each(jobs, keep_bytes)
    return train_each(jobs, keep_bytes)


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
        return  # Told by the job that needs it.
