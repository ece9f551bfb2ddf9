"""Searches in tables that grow without bound: so many rows are looked at, and the next page goes on
further back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

__all__ = ["MOST_LOOKED_AT", "containing", "first_looked_at"]

MOST_LOOKED_AT = 30_000
_MOST_TEXT = 200


def first_looked_at(before: int | None, newest: int) -> int:
    """The smallest id that one search looks at, below ``before`` or from the newest on."""
    return (newest + 1 if before is None else min(before, newest + 1)) - MOST_LOOKED_AT


def containing(find: str, columns: Sequence[sa.ColumnElement[Any]]) -> list[sa.ColumnElement[bool]]:
    """What a row fulfils that has every word of a text in one of some columns, in whatever case."""
    words = find[:_MOST_TEXT].lower().split()
    return [
        sa.or_(*(sa.func.lower(column).contains(word, autoescape=True) for column in columns))
        for word in words
    ]
