"""Group commit: many callers, one durable write.

Callers hand in items. One of them leads: it takes along everything that is waiting, makes it durable in one go, hands each
caller its own outcome and the lead to one of those who came meanwhile. There is no background thread: with one caller
it is a plain call, with many the cost of the fsync is shared. Items are committed in the order in which they came.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Generic, TypeVar

__all__ = ["GroupCommit", "Ticket"]

Item = TypeVar("Item")
Result = TypeVar("Result")


class Ticket(Generic[Item, Result]):
    """One item on its way. Its owner sleeps at the gate until it is committed or has to lead."""

    __slots__ = ("gate", "item", "leads", "outcome")

    def __init__(self, item: Item) -> None:
        """Not committed yet; the gate is closed."""
        self.item = item
        self.outcome: tuple[Result | None, BaseException | None] | None = None
        self.leads = False
        self.gate = threading.Lock()
        self.gate.acquire()

    def open_gate(self) -> None:
        """Let the owner, who passes once, go on; opening an open gate does nothing."""
        with suppress(RuntimeError):
            self.gate.release()


class GroupCommit(Generic[Item, Result]):
    """Serialises callers in groups.

    ``commit_all(items, more)`` makes a group durable and returns one result or exception per item, in order; it is never called
    twice at once. ``more()`` adds all that is waiting by then to ``items``. If it raises, the whole group failed.
    """

    def __init__(self, commit_all: Callable[[list[Item], Callable[[], None]], list[Result | BaseException]]) -> None:
        """Keep the function that makes a group durable."""
        self._commit_all = commit_all
        self._waiting: deque[Ticket[Item, Result]] = deque()
        # Guards who leads; held for moments only.
        self._lead = threading.Lock()
        self._led = False
        # Held while committing. Only the leader and `alone` want it.
        self._turn = threading.Lock()

    def enqueue(self, item: Item) -> Ticket[Item, Result]:
        """Hand an item in; `wait` must follow."""
        ticket: Ticket[Item, Result] = Ticket(item)
        self._waiting.append(ticket)
        return ticket

    def wait(self, ticket: Ticket[Item, Result]) -> Result:
        """Return when the item is durable, or raise what became of it."""
        with self._lead:
            follows, self._led = self._led, True
        if follows:
            ticket.gate.acquire()
        # Whoever was woken to lead must do so, even if the own item was committed meanwhile: nobody else will hand over.
        if not follows or ticket.leads:
            self._lead_group(ticket)
        assert ticket.outcome is not None
        result, error = ticket.outcome
        if error is not None:
            raise error
        return result  # type: ignore[return-value]

    def submit(self, item: Item) -> Result:
        """`enqueue` and `wait`."""
        return self.wait(self.enqueue(item))

    @contextmanager
    def alone(self) -> Iterator[Callable[[], None]]:
        """Hold the turn: nothing commits meanwhile, except by calling what is given, which commits all that waits."""
        with self._turn:
            yield self._commit_waiting

    def _lead_group(self, ticket: Ticket[Item, Result]) -> None:
        try:
            with self._turn:
                while ticket.outcome is None:
                    self._commit_waiting()
        finally:
            self._hand_over()

    def _hand_over(self) -> None:
        """Wake somebody who waits to lead next, or leave the lead free."""
        with self._lead:
            try:
                heir = self._waiting[0]
            except IndexError:
                self._led = False
                return
            heir.leads = True
        heir.open_gate()

    def _commit_waiting(self) -> None:
        group: list[Ticket[Item, Result]] = []
        items: list[Item] = []

        def more() -> None:
            for _ in range(len(self._waiting)):
                group.append(self._waiting.popleft())
                items.append(group[-1].item)

        more()
        try:
            outcomes = self._commit_all(items, more) if items else []
        except BaseException as error:
            for ticket in group:
                ticket.outcome = (None, error)
                ticket.open_gate()
            if not isinstance(error, Exception):
                raise
            return
        for ticket, outcome in zip(group, outcomes, strict=True):
            ticket.outcome = (None, outcome) if isinstance(outcome, BaseException) else (outcome, None)
            ticket.open_gate()
