"""Configurations: frozen dataclasses of public values, as JSON and back, with a schema, checked at
construction.

A field may be ``str``, ``int``, ``float``, ``bool``, a ``Literal``, ``tuple[X, ...]``, ``X |
None``, a union, or another dataclass with a ``kind: ClassVar[str]``, which is written into its JSON
form. Nothing else: a configuration travels as JSON, is hashed into certificates, and must mean the
same everywhere. Floats are finite, texts can be written as UTF-8. A list given for a tuple is
accepted; an int given for a float becomes one.

Reasons: CONFIG_INVALID (a wrong value), CONFIG_FIELDS (a field too many or too few). Errors say which
field they are about (`ptklib.encoding.error_fields`).
"""

from __future__ import annotations

import math
import types
from collections.abc import Collection
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

from ptklib.encoding.error_fields import inside
from ptklib.errors import InvalidInput

__all__ = ["checked", "demand", "demand_distinct", "from_json", "schema", "to_json"]

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean"}


def checked(config: Any) -> None:
    """Check every field of a frozen dataclass against its annotation, in place; call it in
    ``__post_init__``.
    """
    for name, kind in _hints(type(config)).items():
        where = f"{type(config).__name__}.{name}"
        with inside(name):
            object.__setattr__(config, name, _value(getattr(config, name), kind, where))


def demand(holds: bool, words: str, *, field: str) -> None:
    """Refuse a configuration with these words unless the condition holds (CONFIG_INVALID)."""
    if not holds:
        raise InvalidInput("CONFIG_INVALID", words, field=field)


def demand_distinct(values: Collection[Any], *, field: str) -> None:
    """Refuse a field that lists nothing, or something twice (CONFIG_INVALID)."""
    once = 0 < len(values) == len(set(values))
    demand(once, f"{field} must be one or more, none of them twice", field=field)


def to_json(config: Any) -> dict[str, Any]:
    """The fields as plain JSON values, with the kind of a part, without that of the whole."""
    return {field.name: _plain(getattr(config, field.name)) for field in fields(config)}


def from_json(kind: type[Any], body: Any) -> Any:
    """Read the form of `to_json`; fields with defaults may be left out."""
    if not isinstance(body, dict):
        raise InvalidInput(
            "CONFIG_INVALID", f"{kind.__name__} must be an object, got {type(body).__name__}"
        )
    known = {field.name: field for field in fields(kind)}
    missing = [
        name
        for name, field in known.items()
        if name not in body and field.default is MISSING and field.default_factory is MISSING
    ]
    unknown = sorted(set(map(str, body)) - set(known))
    if missing or unknown:
        raise InvalidInput(
            "CONFIG_FIELDS",
            f"{kind.__name__} must have fields of {sorted(known)}, missing {missing}, unknown "
            f"{unknown}",
            missing=missing,
            unknown=unknown,
            field=[*unknown, *missing][0],
        )
    return kind(**body)


def schema(kind: type[Any]) -> dict[str, Any]:
    """A JSON schema (2020-12) of the form of `to_json`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": kind.__name__,
        **_object(kind),
    }


def _hints(kind: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {
        field.name: hints[field.name]
        for field in fields(kind)
        if get_origin(hints[field.name]) is not ClassVar
    }


def _value(value: Any, kind: Any, where: str) -> Any:
    """The value as its annotation wants it, or a refusal."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        if any(type(value) is type(argument) and value == argument for argument in arguments):
            return value
    elif origin is tuple and isinstance(value, list | tuple):
        return tuple(_item(item, place, arguments[0], where) for place, item in enumerate(value))
    elif origin in (Union, types.UnionType):
        return _any_of(value, arguments, where)
    elif is_dataclass(kind):
        if isinstance(value, kind):  # type: ignore[arg-type]
            return value
        tag = getattr(kind, "kind", None)
        if isinstance(value, dict) and value.get("kind") == tag:
            return from_json(kind, {name: part for name, part in value.items() if name != "kind"})  # type: ignore[arg-type]
    elif (
        kind is float
        and isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
    ):
        return float(value)
    elif kind in _SCALARS and type(value) is kind and kind is not float and _writable(value):
        return value
    elif kind is type(None) and value is None:
        return None
    raise InvalidInput("CONFIG_INVALID", f"{where} must be {_words(kind)}, got {value!r:.80}")


def _item(item: Any, place: int, kind: Any, where: str) -> Any:
    with inside(place):
        return _value(item, kind, f"{where}[{place}]")


def _writable(value: Any) -> bool:
    """Texts must be characters: half of a surrogate pair would fail later, where it is first
    compared with data.
    """
    if isinstance(value, str) and not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return True


def _any_of(value: Any, kinds: tuple[Any, ...], where: str) -> Any:
    """The first kind that takes the value as it is; a refusal inside a part of the right kind is
    told as it stands.
    """
    exact: list[Any] = [kind for kind in kinds if isinstance(kind, type) and type(value) is kind]
    if isinstance(value, dict):
        exact = [
            kind
            for kind in kinds
            if is_dataclass(kind) and getattr(kind, "kind", None) == value.get("kind")
        ]
        if exact:
            return _value(value, exact[0], where)
    for kind in (*exact, *kinds):
        try:
            return _value(value, kind, where)
        except InvalidInput:
            continue
    words = " or ".join(_words(kind) for kind in kinds)
    raise InvalidInput("CONFIG_INVALID", f"{where} must be {words}, got {value!r:.80}")


def _words(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return "one of " + ", ".join(repr(argument) for argument in arguments)
    if origin is tuple:
        return f"a list of {_words(arguments[0])}"
    if origin in (Union, types.UnionType):
        return " or ".join(_words(argument) for argument in arguments)
    if kind is float:
        return "a finite number"
    if is_dataclass(kind):
        # As it is written in a configuration: nobody should have to look a class up.
        tag = getattr(kind, "kind", kind.__name__)  # type: ignore[union-attr]
        return f"{{{', '.join([f'kind: {tag}', *(field.name for field in fields(kind))])}}}"
    return "null" if kind is type(None) else getattr(kind, "__name__", str(kind))


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": getattr(value, "kind", type(value).__name__), **to_json(value)}
    return value


def _object(kind: type[Any]) -> dict[str, Any]:
    hints = _hints(kind)
    properties: dict[str, Any] = {}
    for field in fields(kind):
        properties[field.name] = _schema_of(hints[field.name])
        if field.default is not MISSING:
            properties[field.name]["default"] = _plain(field.default)
    needed = [
        field.name
        for field in fields(kind)
        if field.default is MISSING and field.default_factory is MISSING
    ]
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _schema_of(kind: Any) -> dict[str, Any]:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _schema_of(arguments[0])}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_schema_of(argument) for argument in arguments]}
    if is_dataclass(kind):
        body = _object(kind)  # type: ignore[arg-type]
        body["properties"] = {"kind": {"const": getattr(kind, "kind", "")}, **body["properties"]}
        body["required"] = ["kind", *body["required"]]
        return body
    return {"type": "null" if kind is type(None) else _SCALARS[kind]}
