"""Pages of lists. A page token says where to go on, and belongs to one list with one set of
filters. Reasons: PAGE_INVALID, PAGE_TOKEN_INVALID.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ptklib.errors import InvalidInput

__all__ = ["DEFAULT_SIZE", "MAX_SIZE", "PageRequest", "check_limit"]

DEFAULT_SIZE = 100
MAX_SIZE = 1000
_MAX_TOKEN = 2000
_CHECK = 12

One = TypeVar("One")


def check_limit(limit: int | None) -> int | None:
    """How many to list: a positive number, or None for everything. Reason: PAGE_INVALID."""
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int) or limit < 1):
        raise InvalidInput(
            "PAGE_INVALID", f"limit must be a positive whole number or None, got {limit!r:.60}"
        )
    return limit


class PageRequest:
    """One request for a page. ``after`` is where the page before ended, or None for the first."""

    def __init__(
        self, question: str, size: int, token: str, *, kind: type[int] | type[str] = int
    ) -> None:
        """``question`` names the list and its filters."""
        if size < 0:
            raise InvalidInput(
                "PAGE_INVALID", f"page_size must be 0 (for {DEFAULT_SIZE}) or more, got {size}"
            )
        self.size = min(size or DEFAULT_SIZE, MAX_SIZE)
        self._question = question.encode()
        self.after: Any = self._read(token, kind) if token else None

    def token(self, after: int | str) -> str:
        """The token of the page that begins after this place."""
        body = json.dumps(after).encode()
        return base64.urlsafe_b64encode(self._check(body) + body).decode()

    def cut(
        self, items: Sequence[One], place: Callable[[One], int | str]
    ) -> tuple[Sequence[One], str]:
        """The page and the next token, from up to ``size + 1`` items that were found."""
        if len(items) <= self.size:
            return items, ""
        return items[: self.size], self.token(place(items[self.size - 1]))

    def _read(self, token: str, kind: type[int] | type[str]) -> int | str:
        try:
            data = base64.b64decode(token[:_MAX_TOKEN].encode(), altchars=b"-_", validate=True)
            after = json.loads(data[_CHECK:])
        except (ValueError, binascii.Error, RecursionError):
            after = None
        if type(after) is not kind or self._check(data[_CHECK:]) != data[:_CHECK]:
            raise InvalidInput(
                "PAGE_TOKEN_INVALID", "page_token must come from the answer to the same question"
            )
        return after

    def _check(self, body: bytes) -> bytes:
        return hashlib.sha256(self._question + b"\0" + body).digest()[:_CHECK]
