from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ptklib.errors import InvalidInput
from ptkstore.api.columns import Column
from ptkstore.api.refused import RefusedRecords
from ptkstore.streams.blocks.encoding import Encoding
from tests.streams import rides

AT = rides.COLUMNS[0]
NOW = pa.array([rides.BASE_MS], pa.timestamp("ms"))
NAN, INF = float("nan"), float("inf")


def encoding(column: Column, rule: str) -> Encoding:
    return Encoding(rides.spec(columns=(AT, column), out_of_bounds=rule))


def through(column: Column, values: pa.Array, rule: str) -> list[Any]:
    """What is read back of values that were appended."""
    made = encoding(column, rule)
    times = pa.array([rides.BASE_MS] * len(values), pa.timestamp("ms"))
    stored = made.encode(pa.record_batch([times, values], names=["at", column.name]))
    plain = pa.RecordBatch.from_arrays(
        stored.columns, schema=pa.schema(list(made.stored_schema)[1:])
    )
    found: list[Any] = made.decode(plain).column(1).to_pylist()
    return found


def left_out(column: Column, values: pa.Array, rule: str) -> tuple[RefusedRecords, ...]:
    times = pa.array([rides.BASE_MS] * len(values), pa.timestamp("ms"))
    return (
        encoding(column, rule)
        .encode(pa.record_batch([times, values], names=["at", column.name]))
        .refused
    )


INT = Column(name="x", type="int64", lower=-5, upper=5)
FLOAT = Column(name="x", type="float64", lower=-1, upper=1)
SINGLE = Column(name="x", type="float32", lower=0.1, upper=0.7)
WORD = Column(name="x", type="string", upper=4)
ZONE = Column(name="x", type="dictionary", domain=("other", "a", "b"))
TEXT = Column(name="x", type="string", domain=("other", "a", "b"))
CODE = Column(name="x", type="int32", domain=(9, 1, 2))
DAY = Column(name="x", type="timestamp[s]", lower="2026-01-01", upper="2026-01-02")


@pytest.mark.parametrize(
    ("column", "sent", "clipped"),
    [
        (INT, pa.array([-6, -5, 0, 5, 6]), [-5, -5, 0, 5, 5]),
        (FLOAT, pa.array([-INF, -1.5, 0.5, NAN, INF]), [-1, -1, 0.5, -1, 1]),
        (WORD, pa.array(["abcde", "öööö", "ab"]), ["abcd", "öö", "ab"]),
        (
            ZONE,
            pa.array(["b", "c", "a", "other"]).dictionary_encode(),
            ["b", "other", "a", "other"],
        ),
        (TEXT, pa.array(["b", "c", "a"]), ["b", "other", "a"]),
        (CODE, pa.array([1, 7, 2], pa.int32()), [1, 9, 2]),
    ],
)
def test_values_outside_are_clipped_or_refused_without_being_told(
    column: Column, sent: pa.Array, clipped: list[Any]
) -> None:
    assert through(column, sent, "clip") == clipped
    kept = [one for one, bound in zip(sent.to_pylist(), clipped, strict=True) if one == bound]
    assert through(column, sent, "refuse") == kept
    wrong = [one != bound for one, bound in zip(sent.to_pylist(), clipped, strict=True)]
    assert left_out(column, sent, "refuse") == (
        ("x", "OUT_OF_BOUNDS", sum(wrong), wrong.index(True)),
    )
    assert left_out(column, sent, "clip") == ()


@pytest.mark.parametrize("rule", ["clip", "refuse"])
@pytest.mark.parametrize(
    ("column", "sent"),
    [
        (INT, pa.array([-5, 5])),
        (FLOAT, pa.array([-1.0, 1.0])),
        (WORD, pa.array(["", "abcd", "öö"])),
        (TEXT, pa.array(["a", "b"])),
        (CODE, pa.array([2, 9], pa.int32())),
        (DAY, pa.array([1_767_225_600, 1_767_312_000], pa.timestamp("s"))),
        (Column(name="x", type="bool"), pa.array([True, False])),
    ],
)
def test_values_inside_come_back_as_they_were(column: Column, sent: pa.Array, rule: str) -> None:
    assert through(column, sent, rule) == sent.to_pylist()
    assert through(column, sent.slice(1), rule) == sent.slice(1).to_pylist()
    assert through(column, sent.slice(0, 0), rule) == []


