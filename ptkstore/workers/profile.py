"""What a worker does for a profile: tasks of the profiler on records that come with them.

The engine has spent the charge of each task and opened its piece by then; a worker gets the records of that piece, gives back
what the task released and keeps nothing. Every failure is told as `PTK_FAILED`; its type and place go to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa

from profiler.tasks import Answer, Task, run
from ptkstore.workers.train import PTK_FAILED, STOPPED

__all__ = ["Chore", "Done", "do_each"]


@dataclass(frozen=True)
class Chore:
    """One task and the records of its piece."""

    name: str
    task: Task
    records: tuple[pa.RecordBatch, ...] = field(repr=False)


@dataclass(frozen=True)
class Done:
    """What the task of a chore released; of a failure, what is for the log."""

    name: str
    answer: Answer
    logged: str = ""


def do_each(chores: Iterable[Chore]) -> Iterator[Done]:
    """All chores, in their order; one that fails does not stop the others."""
    return (_told(one.name, run(one.task, one.records.__iter__)) for one in chores)


def _told(name: str, answer: Answer) -> Done:
    if not answer.failure:
        return Done(name, answer)
    detail = STOPPED if "MemoryError" in answer.failure else answer.failure
    return Done(name, replace(answer, failure=PTK_FAILED), detail)
