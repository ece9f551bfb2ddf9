"""Errors as pages: every kind has its status, and what goes by itself says so."""

from __future__ import annotations

import grpc
import pytest

from ptklib.errors import InvalidInput, Refused, SageError
from ptkstore.console.page.faults import fault_of
from ptkstore.wire.faults import KINDS, AccessDenied, LimitExceeded


@pytest.mark.parametrize(
    "kind",
    [kind for kind, code in KINDS.items() if code == grpc.StatusCode.UNAVAILABLE],
    ids=lambda kind: kind.__name__,
)
def test_whatever_is_away_the_page_says_to_look_again(kind: type[SageError]) -> None:
    fault = fault_of(kind("SOMETHING_UNAVAILABLE", "away"))
    assert (fault.status, fault.title) == (503, "The store does not answer")
    assert fault.advice == "Load the page again in a moment."


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidInput("VALUE_INVALID", "no"), 400),
        (AccessDenied("CREDENTIALS_INVALID", "no"), 401),
        (AccessDenied("PERMISSION_DENIED", "no"), 403),
        (Refused("PTK_UNKNOWN", "no"), 404),
        (Refused("PLAN_STALE", "no"), 409),
        (LimitExceeded("RATE_LIMITED", "no"), 429),
        (SageError("INTERNAL_ERROR", "no"), 500),
    ],
    ids=lambda one: one.reason if isinstance(one, SageError) else str(one),
)
def test_every_kind_has_its_status(error: SageError, status: int) -> None:
    assert fault_of(error).status == status
