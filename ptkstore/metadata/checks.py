"""What may go into a column, checked before the database sees it.

Reasons: NAME_INVALID (from the ledger's rule for names), JSON_INVALID, VALUE_INVALID.
"""

from __future__ import annotations

import math

from ptklib.encoding.canonical import canonical
from ptklib.errors import InvalidInput
from ptklib.ledger.slices import check_name

__all__ = [
    "MAX_ENDPOINT",
    "MAX_JSON_BYTES",
    "MAX_TEXT",
    "check_choice",
    "check_endpoint",
    "check_json",
    "check_name",
    "check_real",
    "check_text",
    "check_whole",
    "check_whole_or_none",
]

MAX_JSON_BYTES = 16 * 2**20
MAX_TEXT = 4000
MAX_ENDPOINT = 2000
_MAX_WHOLE = 2**63 - 1


def check_json(value: object, what: str) -> str:
    """``value`` as canonical JSON text of bounded size.

    What comes back from the store equals what JSON keeps of it.
    """
    try:
        data = canonical(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            "JSON_INVALID", f"{what} must be a JSON value: {type(error).__name__}"
        ) from None
    if len(data) > MAX_JSON_BYTES:
        raise InvalidInput(
            "JSON_INVALID",
            f"{what} must be at most {MAX_JSON_BYTES} bytes of JSON, got {len(data)}",
        )
    return data.decode()


def check_whole(value: object, what: str, at_least: int = -_MAX_WHOLE) -> int:
    """An integer of 64 bits; True and 1.0 are none."""
    if isinstance(value, bool) or not isinstance(value, int) or not at_least <= value <= _MAX_WHOLE:
        low = "" if at_least == -_MAX_WHOLE else f" of at least {at_least}"
        raise InvalidInput(
            "VALUE_INVALID", f"{what} must be a whole number{low}, got {value!r:.60}", field=what
        )
    return value


def check_whole_or_none(value: object, what: str) -> int | None:
    """A whole number, or None for not told."""
    return None if value is None else check_whole(value, what)


def check_real(value: object, what: str) -> float:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidInput(
            "VALUE_INVALID", f"{what} must be a finite number, got {value!r:.60}", field=what
        )
    return float(value)


def check_text(value: object, what: str, longest: int = MAX_TEXT) -> str:
    """Text for people: any characters but NUL and lone surrogates, of bounded length, possibly
    empty.
    """
    if not isinstance(value, str) or len(value) > longest or "\0" in value or not _encodes(value):
        raise InvalidInput(
            "VALUE_INVALID",
            f"{what} must be text of at most {longest} characters, got {value!r:.60}",
        )
    return value


def check_endpoint(value: object, what: str) -> str:
    """Text that a database can keep in an index: bounded in bytes, too."""
    text = check_text(value, what, MAX_ENDPOINT)
    if len(text.encode()) > MAX_ENDPOINT:
        raise InvalidInput(
            "VALUE_INVALID",
            f"{what} must be at most {MAX_ENDPOINT} bytes of UTF-8, got {text!r:.60}",
        )
    return text


def check_choice(value: object, what: str, choices: tuple[str, ...]) -> str:
    """One of a few words."""
    if value not in choices:
        raise InvalidInput(
            "VALUE_INVALID", f"{what} must be one of {', '.join(choices)}, got {value!r:.60}"
        )
    return str(value)


def _encodes(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