def test_single_precision_stays_inside_bounds_it_cannot_represent() -> None:
    found = through(SINGLE, pa.array([0.0, 1.0], pa.float32()), "clip")
    assert 0.1 <= found[0] < 0.1001
    assert 0.6999 < found[1] <= 0.7


@pytest.mark.parametrize("order", [["other", "a", "b"], ["b", "other", "a"], ["b", "zzz", "a"]])
@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.int64()])
def test_a_dictionary_may_come_in_any_order_and_index(order: list[str], index: pa.DataType) -> None:
    sent = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], index), pa.array(order))
    expected = [order[2], order[0], order[2]]
    assert through(ZONE, sent, "clip") == expected
    assert through(ZONE, sent.slice(1), "clip") == expected[1:]


@pytest.mark.parametrize(
    ("column", "sent"),
    [
        (INT, pa.array([None, 7, 1])),
        (FLOAT, pa.array([None, 7.0, 1.0])),
        (WORD, pa.array([None, "abcdef", "a"])),
        (ZONE, pa.array([None, "z", "a"]).dictionary_encode()),
        (CODE, pa.array([None, 7, 1], pa.int32())),
    ],
)
def test_nulls_are_refused_or_kept_by_the_column(column: Column, sent: pa.Array) -> None:
    assert len(through(column, sent, "clip")) == 2
    assert left_out(column, sent, "clip") == (("x", "NULL_VALUE", 1, 0),)
    assert left_out(column, sent, "refuse") == (
        ("x", "NULL_VALUE", 1, 0),
        ("x", "OUT_OF_BOUNDS", 1, 1),
    )
    assert through(column, sent, "refuse") == sent.to_pylist()[2:]
    fields = {**column.as_json(), "nullable": True}
    found = through(Column.from_json(fields), sent, "clip")
    assert found[0] is None
    assert None not in found[1:]
    assert through(Column.from_json(fields), sent.slice(0, 1), "refuse") == [None]


@pytest.mark.parametrize(
    "changed",
    [
        lambda good: good.select(["at"]),
        lambda good: good.select(["x", "at"]),
        lambda good: good.rename_columns(["at", "y"]),
        lambda good: pa.record_batch([NOW, pa.array([1], pa.int32())], names=["at", "x"]),
        lambda good: pa.record_batch(
            [NOW.cast(pa.timestamp("us")), pa.array([1])], names=["at", "x"]
        ),
        lambda good: pa.record_batch([NOW, pa.array([1]), pa.array([1])], names=["at", "x", "z"]),
    ],
)
def test_the_schema_must_match_exactly(changed: Any) -> None:
    good = pa.record_batch([NOW, pa.array([1])], names=["at", "x"])
    made = encoding(INT, "clip")
    made.encode(good)
    with pytest.raises(InvalidInput) as error:
        made.encode(changed(good))
    assert error.value.reason == "SCHEMA_MISMATCH"


def test_a_batch_that_would_read_beyond_its_buffers_is_refused() -> None:
    indices = pa.array([0, 7], pa.int8())
    wild = pa.DictionaryArray.from_arrays(indices, pa.array(["a"]), safe=False)
    with pytest.raises(InvalidInput) as error:
        through(ZONE, wild, "clip")
    assert error.value.reason == "BATCH_INVALID"


def dictionary(
    indices: list[int], dictionary_values: pa.Array, valid: int | None, null_count: int
) -> pa.Array:
    """A dictionary column as another process may claim it to be; ``valid`` are the bits of the
    validity bitmap.
    """
    bitmap = None if valid is None else pa.py_buffer(bytes([valid]))
    numbers = pa.py_buffer(np.array(indices, np.int8).tobytes())
    inner = pa.Array.from_buffers(pa.int8(), len(indices), [bitmap, numbers], null_count=null_count)
    return pa.DictionaryArray.from_arrays(inner, dictionary_values, safe=False)


