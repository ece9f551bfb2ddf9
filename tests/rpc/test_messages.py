"""Views survive the wire: every field of every view comes back as it went."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from google.protobuf.message import Message

from ptklib.errors import InvalidInput
from ptkstore.api import views
from ptkstore.api.views.remedies import ADVICE, Remedy
from ptkstore.v1 import operation_pb2, plan_pb2, ptk_pb2
from ptkstore.wire import messages
from tests.engine.small import spec

REMEDIES = (
    Remedy(kind="epsilon", field="epsilon", value="1.25", text="a"),
    Remedy(kind="n_max", field="n_max", value=5000, text="b"),
    Remedy(kind="target", ptk="p", field="target", value=0.25, text="c"),
    Remedy(kind="target", ptk="p", field="target", text="d"),
    Remedy(kind="remove", ptk="p", text="e"),
)
ERROR = views.StateError("test", 0.2, "0.95", 0.0, 0.15, 0.3)
FULL: list[tuple[Any, Callable[[Any], Message], Callable[[Any], Any]]] = [
    (
        views.Registration("a", "REJECTED", "why", 0.25, ("x", "y"), "0.5", 10, True, REMEDIES),
        messages.registration_message,
        messages.registration_view,
    ),
    (
        views.PtkView(
            "a",
            "s",
            "k",
            {"x": [1, None, {"y": 0.1}]},
            3,
            None,
            2,
            "ACTIVE",
            "why",
            7,
            0.5,
            ("x", "y"),
            True,
            REMEDIES,
            "rolling:7",
            "0.3",
        ),
        lambda one: messages.ptk_message(one, 5),
        messages.ptk_view,
    ),
    (
        views.ProfileView(
            "a",
            "WAITING",
            "measured",
            ("0.5", "1"),
            (10, None),
            "0.1",
            "0.95",
            4,
            ({"level": "1"},),
            1234,
            99,
            "why",
        ),
        messages.profile_message,
        lambda one: messages.profile_view("a", one),
    ),
    (
        views.StateView(
            "a", 2, "d" * 64, 20454, "0.5", "1e-6", 100, 1_767_225_600_123, "NOT_TESTED", "X", ERROR
        ),
        messages.state_message,
        messages.state_view,
    ),
    (
        views.BlockLine("b", 3, "sealed", -2, 0.75, "expired"),
        messages.block_message,
        messages.block_line,
    ),
    (
        views.PlanView(
            "s",
            -1,
            "FEASIBLE",
            10,
            20,
            "strip",
            0.5,
            (
                views.PlanLine("a", "0.5", 10, 0.5, 0.1, (0, 2), 0.25),
                views.PlanLine("b", "0.3", 64, 0.1, None, (1,), 0.25),
            ),
            "why",
            ("x",),
            11,
            3600,
            9,
            0.1,
            (views.PartitionLine(10, 1, 0.9),),
            0.01,
            (views.LeftOutLine("b", "WINDOW_TOO_SMALL", "why"),),
            REMEDIES,
            "surplus",
            (views.SurplusLine("a", "0.7", 18, 0.9, 0.8, 0.3),),
            18,
            "the areas say so",
        ),
        messages.plan_message,
        messages.plan_view,
    ),
    (
        views.CycleView(
            "s",
            3,
            "SHORT",
            ("sealed",),
            "OPTIMAL",
            10,
            (
                views.TrainedLine("a", "PUBLISHED", 1, "0.5", 10, "why"),
                views.TrainedLine("b", "PUBLISHED", 1, "0.5", 10, "", "ESTIMATED", "at most 0.1"),
            ),
            {"PUBLISHED": 1},
            "1 of 2",
            ("wait",),
        ),
        messages.cycle_message,
        messages.cycle_view,
    ),
    (
        views.EventView(1, "ptk.state", "a", {"x": 1}, 5),
        messages.event_message,
        messages.event_view,
    ),
    (
        views.OperationView(
            "7",
            "CloseWindow",
            "s",
            "FAILED",
            "3 of 4",
            (views.CycleView("s", 3, "DONE", (), "OPTIMAL", 10, ()),),
            "LEAD_LOST",
            "why",
            60_000,
            120_000,
        ),
        messages.operation_message,
        messages.operation_view,
    ),
    (
        views.DeliveryView("7", "a", "host:1", 3, 12, True, "UNAVAILABLE", 5),
        messages.delivery_message,
        messages.delivery_view,
    ),
    (
        views.AuditView(7, 5, "ann", "what", "a", "DENIED", times=3),
        messages.audit_message,
        messages.audit_view,
    ),
]
EMPTY: list[Any] = [
    views.Registration("a", "ACTIVE"),
    views.PtkView("a", "s", "k", {}, 1, 0.1, 1, "RETIRED", "", None),
    views.ProfileView("a", "ACTIVE", "none", (), ()),
    views.StateView("a", 1, "d", 0, "1", "0", None, 0),
    views.BlockLine("b", 0, "open", None, 0.0, None),
    views.PlanView("s", -1, "INFEASIBLE", None, None, "", 0.0, ()),
    views.CycleView("s", 0, "RUNNING", (), "", 0, (views.TrainedLine("a", "SKIPPED"),)),
    views.EventView(1, "k", "a", {}, None),
    views.OperationView("7", "CloseWindow", "s", "RUNNING", "", (), "", "", None, None),
    views.DeliveryView("7", "a", "", 1, 0, False, "", None),
    views.AuditView(0, None, "", "", "a", ""),
]


@pytest.mark.parametrize("place", range(len(FULL)), ids=lambda place: type(FULL[place][0]).__name__)
def test_a_view_comes_back_as_it_went(place: int) -> None:
    full, to_message, to_view = FULL[place]
    for one in (full, EMPTY[place]):
        message = to_message(one)
        assert to_view(type(message).FromString(message.SerializeToString())) == one


@pytest.mark.parametrize("place", range(len(FULL)), ids=lambda place: type(FULL[place][0]).__name__)
def test_every_field_is_tried(place: int) -> None:
    """A field that is added to a view and not to the contract fails here, not at a user's."""
    full, empty = FULL[place][0], EMPTY[place]
    same = [one.name for one in fields(full) if getattr(full, one.name) == getattr(empty, one.name)]
    assert set(same) <= {"name", "stream", "ptk", "kind", "id", "subject", "window", "version"}


