"""Keys without a public list: a fixed number of cells, and a salted hash that gives every value one
of them.

The salt and the width are part of the configuration, so which cells exist depends on no data.
Values that share a cell are counted together: choose a width well above the number of values. Width
costs memory and no privacy; every further row (another, independent hash) costs a share of the
budget.

The hash is ours and fixed for all time, because states outlive releases. Texts are hashed by their
UTF-8 bytes, eight at a time (the rounds of MurmurHash64A), whole numbers by their 64 bits; then
each row adds its own salt and mixes (the finaliser of SplitMix64). It is not cryptographic: who
knows the salt can find values that collide. That harms accuracy for those values, never privacy.

**Proof note.** *Unit:* one record. The cells of a record depend on its own value and on the
configuration, and it has exactly one in each row. *Cost:* none; what is counted by cell is noised
elsewhere.

A null has a cell of its own, after the others: code ``width``.

Reasons: CONFIG_INVALID, COLUMN_TYPE.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib import config
from ptklib.columns.keys import MAX_CELLS, Codes
from ptklib.columns.numbers import numbers_of
from ptklib.errors import InvalidInput

__all__ = ["MAX_ROWS", "Hashed", "hash_values"]

MAX_ROWS = 8

Words = NDArray[np.uint64]

_WORD_BYTES = 8
# Of MurmurHash64A and SplitMix64.
_ROUND = np.uint64(0xC6A4A7935BD1E995)
_SHIFT = np.uint64(47)
_STEP = 0x9E3779B97F4A7C15
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
# The bytes of a word that belong to a text with 0 to 8 bytes left.
_MASKS = np.array([(1 << 8 * left) - 1 for left in range(_WORD_BYTES + 1)], dtype=np.uint64)


@dataclass(frozen=True, kw_only=True)
class Hashed:
    """Texts or whole numbers of any domain, in ``width`` cells, ``rows`` times over with
    independent hashes.
    """

    kind: ClassVar[str] = "hashed"
    column: str
    width: int
    rows: int = 1
    salt: int = 0

    def __post_init__(self) -> None:
        """Two cells or more, a few rows, a salt of at most 63 bits."""
        config.checked(self)
        config.demand(
            2 <= self.width <= MAX_CELLS,
            f"width of {self.column!r} must be 2 to {MAX_CELLS}, got {self.width}",
            field="width",
        )
        config.demand(
            1 <= self.rows <= MAX_ROWS,
            f"rows of {self.column!r} must be 1 to {MAX_ROWS}, got {self.rows}",
            field="rows",
        )
        config.demand(
            0 <= self.salt < 2**63,
            f"salt of {self.column!r} must be 0 to 2**63 - 1, got {self.salt}",
            field="salt",
        )

    @property
    def size(self) -> int:
        """How many cells a row has, without that of nulls."""
        return self.width

    def row_codes(self, column: pa.Array) -> list[Codes]:
        """For each row, the cell of each value; ``width`` for a null."""
        if pa.types.is_dictionary(column.type):
            if len(column.dictionary) > len(column):
                return self.row_codes(column.dictionary_decode())
            # One more entry, for nulls.
            places = pc.fill_null(
                column.indices.cast(pa.int64()), len(column.dictionary)
            ).to_numpy()
            return [np.append(row, self.width)[places] for row in self.row_codes(column.dictionary)]
        mixed = hash_values(column, name=self.column)
        absent = pc.is_null(column).to_numpy(zero_copy_only=False) if column.null_count else None
        rows = []
        for row in range(self.rows):
            codes = _reduced(mixed, self.salt, row, self.width)
            if absent is not None:
                codes[absent] = self.width
            rows.append(codes)
        return rows

    def example(self, rows: int, generator: np.random.Generator) -> pa.Array:
        """Invented texts, a few of them in most records."""
        return pa.array(
            [f"{self.column}-{number}" for number in np.minimum(generator.geometric(0.2, rows), 40)]
        )


def hash_values(column: pa.Array, *, name: str = "") -> Words:
    """64 bits of each text, whole number or truth value, by value alone; those of nulls mean
    nothing.
    """
    kind = column.type
    if str(kind) == "string_view":
        column = column.cast(pa.string())
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _texts(column)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        values, _ = numbers_of(column)
        # Signed numbers are widened with their sign, so that a value hashes alike in every width.
        wide: Words = values.astype(np.int64 if values.dtype.kind == "i" else np.uint64).view(
            np.uint64
        )
        state = np.full(len(wide), _ROUND)
        _absorb(state, wide)
        return state
    raise InvalidInput(
        "COLUMN_TYPE", f"column {name!r} must hold text or whole numbers, got {kind}", column=name
    )


def _texts(column: pa.Array) -> Words:
    """The hash of the bytes of each text."""
    _, places, data = column.buffers()
    dtype = np.int32 if pa.types.is_string(column.type) else np.int64
    if len(column) == 0 or places is None:
        return np.zeros(len(column), dtype=np.uint64)
    ends = np.frombuffer(places, dtype=dtype, count=column.offset + len(column) + 1)[
        column.offset :
    ]
    first, last = int(ends[0]), int(ends[-1])
    # A copy with room behind it, so that a whole word can be read at every byte.
    padded = np.zeros(last - first + _WORD_BYTES, dtype=np.uint8)
    if last > first:
        padded[: last - first] = np.frombuffer(
            data, dtype=np.uint8, count=last - first, offset=first
        )
    words = np.ndarray(shape=(last - first + 1,), dtype="<u8", buffer=padded.data, strides=(1,))
    lengths = np.diff(ends).astype(np.int64)
    shortest, longest = int(lengths.min()), int(lengths.max())
    starts = np.subtract(ends[:-1], first, dtype=np.intp)
    state = lengths.view(np.uint64) * _ROUND
    for done in range(0, longest, _WORD_BYTES):
        # Those that have bytes left: mostly all of them, or few.
        some = None if shortest > done or done == 0 else np.flatnonzero(lengths > done)
        at, left = (starts, lengths) if some is None else (starts[some], lengths[some])
        read = words[at + done if done else at]
        if shortest < done + _WORD_BYTES:
            read &= _MASKS[np.minimum(left - done, _WORD_BYTES)]
        if some is None:
            _absorb(state, read)
        else:
            part = state[some]
            _absorb(part, read)
            state[some] = part
    return state


def _absorb(state: Words, words: Words) -> None:
    """One round: the words, which are overwritten, go into the state."""
    words *= _ROUND
    words ^= words >> _SHIFT
    words *= _ROUND
    state ^= words
    state *= _ROUND


def _reduced(mixed: Words, salt: int, row: int, width: int) -> Codes:
    """The cell of each hash in a row: the high bits of another mix, scaled to the width."""
    high = _mixed(mixed ^ _row_salt(salt, row))
    high >>= np.uint64(32)
    high *= np.uint64(width)
    high >>= np.uint64(32)
    return high.view(np.int64).astype(np.intp, copy=False)


@lru_cache(maxsize=4096)
def _row_salt(salt: int, row: int) -> np.uint64:
    start = _mixed(np.array([salt], dtype=np.uint64)) + np.uint64((row + 1) * _STEP % 2**64)
    return np.uint64(_mixed(start)[0])


def _mixed(words: Words) -> Words:
    """The finaliser of SplitMix64, on a copy."""
    mixed = words ^ (words >> np.uint64(30))
    mixed *= _FIRST
    mixed ^= mixed >> np.uint64(27)
    mixed *= _SECOND
    mixed ^= mixed >> np.uint64(31)
    return mixed
