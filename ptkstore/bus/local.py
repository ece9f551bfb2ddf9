"""A bus inside one process: every subscription has a bounded queue and a thread of its own.

A slow callback delays nobody else; when its queue is full the oldest message is dropped and
counted. A callback that raises is counted and called again for the next message.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from ptklib.errors import InvalidInput
from ptkstore.bus.protocol import BusUnavailable, Callback, check_topic, compile_pattern, encode
from ptkstore.closing import Closing

__all__ = ["LocalBus", "LocalSubscription"]

_LOG = logging.getLogger(__name__)


class LocalSubscription:
    """One subscription of a `LocalBus`.

    Counts what it handled, dropped (queue full) and failed (callback raised).
    """

    def __init__(
        self, pattern: str, callback: Callback, capacity: int, on_close: Callable[[object], None]
    ) -> None:
        """Use `LocalBus.subscribe`."""
        self.pattern = pattern
        self.handled = 0
        self.dropped = 0
        self.failed = 0
        self._matches = compile_pattern(pattern).fullmatch
        self._callback = callback
        self._capacity = capacity
        self._on_close = on_close
        self._queue: deque[tuple[str, bytes]] = deque()
        self._changed = threading.Condition()
        self._calling = False
        self._closed = False
        threading.Thread(target=self._work, name=f"sage-bus {pattern:.40}", daemon=True).start()

    def offer(self, topic: str, body: bytes) -> None:
        """Queue a message if the pattern matches; make room by dropping the oldest."""
        if not self._matches(topic):
            return
        with self._changed:
            if len(self._queue) >= self._capacity:
                self._queue.popleft()
                self.dropped += 1
            self._queue.append((topic, body))
            self._changed.notify_all()

    def close(self) -> None:
        """See `Handle.close`."""
        self._on_close(self)
        with self._changed:
            self._closed = True
            self._queue.clear()
            self._changed.notify_all()

    def settle(self, deadline: float) -> bool:
        """Wait until everything queued was handled; False when ``deadline`` (monotonic) comes
        first.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: not self._queue and not self._calling, max(0.0, deadline - time.monotonic())
            )

    def _work(self) -> None:
        while True:
            with self._changed:
                self._calling = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._queue or self._closed)
                if self._closed:
                    return
                topic, body = self._queue.popleft()
                self._calling = True
            try:
                self._callback(topic, json.loads(body))
                self.handled += 1
            except (
                BaseException
            ) as error:  # not even SystemExit of a callback may end the deliveries
                self.failed += 1
                _LOG.warning(
                    "a subscriber of %s failed with %s", self.pattern, type(error).__name__
                )


class LocalBus(Closing):
    """A `Bus` for one process. ``capacity`` bounds the queue of each subscription."""

    def __init__(self, *, capacity: int = 1024) -> None:
        """An empty bus."""
        if isinstance(capacity, bool) or not isinstance(capacity, int) or capacity < 1:
            raise InvalidInput(
                "VALUE_INVALID", f"capacity must be a positive whole number, got {capacity!r:.60}"
            )
        self._capacity = capacity
        self._lock = threading.Lock()
        self._subscriptions: list[LocalSubscription] = []
        self._closed = False

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        """See `Bus.publish`. BUS_CLOSED after `close`."""
        check_topic(topic)
        body = encode(message)
        with self._lock:  # so that every subscription sees one order
            self._check_open()
            for subscription in self._subscriptions:
                subscription.offer(topic, body)

    def subscribe(self, pattern: str, callback: Callback) -> LocalSubscription:
        """See `Bus.subscribe`."""
        compile_pattern(pattern)
        with self._lock:
            self._check_open()
            subscription = LocalSubscription(pattern, callback, self._capacity, self._forget)
            self._subscriptions.append(subscription)
        return subscription

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until every message published so far was handled; False when the time is over
        first.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            subscriptions = list(self._subscriptions)
        return all(subscription.settle(deadline) for subscription in subscriptions)

    def close(self) -> None:
        """End every subscription; messages still queued are dropped. Safe to call twice."""
        with self._lock:
            self._closed = True
            subscriptions = list(self._subscriptions)
        for subscription in subscriptions:
            subscription.close()

    def _check_open(self) -> None:
        if self._closed:
            raise BusUnavailable("BUS_CLOSED", "the bus was closed")

    def _forget(self, subscription: object) -> None:
        with self._lock:
            self._subscriptions = [
                local_subscription
                for local_subscription in self._subscriptions
                if local_subscription is not subscription
            ]
