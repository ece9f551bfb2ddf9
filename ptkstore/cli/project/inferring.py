"""What a stream could be, by a file that would be pushed to it: a draft for people to correct.

**Bounds, domains and the first day must be public, and a file is not.** Whatever a draft has from
values is named in ``looked``, so that it can be marked and asked about: a largest fare is somebody's
fare, and a list of places that is read from the data tells who was there. What the caller says
(`Told`) is taken as it is. Numbers are proposed wider than they are, by their leading digit; that
makes them harmless more often, not private.

The names and types of columns are no secret. Reasons: COLUMN_MISSING, STREAM_NOT_INFERRED,
VALUE_INVALID.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ptklib.errors import InvalidInput

__all__ = ["ColumnDraft", "StreamDraft", "Told", "infer"]

# A text column with more values than these gets a length, and no domain.
MOST_VALUES = 200
# Records that a window should have, for the length that is proposed.
_RECORDS = 5_000
_WINDOW_DAYS = (1, 7, 30, 90)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the caller knows without looking: the time column, bounds and domains by column."""

    time_column: str = ""
    bounds: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    domains: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ColumnDraft:
    """One column; ``looked`` are the fields that come from values."""

    name: str
    type: str
    lower: Any = None
    upper: Any = None
    domain: tuple[Any, ...] | None = None
    nullable: bool = False
    looked: tuple[str, ...] = ()

    @property
    def is_number(self) -> bool:
        """True for columns that have a mean."""
        return self.type.startswith(("int", "uint", "float")) and self.domain is None

    @property
    def is_key(self) -> bool:
        """True for columns by which means can be taken."""
        few = self.type.startswith(("int", "uint")) and self.domain is None
        return self.domain is not None or (few and 1 < self.upper - self.lower < 400)


@dataclass(frozen=True, kw_only=True)
class StreamDraft:
    """A stream; ``of_days`` where its time has no hours; ``skipped`` are columns of the file that no
    stream can have, and why.
    """

    name: str
    time_column: str
    columns: tuple[ColumnDraft, ...]
    window_days: int
    last_day: date
    of_days: bool = False
    skipped: tuple[tuple[str, str], ...] = ()


def infer(table: pa.Table, name: str, told: Told | None = None) -> StreamDraft:
    """A draft of a stream for records like these."""
    told = told or Told()
    for asked in (*told.bounds, *told.domains, *([told.time_column] if told.time_column else ())):
        if asked not in table.column_names:
            raise InvalidInput(
                "COLUMN_MISSING",
                f"the file has no column {asked!r:.60}; it has {', '.join(table.column_names)}",
                column=asked,
            )
    if not table.num_rows:
        raise InvalidInput(
            "STREAM_NOT_INFERRED",
            "the file has no rows, and types alone do not say what a stream is: take another file, "
            "or write sage.yaml by hand",
        )
    table = _without_gaps(table)
    time_column = told.time_column or _time_of(table)
    columns, skipped = [], []
    for place, column_name in enumerate(table.column_names):
        drafted = _column(
            table.column(place), column_name, told, is_time=column_name == time_column
        )
        if isinstance(drafted, str):
            skipped.append((column_name, drafted))
        else:
            columns.append(drafted)
    times_of = {column.name for column in columns if column.type.startswith("timestamp")}
    if time_column not in times_of:
        raise InvalidInput(
            "STREAM_NOT_INFERRED",
            f"the time column {time_column!r:.60} must hold timestamps: name another with --time",
            column=time_column,
        )
    times = pc.min_max(_finite(table.column(time_column))).as_py()
    first, last = _day(times["min"]), _day(times["max"])
    days = (last - first).days + 1
    window_days = next(
        (size for size in _WINDOW_DAYS if table.num_rows * size >= _RECORDS * days),
        _WINDOW_DAYS[-1],
    )
    return StreamDraft(
        name=_stream_name(name),
        time_column=time_column,
        columns=tuple(columns),
        window_days=window_days,
        last_day=last + timedelta(days=1),
        of_days=pa.types.is_date(table.schema.field(time_column).type),
        skipped=tuple(skipped),
    )


def _without_gaps(table: pa.Table) -> pa.Table:
    """Texts that are all times, as JSON lines have them, as times; lists of texts as texts."""
    for place, entry in enumerate(table.schema):
        column = table.column(place)
        if pa.types.is_dictionary(entry.type):
            table = table.set_column(place, entry.name, column.cast(entry.type.value_type))
        elif pa.types.is_string(entry.type) and column.null_count < len(column):
            try:
                times = column.cast(pa.timestamp("ms"))
            except pa.ArrowInvalid:
                continue
            table = table.set_column(place, entry.name, times)
    return table


