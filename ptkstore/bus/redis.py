"""A bus on Redis: hints reach every process that listens to the same Redis.

A message about NAME goes to the channel ``ptk.NAME`` as ``{"message": …, "topic": …}``, so that a
client in any language can ``SUBSCRIBE ptk.hour-speed``. NAME is the message's ``subject``, or the
topic where it has none. Each process keeps one subscription to all of them and spreads what it
hears to its own listeners through a `LocalBus`.

Redis forgets what nobody hears. While it is away, `publish` refuses at once (BUS_UNAVAILABLE) and
the outbox keeps the event; listeners wait, and the connection is tried again, less and less often.
After every connection `on_connect` is called: whoever must not miss anything reads the truth then
(`engine.following` does). Reasons: BUS_UNAVAILABLE, BUS_CLOSED, BUS_URL_INVALID.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ptklib.errors import InvalidInput, SageError
from ptkstore.backoff import Backoff
from ptkstore.bus.local import LocalBus, LocalSubscription
from ptkstore.bus.protocol import BusUnavailable, Callback, Handle, check_topic, encode
from ptkstore.closing import Closing

if TYPE_CHECKING:
    import redis

__all__ = ["PREFIX", "RedisBus"]

PREFIX = "ptk."

_LOG = logging.getLogger(__name__)
_CONNECTED = "connected"
# How often the listener looks whether it was closed.
_GLANCE_SECONDS = 0.2


class RedisBus(Closing):
    """A `Bus` over one Redis.

    Making it connects nowhere: a Redis that is away delays hints and nothing else.
    """

    def __init__(
        self,
        url: str,
        *,
        prefix: str = PREFIX,
        capacity: int = 1024,
        timeout_seconds: float = 2.0,
        silence_seconds: float = 10.0,
        first_delay_seconds: float = 0.05,
        longest_delay_seconds: float = 10.0,
    ) -> None:
        """``prefix`` tells stores apart that share a Redis. A connection silent for
        ``silence_seconds`` is asked whether it is alive, and has ``timeout_seconds`` to say so.
        """
        if min(timeout_seconds, silence_seconds) <= 0:
            raise InvalidInput("VALUE_INVALID", "timeout and silence must be positive")
        if set(check_topic(prefix)) & set("*?[]\\"):
            raise InvalidInput(
                "TOPIC_INVALID",
                f"a prefix has no *, ?, brackets or backslashes, got {prefix!r:.60}",
            )
        self._backoff = Backoff(
            first_seconds=first_delay_seconds, longest_seconds=longest_delay_seconds
        )
        self._prefix = prefix
        self._silence = silence_seconds
        self._timeout = timeout_seconds
        self._client, self._errors = _client(url, timeout_seconds)
        self._heard = LocalBus(capacity=capacity)
        self._moments = LocalBus(capacity=1)  # only the newest connection matters
        self._lock = threading.Lock()
        self._publish_failures = self._listen_failures = 0
        self._retry_at = 0.0
        self._thread: threading.Thread | None = None
        self._connected = threading.Event()
        self._closed = threading.Event()

    @property
    def connected(self) -> bool:
        """True while hints are heard."""
        return self._connected.is_set()

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        """See `Bus.publish`. Raises BUS_UNAVAILABLE when Redis did not take the message, without
        waiting for one that is known to be away.
        """
        check_topic(topic)
        encode(message)
        self._check_open()
        subject = message.get("subject")
        name = subject if isinstance(subject, str) and subject else topic
        body = encode({"topic": topic, "message": dict(message)})
        if time.monotonic() < self._retry_at:
            raise BusUnavailable(
                "BUS_UNAVAILABLE", "Redis did not answer a moment ago and is asked again later"
            )
        try:
            self._client.publish(self._prefix + name, body)
        except self._errors as error:
            with self._lock:
                self._publish_failures += 1
                delay = self._backoff.seconds(self._publish_failures)
                self._retry_at = time.monotonic() + delay
            raise BusUnavailable(
                "BUS_UNAVAILABLE", f"Redis did not take the message: {type(error).__name__}"
            ) from error
        self._publish_failures = 0

    def subscribe(self, pattern: str, callback: Callback) -> LocalSubscription:
        """See `Bus.subscribe`. Waits a moment for the connection, so that what is published next is
        heard; goes on without it if there is none.
        """
        self._check_open()
        subscription = self._heard.subscribe(pattern, callback)
        self._start()
        self._connected.wait(self._timeout)
        return subscription

    def on_connect(self, callback: Callable[[], None]) -> Handle:
        """Call back after every connection from now on, in a thread of its own; several at once are
        one.
        """
        self._check_open()
        handle = self._moments.subscribe(_CONNECTED, lambda _topic, _message: callback())
        self._start()
        return handle

    def settle(self, timeout_seconds: float) -> bool:
        """Wait until everything heard so far was handled; False when the time is over first."""
        return self._heard.settle(timeout_seconds)

    def close(self) -> None:
        """End every subscription and the connections. Safe to call twice, and from a callback."""
        self._closed.set()
        self._heard.close()
        self._moments.close()
        with self._lock:
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(self._timeout + 2 * _GLANCE_SECONDS)
        self._client.close()

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise BusUnavailable("BUS_CLOSED", "the bus was closed")

    def _start(self) -> None:
        with self._lock:
            if self._thread is None and not self._closed.is_set():
                self._thread = threading.Thread(
                    target=self._listen, name="sage-bus redis", daemon=True
                )
                self._thread.start()

    def _listen(self) -> None:
        """Hear, for ever: connect, spread what comes, and connect again when that ends."""
        while not self._closed.is_set():
            try:
                with self._client.pubsub() as pubsub:  # type: ignore[no-untyped-call]
                    pubsub.psubscribe(self._prefix + "*")
                    self._hear(pubsub)
            except self._errors as error:
                if self._connected.is_set():
                    _LOG.warning("the connection to Redis is lost: %s", type(error).__name__)
            self._connected.clear()
            self._listen_failures += 1
            self._closed.wait(self._backoff.seconds(self._listen_failures))

    def _hear(self, pubsub: redis.client.PubSub) -> None:
        heard, asked = time.monotonic(), None
        while not self._closed.is_set():
            told = pubsub.get_message(timeout=_GLANCE_SECONDS)
            now = time.monotonic()
            if told is not None:
                heard, asked = now, None
                self._take(told)
            elif asked is not None and now > asked + self._timeout:
                raise TimeoutError("Redis is silent")
            elif asked is None and now > heard + self._silence:
                asked = now
                pubsub.ping()

    def _take(self, told: Mapping[str, Any]) -> None:
        if told["type"] == "psubscribe":
            self._listen_failures = 0
            self._connected.set()
            self._tell(self._moments, _CONNECTED, {})
        elif told["type"] == "pmessage":
            try:
                body = json.loads(told["data"])
                topic, message = body["topic"], body["message"]
            except (ValueError, TypeError, KeyError):
                _LOG.warning("somebody else publishes on a channel of ours")
            else:
                self._tell(self._heard, topic, message)

    def _tell(self, bus: LocalBus, topic: str, message: Mapping[str, Any]) -> None:
        try:
            bus.publish(topic, message)
        except SageError as error:
            if not self._closed.is_set():
                _LOG.warning("a message from Redis cannot be used: %s", error.reason)


def _client(url: str, timeout_seconds: float) -> tuple[redis.Redis, tuple[type[Exception], ...]]:
    """A client that tries once and not for long: when to try again is decided here."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError:
        raise InvalidInput(
            "BUS_URL_INVALID", "Redis needs its client: pip install 'ptkstore[servers]'"
        ) from None
    try:
        client = redis.Redis.from_url(
            url,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
            socket_keepalive=True,
            retry=Retry(NoBackoff(), 0),
        )
    except (ValueError, TypeError, AttributeError):
        # The text may hold a password: it is not repeated.
        raise InvalidInput(
            "BUS_URL_INVALID", "a bus is at redis://, rediss:// or unix://"
        ) from None
    return client, (redis.RedisError, OSError)
