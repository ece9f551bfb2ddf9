"""Group commit: many callers, one durable write.

Callers hand in items. One of them takes the turn: it makes everything that waits durable in one go,
then what came meanwhile, for a few rounds; every caller gets its own outcome, and one who still
waits is woken to go on. There is no background thread: with one caller it is a plain call, with
many the cost of the fsync is shared. Items are committed in the order in which they came.

Nobody depends on being woken: who waits looks for a free turn by itself from time to time, so a
caller that is interrupted (Ctrl-C) at any point delays the others for a moment and never blocks
them. The outcomes of a group appear all at once.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

__all__ = ["PATIENCE_SECONDS", "GroupCommit", "Ticket"]

Item = TypeVar("Item")
Result = TypeVar("Result")

# How long a caller sleeps before it looks for a free turn by itself.
PATIENCE_SECONDS = 0.05
# How many groups a caller commits in a row while others hand in more.
_LEAD = 16


class _Group(Generic[Result]):
    """The outcomes of items that were committed together; None until then."""

    __slots__ = ("outcomes",)

    def __init__(self) -> None:
        self.outcomes: list[Result | BaseException] | None = None


class Ticket(Generic[Item, Result]):
    """One item on its way.

    Its owner sleeps at the gate until it is committed or may have to go on for others.
    """

    __slots__ = ("_gate", "abandoned", "group", "item", "place")

    def __init__(self, item: Item) -> None:
        """Not committed yet; the gate is closed."""
        self.item = item
        self.group: _Group[Result] | None = None
        self.place = 0
        self.abandoned = False
        self._gate = threading.Lock()
        self._gate.acquire()

    @property
    def done(self) -> bool:
        """True when the outcome is there."""
        return self.group is not None and self.group.outcomes is not None

    def outcome(self) -> Result:
        """The result, or raise what became of the item."""
        assert self.group is not None
        assert self.group.outcomes is not None
        outcome = self.group.outcomes[self.place]
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def sleep(self) -> None:
        """Until woken, or for a while."""
        self._gate.acquire(timeout=PATIENCE_SECONDS)

    def wake(self) -> None:
        """Wake the owner; waking twice is waking once."""
        try:
            self._gate.release()
        except RuntimeError:
            return


class GroupCommit(Generic[Item, Result]):
    """Serialises callers in groups.

    ``commit_all(items, more)`` makes a group durable and returns one result or exception per item,
    in order; it is never called twice at once. ``more()`` adds all that is waiting by then to
    ``items``. If it raises, the whole group failed.
    """

    def __init__(
        self, commit_all: Callable[[list[Item], Callable[[], None]], list[Result | BaseException]]
    ) -> None:
        """Keep the function that makes a group durable."""
        self._commit_all = commit_all
        self._waiting: deque[Ticket[Item, Result]] = deque()
        self._turn = threading.Lock()

    def enqueue(self, item: Item) -> Ticket[Item, Result]:
        """Hand an item in; `wait` must follow."""
        ticket: Ticket[Item, Result] = Ticket(item)
        self._waiting.append(ticket)
        return ticket

    def wait(self, ticket: Ticket[Item, Result]) -> Result:
        """Return when the item is durable, or raise what became of it."""
        try:
            while not ticket.done:
                if self._turn.acquire(blocking=False):
                    try:
                        # Going on for those who came meanwhile spares the time to wake one of them;
                        # but not for ever.
                        for _ in range(_LEAD):
                            if not self._commit_waiting():
                                break
                    finally:
                        self._turn.release()
                        self._wake_next()
                else:
                    ticket.sleep()
        except BaseException:
            ticket.abandoned = True
            raise
        return ticket.outcome()

    def submit(self, item: Item) -> Result:
        """`enqueue` and `wait`."""
        return self.wait(self.enqueue(item))

    @contextmanager
    def alone(self) -> Iterator[Callable[[], object]]:
        """Hold the turn: nothing commits meanwhile, except by calling what is given, which commits
        all that waits.
        """
        try:
            with self._turn:
                yield self._commit_waiting
        finally:
            self._wake_next()

    def _wake_next(self) -> None:
        """Wake one who waits, so that the turn does not stay free."""
        for ticket in list(self._waiting):
            if not ticket.done and not ticket.abandoned:
                ticket.wake()
                return

    def _commit_waiting(self) -> bool:
        """Commit everything that waits; False when nothing did. The caller holds the turn."""
        while self._waiting and self._waiting[0].done:
            self._waiting.popleft()
        group: _Group[Result] = _Group()
        tickets: list[Ticket[Item, Result]] = []
        items: list[Item] = []

        def more() -> None:
            # Tickets stay in the queue until they are done: an interruption here loses none.
            for ticket in list(self._waiting)[len(tickets) :]:
                ticket.place = len(tickets)
                ticket.group = group
                tickets.append(ticket)
                items.append(ticket.item)

        more()
        if not items:
            return False
        try:
            # One assignment: either all outcomes are there or none.
            group.outcomes = self._commit_all(items, more)
            assert len(group.outcomes) == len(tickets)
        except BaseException as error:
            group.outcomes = [error] * len(tickets)
            if not isinstance(error, Exception):
                raise
        finally:
            for ticket in tickets:
                ticket.wake()
        return True
