"""The loop of a worker process: lessons or chores come in by a pipe, what became of them goes back one by one and None after
the last, until the pipe ends."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection
from typing import Any

from ptkstore.workers.profile import Chore, do_each
from ptkstore.workers.train import train_each

__all__ = ["serve"]


def serve(descriptor: int) -> None:
    """Do what comes in through this end of a pipe."""
    # Ctrl-C is for the engine, which decides what becomes of the work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            opened, work = pipe.recv()
            for done in do_each(work) if work and isinstance(work[0], Chore) else train_each(opened, work):
                pipe.send(done)
            pipe.send(None)
        except (EOFError, OSError):
            return
