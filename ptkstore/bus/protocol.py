"""What a bus is: hints that something happened, in order, from whoever publishes to whoever listens
now.

A bus may lose messages and keeps none; the truth is the outbox, and a listener that must miss
nothing reads it. A topic is printable text; a pattern is a topic in which ``*`` stands for any text
and ``?`` for one character, as in Redis. Messages are JSON objects. Reasons: TOPIC_INVALID,
MESSAGE_INVALID, BUS_CLOSED.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ptklib.encoding.canonical import canonical
from ptklib.errors import BusUnavailable, InvalidInput

__all__ = [
    "MAX_TOPIC",
    "Bus",
    "BusUnavailable",
    "Callback",
    "Handle",
    "check_topic",
    "compile_pattern",
    "encode",
]

MAX_TOPIC = 1000

Callback = Callable[[str, dict[str, Any]], None]


class Handle(Protocol):
    """One subscription."""

    def close(self) -> None:
        """Hear no more: nothing is taken from the queue after this returns, though a call under way
        may still be running. Waits for nobody. Safe to call twice, and from the callback.
        """


class Bus(Protocol):
    """Publish and subscribe. Thread-safe."""

    def publish(self, topic: str, message: Mapping[str, Any]) -> None:
        """Hand a message to every subscription whose pattern matches now.

        Never waits for a callback.
        """

    def subscribe(self, pattern: str, callback: Callback) -> Handle:
        """Call ``callback(topic, message)`` for each message from now on, in the order of
        publishing, one at a time, with a copy of its own.
        """


def check_topic(topic: object) -> str:
    """A topic, or TOPIC_INVALID."""
    if not isinstance(topic, str) or not 0 < len(topic) <= MAX_TOPIC or not topic.isprintable():
        raise InvalidInput(
            "TOPIC_INVALID",
            f"a topic must be 1 to {MAX_TOPIC} printable characters, got {topic!r:.60}",
        )
    return topic


def compile_pattern(pattern: str) -> re.Pattern[str]:
    """The pattern as a regular expression.

    Brackets and backslashes are refused: buses disagree about them.
    """
    if set(check_topic(pattern)) & set("[]\\"):
        raise InvalidInput(
            "TOPIC_INVALID",
            f"a pattern has * and ? but no brackets or backslashes, got {pattern!r:.60}",
        )
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(character, re.escape(character)) for character in pattern))


def encode(message: object) -> bytes:
    """A message as canonical JSON, or MESSAGE_INVALID."""
    if not isinstance(message, Mapping):
        raise InvalidInput(
            "MESSAGE_INVALID", f"a message must be a JSON object, got {type(message).__name__}"
        )
    try:
        return canonical(dict(message))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "MESSAGE_INVALID", f"a message must be a JSON object: {type(error).__name__}"
        ) from None
