from __future__ import annotations

import datetime
import pickle
from typing import Any

import pytest

from ptklib.errors import InvalidInput
from ptklib.ledger.policy import Policy
from ptkstore.api.columns import Column
from ptkstore.api.moments import iso, millis
from ptkstore.api.stream_spec import StreamSpec
from tests.streams import rides

AT = rides.COLUMNS[0]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "x", "type": "decimal"}, "COLUMN_INVALID"),
        ({"name": "", "type": "bool"}, "COLUMN_INVALID"),
        ({"name": "a b", "type": "bool"}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "lower": 0}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "lower": 2, "upper": 1}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "lower": 0.5, "upper": 1}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int8", "lower": 0, "upper": 128}, "COLUMN_INVALID"),
        ({"name": "x", "type": "uint8", "domain": [-1, 1]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "lower": 0, "upper": 1, "domain": [1]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "domain": []}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "domain": [1, 1]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "int64", "domain": [True]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "string", "domain": "abc"}, "COLUMN_INVALID"),
        ({"name": "x", "type": "string", "domain": ["a", 1]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "string", "upper": 0}, "COLUMN_INVALID"),
        ({"name": "x", "type": "string", "lower": 1, "upper": 2}, "COLUMN_INVALID"),
        ({"name": "x", "type": "float64", "lower": 0, "upper": float("inf")}, "COLUMN_INVALID"),
        ({"name": "x", "type": "float64", "lower": float("nan"), "upper": 1}, "COLUMN_INVALID"),
        ({"name": "x", "type": "float64", "lower": "0", "upper": 1}, "COLUMN_INVALID"),
        ({"name": "x", "type": "float64", "domain": [1]}, "COLUMN_INVALID"),
        ({"name": "x", "type": "bool", "lower": 0, "upper": 1}, "COLUMN_INVALID"),
        ({"name": "x", "type": "timestamp[ms]", "lower": "soon"}, "COLUMN_INVALID"),
        ({"name": "x", "type": "timestamp[ms]", "upper": "2026-01-01"}, "COLUMN_INVALID"),
        ({"name": "x", "type": "timestamp[ms]", "lower": "9999-01-01"}, "COLUMN_INVALID"),
        ({"name": "x", "type": "bool", "nullable": 1}, "COLUMN_INVALID"),
    ],
)
def test_a_column_that_is_wrong_is_refused(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Column(**fields)
    assert error.value.reason == reason


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"name": "../up"}, "SPEC_INVALID"),
        ({"name": ""}, "SPEC_INVALID"),
        ({"columns": ()}, "SPEC_INVALID"),
        ({"columns": (AT, AT)}, "SPEC_INVALID"),
        ({"columns": (AT, Column(name="x", type="int64"))}, "COLUMN_INVALID"),
        ({"columns": (AT, Column(name="x", type="string"))}, "COLUMN_INVALID"),
        ({"columns": (AT, Column(name="x", type="dictionary"))}, "COLUMN_INVALID"),
        (
            {"columns": (AT, Column(name="x", type="timestamp[ms]", lower="2026-01-01"))},
            "COLUMN_INVALID",
        ),
        ({"columns": (Column(name="at", type="timestamp[ms]"),)}, "SPEC_INVALID"),
        (
            {
                "columns": (
                    Column(name="at", type="timestamp[ms]", lower="2026-01-01", nullable=True),
                )
            },
            "SPEC_INVALID",
        ),
        ({"time_column": "gone"}, "SPEC_INVALID"),
        ({"time_column": "who"}, "SPEC_INVALID"),
        ({"unit": "user"}, "SPEC_INVALID"),
        ({"unit": "galaxy", "policy": None}, "POLICY_INVALID"),
        ({"policy": "strict"}, "SPEC_INVALID"),
        ({"window_seconds": 5000}, "SPEC_INVALID"),
        ({"window_seconds": 0}, "SPEC_INVALID"),
        ({"block_seconds": 0.5}, "SPEC_INVALID"),
        ({"lateness_seconds": -1}, "SPEC_INVALID"),
        ({"n_max": 0}, "SPEC_INVALID"),
        ({"profile_share": 1}, "SPEC_INVALID"),
        ({"profile_share": "much"}, "AMOUNT_NOT_A_NUMBER"),
        ({"out_of_bounds": "ignore"}, "SPEC_INVALID"),
        ({"late": "drop"}, "SPEC_INVALID"),
        ({"count_epsilon": 0}, "AMOUNT_ZERO"),
        ({"count_epsilon": 101}, "SPEC_INVALID"),
        ({"quotas": {"team": 2}}, "SPEC_INVALID"),
        ({"quotas": {"": "0.5"}}, "NAME_INVALID"),
        ({"quotas": ["team"]}, "SPEC_INVALID"),
        ({"user_column": "who"}, "SPEC_INVALID"),
        ({"records_per_user": 3}, "SPEC_INVALID"),
        ({"policy": Policy(unit="user", epsilon=1)}, "SPEC_INVALID"),
        ({"policy": Policy(unit="user", epsilon=1), "user_column": "at"}, "SPEC_INVALID"),
        (
            {"policy": Policy(unit="user", epsilon=1), "user_column": "who", "records_per_user": 0},
            "SPEC_INVALID",
        ),
    ],
)
def test_a_specification_that_is_wrong_is_refused(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        rides.spec(**changes)
    assert error.value.reason == reason


SPECS = [
    rides.spec(),
    rides.user_spec(),
    rides.spec(
        columns=(
            Column(
                name="at",
                type="timestamp[us, tz=UTC]",
                lower="2026-01-01T12:30:01.5Z",
                upper="2027-01-01",
            ),
            Column(name="zone", type="dictionary", domain=("ö", "b"), nullable=True),
            Column(name="kind", type="int16", domain=(3, 1)),
            Column(name="x", type="float32", lower=-0.1, upper=1e9),
        ),
        quotas={"team-b": "1/3", "team-a": 0.25},
        profile_share=0,
        late="quarantine",
        out_of_bounds="refuse",
        lateness_seconds=60,
    ),
]


@pytest.mark.parametrize("spec", SPECS)
def test_a_specification_survives_json_yaml_and_processes(spec: StreamSpec) -> None:
    for again in (
        StreamSpec.from_json(spec.as_json()),
        StreamSpec.from_json_text(spec.to_json_text()),
        StreamSpec.from_yaml(spec.to_yaml()),
        pickle.loads(pickle.dumps(spec)),
    ):
        assert again == spec
        assert hash(again) == hash(spec)
        assert again.to_json_text() == spec.to_json_text()
        assert again.fingerprint == spec.fingerprint


def test_yaml_as_people_write_it() -> None:
    spec = StreamSpec.from_yaml(
        """
        name: rides
        time_column: at
        window_seconds: 86400
        policy: {epsilon: 1, delta: 1e-6}
        columns:
          - {name: at, type: timestamp, lower: 2026-01-01}
          - {name: fare, type: double, lower: 0, upper: 100}
        """
    )
    assert spec.columns[0] == Column(
        name="at", type="timestamp[ms]", lower=datetime.date(2026, 1, 1)
    )
    assert (spec.columns[0].lower, spec.columns[1].type, spec.block_seconds) == (
        "2026-01-01T00:00Z",
        "float64",
        86400,
    )


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({"colour": 1}, "SPEC_KEY_UNKNOWN"),
        ({"policy": {"epsilon": 1, "sigma": 2}}, "SPEC_KEY_UNKNOWN"),
        ({"policy": 1}, "SPEC_INVALID"),
        ({"columns": [{"name": "at", "type": "bool", "colour": 1}]}, "COLUMN_INVALID"),
        ({"columns": [{"name": "at"}]}, "COLUMN_INVALID"),
        ({"columns": {"at": "bool"}}, "SPEC_INVALID"),
    ],
)
def test_an_unknown_key_is_an_error(body: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidInput) as error:
        StreamSpec.from_json({**rides.spec().as_json(), **body})
    assert error.value.reason == reason