def test_the_words_of_an_older_server_are_advice() -> None:
    words = (Remedy(kind=ADVICE, text="x"), Remedy(kind=ADVICE, text="y"))
    assert messages.registration_view(ptk_pb2.Registration(changes=["x", "y"])).remedies == words
    assert messages.ptk_view(ptk_pb2.Ptk(config_json="{}", changes=["x", "y"])).remedies == words
    assert messages.plan_view(plan_pb2.Plan(changes=["x", "y"])).remedies == words


def test_a_budget_and_a_charge_come_back() -> None:
    exposure = views.ExposureView(5, None, 2, 100)
    for left in ((None, None), (0.0, 0.5)):
        one = views.BudgetSummary("s", "event", "1", "1e-6", "renyi", exposure, 3, 4, *left)
        assert messages.budget_summary(messages.budget_message(one)) == one
    charge = views.ChargeLine(7, "reserve", "cycle-1/a", {"kind": "reserve", "demand": [1, 2]})
    assert messages.charge_line(messages.charge_message(charge)) == charge


def test_a_stream_comes_back() -> None:
    message = messages.stream_message(spec(), 5)
    assert messages.spec_of(message) == spec()
    assert message.schema_fingerprint == spec().fingerprint


def test_every_status_has_its_number() -> None:
    words = ("WAITING", "ACTIVE", "REJECTED", "RETIRED", "FAILED")
    assert [messages.status_word(messages.status_number(word)) for word in words] == list(words)
    assert [messages.status_word(number) for number in (0, 99, -1)] == ["", "", ""]


def test_an_operation_of_a_newer_server_is_read() -> None:
    newer = operation_pb2.Operation.FromString(
        operation_pb2.Operation(id="7").SerializeToString() + b"\x20\x63"
    )
    assert newer.status == 99
    assert messages.operation_view(newer).status == ""


@pytest.mark.parametrize(
    "ms", [0, 1, -1, 1_767_225_600_123, -62_135_596_800_000, 253_402_300_799_999]
)
def test_times_are_exact(ms: int) -> None:
    message = ptk_pb2.State(create_time=messages.moment(ms))
    assert messages.millis(message, "create_time") == ms


def test_times_beyond_the_calendar_and_texts_that_are_no_objects_are_refused() -> None:
    message = ptk_pb2.State()
    assert messages.millis(message, "create_time") is None
    for seconds, nanos in ((2**62, 0), (-(2**62), 0), (0, -5), (0, 10**9)):
        message.create_time.seconds, message.create_time.nanos = seconds, nanos
        with pytest.raises(InvalidInput, match="TIME_INVALID"):
            messages.millis(message, "create_time")
    for text in ("", "[]", "{", "null", "[" * 100_000):
        with pytest.raises(InvalidInput, match="JSON_INVALID"):
            messages.json_object(text, "it")


@pytest.mark.parametrize("told", [ERROR, views.StateError("closed form", 0.01, "0.95")])
def test_an_error_comes_back_with_what_is_not_known_left_out(told: views.StateError) -> None:
    state = views.StateView("a", 1, "d", 0, "1", "0", None, 0, error=told)
    assert messages.state_view(messages.state_message(state)) == state
