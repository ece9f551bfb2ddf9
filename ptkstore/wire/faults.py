"""One map between the errors of the project and gRPC statuses, both ways.

A status carries the message and a ``google.rpc.ErrorInfo`` with our reason, the domain, the kind of
error and its details as JSON. The other side looks the kind up in the table below, so nothing on
the wire can name code. An error that is not ours is told first (`ptkstore.api.telling`).

Reasons of this module: SERVER_UNAVAILABLE, SERVER_ERROR, DEADLINE_PASSED,
CALL_CANCELLED, MESSAGE_TOO_LARGE, RPC_UNKNOWN.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc_status import rpc_status

from ptklib import errors
from ptklib.errors import (
    AccessDenied,
    InvalidInput,
    LimitExceeded,
    SageError,
    ServerUnavailable,
)

__all__ = [
    "DOMAIN",
    "KINDS",
    "REASONS",
    "AccessDenied",
    "LimitExceeded",
    "ServerUnavailable",
    "code_of",
    "error_of",
    "status_of",
]

DOMAIN = "sage.ptkstore"
_MAX_MESSAGE = 1000
_MAX_DETAILS = 4000
_Code = grpc.StatusCode


# The kinds of errors that travel, and their codes. A class that is missing here travels as the
# nearest of its bases.
KINDS: Mapping[type[SageError], Any] = {
    InvalidInput: _Code.INVALID_ARGUMENT,
    errors.Refused: _Code.FAILED_PRECONDITION,
    errors.BudgetExceeded: _Code.FAILED_PRECONDITION,
    errors.GrantRefused: _Code.FAILED_PRECONDITION,
    errors.MechanismSpent: _Code.FAILED_PRECONDITION,
    errors.InsecureNoise: _Code.INTERNAL,
    errors.JournalUnavailable: _Code.UNAVAILABLE,
    errors.JournalDamaged: _Code.INTERNAL,
    errors.BlockRefused: _Code.FAILED_PRECONDITION,
    errors.StreamUnavailable: _Code.UNAVAILABLE,
    errors.StreamDamaged: _Code.INTERNAL,
    errors.MetadataUnavailable: _Code.UNAVAILABLE,
    errors.MetadataConflict: _Code.UNAVAILABLE,
    errors.MetadataDamaged: _Code.INTERNAL,
    errors.LakeUnavailable: _Code.UNAVAILABLE,
    errors.StateMissing: _Code.NOT_FOUND,
    errors.StateDamaged: _Code.INTERNAL,
    errors.BusUnavailable: _Code.UNAVAILABLE,
    errors.LeadLost: _Code.UNAVAILABLE,
    errors.PlanContended: _Code.UNAVAILABLE,
    AccessDenied: _Code.PERMISSION_DENIED,
    LimitExceeded: _Code.RESOURCE_EXHAUSTED,
    ServerUnavailable: _Code.UNAVAILABLE,
    SageError: _Code.INTERNAL,
}

# Reasons that say more than their kind.
REASONS: Mapping[str, Any] = {
    "BLOCK_EXISTS": _Code.ALREADY_EXISTS,
    "BLOCK_UNKNOWN": _Code.NOT_FOUND,
    "CHARGE_UNKNOWN": _Code.NOT_FOUND,
    "CREDENTIALS_INVALID": _Code.UNAUTHENTICATED,
    "CREDENTIALS_MISSING": _Code.UNAUTHENTICATED,
    "CYCLE_UNKNOWN": _Code.NOT_FOUND,
    "DELIVERY_UNKNOWN": _Code.NOT_FOUND,
    "ETAG_STALE": _Code.ABORTED,
    "EVENT_UNKNOWN": _Code.NOT_FOUND,
    "OPERATION_UNKNOWN": _Code.NOT_FOUND,
    "PLAN_STALE": _Code.ABORTED,
    "PLAN_UNKNOWN": _Code.NOT_FOUND,
    "PTK_EXISTS": _Code.ALREADY_EXISTS,
    "PTK_UNKNOWN": _Code.NOT_FOUND,
    "QUOTA_EXCEEDED": _Code.RESOURCE_EXHAUSTED,
    "REQUEST_ID_REUSED": _Code.ALREADY_EXISTS,
    "RPC_UNKNOWN": _Code.UNIMPLEMENTED,
    "STATE_EXISTS": _Code.ALREADY_EXISTS,
    "STATE_UNKNOWN": _Code.NOT_FOUND,
    "STREAM_EXISTS": _Code.ALREADY_EXISTS,
    "STREAM_UNKNOWN": _Code.NOT_FOUND,
    "SUBSCRIPTION_UNKNOWN": _Code.NOT_FOUND,
}

_NAMES = {kind.__name__: kind for kind in KINDS}


def code_of(error: SageError) -> Any:
    """The gRPC code of an error of ours."""
    return REASONS.get(error.reason, KINDS[_kind(error)])


def status_of(error: SageError) -> Any:
    """The status that a call is aborted with."""
    code = code_of(error)
    info = error_details_pb2.ErrorInfo(
        reason=error.reason, domain=DOMAIN, metadata={"kind": _kind(error).__name__}
    )
    room = _MAX_DETAILS
    for name, value in error.details.items():
        text = json.dumps(value, default=str, ensure_ascii=True)
        if len(name) + len(text) <= room:
            info.metadata[f"detail.{name}"] = text
            room -= len(name) + len(text)
    details = AnyMessage()
    details.Pack(info)
    message = error.message[:_MAX_MESSAGE].encode("utf-8", "replace").decode()
    return rpc_status.to_status(
        status_pb2.Status(code=code.value[0], message=message, details=[details])
    )


def error_of(failure: Any) -> SageError:
    """The error behind a call that failed: the one the server raised, or what kept us from hearing
    of it.
    """
    info = _info(failure)
    if info is not None:
        kind = _NAMES.get(info.metadata.get("kind", ""), SageError)
        named = (
            (name.removeprefix("detail."), text)
            for name, text in info.metadata.items()
            if name != "kind"
        )
        # These are the parameters of an error; ours never name a detail so.
        taken = ("self", "reason", "message")
        details = {
            name: value
            for name, text in named
            if name not in taken and (value := _read(text)) is not None
        }
        return kind(info.reason, failure.details() or "", **details)
    code = failure.code()
    if code == _Code.DEADLINE_EXCEEDED:
        return ServerUnavailable(
            "DEADLINE_PASSED", "the server did not answer in time: ask again, or allow more time"
        )
    if code == _Code.CANCELLED:
        return ServerUnavailable("CALL_CANCELLED", "the call was cancelled")
    if code == _Code.UNAVAILABLE:
        return ServerUnavailable(
            "SERVER_UNAVAILABLE",
            "the server cannot be reached: is it running, and is the address right?",
        )
    if code == _Code.RESOURCE_EXHAUSTED:
        return InvalidInput(
            "MESSAGE_TOO_LARGE", "a message is larger than the server takes: send it in pieces"
        )
    if code == _Code.UNIMPLEMENTED:
        return SageError(
            "RPC_UNKNOWN", "the server does not know this call: it is older, or no Sage server"
        )
    return SageError("SERVER_ERROR", f"the server failed with {code.name if code else 'no code'}")


def _kind(error: SageError) -> type[SageError]:
    return next(kind for kind in type(error).__mro__ if kind in KINDS)


def _info(failure: Any) -> Any:
    """The ErrorInfo of ours in a failed call, or None."""
    try:
        status = rpc_status.from_call(failure)
    except (ValueError, AttributeError, TypeError, DecodeError):
        return None
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        try:
            if detail.Unpack(info) and info.domain == DOMAIN:
                return info
        except DecodeError:
            return None
    return None


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
