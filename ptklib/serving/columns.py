"""Read a column of any type that NumPy holds as codes or numbers, as the keys of `ptklib.ptks` read
columns of Arrow.

NumPy and the standard library alone: see `ptklib.serving`. Missing are: masked, None, NaN, NaT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["COLUMN_STEPS", "InputColumn", "ServingError"]

_TICKS = {"D": 0, "s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# The length of a part in seconds, how many there are, and the part that 1970-01-01T00 falls in.
_PARTS = {"hour": (3600, 24, 0), "weekday": (86400, 7, 3)}
# Of the hash of hashed keys.
_ROUND, _STEP = np.uint64(0xC6A4A7935BD1E995), 0x9E3779B97F4A7C15
_MASKS = np.array([(1 << 8 * left) - 1 for left in range(9)], dtype=np.uint64)

Array = np.ndarray[Any, Any]


class ServingError(ValueError):
    """The bundle or the input is not what it must be.

    The text names columns and types, never values.
    """


class InputColumn:
    """One column of the input, and what it can be read as."""

    def __init__(self, name: str, values: Array) -> None:
        """Take masks and objects apart."""
        self.name = name
        self.missing: Array | None = None
        if isinstance(values, np.ma.MaskedArray):
            mask = np.ma.getmaskarray(values)
            self.missing = mask if mask.any() else None
            values = values.data
        self.values = values.astype(values.dtype.newbyteorder("="), copy=False)
        if self.values.dtype.kind in "OT":
            gone = np.fromiter(
                (value is None or value != value for value in self.values.tolist()),
                bool,
                len(values),
            )
            self.missing = gone if self.missing is None else gone | self.missing

    def refuse(self, wanted: str) -> ServingError:
        """The error for a column of another type."""
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
            kept = [
                0 if gone else value
                for value, gone in zip(values.tolist(), self.missing.tolist(), strict=True)
            ]
            values = np.array(kept)
        if values.dtype.kind not in "biuf":
            raise self.refuse(wanted)
        return values

    def whole(self) -> tuple[Array, Array]:
        """Whole numbers as int64, and which of them are none: missing, fractions, beyond 64
        bits.
        """
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


def _categories(column: InputColumn, values: Sequence[str]) -> Array:
    size = len(values)
    if column.values.dtype.kind not in "UOT":
        raise column.refuse("text")
    table = {value: place for place, value in enumerate(values)}
    listed = column.values.tolist()
    codes = np.fromiter((table.get(value, size) for value in listed), np.intp, len(listed))
    if column.values.dtype.kind == "O":
        other = (value for value, code in zip(listed, codes.tolist(), strict=True) if code == size)
        if any(
            not isinstance(value, str) and value is not None and value == value for value in other
        ):
            raise column.refuse("text")
    return column.places(codes, size)


def _listed_numbers(column: InputColumn, ordered: Array, order: Array) -> Array:
    values, none = column.whole()
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    codes = np.where(ordered[places] == values, order[places], len(ordered))
    codes[none] = len(ordered)
    return codes.astype(np.intp, copy=False)


def _integers(column: InputColumn, first: int, size: int) -> Array:
    values, none = column.whole()
    # As unsigned numbers, those below the first are beyond every size.
    steps = np.subtract(values, first, dtype=np.int64).view(np.uint64)
    codes = np.minimum(steps, np.uint64(size)).astype(np.intp)
    codes[none] = size
    return codes


def _bins(column: InputColumn, edges: Array) -> Array:
    values = column.numeric("numbers").astype(np.float64, copy=False)
    inside = (values >= edges[0]) & (values <= edges[-1])
    size = len(edges) - 1
    return column.places(
        np.where(inside, np.searchsorted(edges[:-1], values, side="right") - 1, size), size
    )


def _scaled(column: InputColumn, lower: float, upper: float, bins: int) -> Array:
    values = column.numeric("numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        places: Array = np.subtract(
            values.astype(np.uint8) if values.dtype.kind == "b" else values, lower, dtype=np.float64
        )
        places *= bins / (upper - lower)
    bad = np.isnan(places)
    codes = np.where(
        bad, bins, np.minimum(np.floor(np.clip(places, 0.0, float(bins))), bins - 1)
    ).astype(np.intp)
    return column.places(codes, bins)


def _measured(column: InputColumn, middle: float, half: float, top: float, missing: float) -> Array:
    values = column.numeric("numbers")
    with np.errstate(over="ignore", invalid="ignore"):
        measures: Array = np.subtract(
            values.astype(np.uint8) if values.dtype.kind == "b" else values,
            middle,
            dtype=np.float64,
        )
        measures = np.divide(measures, half)
    nowhere = np.isnan(measures) if column.missing is None else np.isnan(measures) | column.missing
    measures[nowhere] = missing
    return np.clip(measures, -top, top)


def _time_part(column: InputColumn, part: str) -> Array:
    values = column.values
    if values.dtype.kind == "O" and all(value is None for value in values.tolist()):
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


def _hashed(column: InputColumn, width: int, rows: int, salt: int) -> Array:
    values = column.values
    if (
        values.dtype.kind == "O"
        and all(isinstance(value, int) for value in _present(column))
        and len(_present(column))
    ):
        values = column.numeric("text or whole numbers")
    if values.dtype.kind in "UOT":
        present = _present(column)
        if not all(isinstance(value, str) for value in present):
            raise column.refuse("text or whole numbers")
        mixed = _text_hash([value if isinstance(value, str) else "" for value in values.tolist()])
    elif values.dtype.kind in "biu":
        wide = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(np.uint64)
        mixed = _absorbed(np.full(len(wide), _ROUND), wide)
    else:
        raise column.refuse("text or whole numbers")
    codes = np.empty((rows, len(values)), dtype=np.intp)
    for row in range(rows):
        start = _mixed(np.array([salt], dtype=np.uint64)) + np.uint64((row + 1) * _STEP % 2**64)
        high = _mixed(mixed ^ _mixed(start)) >> np.uint64(32)
        codes[row] = (high * np.uint64(width)) >> np.uint64(32)
        column.places(codes[row], width)
    return codes if rows > 1 else codes[0]


def _present(column: InputColumn) -> list[Any]:
    listed: list[Any] = column.values.tolist()
    if column.missing is None:
        return listed
    return [value for value, gone in zip(listed, column.missing.tolist(), strict=True) if not gone]


def _text_hash(texts: Sequence[str]) -> Array:
    """MurmurHash64A's rounds over the UTF-8 bytes of each text."""
    encoded = [text.encode() for text in texts]
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    starts = np.cumsum(lengths) - lengths
    # Room behind the last text, so that a whole word can be read at every byte.
    data = np.frombuffer(b"".join(encoded) + bytes(8), np.uint8)
    words = np.ndarray(shape=(len(data) - 7,), dtype="<u8", buffer=data.data, strides=(1,))
    state: Array = lengths.view(np.uint64) * _ROUND
    for done in range(0, int(lengths.max(initial=0)), 8):
        some = np.flatnonzero(lengths > done)
        read = words[starts[some] + done] & _MASKS[np.minimum(lengths[some] - done, 8)]
        state[some] = _absorbed(state[some], read)
    return state


def _absorbed(state: Array, words: Array) -> Array:
    words = words * _ROUND
    words ^= words >> np.uint64(47)
    words *= _ROUND
    made: Array = (state ^ words) * _ROUND
    return made


def _mixed(words: Array) -> Array:
    """The finaliser of SplitMix64."""
    mixed: Array = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


COLUMN_STEPS: dict[str, Callable[..., Array]] = {
    "bins": _bins,
    "categories": _categories,
    "hashed": _hashed,
    "integers": _integers,
    "listed": _listed_numbers,
    "measured": _measured,
    "scaled": _scaled,
    "time_part": _time_part,
}
