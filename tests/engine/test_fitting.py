"""A PTK that cannot read the stream's columns is refused before it sees data: failing at the first
record would tell of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ptklib import registry
from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptkstore.api.columns import Column
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.engine.plans.dry_run import invented_rows, try_out
from tests.engine.small import config, open_store

SPEC = StreamSpec(
    name="rides",
    columns=(
        Column(name="at", type="timestamp[ms]", lower="2026-01-01"),
        Column(name="zone", type="int32", lower=0, upper=9),
        Column(name="fare", type="float64", lower=0, upper=100),
        Column(name="card", type="bool"),
        Column(name="city", type="dictionary", domain=("a", "b")),
        Column(name="note", type="string", upper=20),
    ),
    time_column="at",
    policy=Policy(epsilon=1, delta="1e-6"),
    window_seconds=86_400,
    block_seconds=21_600,
)
ZONES = {"kind": "integers", "column": "zone", "first": 0, "last": 9}


def test_invented_rows_have_the_streams_schema() -> None:
    rows = invented_rows(SPEC)
    assert [(one.name, one.type) for one in rows.schema] == [
        (one.name, one.type) for one in SPEC.schema
    ]
    assert [column.null_count for column in rows.columns] == [1] * 6
    rows.validate(full=True)


@pytest.mark.parametrize(
    "config",
    [
        {"keys": [ZONES], "statistics": ["count"]},
        {"keys": [ZONES], "statistics": ["mean"], "value": "fare", "lower": 0.0, "upper": 9.0},
        {"keys": [{"kind": "time_part", "column": "at", "part": "hour"}], "statistics": ["count"]},
        {
            "keys": [{"kind": "categories", "column": "city", "values": ["a"]}],
            "statistics": ["count"],
        },
    ],
)
def test_what_can_be_read_is_accepted(config: dict[str, Any]) -> None:
    try_out(SPEC, registry.make("statistics", config), records_per_unit=1)


@pytest.mark.parametrize(
    "config",
    [
        {"keys": [{**ZONES, "column": "fare"}], "statistics": ["count"]},
        {"keys": [ZONES], "statistics": ["mean"], "value": "note", "lower": 0.0, "upper": 9.0},
        {
            "keys": [{"kind": "time_part", "column": "zone", "part": "hour"}],
            "statistics": ["count"],
        },
        {
            "keys": [{"kind": "categories", "column": "zone", "values": ["a"]}],
            "statistics": ["count"],
        },
    ],
)
def test_what_cannot_be_read_is_refused(config: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refusal:
        try_out(SPEC, registry.make("statistics", config), records_per_unit=1)
    assert refusal.value.reason == "COLUMN_TYPE"
    assert "rides" in refusal.value.message


def test_an_error_of_the_ptk_itself_is_told_by_type_and_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ptk = registry.make("statistics", {"keys": [ZONES], "statistics": ["count"]})

    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a text that may carry data")

    monkeypatch.setattr(type(ptk), "train_dp", broken)
    with pytest.raises(InvalidInput) as refusal:
        try_out(SPEC, ptk, records_per_unit=1)
    assert refusal.value.reason == "PTK_UNTRAINABLE"
    assert "ZeroDivisionError at test_fitting.py:" in refusal.value.message
    assert "data" not in refusal.value.message


def test_a_level_without_room_is_the_planners_question(monkeypatch: pytest.MonkeyPatch) -> None:
    ptk = registry.make("statistics", {"keys": [ZONES], "statistics": ["count"]})

    def too_large(*_: object, **__: object) -> None:
        raise InvalidInput("SCALE_TOO_LARGE", "too much noise")

    monkeypatch.setattr(type(ptk), "train_dp", too_large)
    try_out(SPEC, ptk, records_per_unit=1)


def test_noise_that_a_composition_cannot_add_up_is_refused_with_what_to_do(tmp_path: Path) -> None:
    policy = Policy(epsilon=1, delta="1e-6", composition="basic")
    asked = {**config(), "mechanism": "gaussian"}
    with open_store(tmp_path, policy=policy) as store:
        with pytest.raises(InvalidInput, match="under basic composition") as caught:
            store.register("g", stream="rides", kind="statistics", config=asked, target=0.2)
        assert caught.value.reason == "COST_UNSUPPORTED"
        assert caught.value.details["field"] == "config.mechanism"
        assert "renyi" in caught.value.message
        assert store.ptks() == []
        asked = {**asked, "mechanism": "laplace"}
        answer = store.register("g", stream="rides", kind="statistics", config=asked, target=0.2)
        assert answer.status == "ACTIVE"
