"""Columns of a stream: an Arrow type and what is publicly known about the values, bounds or a
domain.

Bounds and domains come from the operator, never from the data. What each type needs:

| type | what must be public |
|---|---|
| int8 … int64, uint8 … uint32, float32, float64 | ``lower`` and ``upper``, or (integers) a ``domain`` |
| timestamp[s, ms, us, ns], also with ``, tz=UTC`` | ``lower`` and ``upper`` (ISO 8601); the time column: ``lower`` |
| string | a ``domain``, or ``upper``: the most bytes one value may have |
| dictionary (of strings) | a ``domain`` |
| bool | nothing |

The user column needs neither bounds nor a domain. Reasons: COLUMN_INVALID,
COLUMN_MISSING.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date

import pyarrow as pa

from ptklib.errors import InvalidInput
from ptkstore.api.moments import iso, millis

__all__ = ["MAX_DOMAIN", "Bound", "Column", "place_of_column"]

MAX_DOMAIN = 1 << 20
Bound = int | float | str | date

_INTEGERS = {
    str(kind): kind
    for kind in (
        pa.int8(),
        pa.int16(),
        pa.int32(),
        pa.int64(),
        pa.uint8(),
        pa.uint16(),
        pa.uint32(),
    )
}
_FLOATS = {"float32": pa.float32(), "float64": pa.float64()}
_ALIASES = {
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "utf8": "string",
    "timestamp": "timestamp[ms]",
}
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)(, tz=UTC)?\]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column.

    A ``domain`` keeps its order; a value outside of it becomes its first value where the stream
    clips.
    """

    name: str
    type: str
    lower: Bound | None = None
    upper: Bound | None = None
    domain: tuple[str | int, ...] | None = None
    nullable: bool = False

    def __post_init__(self) -> None:
        """Make the spelling of the type and the bounds canonical; refuse what is not public enough
        or contradicts itself.
        """
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise self._invalid(
                "name",
                "must be a letter followed by at most 99 letters, digits, '_', '.', ':' or '-'",
            )
        kind = str(self.type)
        kind = "dictionary" if kind.startswith("dictionary") else _ALIASES.get(kind, kind)
        object.__setattr__(self, "type", kind)
        if not isinstance(self.nullable, bool):
            raise self._invalid("nullable", "must be true or false")
        if kind not in {
            *_INTEGERS,
            *_FLOATS,
            "string",
            "bool",
            "dictionary",
        } and not _TIMESTAMP.fullmatch(kind):
            raise self._invalid(
                "type",
                f"must be an integer, float, string, bool, timestamp or dictionary, got {kind:.40}",
            )
        if self.domain is not None:
            self._check_domain()
        else:
            self._check_bounds()

    def _check_domain(self) -> None:
        domain = self.domain
        kind = int if self.is_integer else str
        if not (self.is_integer or self.type in {"string", "dictionary"}):
            raise self._invalid(
                "domain", f"is for integers, strings and dictionaries, not for {self.type}"
            )
        if (
            isinstance(domain, str)
            or not isinstance(domain, list | tuple)
            or not 0 < len(domain) <= MAX_DOMAIN
        ):
            raise self._invalid("domain", f"must list 1 to {MAX_DOMAIN} values")
        if any(type(value) is not kind for value in domain) or len(set(domain)) != len(domain):
            raise self._invalid("domain", f"must list distinct values, each {kind.__name__}")
        if self.lower is not None or self.upper is not None:
            raise self._invalid("domain", "leaves no room for bounds: give one or the other")
        object.__setattr__(self, "domain", tuple(domain))
        if self.is_integer:
            self._in_range(*(value for value in domain if isinstance(value, int)))

    def _check_bounds(self) -> None:
        lower, upper = self.lower, self.upper
        if self.type in {"bool", "dictionary"} and (lower is not None or upper is not None):
            raise self._invalid("lower", what="lower, upper", must=f"mean nothing for {self.type}")
        if self.type == "string":
            if lower is not None or (upper is not None and (type(upper) is not int or upper < 1)):
                raise self._invalid(
                    "upper",
                    "of a string is the most bytes it may have, at least 1; lower means nothing",
                )
            return
        if self.is_timestamp:
            try:
                lower, upper = (
                    None if bound is None else iso(millis(bound)) for bound in (lower, upper)
                )
            except ValueError:
                raise self._invalid(
                    "lower",
                    what="lower, upper",
                    must="must be ISO 8601 times between 1700 and 2261",
                ) from None
            object.__setattr__(self, "lower", lower)
            object.__setattr__(self, "upper", upper)
            lower, upper = self.bounds_ms
        elif self.is_integer:
            if any(bound is not None and type(bound) is not int for bound in (lower, upper)):
                raise self._invalid("lower", what="lower, upper", must="must be integers")
            self._in_range(*(bound for bound in (lower, upper) if isinstance(bound, int)))
        elif self.is_float:
            for field, value in (("lower", lower), ("upper", upper)):
                if value is not None and (
                    isinstance(value, bool | str | date) or not math.isfinite(value)
                ):
                    raise self._invalid(field, "must be a finite number")
                object.__setattr__(self, field, None if value is None else float(value))
        if (lower is None) != (upper is None) and not (self.is_timestamp and upper is None):
            raise self._invalid("lower", what="lower, upper", must="must be given together")
        if lower is not None and upper is not None and not lower <= upper:  # type: ignore[operator]
            raise self._invalid("lower", what="lower, upper", must="must satisfy lower <= upper")

    def _in_range(self, *values: int) -> None:
        # Without Arrow's scalars, which import pandas where it is installed: a process that plans
        # would start with it.
        bits = _INTEGERS[self.type].bit_width
        first, last = (
            (0, 2**bits - 1)
            if self.type.startswith("uint")
            else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        )
        if any(not first <= value <= last for value in values):
            field = "type" if self.domain is None else "domain"
            raise self._invalid(field, f"must fit into {self.type}", what="values")

    def _invalid(self, field: str, must: str, *, what: str = "") -> InvalidInput:
        """``what`` is named instead of the field where it is about more than that."""
        return InvalidInput(
            "COLUMN_INVALID",
            f"column {self.name!r:.60}: {what or field} {must}",
            column=str(self.name)[:60],
            field=field,
        )

    @property
    def is_integer(self) -> bool:
        """True for the integer types."""
        return self.type in _INTEGERS

    @property
    def is_float(self) -> bool:
        """True for float32 and float64."""
        return self.type in _FLOATS

    @property
    def is_timestamp(self) -> bool:
        """True for the timestamp types."""
        return self.type.startswith("timestamp")

    @property
    def arrow(self) -> pa.DataType:
        """The type of the column in batches that are read back."""
        if self.is_integer or self.is_float:
            return {**_INTEGERS, **_FLOATS}[self.type]
        match = _TIMESTAMP.fullmatch(self.type)
        if match:
            return pa.timestamp(match[1], "UTC" if match[2] else None)
        return {
            "string": pa.string(),
            "bool": pa.bool_(),
            "dictionary": pa.dictionary(pa.int32(), pa.string()),
        }[self.type]

    @property
    def bounds_ms(self) -> tuple[int | None, int | None]:
        """The bounds of a timestamp column in milliseconds."""
        return tuple(None if bound is None else millis(bound) for bound in (self.lower, self.upper))  # type: ignore[return-value]

    @property
    def ticks_per_second(self) -> int:
        """How many units of a timestamp column make a second."""
        return {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[self.arrow.unit]

    def as_json(self) -> dict[str, object]:
        """The fields that are set."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["domain"] = None if self.domain is None else list(self.domain)
        return {
            key: value for key, value in values.items() if value is not None and value is not False
        }

    @classmethod
    def from_json(cls, body: object) -> Column:
        """Read `as_json` back; an unknown key is an error."""
        known = {field.name for field in fields(cls)}
        if not isinstance(body, Mapping) or not {"name", "type"} <= body.keys() <= known:
            raise InvalidInput(
                "COLUMN_INVALID",
                f"a column must have name and type, and nothing but {', '.join(sorted(known))}",
            )
        return cls(**body)


def place_of_column(schema: pa.Schema, name: str, more: str = "") -> int:
    """Where the one column of that name is; ``more`` is said of what was given. Reason:
    COLUMN_MISSING.
    """
    places = schema.get_all_field_indices(name)
    if len(places) != 1:
        raise InvalidInput(
            "COLUMN_MISSING",
            f"column {name!r} must be there once, found {len(places)} times{more}",
            column=name,
        )
    return int(places[0])
