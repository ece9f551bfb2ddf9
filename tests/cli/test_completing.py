"""What a stream says already need not be said again by its PTKs."""

from __future__ import annotations

from typing import Any

import pytest

from ptklib import registry
from ptklib.errors import InvalidInput
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.cli.project.completing import completed

SPEC = StreamSpec(
    name="rides",
    time_column="at",
    columns=(
        Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
        Column(name="zone", type="string", domain=("a", "b")),
        Column(name="seats", type="int32", lower=1, upper=6),
        Column(name="card", type="int8", domain=(0, 1)),
        Column(name="speed", type="float64", lower=0, upper=80),
        Column(name="fare", type="float64", lower=0, upper=100),
        Column(name="note", type="string", upper=40),
    ),
)
ZONE = {"kind": "categories", "column": "zone", "values": ["a", "b"]}
SEATS = {"kind": "integers", "column": "seats", "first": 1, "last": 6}
HOUR = {"kind": "time_part", "column": "at", "part": "hour"}
SPEED = {"lower": 0, "upper": 80}


@pytest.mark.parametrize(
    ("kind", "short", "long"),
    [
        (
            "statistics",
            {"keys": ["zone", "hour(at)"], "statistics": ["mean"], "value": "speed"},
            {"keys": [ZONE, HOUR], "statistics": ["mean"], "value": "speed", **SPEED},
        ),
        (
            "statistics",
            {"keys": [{"kind": "categories", "column": "zone"}, "seats"], "statistics": ["count"]},
            {"keys": [ZONE, SEATS], "statistics": ["count"]},
        ),
        (
            "statistics",
            {"keys": [{"column": "zone"}], "statistics": ["mean"], "value": "speed", "upper": 60, "lower": 5},
            {"keys": [ZONE], "statistics": ["mean"], "value": "speed", "upper": 60, "lower": 5},
        ),
        (
            "ratios",
            {"keys": ["zone"], "numerator": "speed", "denominator": "fare", "ratio_upper": 1},
            {"keys": [ZONE], "numerator": "speed", "denominator": "fare", "ratio_upper": 1, "denominator_upper": 100},
        ),
        (
            "counts",
            {"keys": ["zone"], "label": "card"},
            {"keys": [ZONE], "label": {"kind": "categories", "column": "card", "values": [0, 1]}},
        ),
        (
            "forest",
            {"inputs": ["speed", "zone", "hour(at)"], "label": "card"},
            {"inputs": [{"kind": "number", "column": "speed", **SPEED}, ZONE, HOUR], "label": "card", "classes": [0, 1]},
        ),
        (
            "additive",
            {"inputs": ["seats"], "label": "speed"},
            {"inputs": [{"kind": "number", "column": "seats", "lower": 1, "upper": 6}], "label": "speed", **SPEED},
        ),
        (
            "clusters",
            {"values": ["speed", {"kind": "bounded", "column": "fare", "lower": 0, "upper": 9}], "clusters": 3},
            {
                "values": [
                    {"kind": "bounded", "column": "speed", **SPEED},
                    {"kind": "bounded", "column": "fare", "lower": 0, "upper": 9},
                ],
                "clusters": 3,
            },
        ),
        (
            "linear_regression",
            {"inputs": ["speed", "zone"], "label": "fare"},
            {"inputs": [{"kind": "bounded", "column": "speed", **SPEED}, ZONE], "label": "fare", "lower": 0, "upper": 100},
        ),
        (
            "embeddings",
            {"users": "seats", "items": "zone", "value": "speed"},
            {"users": SEATS, "items": ZONE, "value": "speed", **SPEED},
        ),
    ],
)  # fmt: skip
def test_what_is_left_out_comes_from_the_columns(
    kind: str, short: dict[str, Any], long: dict[str, Any]
) -> None:
    assert completed(SPEC, kind, short) == long
    assert completed(SPEC, kind, long) == long
    assert registry.make(kind, long) == registry.make(kind, completed(SPEC, kind, short))


@pytest.mark.parametrize(
    ("kind", "config", "field", "words"),
    [
        ("statistics", {"keys": ["zon"], "statistics": ["count"]}, "config.keys.0", "no column 'zon'"),
        ("statistics", {"keys": ["zone", "at"], "statistics": ["count"]}, "config.keys.1", "hour(at)"),
        ("statistics", {"keys": ["speed"], "statistics": ["count"]}, "config.keys.0", "bins"),
        ("clusters", {"values": ["zone"], "clusters": 2}, "config.values.0", "is none by itself"),
        ("embeddings", {"users": "note", "items": "zone", "value": "speed"}, "config.users", "none"),
    ],
)  # fmt: skip
def test_what_no_column_says_is_asked_for(
    kind: str, config: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(InvalidInput, match="CONFIG_INVALID") as caught:
        completed(SPEC, kind, config)
    assert caught.value.details["field"] == field
    assert words in caught.value.message


def test_a_kind_that_is_not_there_is_left_to_the_registry() -> None:
    assert completed(SPEC, "nothing", {"keys": ["zone"]}) == {"keys": ["zone"]}
