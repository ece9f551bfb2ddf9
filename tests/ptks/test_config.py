"""Configurations: checked when made, told by field, JSON and back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pytest

from ptklib import config, registry
from ptklib.errors import InvalidInput
from ptklib.ptk import batches_of, check_arrays, column_of, count_of


@dataclass(frozen=True, kw_only=True)
class Part:
    kind: ClassVar[str] = "part"
    size: int

    def __post_init__(self) -> None:
        config.checked(self)
        if self.size < 0:
            raise InvalidInput("CONFIG_INVALID", "size must not be negative")


@dataclass(frozen=True, kw_only=True)
class Other:
    kind: ClassVar[str] = "other"
    name: str


@dataclass(frozen=True, kw_only=True)
class Whole:
    parts: tuple[Part | Other, ...]
    share: float = 0.5
    mode: Literal["fast", "slow"] = "fast"
    title: str | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        config.checked(self)


def test_json_and_back() -> None:
    one = Whole(parts=(Part(size=3), Other(name="x")), share=1, title="t")
    body = config.to_json(one)
    assert body["parts"] == [{"kind": "part", "size": 3}, {"kind": "other", "name": "x"}]
    assert type(body["share"]) is float
    assert config.from_json(Whole, body) == one
    assert hash(config.from_json(Whole, body)) == hash(one)
    assert config.from_json(Whole, {"parts": []}) == Whole(parts=())


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"parts": [], "share": "1"}, "Whole.share must be a finite number, got '1'"),
        ({"parts": [], "share": float("nan")}, "Whole.share must be a finite number"),
        ({"parts": [], "share": True}, "Whole.share must be a finite number"),
        ({"parts": [], "mode": "medium"}, "Whole.mode must be one of 'fast', 'slow'"),
        ({"parts": [], "title": 3}, "Whole.title must be str or null"),
        ({"parts": [], "title": "half a pair \ud800"}, "Whole.title must be str or null"),
        ({"parts": [], "strict": 1}, "Whole.strict must be bool"),
        (
            {"parts": "ab"},
            r"Whole.parts must be a list of {kind: part, size} or {kind: other, name}, got 'ab'",
        ),
        (
            {"parts": [{"kind": "none"}]},
            r"Whole.parts\[0\] must be {kind: part, size} or {kind: other, name}, got",
        ),
        ({"parts": [{"kind": "part", "size": -1}]}, "size must not be negative"),
        ({"parts": [{"kind": "part"}]}, "CONFIG_FIELDS"),
        ({}, "missing .'parts'."),
        ({"parts": [], "more": 1}, "unknown .'more'."),
        ([], "Whole must be an object, got list"),
    ],
)
def test_what_is_wrong_is_told_by_field(body: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        config.from_json(Whole, body)


def test_the_schema_says_the_same() -> None:
    schema = config.schema(Whole)
    assert schema["required"] == ["parts"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["mode"] == {"enum": ["fast", "slow"], "default": "fast"}
    part = schema["properties"]["parts"]["items"]["anyOf"][0]
    assert part["properties"]["kind"] == {"const": "part"}
    assert part["required"] == ["kind", "size"]


def test_batches_may_come_in_several_forms() -> None:
    table = pa.table({"a": [1, 2]})
    (batch,) = table.to_batches()
    for given in (table, batch, [batch], iter([batch])):
        assert sum(one.num_rows for one in batches_of(given)) == 2
    with pytest.raises(InvalidInput, match="BATCHES_INVALID"):
        list(batches_of([table]))


def test_columns_are_found_once() -> None:
    table = pa.table([[1], [2]], names=["a", "a"])
    with pytest.raises(InvalidInput, match="it is twice"):
        column_of(table, "a")
    with pytest.raises(InvalidInput, match="COLUMN_MISSING"):
        column_of(table, "b")


@pytest.mark.parametrize("wrong", [0, -1, 1.0, True, "1", 10**10])
def test_counts_are_whole_and_positive(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="CONFIG_INVALID"):
        count_of(wrong)


def test_arrays_must_be_finite() -> None:
    with pytest.raises(InvalidInput, match="must be finite"):
        check_arrays({"a": np.array([np.nan])}, {"a": ("float64", (1,))}, kind="any")


@pytest.mark.parametrize(("levels", "reason"), [(62, "CONFIG_FIELDS"), (400, "CONFIG_INVALID")])
def test_nothing_is_read_that_is_nested_without_end(levels: int, reason: str) -> None:
    body: Any = 1
    for _ in range(levels):
        body = [body]
    with pytest.raises(InvalidInput) as refusal:
        registry.make("statistics", {"keys": body})
    assert refusal.value.reason == reason
