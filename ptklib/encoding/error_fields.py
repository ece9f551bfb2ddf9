"""Which field of a document an error is about: one rule, for everybody who reads one.

An error that is about a field has the detail ``field``: the way from the document that was given
to the field, joined by dots, with positions in lists as numbers (``columns.2.upper``,
``config.keys.0.column``). Whoever reads a part of a document says where the part lies (`inside`),
so that at the end the way is that from the whole. A field that is missing is named as well. Nobody
looks for a field in a message: messages are for people, and may change.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import MappingProxyType

from ptklib.errors import SageError

__all__ = ["FIELD", "Way", "about", "field_of", "inside", "joined"]

FIELD = "field"

# Keys and positions that lead to a field: ("columns", 2, "upper").
Way = tuple[str | int, ...]


def joined(*way: str | int) -> str:
    """The way to a field as errors carry it."""
    return ".".join(map(str, way))


def field_of(error: SageError) -> Way:
    """The way to the field that an error is about; empty where it is about the whole."""
    told = error.details.get(FIELD)
    if not isinstance(told, str) or not told:
        return ()
    return tuple(int(part) if part.isdecimal() else part for part in told.split("."))


@contextmanager
def inside(*way: str | int) -> Iterator[None]:
    """Errors raised in here are about what lies there."""
    try:
        yield
    except SageError as error:
        _add(error, **{FIELD: joined(*way, *field_of(error))})
        raise


@contextmanager
def about(**details: object) -> Iterator[None]:
    """Errors raised in here have these details, unless they have others of the name."""
    try:
        yield
    except SageError as error:
        _add(error, **{**details, **error.details})
        raise


def _add(error: SageError, **details: object) -> None:
    error.details = MappingProxyType({**error.details, **details})