TWO = pa.array(["a", "b"])
NOT_UTF8 = pa.Array.from_buffers(
    pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
)
OFFSETS = np.array([0, 127, 1], np.int32).tobytes()
WILD_OFFSET = pa.Array.from_buffers(
    pa.string(), 2, [None, pa.py_buffer(OFFSETS), pa.py_buffer(b"a")]
)
LYING = pa.Array.from_buffers(
    pa.int64(), 2, [pa.py_buffer(b"\0"), pa.py_buffer(bytes(16))], null_count=1
)


@pytest.mark.parametrize(
    ("column", "sent", "sound"),
    [
        (ZONE, dictionary([0, 1], TWO, None, 0), True),
        (ZONE, dictionary([0, 2], TWO, None, 0), False),
        (ZONE, dictionary([-1, 1], TWO, None, 0), False),
        (ZONE, dictionary([0, 100], TWO, 0b01, 1), True),
        (ZONE, dictionary([100, 0], TWO, 0b01, 1), False),
        (ZONE, dictionary([0, 100], TWO, 0b00, 2), True),
        (ZONE, dictionary([0, 1], TWO, 0b00, 1), False),
        (ZONE, dictionary([0], pa.array([], pa.string()), None, 0), False),
        (ZONE, dictionary([0], NOT_UTF8, None, 0), False),
        (ZONE, dictionary([0], WILD_OFFSET, None, 0), False),
        (WORD, NOT_UTF8, False),
        (WORD, WILD_OFFSET, False),
        (INT, LYING, False),
    ],
)
def test_what_arrow_finds_unsound_is_refused_and_nothing_else(
    column: Column, sent: pa.Array, sound: bool
) -> None:
    """Arrow's own verdict is the reference: `encode` reaches it a faster way."""
    made = encoding(Column.from_json({**column.as_json(), "nullable": True}), "clip")
    batch = pa.record_batch(
        [pa.array([rides.BASE_MS] * len(sent), pa.timestamp("ms")), sent], names=["at", "x"]
    )
    if sound:
        batch.validate(full=True)
        made.encode(batch)
        return
    with pytest.raises(pa.ArrowInvalid):
        batch.validate(full=True)
    with pytest.raises(InvalidInput) as error:
        made.encode(batch)
    assert error.value.reason == "BATCH_INVALID"


@pytest.mark.parametrize(
    "domain", [(1, 2, 3), (3, 2, 1), (1, 3, 2), (2**63 - 1, -(2**63)), (5,), (-1, 0, 1)]
)
@pytest.mark.parametrize("nullable", [False, True])
def test_places_in_a_domain_of_numbers_are_found_however_it_is_ordered(
    domain: tuple[int, ...], nullable: bool
) -> None:
    column = Column(name="x", type="int64", domain=domain, nullable=nullable)
    inside = [*reversed(domain), *domain, *([None] if nullable else [])]
    assert through(column, pa.array(inside, pa.int64()), "refuse") == inside
    outside = [-(2**63) + 1, 77, 2**63 - 2]
    assert through(column, pa.array([*inside, *outside], pa.int64()), "clip") == [
        *inside,
        *[domain[0]] * 3,
    ]


def test_a_schema_that_was_right_does_not_excuse_the_next() -> None:
    made = encoding(INT, "clip")
    good = pa.record_batch([NOW, pa.array([1])], names=["at", "x"])
    for _ in range(2):
        made.encode(good)
        made.encode(good.replace_schema_metadata({"by": "somebody"}))
        with pytest.raises(InvalidInput):
            made.encode(pa.record_batch([NOW, pa.array([1], pa.int32())], names=["at", "x"]))


@pytest.mark.parametrize(("sent", "reason"), [("rows", "BATCH_INVALID"), (None, "BATCH_INVALID")])
def test_what_is_no_batch_is_refused(sent: Any, reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        encoding(INT, "clip").encode(sent)
    assert error.value.reason == reason


def test_a_huge_batch_is_refused() -> None:
    rows = (1 << 20) + 1
    times = pa.array(np.full(rows, rides.BASE_MS), pa.timestamp("ms"))
    with pytest.raises(InvalidInput) as error:
        encoding(INT, "clip").encode(
            pa.record_batch([times, pa.array(np.zeros(rows, "int64"))], names=["at", "x"])
        )
    assert error.value.reason == "BATCH_TOO_LARGE"
