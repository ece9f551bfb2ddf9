"""Errors say which field of a document they are about, as data, wherever the document was read."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from ptklib import registry
from ptklib.encoding.error_fields import about, field_of, inside, joined
from ptklib.errors import InvalidInput, Refused, SageError
from ptkstore.api.stream_spec import StreamSpec
from ptkstore.wire.faults import error_of, status_of
from tests.engine.small import config, spec
from tests.rpc.test_faults import Failure


def failed(make: Any) -> SageError:
    with pytest.raises(SageError) as caught:
        make()
    return caught.value


def test_parts_know_where_they_lie() -> None:
    with pytest.raises(InvalidInput) as caught, inside("streams", 2), inside("policy"):
        raise InvalidInput("SPEC_INVALID", "no", field="epsilon")
    assert field_of(caught.value) == ("streams", 2, "policy", "epsilon")
    with pytest.raises(InvalidInput) as caught, inside("columns", 0):
        raise InvalidInput("SPEC_INVALID", "no")
    assert caught.value.details["field"] == joined("columns", 0) == "columns.0"
    assert field_of(InvalidInput("SPEC_INVALID", "no")) == ()
    assert field_of(InvalidInput("SPEC_INVALID", "no", field=7)) == ()


def test_details_are_added_and_never_replaced() -> None:
    with pytest.raises(Refused) as caught, about(ptk="outer", stream="rides"), about(ptk="inner"):
        raise Refused("PTK_UNKNOWN", "no", field="name")
    assert dict(caught.value.details) == {"ptk": "inner", "stream": "rides", "field": "name"}


def test_a_field_travels() -> None:
    error = failed(lambda: registry.make("statistics", {**config(), "keys": [{"kind": "x"}]}))
    way = ("config", "keys", 0)
    assert field_of(error) == way
    assert field_of(pickle.loads(pickle.dumps(error))) == way
    status = status_of(error)
    failure = Failure(status.code, status.details, tuple(status.trailing_metadata))
    assert field_of(error_of(failure)) == way


@pytest.mark.parametrize(
    ("changes", "way"),
    [
        ({"keys": 3}, ("config", "keys")),
        ({"keys": [{"kind": "integers", "column": "hour"}]}, ("config", "keys", 0, "first")),
        ({"keys": [*config()["keys"], {"kind": "integers", "column": 1, "first": 0, "last": 1}]},
         ("config", "keys", 1, "column")),
        ({"nonsense": 1}, ("config", "nonsense")),
        ({"upper": None}, ("config", "value")),
        ({"statistics": []}, ("config", "statistics")),
        ({"min_share": 7.0}, ("config", "min_share")),
    ],
)  # fmt: skip
def test_a_configuration_names_its_field(changes: dict[str, Any], way: tuple[Any, ...]) -> None:
    error = failed(lambda: registry.make("statistics", {**config(), **changes}))
    assert field_of(error) == way


def test_a_kind_that_is_unknown_is_about_the_kind() -> None:
    assert field_of(failed(lambda: registry.make("nothing", {}))) == ("kind",)


@pytest.mark.parametrize(
    ("path", "value", "way"),
    [
        (("n_max",), 0, ("n_max",)),
        (("policy", "epsilon"), "-1", ("policy", "epsilon")),
        (("policy", "composition"), "none", ("policy", "composition")),
        (("policy", "composition"), "pure", ("policy", "delta")),
        (("policy", "nonsense"), "1", ("policy", "nonsense")),
        (("columns", 2, "upper"), "x", ("columns", 2, "upper")),
        (("columns", 1, "lower"), 99, ("columns", 1, "lower")),
        (("columns", 3), {"name": "driver"}, ("columns", 3)),
        (("columns", 3, "upper"), None, ("columns", 3)),
        (("count_epsilon",), "0", ("count_epsilon",)),
        (("quotas",), {"a.b": "x"}, ("quotas", "share")),
        (("time_column",), "speed", ("time_column",)),
        (("nonsense",), 1, ("nonsense",)),
    ],
)
def test_a_stream_names_its_field(
    path: tuple[Any, ...], value: object, way: tuple[Any, ...]
) -> None:
    body: Any = spec().as_json()
    inner = body
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    assert field_of(failed(lambda: StreamSpec.from_json(body))) == way


def test_what_is_missing_is_named() -> None:
    body: Any = spec().as_json()
    del body["time_column"]
    assert field_of(failed(lambda: StreamSpec.from_json(body))) == ("time_column",)