def _time_of(table: pa.Table) -> str:
    for of_kind in (pa.types.is_timestamp, pa.types.is_date):
        for entry in table.schema:
            if of_kind(entry.type):
                return str(entry.name)
    raise InvalidInput(
        "STREAM_NOT_INFERRED",
        "a stream needs a column that says when a record happened, and none holds timestamps or "
        f"dates; there are {', '.join(table.column_names)}",
    )


def _column(values: pa.ChunkedArray, name: str, told: Told, *, is_time: bool) -> ColumnDraft | str:
    """A draft, or why there is none."""
    if not _NAME.fullmatch(name):
        return "its name must be letters, digits, '_', '.', ':' and '-'"
    if values.null_count == len(values):
        return "it has no values"
    kind = _type_of(values.type)
    if kind is None:
        return f"a stream cannot have {values.type}"
    draft = ColumnDraft(name=name, type=kind)
    if values.null_count and not is_time:
        draft = replace(draft, nullable=True, looked=("nullable",))
    if name in told.domains:
        whole = kind.startswith(("int", "uint"))
        domain = tuple(int(value) if whole else value for value in told.domains[name])
        return replace(draft, domain=domain)
    if name in told.bounds:
        lower, upper = told.bounds[name]
        return replace(draft, lower=lower, upper=None if is_time and not upper else upper)
    if kind == "bool":
        return draft
    if kind == "string":
        return _text(values, draft)
    extent = pc.min_max(_finite(values)).as_py()
    if extent["min"] is None:
        return "it has no finite values"
    if kind.startswith("timestamp"):
        first, last = _day(extent["min"]), _day(extent["max"])
        if is_time:
            return replace(draft, lower=first, looked=("lower",))
        lower, upper = date(first.year, 1, 1), date(last.year + 1, 1, 1)
    else:
        lower, upper = _wider(extent["min"], extent["max"], whole=not kind.startswith("float"))
    return replace(draft, lower=lower, upper=upper, looked=(*draft.looked, "lower", "upper"))


def _text(values: pa.ChunkedArray, draft: ColumnDraft) -> ColumnDraft:
    distinct = pc.unique(values.drop_null())
    if len(distinct) <= MOST_VALUES and 2 * len(distinct) <= len(values):
        return replace(
            draft, domain=tuple(sorted(distinct.to_pylist())), looked=(*draft.looked, "domain")
        )
    longest = pc.max(pc.binary_length(values)).as_py() or 1
    return replace(
        draft, upper=2 ** math.ceil(math.log2(max(longest, 8))), looked=(*draft.looked, "upper")
    )


def _type_of(kind: pa.DataType) -> str | None:
    if pa.types.is_boolean(kind):
        return "bool"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "string"
    if pa.types.is_uint64(kind):
        return "int64"
    if pa.types.is_integer(kind):
        return str(kind)
    if pa.types.is_float32(kind):
        return "float32"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "float64"
    if pa.types.is_date(kind):
        return "timestamp[s]"
    if pa.types.is_timestamp(kind):
        return f"timestamp[{kind.unit}{', tz=UTC' if kind.tz else ''}]"
    return None


def _finite(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """As Python reads them: numbers that are numbers, times to the millisecond."""
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_timestamp(values.type):
        # Nanoseconds are more than Python's own times can hold.
        return values.cast(pa.timestamp("ms"), safe=False)
    return values.filter(pc.is_finite(values)) if pa.types.is_floating(values.type) else values


def _wider(least: float, most: float, *, whole: bool) -> tuple[Any, Any]:
    """Bounds by the leading digit of the span; from 0 on where that is near."""
    span = most - least or max(1.0, abs(most))
    step = 10.0 ** math.floor(math.log10(span))
    if whole:
        step = max(1.0, step)
    lower, upper = math.floor(least / step) * step, math.ceil(most / step) * step
    if 0 < lower <= span:
        lower = 0.0
    upper = upper if upper > lower else lower + step
    return (int(lower), int(upper)) if whole else (_short(lower), _short(upper))


def _short(number: float) -> float | int:
    told = float(f"{number:.6g}")
    return int(told) if told.is_integer() and abs(told) < 1e15 else told


def _day(moment: Any) -> date:
    return moment.date() if isinstance(moment, datetime) else date.fromisoformat(str(moment))


def _stream_name(name: str) -> str:
    told = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-._")[:100]
    return told or "stream"
