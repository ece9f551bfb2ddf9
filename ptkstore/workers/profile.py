"""What a worker does for a profile: tasks of the profiler on records that come with them.

The engine has spent the charge of each task and opened its piece by then; a worker gets the records
of that piece, gives back what the task released and keeps nothing. Every failure is told as
`PTK_FAILED`; its type and place go to the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from profiler.measuring.tasks import Answer, run
from ptkstore.workers.protocol import PTK_FAILED, STOPPED, ProfileJob, ProfileOutcome

__all__ = ["profile_each"]


def profile_each(jobs: Iterable[ProfileJob]) -> Iterator[ProfileOutcome]:
    """All jobs, in their order; one that fails does not stop the others."""
    return (_told(job.name, run(job.task, job.records.__iter__)) for job in jobs)


def _told(name: str, answer: Answer) -> ProfileOutcome:
    if not answer.failure:
        return ProfileOutcome(name, answer)
    detail = STOPPED if "MemoryError" in answer.failure else answer.failure
    return ProfileOutcome(name, replace(answer, failure=PTK_FAILED), detail)
