"""Reading JSON forms strictly: what was asked, what is allowed, what was given.

Reasons: SCHEDULE_INVALID (a wrong type, an unknown or missing field, a number out of range),
SCHEDULE_TOO_LARGE, SCHEDULE_DUPLICATE_ID.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from ptklib.errors import InvalidInput

__all__ = [
    "MAX_AMOUNT",
    "Identity",
    "fields",
    "identities",
    "invalid",
    "listed",
    "seconds",
    "too_large",
    "whole",
]

MAX_AMOUNT = (1 << 62) - 1
_MAX_TEXT = 200

Identity = str | int


def invalid(message: str) -> InvalidInput:
    """The error of a form that is not as documented."""
    return InvalidInput("SCHEDULE_INVALID", message)


def too_large(what: str, given: int, most: int) -> InvalidInput:
    """The error of an instance beyond the limits."""
    return InvalidInput(
        "SCHEDULE_TOO_LARGE", f"{what} must be at most {most}, got {given}", most=most
    )


def fields(
    what: str, body: object, names: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, Any]:
    """An object with these fields and no others."""
    if (
        not isinstance(body, dict)
        or not set(names) <= set(body)
        or not set(body) <= {*names, *optional}
    ):
        got = sorted(map(str, body)) if isinstance(body, dict) else type(body).__name__
        may = f" and perhaps {', '.join(optional)}" if optional else ""
        raise invalid(
            f"{what} must be an object with the fields {', '.join(names)}{may}, got {got!s:.200}"
        )
    return body


def listed(what: str, value: object) -> list[Any]:
    """A list."""
    if not isinstance(value, list):
        raise invalid(f"{what} must be a list, got {type(value).__name__}")
    return value


def whole(what: str, value: object, most: int = MAX_AMOUNT) -> int:
    """An integer from 0 to ``most``."""
    if type(value) is not int or not 0 <= value <= most:
        raise invalid(f"{what} must be an integer from 0 to {most}, got {value!r:.60}")
    return value


def seconds(what: str, value: object) -> float:
    """A finite number from 0 on."""
    if type(value) not in (int, float) or not 0 <= value < math.inf:  # type: ignore[operator]
        raise invalid(f"{what} must be a number of seconds from 0 on, got {value!r:.60}")
    return float(value)  # type: ignore[arg-type]


def identities(what: str, values: Sequence[object]) -> tuple[Identity, ...]:
    """Texts or integers, all different."""
    for k, value in enumerate(values):
        if type(value) is int:
            continue
        if not isinstance(value, str) or not 0 < len(value) <= _MAX_TEXT or not value.isprintable():
            raise invalid(
                f"{what}[{k}].id must be an integer or printable text of 1 to {_MAX_TEXT} characters, got {value!r:.60}"
            )
    twice = [value for value, times in Counter(values).items() if times > 1]
    if twice:
        raise InvalidInput(
            "SCHEDULE_DUPLICATE_ID",
            f"the ids of {what} must differ, got {twice[0]!r:.60} more than once",
        )
    return tuple(values)  # type: ignore[arg-type]
