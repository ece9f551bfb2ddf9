"""From a producer's batch to what is stored, and back.

`encode` checks names, types, nulls and public bounds, and clips values or leaves records out by the
stream's rule:

| value | ``clip`` | ``refuse`` |
|---|---|---|
| beyond a bound, infinite | becomes the bound | OUT_OF_BOUNDS |
| not a number | becomes the lower bound | OUT_OF_BOUNDS |
| a string that is too long | is cut to the longest whole characters that fit | OUT_OF_BOUNDS |
| outside the domain | becomes the first value of the domain | OUT_OF_BOUNDS |
| null, column not nullable | NULL_VALUE | NULL_VALUE |

Such a record is left out by itself (`refused`): what becomes of a record never depends on others.
What is said of it names the column and the place, and nothing about the value. A batch is refused
as a whole for its form alone.

Values of a domain are stored as their place in it. Columns are compared by position, name and type;
field metadata and nullability flags are ignored, and any integer type may index a dictionary.

Reasons: SCHEMA_MISMATCH, BATCH_INVALID, BATCH_TOO_LARGE; of records NULL_VALUE, OUT_OF_BOUNDS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ptklib.errors import InvalidInput
from ptkstore.api.columns import Column
from ptkstore.api.moments import millis
from ptkstore.api.refused import RefusedRecords
from ptkstore.api.stream_spec import StreamSpec

__all__ = ["MAX_BATCH_BYTES", "MAX_BATCH_ROWS", "MAX_TEXT_BYTES", "Encoded", "Encoding"]

MAX_BATCH_ROWS = 1 << 20
MAX_BATCH_BYTES = 64 << 20
# Of a user's name, where the stream sets no bound: every record has a largest size.
MAX_TEXT_BYTES = 1024
_END_MS = millis("2261-12-31")

Mask = NDArray[np.bool_]
# The values as they are stored, and which of them are not allowed, where there are such.
Check = Callable[[pa.Array], tuple[pa.Array, Mask | None]]


class Encoded(NamedTuple):
    """The columns as they are stored, without the tag, and what was left out of them."""

    columns: list[pa.Array]
    refused: tuple[RefusedRecords, ...] = ()


class Encoding:
    """The stored form of one stream's records.

    Threads may share it: all it learns is the last schema that was right.
    """

    def __init__(self, spec: StreamSpec) -> None:
        """Prepare one check per column from the public bounds."""
        self.spec = spec
        self.clips = spec.out_of_bounds == "clip"
        self.schema = spec.schema
        self._asked = [
            (column.name, str(column.arrow) if column.type != "dictionary" else column.type)
            for column in spec.columns
        ]
        self._right: pa.Schema | None = None
        self._domains = [
            None if column.domain is None else _domain_array(column) for column in spec.columns
        ]
        self._checks = [
            self._check(column, domain)
            for column, domain in zip(spec.columns, self._domains, strict=True)
        ]
        stored = [
            pa.field(column.name, column.arrow if domain is None else _code_type(len(domain)))
            for column, domain in zip(spec.columns, self._domains, strict=True)
        ]
        # The tag comes first and has no name, so that no column can be mistaken for it.
        self.stored_schema = pa.schema([pa.field("", pa.uint64()), *stored])

    def encode(self, batch: pa.RecordBatch) -> Encoded:
        """The records of a batch that the stream takes."""
        self._check_schema(batch)
        if batch.num_rows > MAX_BATCH_ROWS or batch.nbytes > MAX_BATCH_BYTES:
            raise InvalidInput(
                "BATCH_TOO_LARGE",
                f"a batch may have {MAX_BATCH_ROWS} rows and {MAX_BATCH_BYTES} bytes: send it in "
                "pieces",
            )
        try:
            # Batches come from other processes: offsets and indices must be sound before anything
            # follows them.
            _validate(batch)
        except pa.ArrowInvalid:
            raise InvalidInput(
                "BATCH_INVALID", "the batch is not a valid Arrow record batch"
            ) from None
        columns, wrong = [], []
        for place, column in enumerate(self.spec.columns):
            array = batch.column(place)
            stored, outside = self._checks[place](array)
            columns.append(stored)
            if array.null_count and not column.nullable:
                wrong.append((column.name, "NULL_VALUE", _nulls(array)))
            if outside is not None:
                wrong.append((column.name, "OUT_OF_BOUNDS", outside))
        return Encoded(columns) if not wrong else _left_out(columns, wrong)

    def decode(self, stored: pa.RecordBatch) -> pa.RecordBatch:
        """Records as the specification's schema has them, from stored columns without the tag."""
        columns = []
        for place, (field, domain) in enumerate(zip(self.schema, self._domains, strict=True)):
            column = stored.column(place)
            if pa.types.is_dictionary(field.type):
                column = pa.DictionaryArray.from_arrays(column.cast(pa.int32()), domain)
            elif domain is not None:
                column = domain.take(column)
            columns.append(column)
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _check_schema(self, batch: object) -> None:
        if not isinstance(batch, pa.RecordBatch):
            raise InvalidInput(
                "BATCH_INVALID",
                f"a batch must be a pyarrow.RecordBatch, got {type(batch).__name__}",
            )
        # A producer's batches are alike: spelling out every type again would cost more than most
        # checks of values.
        if self._right is not None and batch.schema.equals(self._right):
            return
        columns = [(field.name, _spelling(field.type)) for field in batch.schema]
        if columns != self._asked:
            raise InvalidInput(
                "SCHEMA_MISMATCH",
                "the columns must be "
                + ", ".join(f"{name}: {kind}" for name, kind in self._asked)
                + "; got "
                + ", ".join(f"{name!r:.40}: {kind:.40}" for name, kind in columns[:100]),
            )
        self._right = batch.schema.remove_metadata()

    def _check(self, column: Column, domain: pa.Array | None) -> Check:
        if domain is not None:
            first = _counts_from(domain)
            return lambda array: self._codes(domain, first, array)
        if column.type == "string":
            most = MAX_TEXT_BYTES if column.upper is None else column.upper
            assert isinstance(most, int)
            return lambda array: self._short(most, array)
        if column.type == "bool" or (column.lower is None and column.upper is None):
            return lambda array: (array, None)
        lower, upper = _limits(column)
        return lambda array: self._within(column, lower, upper, array)

    def _within(
        self, column: Column, lower: Any, upper: Any, array: pa.Array
    ) -> tuple[pa.Array, Mask | None]:
        raw = array.view(pa.int64()) if column.is_timestamp else array
        if array.null_count == len(array):
            return array, None
        masked = raw.fill_null(lower) if array.null_count else raw
        values = masked.to_numpy()
        # False for NaN as well.
        if values.min() >= lower and values.max() <= upper:
            return array, None
        if not self.clips:
            return array, ~((values >= lower) & (values <= upper))
        kept = np.where(values >= lower, np.minimum(values, upper), lower).astype(values.dtype)
        mask = _nulls(array) if array.null_count else None
        return pa.array(kept, mask=mask, from_pandas=False).view(array.type), None

    def _short(self, most: int, array: pa.Array) -> tuple[pa.Array, Mask | None]:
        lengths = pc.binary_length(array)
        longest = pc.max(lengths).as_py()
        if longest is None or longest <= most:
            return array, None
        if not self.clips:
            return array, pc.fill_null(pc.greater(lengths, most), False).to_numpy(
                zero_copy_only=False
            )
        cut = [
            None if text is None else text.encode()[:most].decode(errors="ignore")
            for text in array.to_pylist()
        ]
        return pa.array(cut, array.type), None

    def _codes(
        self, domain: pa.Array, first: int | None, array: pa.Array
    ) -> tuple[pa.Array, Mask | None]:
        kind = _code_type(len(domain))
        storage = kind.to_pandas_dtype()
        if pa.types.is_dictionary(array.type):
            indices = array.indices
            if not len(array.dictionary):
                return pa.nulls(len(array), kind), None
            codes = (indices.fill_null(0) if indices.null_count else indices).to_numpy()
            # Most producers send the domain itself as the dictionary: then the indices are the
            # codes.
            if array.dictionary.equals(domain):
                codes, clean = codes.astype(storage, copy=False), True
            else:
                places = _places(array.dictionary, domain, None, storage)
                codes, clean = places[codes], bool((places >= 0).all())
        else:
            codes = _places(array, domain, first, storage)
            clean = not len(codes) or codes.min() >= 0
        mask = _nulls(array) if array.null_count else None
        wrong = None
        if not clean:
            if not self.clips:
                wrong = codes < 0 if mask is None else (codes < 0) & ~mask
            codes = np.where(codes < 0, 0, codes).astype(storage)
        return pa.array(
            codes, type=kind, mask=mask
        ), wrong if wrong is not None and wrong.any() else None


