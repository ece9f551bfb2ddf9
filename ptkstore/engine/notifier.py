"""The notifier: carries events from the outbox to a bus, in order, at least once.

The high-water mark in the metadata says up to where everything was handed over; after a crash the
notifier starts there, and some events above it come again with the same ``id``. The thread hands
events over at once and moves the mark once in a while: a durable write for each event would hold up
those who write for somebody. When the bus
refuses an event, its subject waits (longer each time) and the later events of that subject wait
behind it, while other subjects go on, at most ``batch`` events ahead of the mark.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, Self

from ptklib.encoding.error_place import kind_of
from ptklib.errors import InvalidInput
from ptkstore.backoff import Backoff
from ptkstore.closing import Closing

__all__ = [
    "Drained",
    "Notifier",
    "Outbox",
    "OutboxEvent",
    "OutboxEvents",
    "OutboxTransaction",
    "Publisher",
    "topic_of",
]

_LOG = logging.getLogger(__name__)
# How far the thread lets the mark fall behind what it has handed over.
_MARK_SECONDS = 1.0


class OutboxEvent(Protocol):
    """An event as the notifier needs it."""

    @property
    def id(self) -> int:
        """Grows in the order of the commits."""

    @property
    def kind(self) -> str:
        """What happened."""

    @property
    def subject(self) -> str:
        """To what; order is kept for each subject."""

    @property
    def body(self) -> Any:
        """A JSON value."""


class OutboxEvents(Protocol):
    """The events of a transaction; ``tx.events`` of the metadata store."""

    def after(self, event: int, limit: int | None = None) -> Sequence[OutboxEvent]:
        """Events after that id, oldest first."""

    def delivered(self, subscriber: str) -> int:
        """The high-water mark, 0 for none."""

    def mark_delivered(self, subscriber: str, event: int, *, at_ms: int | None = None) -> None:
        """Move the mark up."""


class OutboxTransaction(Protocol):
    """A transaction with events."""

    @property
    def events(self) -> OutboxEvents:
        """The events."""


class Outbox(Protocol):
    """The metadata store as the notifier needs it."""

    def read(self) -> AbstractContextManager[OutboxTransaction]:
        """One moment."""

    def write(self) -> AbstractContextManager[OutboxTransaction]:
        """All or nothing."""


class Publisher(Protocol):
    """Where events go: a bus, or anything else that raises when it did not take the message."""

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        """Take the message or raise."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What one `Notifier.drain` did: events handed over, events seen that still wait, and when to
    come again for those.
    """

    delivered: int
    waiting: int
    retry_seconds: float | None


@dataclass(slots=True)
class _Stuck:
    failures: int
    due: float


def topic_of(event: OutboxEvent) -> str:
    """``sage.KIND.SUBJECT``."""
    return f"sage.{event.kind}.{event.subject}"


class Notifier(Closing):
    """Drains the outbox of ``metadata`` to ``bus`` for one ``subscriber`` (the owner of the mark).

    A message is ``{"id", "kind", "subject", "body"}``. Call `drain` yourself, or `start` a thread
    and `wake` it after commits. One thread drains at a time; two processes with one subscriber only
    repeat each other's messages.
    """

    def __init__(
        self,
        metadata: Outbox,
        bus: Publisher,
        *,
        subscriber: str = "bus",
        batch: int = 1000,
        first_delay_seconds: float = 0.1,
        longest_delay_seconds: float = 30.0,
        poll_seconds: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        """``poll_seconds`` is how often the thread looks when nobody wakes it: for commits of other
        processes.
        """
        if batch < 1 or poll_seconds <= 0:
            raise InvalidInput(
                "VALUE_INVALID",
                f"batch and poll_seconds must be positive, got {batch} and {poll_seconds}",
            )
        self._metadata = metadata
        self._bus = bus
        self._subscriber = subscriber
        self._batch = batch
        # No jitter: one process drains, and its clock is that of its tests.
        self._backoff = Backoff(
            first_seconds=first_delay_seconds, longest_seconds=longest_delay_seconds, jitter=0
        )
        self._poll = poll_seconds
        self._clock = clock
        self._now_ms = now_ms
        self._draining = threading.Lock()
        self._ahead: set[int] = set()
        # Up to where all was handed over, and when that was last written.
        self._reached = 0
        self._marked = clock()
        self._stuck: dict[str, _Stuck] = {}
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def drain(self) -> Drained:
        """Hand over what can be handed over now. Raises only what the metadata store raises; what
        was handed over but not marked then comes again.
        """
        with self._draining:
            drained = self._hand_over()
            self._move_mark()
            return drained

    def wake(self) -> None:
        """Tell the thread that there are events. Never waits."""
        self._woken.set()

    def start(self) -> None:
        """Drain in a thread of its own until `stop`. Starting twice is starting once."""
        if self._thread is None:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name="sage-notifier", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """End the thread after what it is doing.

        Safe to call twice. What was not handed over stays in the outbox.
        """
        thread, self._thread = self._thread, None
        if thread is not None:
            self._stopping.set()
            self._woken.set()
            thread.join()

    def close(self) -> None:
        """As `stop`."""
        self.stop()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return super().__enter__()

    def _hand_over(self) -> Drained:
        delivered = 0
        while True:
            with self._metadata.read() as tx:
                mark = max(self._reached, tx.events.delivered(self._subscriber))
                events = tx.events.after(mark, self._batch)
            delivered += self._deliver(events)
            waiting = sum(event.id not in self._ahead for event in events)
            self._reach(events, mark)
            if waiting or len(events) < self._batch:
                return Drained(delivered, waiting, self._retry_seconds() if waiting else None)
            self._move_mark()

    def _deliver(self, events: Sequence[OutboxEvent]) -> int:
        delivered = 0
        held: set[str] = set()
        for event in events:
            if event.id in self._ahead or event.subject in held:
                continue
            stuck = self._stuck.get(event.subject)
            if stuck is not None and self._clock() < stuck.due:
                held.add(event.subject)
            elif self._published(event):
                self._stuck.pop(event.subject, None)
                self._ahead.add(event.id)
                delivered += 1
            else:
                held.add(event.subject)
        return delivered

    def _published(self, event: OutboxEvent) -> bool:
        message = {"id": event.id, "kind": event.kind, "subject": event.subject, "body": event.body}
        try:
            self._bus.publish(topic_of(event), message)
        except Exception as error:
            stuck = self._stuck.setdefault(event.subject, _Stuck(0, 0.0))
            stuck.failures += 1
            stuck.due = self._clock() + self._backoff.seconds(stuck.failures)
            _LOG.warning(
                "event %d was not taken (%d times): %s",
                event.id,
                stuck.failures,
                type(error).__name__,
            )
            return False
        return True

    def _reach(self, events: Sequence[OutboxEvent], mark: int) -> None:
        self._reached = mark
        for event in events:
            if event.id not in self._ahead:
                break
            self._reached = event.id
        self._ahead = {event for event in self._ahead if event > self._reached}

    def _move_mark(self) -> None:
        """Write up to where all was handed over, unless it is written."""
        reached, self._marked = self._reached, self._clock()
        with self._metadata.read() as tx:
            written = tx.events.delivered(self._subscriber)
        if written < reached:
            with self._metadata.write() as tx:
                tx.events.mark_delivered(self._subscriber, reached, at_ms=self._now_ms())

    def _retry_seconds(self) -> float:
        return max(
            0.0, min((stuck.due for stuck in self._stuck.values()), default=0.0) - self._clock()
        )

    def _run(self) -> None:
        failures = 0
        while not self._stopping.is_set():
            self._woken.clear()
            try:
                retry = self._drain_now()
                failures = 0
            except (
                Exception
            ) as error:  # whatever it is: without this thread no hint would ever leave again
                failures += 1
                retry = self._backoff.seconds(failures)
                _LOG.warning("the outbox cannot be read now: %s", kind_of(error))
            self._woken.wait(self._poll if retry is None else min(self._poll, retry))
        try:
            self._move_mark()
        except Exception as error:  # what was handed over comes again
            _LOG.warning("the outbox cannot be marked now: %s", kind_of(error))

    def _drain_now(self) -> float | None:
        """As `drain`, but the mark may stay behind for a moment. When to come again at the
        latest; None for whenever there is something.
        """
        with self._draining:
            retry = self._hand_over().retry_seconds
            behind = self._marked + _MARK_SECONDS - self._clock()
            if behind <= 0:
                self._move_mark()
                return retry
        return behind if retry is None else min(behind, retry)
