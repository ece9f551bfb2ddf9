"""Times, JSON texts, enums and optional fields of messages. Reasons: TIME_INVALID, JSON_INVALID."""

from __future__ import annotations

import json
from typing import Any

from google.protobuf.timestamp_pb2 import Timestamp

from ptklib.encoding.nesting import MAX_NESTING, too_deep
from ptklib.errors import InvalidInput

__all__ = ["enum_word", "json_object", "millis", "moment", "optional"]

# The years 1 to 9999, as in google.protobuf.Timestamp.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def moment(ms: int | None) -> Timestamp | None:
    """Milliseconds since 1970 as a message; None stays None."""
    return None if ms is None else Timestamp(seconds=ms // 1000, nanos=ms % 1000 * 1_000_000)


def millis(message: Any, field: str) -> int | None:
    """The time in a field, in milliseconds, or None where it is not set. Reason: TIME_INVALID."""
    if not message.HasField(field):
        return None
    timestamp: Timestamp = getattr(message, field)
    if not _FIRST_SECOND <= timestamp.seconds <= _LAST_SECOND or not 0 <= timestamp.nanos < 10**9:
        raise InvalidInput("TIME_INVALID", f"{field} must be a time of the years 1 to 9999")
    return timestamp.seconds * 1000 + timestamp.nanos // 1_000_000


def json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object from its text. Reason: JSON_INVALID."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict) or too_deep(body):
        raise InvalidInput(
            "JSON_INVALID", f"{what} must be a JSON object of at most {MAX_NESTING} levels"
        )
    return body


def enum_word(kind: Any, number: int, prefix: str) -> str:
    """The word of an enum's number; empty for none, or for one that is newer than this release."""
    return kind.Name(number).removeprefix(prefix) if number in kind.values() and number != 0 else ""


def optional(message: Any, field: str) -> Any:
    """A field, or None where it is not set."""
    return getattr(message, field) if message.HasField(field) else None
