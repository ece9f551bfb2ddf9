"""The loop of a worker process: lessons come in by a pipe, arrays go back one by one and None after the last, until the
pipe ends."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection
from typing import Any

from ptkstore.workers.train import train_each

__all__ = ["serve"]


def serve(descriptor: int) -> None:
    """Train what comes in through this end of a pipe."""
    # Ctrl-C is for the engine, which decides what becomes of the work.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pipe: Connection[Any, Any] = Connection(descriptor)
    while True:
        try:
            opened, lessons = pipe.recv()
            for trained in train_each(opened, lessons):
                pipe.send(trained)
            pipe.send(None)
        except (EOFError, OSError):
            return
