"""Events, notifications and entries of the audit log as messages, and back."""

from __future__ import annotations

import json

from ptkstore import views
from ptkstore.rpc.messages.fields import json_object, millis, moment
from ptkstore.v1 import operation_pb2

__all__ = ["audit_message", "audit_view", "delivery_message", "delivery_view", "event_message", "event_view"]


def event_message(one: views.EventView) -> operation_pb2.Event:
    """An event."""
    return operation_pb2.Event(
        id=one.id, kind=one.kind, subject=one.subject, body_json=json.dumps(one.body), create_time=moment(one.at_ms)
    )


def event_view(message: operation_pb2.Event) -> views.EventView:
    """Back."""
    body = json_object(message.body_json, "an event's body")
    return views.EventView(message.id, message.kind, message.subject, body, millis(message, "create_time"))


def delivery_message(one: views.DeliveryView) -> operation_pb2.Delivery:
    """A notification that did not arrive."""
    return operation_pb2.Delivery(
        id=one.id,
        ptk=one.ptk,
        rpc_endpoint=one.rpc_endpoint,
        version=one.version,
        attempts=one.attempts,
        dead=one.dead,
        reason=one.reason,
        next_attempt_time=moment(one.next_attempt_ms),
    )


def delivery_view(message: operation_pb2.Delivery) -> views.DeliveryView:
    """Back."""
    return views.DeliveryView(
        id=message.id,
        ptk=message.ptk,
        rpc_endpoint=message.rpc_endpoint,
        version=message.version,
        attempts=message.attempts,
        dead=message.dead,
        reason=message.reason,
        next_attempt_ms=millis(message, "next_attempt_time"),
    )


def audit_message(one: views.AuditView) -> operation_pb2.AuditEntry:
    """An entry of the audit log."""
    return operation_pb2.AuditEntry(
        number=one.number,
        time=moment(one.at_ms),
        who=one.who,
        what=one.what,
        subject=one.subject,
        outcome=one.outcome,
        times=one.times,
    )


def audit_view(message: operation_pb2.AuditEntry) -> views.AuditView:
    """Back."""
    at_ms = millis(message, "time")
    # An older server says nothing of repetitions, and has an entry for each.
    times = message.times or 1
    return views.AuditView(message.number, at_ms, message.who, message.what, message.subject, message.outcome, times)
