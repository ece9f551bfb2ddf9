"""Events, notifications and entries of the audit log as messages, and back."""

from __future__ import annotations

import json

from ptkstore.api import views
from ptkstore.v1 import operation_pb2
from ptkstore.wire.messages.fields import json_object, millis, moment

__all__ = [
    "audit_message",
    "audit_view",
    "delivery_message",
    "delivery_view",
    "event_message",
    "event_view",
]


def event_message(event: views.EventView) -> operation_pb2.Event:
    """An event."""
    return operation_pb2.Event(
        id=event.id,
        kind=event.kind,
        subject=event.subject,
        body_json=json.dumps(event.body),
        create_time=moment(event.at_ms),
    )


def event_view(message: operation_pb2.Event) -> views.EventView:
    """Back."""
    body = json_object(message.body_json, "an event's body")
    return views.EventView(
        message.id, message.kind, message.subject, body, millis(message, "create_time")
    )


def delivery_message(delivery: views.DeliveryView) -> operation_pb2.Delivery:
    """A notification that did not arrive."""
    return operation_pb2.Delivery(
        id=delivery.id,
        ptk=delivery.ptk,
        rpc_endpoint=delivery.rpc_endpoint,
        version=delivery.version,
        attempts=delivery.attempts,
        dead=delivery.dead,
        reason=delivery.reason,
        next_attempt_time=moment(delivery.next_attempt_ms),
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


def audit_message(audit: views.AuditView) -> operation_pb2.AuditEntry:
    """An entry of the audit log."""
    return operation_pb2.AuditEntry(
        number=audit.number,
        time=moment(audit.at_ms),
        who=audit.who,
        what=audit.what,
        subject=audit.subject,
        outcome=audit.outcome,
        times=audit.times,
    )


def audit_view(message: operation_pb2.AuditEntry) -> views.AuditView:
    """Back."""
    at_ms = millis(message, "time")
    # An older server says nothing of repetitions, and has an entry for each.
    times = message.times or 1
    return views.AuditView(
        message.number, at_ms, message.who, message.what, message.subject, message.outcome, times
    )
