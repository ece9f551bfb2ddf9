"""The error map: total, both ways, and silent about what it must not tell."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.any_pb2 import Any as AnyMessage
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

import ptklib
import ptkstore
from ptklib.errors import BudgetExceeded, InvalidInput, Refused, SageError
from ptkstore.api.telling import told
from ptkstore.metadata import MetadataUnavailable
from ptkstore.wire import faults
from ptkstore.wire.faults import KINDS, REASONS, code_of, error_of, status_of


class Failure(grpc.RpcError):  # type: ignore[misc, unused-ignore]
    """A failed call as a client sees it."""

    def __init__(
        self, code: Any, details: str = "", trailing: tuple[tuple[str, Any], ...] = ()
    ) -> None:
        self._parts = code, details, trailing

    def code(self) -> Any:
        return self._parts[0]

    def details(self) -> str:
        return self._parts[1]

    def trailing_metadata(self) -> Any:
        return self._parts[2]


def across(error: SageError) -> SageError:
    status = status_of(error)
    return error_of(Failure(status.code, status.details, status.trailing_metadata))


def kinds(kind: type[SageError] = SageError) -> Iterator[type[SageError]]:
    yield kind
    for one in kind.__subclasses__():
        yield from kinds(one)


def test_every_kind_of_error_is_in_the_table() -> None:
    for package in (ptklib, ptkstore):
        for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            importlib.import_module(module.name)
    ours = {kind for kind in kinds() if kind.__module__.startswith(("ptklib", "ptkstore"))}
    assert ours == set(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_an_error_comes_back_as_what_it_was(kind: type[SageError]) -> None:
    error = kind("SOME_REASON", "what happened: ü \n", blocks=["a"], left="0.5", many=3, none=None)
    back = across(error)
    assert type(back) is kind
    assert (back.reason, back.message) == (error.reason, error.message)
    assert dict(back.details) == {"blocks": ["a"], "left": "0.5", "many": 3}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidInput("X", ""), "INVALID_ARGUMENT"),
        (BudgetExceeded("BUDGET_EXCEEDED", ""), "FAILED_PRECONDITION"),
        (Refused("PTK_RETIRED", ""), "FAILED_PRECONDITION"),
        (BudgetExceeded("QUOTA_EXCEEDED", ""), "RESOURCE_EXHAUSTED"),
        (Refused("ETAG_STALE", ""), "ABORTED"),
        (Refused("PTK_UNKNOWN", ""), "NOT_FOUND"),
        (Refused("STREAM_EXISTS", ""), "ALREADY_EXISTS"),
        (MetadataUnavailable("METADATA_UNAVAILABLE", ""), "UNAVAILABLE"),
        (faults.AccessDenied("CREDENTIALS_MISSING", ""), "UNAUTHENTICATED"),
        (faults.AccessDenied("PERMISSION_DENIED", ""), "PERMISSION_DENIED"),
        (faults.LimitExceeded("RATE_LIMITED", ""), "RESOURCE_EXHAUSTED"),
        (SageError("X", ""), "INTERNAL"),
    ],
    ids=lambda one: getattr(one, "reason", one),
)
def test_the_codes_are_those_that_people_know(error: SageError, code: str) -> None:
    assert code_of(error).name == code


def test_what_ends_in_unknown_is_not_found_and_what_ends_in_exists_is_there() -> None:
    for reason, code in REASONS.items():
        if reason.endswith("_UNKNOWN") and reason != "RPC_UNKNOWN":
            assert code == grpc.StatusCode.NOT_FOUND
        if reason.endswith("_EXISTS"):
            assert code == grpc.StatusCode.ALREADY_EXISTS


def test_an_error_that_is_not_ours_tells_nothing() -> None:
    status = status_of(told(ValueError("secret: 42")))
    assert status.code == grpc.StatusCode.INTERNAL
    assert b"secret" not in repr(status).encode()
    assert across(told(KeyError("secret"))).reason == "INTERNAL_ERROR"


def test_a_long_error_fits_into_the_trailers() -> None:
    error = InvalidInput("X", "m" * 10**6, short="s", **{f"k{k}": "v" * 900 for k in range(100)})
    status = status_of(error)
    assert sum(len(key) + len(value) for key, value in status.trailing_metadata) < 8000
    back = across(error)
    assert len(back.message) == 1000
    assert back.details["short"] == "s"


def sent(info: Any) -> SageError:
    packed = AnyMessage()
    packed.Pack(info)
    status = rpc_status.to_status(status_pb2.Status(code=3, message="m", details=[packed]))
    return error_of(Failure(status.code, status.details, status.trailing_metadata))


@pytest.mark.parametrize(
    "kind",
    ["os.system", "Exception", "SystemExit", "State", "__class__", "", "ptklib.errors.Refused"],
)
def test_no_name_on_the_wire_becomes_code(kind: str) -> None:
    made = sent(
        error_details_pb2.ErrorInfo(reason="R", domain=faults.DOMAIN, metadata={"kind": kind})
    )
    assert type(made) is SageError
    assert made.reason == "R"


def test_details_cannot_stand_in_for_parameters_or_break_anything() -> None:
    metadata = {
        "kind": "Refused",
        "detail.reason": '"x"',
        "detail.self": "1",
        "detail.message": '"y"',
        "detail.bad": "{",
    }
    made = sent(error_details_pb2.ErrorInfo(reason="R", domain=faults.DOMAIN, metadata=metadata))
    assert (type(made), made.reason, made.message, dict(made.details)) == (Refused, "R", "m", {})


def test_errors_of_others_are_told_by_their_code() -> None:
    other = sent(
        error_details_pb2.ErrorInfo(reason="R", domain="elsewhere", metadata={"kind": "Refused"})
    )
    assert other.reason == "SERVER_ERROR"
    codes = {
        "DEADLINE_EXCEEDED": "DEADLINE_PASSED",
        "CANCELLED": "CALL_CANCELLED",
        "UNAVAILABLE": "SERVER_UNAVAILABLE",
        "RESOURCE_EXHAUSTED": "MESSAGE_TOO_LARGE",
        "UNIMPLEMENTED": "RPC_UNKNOWN",
        "DATA_LOSS": "SERVER_ERROR",
    }
    for code, reason in codes.items():
        assert error_of(Failure(grpc.StatusCode[code], "secret")).reason == reason
    broken = (("grpc-status-details-bin", b"\xff\xff\xff"),)
    assert error_of(Failure(grpc.StatusCode.INTERNAL, "", broken)).reason == "SERVER_ERROR"