def _left_out(columns: list[pa.Array], wrong: list[tuple[str, str, Mask]]) -> Encoded:
    """Leave out every record that is wrong somewhere; it counts for the first of its reasons."""
    bad = np.zeros(len(columns[0]), dtype=bool)
    refused = []
    for column, reason, mask in wrong:
        fresh = np.flatnonzero(mask & ~bad)
        if len(fresh):
            refused.append(RefusedRecords(column, reason, len(fresh), int(fresh[0])))
            bad[fresh] = True
    kept = pa.array(~bad)
    return Encoded([column.filter(kept) for column in columns], tuple(refused))


def _nulls(array: pa.Array) -> Mask:
    nulls: Mask = array.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _validate(batch: pa.RecordBatch) -> None:
    """What ``batch.validate(full=True)`` refuses, as ArrowInvalid; it looks at indices one by one,
    numpy at many at once.
    """
    batch.validate()
    for column in batch.columns:
        if not pa.types.is_dictionary(column.type):
            column.validate(full=True)
            continue
        indices, values = column.indices, column.dictionary
        indices.validate(full=True)
        values.validate(full=True)
        numbers = (indices.drop_null() if indices.null_count else indices).to_numpy()
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < len(values)):
            raise pa.ArrowInvalid("index out of bounds")


