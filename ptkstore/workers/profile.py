"""What a worker does for a profile: tasks of the profiler on records that come with them.

The engine has spent the charge of each task and opened its piece by then; a worker gets the records of that piece, gives back
what the task released and keeps nothing. What a PTK raises leaves as its type and place (`profiler.tasks.run`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from profiler.tasks import Answer, Task, run

__all__ = ["DIED", "Chore", "Done", "do_each"]

DIED = "the worker process died"


@dataclass(frozen=True)
class Chore:
    """One task and the records of its piece."""

    name: str
    task: Task
    records: tuple[pa.RecordBatch, ...] = field(repr=False)


@dataclass(frozen=True)
class Done:
    """What the task of a chore released."""

    name: str
    answer: Answer


def do_each(chores: Sequence[Chore]) -> Iterator[Done]:
    """All chores, in their order; one that fails does not stop the others."""
    return (Done(one.name, run(one.task, one.records.__iter__)) for one in chores)
