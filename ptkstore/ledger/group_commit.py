"""Group commit: many callers, one durable write.

Callers hand in items; whoever gets the turn takes along everything that is waiting, makes it durable in one go, and hands
each caller its own outcome. There is no background thread: with one caller it is a plain call, with many the cost of
the fsync is shared.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

__all__ = ["MAX_GROUP", "GroupCommit"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# Bounds the work lost to one failed commit and the latency of the first in a group.
MAX_GROUP = 256


class _Ticket(Generic[Item, Result]):
    __slots__ = ("item", "outcome")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.outcome: tuple[Result | None, BaseException | None] | None = None


class GroupCommit(Generic[Item, Result]):
    """Serialises callers in groups. ``commit_all(items)`` returns one result or exception per item, in order."""

    def __init__(self, commit_all: Callable[[list[Item]], list[Result | BaseException]]) -> None:
        """Keep the function that makes a group durable; it is never called twice at once."""
        self._commit_all = commit_all
        self._waiting: deque[_Ticket[Item, Result]] = deque()
        self._turn = threading.Lock()

    def submit(self, item: Item) -> Result:
        """Return when ``item`` is durable, or raise what became of it."""
        ticket: _Ticket[Item, Result] = _Ticket(item)
        self._waiting.append(ticket)
        while ticket.outcome is None:
            with self._turn:
                if ticket.outcome is None:
                    self._commit_waiting()
        result, error = ticket.outcome
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the turn: nothing commits meanwhile."""
        with self._turn:
            yield

    def _commit_waiting(self) -> None:
        group = [self._waiting.popleft() for _ in range(min(len(self._waiting), MAX_GROUP))]
        try:
            outcomes = self._commit_all([ticket.item for ticket in group])
        except BaseException as error:
            for ticket in group:
                ticket.outcome = (None, error)
            if not isinstance(error, Exception):
                raise
            return
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.outcome = (None, outcome) if isinstance(outcome, BaseException) else (outcome, None)