def _spelling(kind: pa.DataType) -> str:
    if (
        pa.types.is_dictionary(kind)
        and pa.types.is_integer(kind.index_type)
        and kind.value_type == pa.string()
    ):
        return "dictionary"
    return str(kind)


def _limits(column: Column) -> tuple[Any, Any]:
    """The bounds in the column's own storage, rounded inwards."""
    if column.is_timestamp:
        lower_ms, upper_ms = column.bounds_ms
        ticks = column.ticks_per_second
        assert lower_ms is not None
        return -(-lower_ms * ticks // 1000), (
            _END_MS if upper_ms is None else upper_ms
        ) * ticks // 1000
    lower: Any = column.lower
    upper: Any = column.upper
    if column.type == "float32":
        with np.errstate(over="ignore"):
            low, high = np.float32(lower), np.float32(upper)
        low = low if float(low) >= lower else np.nextafter(low, np.float32(np.inf))
        high = high if float(high) <= upper else np.nextafter(high, np.float32(-np.inf))
        return low, high
    return lower, upper


def _domain_array(column: Column) -> pa.Array:
    return pa.array(column.domain, pa.string() if column.type == "dictionary" else column.arrow)


def _code_type(size: int) -> pa.DataType:
    return pa.int8() if size <= 2**7 else pa.int16() if size <= 2**15 else pa.int32()


def _counts_from(domain: pa.Array) -> int | None:
    """Where the domain starts to count, if it is consecutive numbers like 1 to 6."""
    if not pa.types.is_integer(domain.type):
        return None
    known = domain.to_numpy().astype(np.int64)
    first, last = int(known[0]), int(known[-1])
    # The difference of the ends tells numbers that count from numbers whose differences overflow.
    return first if last - first == len(known) - 1 and bool((np.diff(known) == 1).all()) else None


def _places(
    values: pa.Array, domain: pa.Array, first: int | None, storage: type[np.signedinteger[Any]]
) -> NDArray[Any]:
    """Where each value stands in the domain; -1 where it does not, and for nulls.

    ``first`` spares the search.
    """
    places: NDArray[Any]
    if first is None or not len(values):
        places = pc.index_in(values, value_set=domain).fill_null(-1).to_numpy(zero_copy_only=False)
        return places.astype(storage, copy=False)
    last = first + len(domain) - 1
    integers: NDArray[Any] = (
        (values.fill_null(last) if values.null_count else values)
        .to_numpy()
        .astype(np.int64, copy=False)
    )
    if not values.null_count and integers.min() >= first and integers.max() <= last:
        return (integers - first).astype(storage)
    inside = (integers >= first) & (integers <= last)
    if values.null_count:
        inside &= values.is_valid().to_numpy(zero_copy_only=False)
    return np.where(inside, integers - first, -1).astype(storage)
