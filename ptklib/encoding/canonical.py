"""JSON with one spelling per value: what is hashed, signed and compared.

`canonical_entries` gives the very same bytes as `canonical` for a list of ledger entries, several
times faster: it knows their fields, and remembers the text of costs and demands, which come again
and again as the same objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from json.encoder import encode_basestring
from typing import Any

__all__ = [
    "ReserveEntry",
    "canonical",
    "canonical_entries",
    "entry_texts",
    "joined_entries",
    "spelled_reserve",
]

_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_MAX_RECENT = 1024
_recent: dict[int, tuple[object, str]] = {}


def canonical(value: object) -> bytes:
    """``value`` as UTF-8 JSON with sorted keys and no spaces. NaN and infinities are refused."""
    return _ENCODER.encode(value).encode()


def canonical_entries(entries: Iterable[dict[str, Any]]) -> bytes:
    """`canonical` of a list of entries."""
    return joined_entries([entry_texts(entries)])


def entry_texts(entries: Iterable[dict[str, Any]]) -> str:
    """The entries without the brackets around them, to be `joined_entries` later."""
    return ",".join([_entry(entry) for entry in entries])


def joined_entries(texts: Iterable[str]) -> bytes:
    """The list of all entries of several `entry_texts`."""
    return ("[" + ",".join([text for text in texts if text]) + "]").encode()


class ReserveEntry(dict[str, Any]):
    """A ``reserve`` entry; ``spelled`` is the text of its fields after ``charge``, made before its
    number was known.

    Nobody changes it.
    """

    __slots__ = ("spelled",)
    spelled: str


def spelled_reserve(fields: dict[str, Any]) -> str:
    """The canonical text of the fields of a ``reserve`` entry that come after ``charge``, without
    the braces.
    """
    if "contexts" in fields or "key" in fields:
        return _fields(fields)
    # The most frequent form of all by far.
    spent = f'"spent_at_ms":{fields["spent_at_ms"]},' if "spent_at_ms" in fields else ""
    return (
        f'"cost":{_remembered(fields["cost"])},"demand":{_remembered(fields["demand"])},'
        f'"expires_at_ms":{fields["expires_at_ms"]},"kind":"reserve","slices":{_field("slices", fields["slices"])},'
        f'{spent}"stream":{encode_basestring(fields["stream"])}'
    )


def _entry(entry: dict[str, Any]) -> str:
    if type(entry) is ReserveEntry:
        return f'{{"charge":{entry["charge"]},{entry.spelled}}}'
    return "{" + _fields(entry) + "}"


def _fields(fields: dict[str, Any]) -> str:
    return ",".join([f'"{name}":{_field(name, fields[name])}' for name in sorted(fields)])


def _field(name: str, value: Any) -> str:
    if type(value) is int:
        return str(value)
    if type(value) is str:
        text: str = encode_basestring(value)
        return text
    if name in ("cost", "demand"):
        return _remembered(value)
    if name == "slices":
        return "[" + ",".join([_slice(*slice_) for slice_ in value]) + "]"
    return _ENCODER.encode(value)


def _slice(runs: list[list[int]], start: int, stop: int) -> str:
    if len(runs) == 1:
        return f"[[[{runs[0][0]},{runs[0][1]}]],{start},{stop}]"
    return f"[[{','.join([f'[{first},{count}]' for first, count in runs])}],{start},{stop}]"


def _remembered(value: object) -> str:
    """The text of an object that nobody changes once it is in an entry."""
    known = _recent.get(id(value))
    if known is not None and known[0] is value:
        return known[1]
    text = _ENCODER.encode(value)
    if len(_recent) >= _MAX_RECENT:
        _recent.clear()
    _recent[id(value)] = (value, text)
    return text