@pytest.mark.parametrize("text", ["[1", "- a\n- b", "a: [", "!!python/object:os.system {}", "3"])
def test_text_that_is_no_specification(text: str) -> None:
    with pytest.raises(InvalidInput) as error:
        StreamSpec.from_yaml(text)
    assert error.value.reason == "SPEC_UNREADABLE"
    with pytest.raises(InvalidInput) as error:
        StreamSpec.from_json_text(text)
    assert error.value.reason == "SPEC_UNREADABLE"


def test_missing_fields_are_named() -> None:
    with pytest.raises(InvalidInput, match="columns, time_column must be given"):
        StreamSpec.from_json({"name": "x"})


def test_the_fingerprint_follows_the_columns_only() -> None:
    spec = rides.spec()
    assert rides.spec(n_max=5).fingerprint == spec.fingerprint
    assert rides.spec(columns=spec.columns[::-1]).fingerprint != spec.fingerprint


@pytest.mark.parametrize("ms", [0, -1, 1, 60_000, 61_000, rides.BASE_MS, 1_767_225_600_123])
def test_times_read_back(ms: int) -> None:
    assert millis(iso(ms)) == ms


def test_the_count_is_priced_for_the_unit() -> None:
    assert rides.spec().count_release().scale == 100
    assert rides.user_spec(records_per_user=7).count_release().scale == 700
