"""What logs and people are told of an error: its kind and its place, never its text."""

from __future__ import annotations

import errno

import pytest

from ptklib.encoding.error_place import failure_of, kind_of, place_of
from ptklib.errors import InvalidInput, Refused

SECRET = "4711 Canary Street"


def raised(error: BaseException) -> BaseException:
    try:
        raise error
    except type(error) as caught:
        return caught


# Where `raised` raises, read from the code itself.
LINE = raised.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("error", "kind", "failure"),
    [
        (ValueError(SECRET), "ValueError", "ValueError"),
        (OSError(errno.ENOSPC, SECRET), "OSError ENOSPC", "OSError"),
        (FileNotFoundError(errno.ENOENT, SECRET), "FileNotFoundError ENOENT", "FileNotFoundError"),
        (OSError(SECRET), "OSError", "OSError"),
        (Refused("QUOTA_EXCEEDED", SECRET), "QUOTA_EXCEEDED", "Refused QUOTA_EXCEEDED"),
        (
            InvalidInput("VALUE_INVALID", SECRET, value=SECRET),
            "VALUE_INVALID",
            "InvalidInput VALUE_INVALID",
        ),
        (KeyboardInterrupt(), "KeyboardInterrupt", "KeyboardInterrupt"),
    ],
)
def test_kind_and_place_are_told_and_the_text_is_not(
    error: BaseException, kind: str, failure: str
) -> None:
    assert (kind_of(error), place_of(error), failure_of(error)) == (kind, "", failure)
    place = f"test_error_place.py:{LINE}"
    assert place_of(raised(error)) == place
    assert (kind_of(error), failure_of(error)) == (kind, f"{failure} at {place}")
