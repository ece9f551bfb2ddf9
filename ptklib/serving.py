"""Serve features with NumPy alone: run the plan of one exported state.

This file imports nothing but NumPy and the standard library, and `ptklib.export` copies it whole into what it writes. A
plan is a JSON object::

    {"inputs": [column, ...], "steps": [{"do": step, "from": ..., "into": value, ...}, ...], "outputs": [[feature, value], ...]}

Steps run in order; each makes one value, by name, from a column of the input (steps of the first group) or from values made
before it. An option that begins with ``@`` is an array of the bundle.

=============  ===================================================================================================
step           makes
=============  ===================================================================================================
categories     the place of each text in a list; ``size`` where there is none
listed         the place of each whole number in a list
integers       the distance of each whole number from ``first``
bins           the bin of each number between rising edges
time_part      the hour or the weekday of each time, in UTC
=============  ===================================================================================================
combine        one code from several, ``size + 1`` places each
look_up        the entry of a table for each code
=============  ===================================================================================================

Columns are arrays, masked arrays or lists, as many rows each. Missing are: masked, None, NaN, NaT.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["COLUMN_STEPS", "FORMAT", "STEPS", "ServingError", "load", "pack", "run"]

FORMAT = 1
_TICKS = {"D": 0, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The length of a part in seconds, how many there are, and the part that 1970-01-01T00 falls in.
_PARTS = {"hour": (3600, 24, 0), "weekday": (86400, 7, 3)}

Array = np.ndarray[Any, Any]
Values = dict[str, Array]


class ServingError(ValueError):
    """The bundle or the input is not what it must be. The text names columns and types, never values."""


def pack(plan: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """Plan and arrays as one ``.npz`` without pickles; the same plan gives the same bytes."""
    text = json.dumps({"format": FORMAT, **plan}, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    file = io.BytesIO()
    members: dict[str, Any] = {"plan.json": np.frombuffer(text.encode(), np.uint8)}
    members |= {name: np.ascontiguousarray(arrays[name]) for name in sorted(arrays)}
    np.savez(file, **members)
    return file.getvalue()


def load(path: Path, sha256: str) -> tuple[dict[str, Any], Values]:
    """The plan and the arrays of a bundle, if its bytes are those that were written."""
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != sha256:
        raise ServingError(f"{path.name} is not the file that this code was exported with: export the state again")
    with np.load(io.BytesIO(data), allow_pickle=False) as bundle:
        arrays = {name: bundle[name] for name in bundle.files}
    plan = json.loads(arrays.pop("plan.json").tobytes())
    if plan.pop("format") != FORMAT:
        raise ServingError(f"{path.name} must be of format {FORMAT}: export the state again")
    return plan, arrays


def run(plan: Mapping[str, Any], arrays: Mapping[str, Array], columns: Any) -> Values:
    """The features of each row, by name: float64, in the order of the rows. Columns that the plan does not read are ignored."""
    inputs = {name: _column(columns, name) for name in plan["inputs"]}
    if len({len(one) for one in inputs.values()}) > 1:
        raise ServingError(f"columns {sorted(inputs)} must have as many rows each")
    values: Values = {}
    for step in plan["steps"]:
        do, source, into = step["do"], step["from"], step["into"]
        options = {
            name: arrays[one[1:]] if isinstance(one, str) and one.startswith("@") else one
            for name, one in step.items()
            if name not in {"do", "from", "into"}
        }
        if do in COLUMN_STEPS:
            values[into] = COLUMN_STEPS[do](_Column(source, inputs[source]), **options)
        else:
            values[into] = STEPS[do]([values[one] for one in source], **options)
    return {feature: values[value] for feature, value in plan["outputs"]}


def _column(columns: Any, name: str) -> Array:
    try:
        found = columns[name]
    except (KeyError, ValueError, IndexError):
        raise ServingError(f"column {name!r} must be in the input, it is missing") from None
    column = found if isinstance(found, np.ndarray) else _listed(found)
    if column.ndim == 0:
        raise ServingError(f"column {name!r} must have a value for each row, got one value")
    return column


def _listed(found: Any) -> Array:
    """A list; what NumPy would turn into texts, or cut, stays as it is."""
    if isinstance(found, Sequence) and not isinstance(found, str | bytes) and len(found) and not _nested(found):
        kinds = {type(one) for one in found}
        if len(kinds) > 1 or kinds & {str, type(None)}:
            column = np.empty(len(found), dtype=object)
            column[:] = found
            return column
    return np.asarray(found)


def _nested(found: Sequence[Any]) -> bool:
    return isinstance(found[0], list | tuple | np.ndarray)


class _Column:
    """One column of the input, and what it can be read as."""

    def __init__(self, name: str, values: Array) -> None:
        self.name = name
        self.missing: Array | None = None
        if isinstance(values, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(values)
            self.missing = mask if mask.any() else None
            values = values.data
        self.values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if self.values.dtype.kind in "OT":
            gone = np.fromiter((one is None or one != one for one in self.values.tolist()), bool, len(values))
            self.missing = gone if self.missing is None else gone | self.missing

    def refuse(self, wanted: str) -> ServingError:
        return ServingError(f"column {self.name!r} must hold {wanted}, got {self.values.dtype}")

    def places(self, codes: Array, size: int) -> Array:
        """Codes of the whole column: missing values are unknown."""
        codes = codes.astype(np.intp, copy=False)
        if self.missing is not None:
            codes[self.missing] = size
        return codes

    def numeric(self, wanted: str) -> Array:
        """Numbers of any type; objects as the type that holds them all."""
        values = self.values
        if values.dtype.kind == "O":
            assert self.missing is not None
            kept = [0 if gone else one for one, gone in zip(values.tolist(), self.missing.tolist(), strict=True)]
            values = np.array(kept)
        if values.dtype.kind not in "biuf":
            raise self.refuse(wanted)
        return values

    def whole(self) -> tuple[Array, Array]:
        """Whole numbers as int64, and which of them are none: missing, fractions, beyond 64 bits."""
        values = self.numeric("whole numbers")
        none = np.zeros(len(values), dtype=bool) if self.missing is None else self.missing.copy()
        if values.dtype.kind == "f":
            values = values.astype(np.float64, copy=False)
            with np.errstate(invalid="ignore"):
                fits = (values == np.floor(values)) & (np.abs(values) < 2.0**63)
            none |= ~fits
            values = np.where(fits, values, 0.0)
        elif values.dtype == np.uint64:
            none |= values > np.uint64(2**63 - 1)
        return values.astype(np.int64, copy=False), none


def _categories(column: _Column, values: Sequence[str]) -> Array:
    size = len(values)
    if column.values.dtype.kind not in "UOT":
        raise column.refuse("text")
    table = {value: place for place, value in enumerate(values)}
    listed = column.values.tolist()
    codes = np.fromiter((table.get(one, size) for one in listed), np.intp, len(listed))
    if column.values.dtype.kind == "O":
        other = (one for one, code in zip(listed, codes.tolist(), strict=True) if code == size)
        if any(not isinstance(one, str) and one is not None and one == one for one in other):
            raise column.refuse("text")
    return column.places(codes, size)


def _listed_numbers(column: _Column, ordered: Array, order: Array) -> Array:
    values, none = column.whole()
    found = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    codes = np.where(ordered[found] == values, order[found], len(ordered))
    codes[none] = len(ordered)
    return codes.astype(np.intp, copy=False)


def _integers(column: _Column, first: int, size: int) -> Array:
    values, none = column.whole()
    # As unsigned numbers, those below the first are beyond every size.
    steps = np.subtract(values, first, dtype=np.int64).view(np.uint64)
    codes = np.minimum(steps, np.uint64(size)).astype(np.intp)
    codes[none] = size
    return codes


def _bins(column: _Column, edges: Array) -> Array:
    values = column.numeric("numbers").astype(np.float64, copy=False)
    inside = (values >= edges[0]) & (values <= edges[-1])
    size = len(edges) - 1
    return column.places(np.where(inside, np.searchsorted(edges[:-1], values, side="right") - 1, size), size)


def _time_part(column: _Column, part: str) -> Array:
    values = column.values
    if values.dtype.kind == "O" and all(one is None for one in values.tolist()):
        values = np.full(len(values), "NaT", dtype="M8[s]")
    if values.dtype.kind != "M":
        raise column.refuse("times")
    if np.datetime_data(values.dtype)[0] not in _TICKS:
        values = values.astype("M8[s]")
    length, size, first = _PARTS[part]
    unit = np.datetime_data(values.dtype)[0]
    if unit == "D":
        values, unit = values.astype("M8[ms]"), "ms"
    steps = values.astype(np.int64) // (length * _TICKS[unit]) + first
    return column.places(np.where(np.isnat(values), size, steps % size), size)


def _combine(parts: Sequence[Array], sizes: Sequence[int]) -> Array:
    codes = parts[0]
    for part, size in zip(parts[1:], sizes[1:], strict=True):
        codes = codes * (size + 1) + part
    return codes


def _look_up(parts: Sequence[Array], table: Array) -> Array:
    (codes,) = parts
    return table[codes]


COLUMN_STEPS: dict[str, Callable[..., Array]] = {
    "bins": _bins,
    "categories": _categories,
    "integers": _integers,
    "listed": _listed_numbers,
    "time_part": _time_part,
}
STEPS: dict[str, Callable[..., Array]] = {"combine": _combine, "look_up": _look_up}
