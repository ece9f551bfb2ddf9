"""Turns at deciding about the PTKs of a stream: in one process one decision after the other, so
that none is made in vain.

Holding a turn is no transaction: nobody else waits for it, neither appends nor windows nor other
streams. Servers that share a store do not share turns; what they decide at the same time is settled
when it is written (`deciding`). Reason: PLAN_CONTENDED.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary

from ptklib.errors import PlanContended
from ptkstore.metadata import Metadata

__all__ = ["WAIT_SECONDS", "PlanContended", "contended", "turn"]

# Longer than a decision takes, shorter than callers wait.
WAIT_SECONDS = 20.0

_GUARD = threading.Lock()
_TURNS: WeakKeyDictionary[Metadata, dict[str, threading.Lock]] = WeakKeyDictionary()


@contextmanager
def turn(metadata: Metadata, stream: str, *, seconds: float | None = None) -> Iterator[None]:
    """Alone in this process with the PTKs of a stream.

    PLAN_CONTENDED when that takes longer than ``seconds``.
    """
    with _GUARD:
        lock = _TURNS.setdefault(metadata, {}).setdefault(stream, threading.Lock())
    if not lock.acquire(timeout=WAIT_SECONDS if seconds is None else seconds):
        raise contended(stream, "others are deciding about its PTKs")
    try:
        yield
    finally:
        lock.release()


def contended(stream: str, why: str) -> PlanContended:
    """The refusal. Public facts alone."""
    return PlanContended(
        "PLAN_CONTENDED", f"stream {stream!r} is busy: {why}; ask again", stream=stream
    )
