"""The configuration of a PTK with what its stream says already: nobody writes a list of carriers
twice.

=====================================  ===========================================================
written                                becomes, from the columns of the stream
=====================================  ===========================================================
``keys: [zone, hour(pickup_at)]``      keys with the domain or the bounds of the column, parts of
                                       a time; also ``users``, ``items``, and a ``label`` that is a
                                       key
``{kind: categories, column: zone}``   the same with the ``values``
``inputs: [age, city]``                numbers with bounds, or keys
``values: [speed, miles]``             numbers with bounds
``value: speed``                       with ``lower`` and ``upper``
``label: speed``                       with ``lower`` and ``upper``, or with ``classes`` where the
                                       column has a domain
``denominator: fare``                  with ``denominator_upper``
=====================================  ===========================================================

What is written counts; only what is missing is filled in, and only from what is public: the stream's
specification. Reason: CONFIG_INVALID.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from ptklib.encoding.error_fields import FIELD, joined
from ptklib.errors import InvalidInput

if TYPE_CHECKING:
    from ptkstore.api.columns import Column
    from ptkstore.api.stream_spec import StreamSpec

__all__ = ["completed"]

_PARTS = ("hour", "weekday")
_PARTS_OF = ("keys", "users", "items", "inputs", "values", "label")
_BOUNDED = ("lower", "upper")


def completed(spec: StreamSpec, kind: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of that kind on this stream; as it is where the kind is not installed."""
    from ptklib import registry

    if kind not in registry.kinds():
        return dict(config)
    fields = registry.kinds()[kind].json_schema()["properties"]
    whole = dict(config)
    columns = {column.name: column for column in spec.columns}
    for name in _PARTS_OF:
        if name not in whole or name not in fields:
            continue
        told, allowed = whole[name], _allowed(fields[name])
        if not allowed:
            continue
        if isinstance(told, list):
            whole[name] = [
                _part(columns, part, (name, place), allowed) for place, part in enumerate(told)
            ]
        else:
            whole[name] = _part(columns, told, (name,), allowed)
    _scalars(columns, fields, whole)
    return whole


def _allowed(schema: Mapping[str, Any]) -> frozenset[str]:
    """The kinds of keys and numbers that a field takes; none where it takes names alone."""
    kind = schema.get("properties", {}).get("kind", {}).get("const")
    inner = [*schema.get("anyOf", ()), *([schema["items"]] if "items" in schema else [])]
    return frozenset([kind] if kind else []).union(*map(_allowed, inner))


def _part(
    columns: Mapping[str, Column], told: Any, way: tuple[str | int, ...], allowed: Set[str]
) -> Any:
    """One key or number: a name in full, a mapping with what it lacks."""
    if isinstance(told, str):
        for part in _PARTS if "time_part" in allowed else ():
            if told.startswith(f"{part}(") and told.endswith(")"):
                return {"kind": "time_part", "column": told[len(part) + 1 : -1], "part": part}
        if told not in columns:
            raise _invalid(way, f"the stream has no column {told!r:.60}; it has {_few(columns)}")
        return _of_column(columns[told], way, allowed)
    if not isinstance(told, dict):
        return told
    column = columns.get(str(told.get("column")))
    if column is None:
        return told
    match told.get("kind"):
        case "categories" if "values" not in told and column.domain is not None:
            return {**told, "values": list(column.domain)}
        case "integers" if not {"first", "last"} & told.keys() and column.is_integer:
            return {**_of_column(column, way, {"integers"}), **told}
        case "number" | "bounded" if not set(_BOUNDED) & told.keys():
            return {**told, **_bounds(column)}
        case None if told.keys() == {"column"}:
            return _of_column(column, way, allowed)
    return told


def _of_column(column: Column, way: tuple[str | int, ...], allowed: Set[str]) -> dict[str, Any]:
    """What a column is by itself: a number where numbers are taken, else a key."""
    bounds = _bounds(column)
    for number in ("number", "bounded"):
        if bounds and number in allowed:
            return {"kind": number, "column": column.name, **bounds}
    if column.domain is not None and "categories" in allowed:
        return {"kind": "categories", "column": column.name, "values": list(column.domain)}
    if column.is_integer and bounds and "integers" in allowed:
        first, last = int(bounds["lower"]), int(bounds["upper"])
        return {"kind": "integers", "column": column.name, "first": first, "last": last}
    hint = (
        f"hour({column.name}) and weekday({column.name}) are keys"
        if column.is_timestamp and "time_part" in allowed
        else f"write one of {', '.join(sorted(allowed))} in full"
    )
    raise _invalid(way, f"the {column.type} column {column.name!r} is none by itself: {hint}")


def _scalars(
    columns: Mapping[str, Column], fields: Mapping[str, Any], whole: dict[str, Any]
) -> None:
    """Bounds and classes of the column that ``value`` or ``label`` names, in place."""
    for name in ("value", "label"):
        column = columns.get(whole[name]) if isinstance(whole.get(name), str) else None
        if column is None or name not in fields:
            continue
        bounded = {"lower", "upper"} & whole.keys()
        if column.domain is not None and "classes" in fields and not bounded:
            whole.setdefault("classes", list(column.domain))
        elif not bounded and set(_BOUNDED) <= fields.keys() and "classes" not in whole:
            whole.update(_bounds(column))
    denominator = columns.get(str(whole.get("denominator")))
    if denominator is not None and "denominator_upper" in fields:
        bounds = _bounds(denominator)
        if bounds:
            whole.setdefault("denominator_upper", bounds["upper"])


def _bounds(column: Column) -> dict[str, Any]:
    """Public bounds of a column of numbers; empty where it has none."""
    numbers = column.is_integer or column.is_float
    if not numbers or column.lower is None or column.upper is None:
        return {}
    return {"lower": column.lower, "upper": column.upper}


def _few(columns: Mapping[str, Column]) -> str:
    names = list(columns)
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _invalid(way: tuple[str | int, ...], words: str) -> InvalidInput:
    place = joined("config", *way)
    return InvalidInput("CONFIG_INVALID", f"{place}: {words}", **{FIELD: place})
